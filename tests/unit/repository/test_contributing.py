"""The map in CONTRIBUTING.md names every package, and only paths that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.support import ROOT


def mapped_paths() -> Iterator[str]:
    """Yield the paths of the map; a line is a directory or file, indented below its parent."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(r"(?ms)^## Where things are\n+```\n(.*?)^```", text)
    assert block is not None
    parents: dict[int, str] = {}
    for line in block[1].splitlines():
        depth = len(line) - len(line.lstrip())
        parent = "".join(parents[level] for level in sorted(parents) if level < depth)
        names = re.findall(r"(?:^|(?<=  ))[\w./-]+(?:/|\.py)(?=\s|$)", line)
        assert names, line
        parents = {level: name for level, name in parents.items() if level < depth} | {depth: names[0]}
        yield from (parent + name for name in names)


def test_every_path_of_the_map_exists() -> None:
    assert [path for path in mapped_paths() if not (ROOT / path).exists()] == []


def test_every_package_is_in_the_map() -> None:
    source = ROOT / "src" / "agenteval"
    packages = {file.parent for depth in ("*", "*/*") for file in source.glob(f"{depth}/__init__.py")}
    mapped = {ROOT / path for path in mapped_paths()}
    assert len(packages) > 15
    assert sorted(package.relative_to(ROOT).as_posix() for package in packages - mapped) == []
