"""Prints what CHANGELOG.md says of a version, if all that names it agrees; usage: release_notes.py vX.Y.Z."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_TAG = re.compile(r"v(\d+\.\d+\.\d+)")
# Where the version stands beside pyproject.toml.
_PLACES = {
    "src/agenteval/core/version.py": r'(?m)^__version__ = "(.+)"$',
    "Dockerfile": r'org\.opencontainers\.image\.version="(.+?)"',
}


def release_notes(root: Path, tag: str) -> str:
    """The changelog's section of a release.

    Args:
        root: the repository.
        tag: ``vX.Y.Z``.

    Raises:
        ValueError: with every place that says something else, and if there is no section with a date.
    """
    match = _TAG.fullmatch(tag)
    if match is None:
        raise ValueError(f"{tag!r} is not of the form vX.Y.Z")
    version = match[1]
    said = {"pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]}
    for name, pattern in _PLACES.items():
        found = re.search(pattern, (root / name).read_text("utf-8"))
        said[name] = found[1] if found else "nothing"
    problems = [f"{name} says {other}, not {version}" for name, other in said.items() if other != version]
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    section = re.search(rf"(?ms)^## {re.escape(version)} \((\S+)\)\n(.*?)(?=^## |\Z)", changelog)
    if section is None:
        problems.append(f"CHANGELOG.md has no section `## {version} (YYYY-MM-DD)`")
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", section[1]):
        problems.append(f"CHANGELOG.md says {section[1]} where the date of {version} should stand")
    if problems or section is None:
        raise ValueError("; ".join(problems))
    return section[2].strip() + "\n"


def main(arguments: list[str]) -> int:
    """Print the notes; the exit status is 2 if something does not agree."""
    if len(arguments) != 1:
        print("usage: release_notes.py vX.Y.Z", file=sys.stderr)
        return 2
    try:
        print(release_notes(Path(__file__).parents[1], arguments[0]), end="")
    except ValueError as error:
        print(f"release_notes.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
