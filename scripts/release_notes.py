"""Prints or collects release notes; usage: release_notes.py vX.Y.Z, or release_notes.py --collect X.Y.Z.

The first form prints the section of a version in CHANGELOG.md if all files agree on it. The second form moves the
entries of ``changes/*.md`` to that section, sets its date, and removes the line of README.md about the time before.
"""

from __future__ import annotations

import re
import sys
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path

_TAG = re.compile(r"v(\d+\.\d+\.\d+)")
# Files that contain the version, besides pyproject.toml.
_PLACES = {
    "src/agenteval/core/version.py": r'(?m)^__version__ = "(.+)"$',
    "Dockerfile": r'org\.opencontainers\.image\.version="(.+?)"',
}


# The one line that is wrong once something is published, with the empty line above it.
_UNPUBLISHED = re.compile(r"\n\n[^\n]*<!-- unpublished -->(?=\n)")


def release_notes(root: Path, tag: str) -> str:
    """Return the changelog's section of a release.

    Raises:
        ValueError: a file has another version, the section or its date is missing, or something is not collected.
    """
    match = _TAG.fullmatch(tag)
    if match is None:
        raise ValueError(f"{tag!r} is not of the form vX.Y.Z")
    version = match[1]
    found = {"pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]}
    for name, pattern in _PLACES.items():
        written = re.search(pattern, (root / name).read_text("utf-8"))
        found[name] = written[1] if written else "none"
    problems = [
        f"{name}: expected version {version}, found {other}" for name, other in found.items() if other != version
    ]
    section = _section(version).search((root / "CHANGELOG.md").read_text("utf-8"))
    if section is None:
        problems.append(f"CHANGELOG.md: no section `## {version} (YYYY-MM-DD)`; run make changelog VERSION={version}")
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", section[1]):
        problems.append(
            f"CHANGELOG.md: {version} has no date but '{section[1]}'; run make changelog VERSION={version}"
        )
    if entries(root):
        problems.append(f"changes/: entries are not in CHANGELOG.md; run make changelog VERSION={version}")
    if _UNPUBLISHED.search((root / "README.md").read_text("utf-8")):
        problems.append(f"README.md: it says that nothing is published; run make changelog VERSION={version}")
    if problems or section is None:
        raise ValueError("; ".join(problems))
    return section[2].strip() + "\n"


def entries(root: Path) -> dict[Path, str]:
    """Return the changelog entries of unreleased changes by file.

    Raises:
        ValueError: a file does not consist of list items.
    """
    found = {file: file.read_text("utf-8").strip() for file in sorted((root / "changes").glob("*.md"))}
    for file, text in found.items():
        if not re.fullmatch(r"\* \S.*(\n(\* \S|  \S).*)*", text):
            raise ValueError(f"changes/{file.name}: expected list items that begin with '* '")
    return found


def collect(root: Path, version: str, today: date) -> None:
    """Move the entries of ``changes/`` to the section of a version, which may be new, and set its date.

    Raises:
        ValueError: the version or an entry has another form, or there is nothing to release.
    """
    if _TAG.fullmatch(f"v{version}") is None:
        raise ValueError(f"{version!r} is not of the form X.Y.Z")
    new = entries(root)
    file = root / "CHANGELOG.md"
    text = file.read_text("utf-8")
    section = _section(version).search(text)
    before, old, after = (
        (text[: section.start()], section[2].strip(), text[section.end() :]) if section else _head(text)
    )
    body = "\n".join(filter(None, [old, *new.values()]))
    if not body:
        raise ValueError(f"changes/: no entries for {version}")
    gap = "\n" if after else ""
    file.write_text(f"{before}## {version} ({today})\n\n{body}\n{gap}{after}", "utf-8")
    for entry in new:
        entry.unlink()
    readme = root / "README.md"
    readme.write_text(_UNPUBLISHED.sub("", readme.read_text("utf-8")), "utf-8")


def _section(version: str) -> re.Pattern[str]:
    """Match a section of the changelog: date, content."""
    return re.compile(rf"(?ms)^## {re.escape(version)} \((\S+)\)\n(.*?)(?=^## |\Z)")


def _head(text: str) -> tuple[str, str, str]:
    """Split the changelog before its newest section."""
    newest = re.search(r"(?m)^## ", text)
    at = newest.start() if newest else len(text)
    return text[:at], "", text[at:]


def main(arguments: list[str]) -> int:
    """Run one of the two forms; the exit status is 2 if a file is wrong."""
    root = Path(__file__).parents[1]
    try:
        match arguments:
            case ["--collect", version]:
                collect(root, version, datetime.now(UTC).date())
            case [tag] if not tag.startswith("-"):
                print(release_notes(root, tag), end="")
            case _:
                print("usage: release_notes.py vX.Y.Z, or release_notes.py --collect X.Y.Z", file=sys.stderr)
                return 2
    except ValueError as error:
        print(f"release_notes.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
