"""Writes the versions of ``requirements/actions.yml`` into all workflows and documents; usage: `make actions`.

An action is used as ``uses: OWNER/NAME@COMMIT # VERSION``. Only this repository's own action is used by its tag.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = ROOT / "requirements" / "actions.yml"

_PLACES = (
    ".github/workflows/*.yml",
    "**/action.yml",
    "docs/**/*.md",
    "examples/workflows/*.yml",
    "README.md",
    "src/agenteval/cli/starters/**/*.yml",
)
_FOREIGN = frozenset({"node_modules", ".venv", "tests"})
# Its commit is not known before it is released.
_OWN = "org/agenteval-action"
_USES = re.compile(
    r"(?P<before>\buses: )(?P<name>[\w.-]+/[\w.-]+)(?P<path>(?:/[\w.-]+)*)@(?P<ref>[\w./-]+)(?P<comment> +#.*)?"
)
_PINNED = re.compile(r"(?m)^ +- uses: ([\w.-]+/[\w.-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$")


@dataclass(frozen=True)
class Pin:
    """A version of an action, and its commit."""

    version: str
    commit: str


def pins() -> Mapping[str, Pin]:
    """Return the listed version of each action by ``owner/name``.

    Raises:
        ValueError: a line names no commit or no version, or an action is listed twice.
    """
    text = LIST.read_text(encoding="utf-8")
    listed = {name: Pin(version, commit) for name, commit, version in _PINNED.findall(text)}
    if len(listed) != text.count("uses:"):
        raise ValueError(f"{LIST.name}: each line must be `- uses: OWNER/NAME@COMMIT # vX.Y.Z`, for another action")
    return listed


def files() -> Iterator[Path]:
    """Yield the files that use actions."""
    found = {file for pattern in _PLACES for file in ROOT.glob(pattern)}
    yield from sorted(file for file in found if not _FOREIGN.intersection(file.relative_to(ROOT).parts))


def used(text: str) -> frozenset[str]:
    """Return the actions that a text uses, without this repository's own."""
    return frozenset(match["name"] for match in _USES.finditer(text)) - {_OWN}


def pinned(text: str, listed: Mapping[str, Pin]) -> str:
    """Return a text with the listed versions of its actions.

    Raises:
        ValueError: an action is not listed.
    """
    unknown = sorted(used(text) - listed.keys())
    if unknown:
        raise ValueError(f"not in requirements/actions.yml: {', '.join(unknown)}; add the commit of a version")

    def replaced(match: re.Match[str]) -> str:
        pin = listed.get(match["name"])
        if pin is None:
            return match[0]
        return f"{match['before']}{match['name']}{match['path']}@{pin.commit} # {pin.version}"

    return _USES.sub(replaced, text)


def main() -> int:
    """Write every file whose versions differ; the exit status is 2 if an action is not listed."""
    try:
        listed = pins()
        written = {file: pinned(file.read_text(encoding="utf-8"), listed) for file in files()}
    except ValueError as error:
        print(f"actions.py: {error}", file=sys.stderr)
        return 2
    for file, text in written.items():
        if file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"wrote {file.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
