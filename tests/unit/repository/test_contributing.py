"""The map in CONTRIBUTING.md names every package, and only paths that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.support import ROOT


def map_of_files() -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(r"(?ms)^## Where things are\n+```\n(.*?)^```", text)
    assert block is not None
    return block[1]


def mapped_paths() -> Iterator[str]:
    """Yield the path at the start of each line, which is indented below its parent."""
    parents: dict[int, str] = {}
    for line in map_of_files().splitlines():
        depth = len(line) - len(line.lstrip())
        parents = {level: name for level, name in parents.items() if level < depth}
        yield "".join(parents.values()) + line.split()[0]
        parents[depth] = line.split()[0]


def test_every_path_of_the_map_exists() -> None:
    assert [path for path in mapped_paths() if not (ROOT / path).exists()] == []


def test_every_package_is_in_the_map() -> None:
    source = ROOT / "src" / "agenteval"
    packages = {file.parent.name for depth in ("*", "*/*") for file in source.glob(f"{depth}/__init__.py")}
    assert len(packages) > 15
    assert sorted(name for name in packages if f"{name}/" not in map_of_files()) == []


def test_every_file_on_the_way_of_a_run_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    way = text.partition("**Follow one run")[2].partition("**The import rule")[0]
    files = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", way)
    assert len(files) >= 8
    assert [file for file in files if not (ROOT / "src" / "agenteval" / file).exists()] == []
