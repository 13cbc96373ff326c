"""The table above the sections of a comment that several jobs share. Pure.

A section keeps its row of the table in a hidden line, so that every job can write the whole table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agenteval.core.masking import shortened
from agenteval.results.verdict import Verdict

if TYPE_CHECKING:
    from agenteval.ci.github.comment.sections import Section

_LONGEST_HEADING = 100
_LONGEST_CELL = 200
_HEAD = (
    "| | Agent | Cases pass | Broke | Cost per answer | Time per answer | |",
    "|:-:|:--|--:|:--|--:|--:|:--|",
)
_CELLS = 7
_CELL = re.compile(r"(?<!\\)\|")
_TAG = re.compile(r"<[^>]*>?")
_SUB = re.compile(r"<sub>.*?</sub>")
_ICONS: dict[Verdict | None, str] = {"passed": "✅", "failed": "❌", "unproven": "❌", "error": "🔌", None: "⏳"}


def overview(sections: Sequence[Section]) -> Iterator[str]:
    """Yield the lines above the sections: a heading, and a row for each of them."""
    bad = [_name(section) for section in sections if section.verdict not in {"passed", None}]
    yield _heading(bad, len(sections))
    yield ""
    yield from _HEAD
    yield from map(_row, sections)
    yield ""


def summary_of(section: Section) -> str:
    """Return the line of a folded section: its heading without Markdown."""
    return section.heading.removeprefix("### ") or f"{_ICONS[section.verdict]} {_name(section)}"


def is_row(text: str) -> bool:
    """Return whether a text can be a row in a hidden line."""
    return text.startswith("| ") and text.endswith(" |") and "-->" not in text and "\n" not in text


def _heading(bad: Sequence[str], amount: int) -> str:
    if not bad:
        return f"### ✅ {amount} agents: nothing broke or fell"
    start = f"### ❌ {len(bad)} of {amount} agents did not pass"
    named = f"{start}: {', '.join(bad)}"
    return named if len(named) <= _LONGEST_HEADING else start


def _row(section: Section) -> str:
    cells = _CELL.split(section.row)[1:-1] if section.row else []
    if len(cells) != _CELLS:
        first = shortened(_TAG.sub("", summary_of(section)), _LONGEST_CELL).replace("|", "\\|")
        cells = [f" {_ICONS[section.verdict]} ", f" <b>{section.label}</b> ", "", f" {first} ", "", "", ""]
    if section.notice:
        cells[0] = " ⏳ "
    return f"|{'|'.join(cells)}|"


def _name(section: Section) -> str:
    cells = _CELL.split(section.row)[1:-1] if section.row else []
    return _TAG.sub("", _SUB.sub("", cells[1])).strip() if len(cells) == _CELLS else section.label
