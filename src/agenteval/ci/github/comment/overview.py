"""The table above the sections of a comment that several jobs share. Pure.

A section keeps its row of the table in a hidden line, so that every job can write the whole table. Jobs without a
result have a row that is in no section: the job that writes the comment asks GitHub for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agenteval.core.masking import shortened
from agenteval.core.text.escape import address, markdown_inline
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

AbsentState = Literal["waiting", "skipped", "ended"]

_ICONS_WITHOUT: Mapping[AbsentState, str] = {"waiting": "⏳", "skipped": "⚪", "ended": "🔌"}
# A comment is not written again when such a job ends, so nothing here says that it is at work just now.
_WORDS_WITHOUT: Mapping[AbsentState, str] = {
    "waiting": "no result yet",
    "skipped": "skipped, not run",
    "ended": "ended without a result",
}
_LONGEST_JOB = 100


@dataclass(frozen=True, slots=True)
class Absent:
    """A job of the workflow run that has no result in the comment.

    Attributes:
        name: its name, with the values of its matrix.
        state: whether it may still write one, was skipped, or ended without one.
        page: address of its log; empty if it is unknown.
        keys: its sections of an earlier run.
    """

    name: str
    state: AbsentState
    page: str = ""
    keys: tuple[str, ...] = ()


def overview(sections: Sequence[Section], absent: Sequence[Absent] = ()) -> Iterator[str]:
    """Yield the lines above the sections: a heading, and a row for each of them and for each job without one."""
    states = {key: each for each in absent for key in each.keys}
    unwritten = [each for each in absent if not each.keys]
    yield _heading(sections, states, unwritten)
    yield ""
    yield from _HEAD
    for section in sections:
        yield _row(section, states.get(section.key))
    yield from map(_row_without, unwritten)
    yield ""


def summary_of(section: Section) -> str:
    """Return the line of a folded section: its heading without Markdown."""
    return section.heading.removeprefix("### ") or f"{_ICONS[section.verdict]} {_name(section)}"


def is_row(text: str) -> bool:
    """Return whether a text can be a row in a hidden line."""
    return text.startswith("| ") and text.endswith(" |") and "-->" not in text and "\n" not in text


def _heading(sections: Sequence[Section], states: Mapping[str, Absent], unwritten: Sequence[Absent]) -> str:
    bad = [_name(section) for section in sections if section.verdict not in {"passed", None}]
    bad += [markdown_inline(each.name, _LONGEST_JOB) for each in unwritten if each.state == "ended"]
    # A skipped job is no agent of this run, unless the result of an earlier one still stands here.
    amount = len(sections) + sum(each.state != "skipped" for each in unwritten)
    if bad:
        start = f"### ❌ {len(bad)} of {amount} agents did not pass"
        named = f"{start}: {', '.join(bad)}"
        return named if len(named) <= _LONGEST_HEADING else start
    waiting = sum(each.state == "waiting" for each in (*states.values(), *unwritten))
    if waiting:
        return f"### ⏳ {amount - waiting} of {amount} agents have a result: nothing broke or fell so far"
    return f"### ✅ {amount} {'agent' if amount == 1 else 'agents'}: nothing broke or fell"


def _row_without(job: Absent) -> str:
    """Return the row of a job without a section."""
    icon, words = _ICONS_WITHOUT[job.state], _WORDS_WITHOUT[job.state]
    log = f'<a href="{address(job.page)}">log</a>' if job.page and job.state != "skipped" else ""
    return f"| {icon} | <b>{markdown_inline(job.name, _LONGEST_JOB)}</b> | | {words} | | | {log} |"


def _row(section: Section, absent: Absent | None = None) -> str:
    cells = _CELL.split(section.row)[1:-1] if section.row else []
    if len(cells) != _CELLS:
        first = shortened(_TAG.sub("", summary_of(section)), _LONGEST_CELL).replace("|", "\\|")
        cells = [f" {_ICONS[section.verdict]} ", f" <b>{section.label}</b> ", "", f" {first} ", "", "", ""]
    if absent is not None:
        cells[0] = f" {_ICONS_WITHOUT[absent.state]} "
        cells[3] = f"{cells[3].rstrip()} <sub>{_WORDS_WITHOUT[absent.state]}; this is an earlier result</sub> "
    elif section.notice:
        cells[0] = " ⏳ "
    return f"|{'|'.join(cells)}|"


def _name(section: Section) -> str:
    cells = _CELL.split(section.row)[1:-1] if section.row else []
    return _TAG.sub("", _SUB.sub("", cells[1])).strip() if len(cells) == _CELLS else section.label
