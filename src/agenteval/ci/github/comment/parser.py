"""Parses the text of the sticky comment, also after edits by users. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import get_args

from agenteval.ci.github.comment.sections import Comment, Origin, Revision, Section, unix_lines
from agenteval.results.verdict import Verdict

_MARKER = re.compile(
    r"<!--\s*agenteval:(?P<kind>[a-z]+)"
    r"(?:\s+(?:key|id)=(?P<name>[A-Za-z0-9._-]{1,100}))?"
    r"(?:\s+rev=(?P<run>[0-9]{1,20})\.(?P<attempt>[0-9]{1,20})\.(?P<stamp>[0-9]{1,20}))?"
    r"(?:\s+of=(?P<workflow>[0-9a-f]{8})\.(?P<job>[0-9a-f]{8})\.(?P<step>[0-9a-f]{8}))?"
    r"(?:\s+verdict=(?P<verdict>[a-z]{1,20}))?\s*-->"
)
_LINE = re.compile(r"<!--\s*agenteval:(?P<kind>row|heading)\s(?P<text>.*)\s-->")
_VERDICTS: dict[str | None, Verdict] = {word: word for word in get_args(Verdict)}
#: Inner markers of a section, and the part after each of them.
_PARTS = {"running": "head", "more": "detail", "less": "note"}


def parse(body: str) -> Comment | None:
    """Parse a comment; return ``None`` if the text does not begin with agenteval's marker.

    Accepts edited comments: any line ends, lost end markers (a section then ends at the next marker), and text
    outside of sections, which is dropped.
    """
    first, *rest = unix_lines(body).lstrip().split("\n")
    found = _MARKER.fullmatch(first.strip())
    if not found or found["kind"] != "comment" or not found["name"]:
        return None
    return Comment(f"<!-- agenteval:comment id={found['name']} -->", tuple(_sections(rest)))


def _sections(lines: Iterable[str]) -> Iterator[Section]:
    reading: _Reading | None = None
    for line in lines:
        found = _MARKER.fullmatch(line.strip())
        if found is None:
            if reading:
                reading.read(line)
        elif found["kind"] in {"section", "end", "fold"}:
            if reading:
                yield reading.section()
            reading = _Reading(found) if found["kind"] == "section" and found["name"] else None
        elif reading and found["kind"] in _PARTS:
            reading.enter(_PARTS[found["kind"]])
    if reading:
        yield reading.section()


class _Reading:
    """A section without end marker so far."""

    def __init__(self, found: re.Match[str]) -> None:
        self.key: str = found["name"]
        self.revision = Revision(*(int(found[part] or 0) for part in ("run", "attempt", "stamp")))
        self.verdict = _VERDICTS.get(found["verdict"])
        self.origin = Origin(found["workflow"], found["job"], found["step"]) if found["workflow"] else None
        self.texts: dict[str, list[str]] = {"head": []}
        self.part = "head"
        self.row = ""

    def read(self, line: str) -> None:
        hidden = _LINE.fullmatch(line.strip())
        if hidden and hidden["kind"] == "row":
            self.row = hidden["text"]
        else:
            self.texts[self.part].append(hidden["text"] if hidden else line)

    def enter(self, part: str) -> None:
        if part == "head" and self.part == "head" and "notice" not in self.texts:
            # The text before was the notice.
            self.texts = {"notice": self.texts["head"], "head": []}
        self.texts.setdefault(part, [])
        self.part = part

    def section(self) -> Section:
        text = {part: "\n".join(lines) for part, lines in self.texts.items()}
        detail = None if "note" in text else text.get("detail", "")
        notice = text.get("notice", "")
        return Section(self.key, text["head"], detail, self.revision, notice, self.verdict, self.origin, self.row)
