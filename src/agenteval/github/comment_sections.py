"""Text of the sticky comment: a marker line, a table above all sections, then one section per job. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, Self

from agenteval.core.escape import address, markdown_inline
from agenteval.core.records import dataclass, field, replace
from agenteval.core.secrets import shortened
from agenteval.report.parts import COMMENT_LIMIT, ReportTooLargeError, characters
from agenteval.results.verdict import Verdict

# A section keeps its row of the table in a hidden line, so that every job can write the whole table. Jobs without a
# result have a row that is in no section: the job that writes the comment asks GitHub for them.

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


@dataclass(frozen=True)
class Absent:
    """A job of the workflow run that has no result in the comment.

    Attributes:
        state: whether it may still write one, was skipped, or ended without one.
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


# A comment with one section:
#
#   <!-- agenteval:comment id=default -->
#   <!-- agenteval:section key=ci-eval-1a2b3c4d rev=7001.1.1763712000 of=0d1c2b3a.11aa22bb.33cc44dd verdict=passed -->
#   a notice that the job is running again
#   <!-- agenteval:running -->
#   the head
#   <!-- agenteval:more -->
#   detail, which can be omitted to save space
#   <!-- agenteval:end key=ci-eval-1a2b3c4d -->
#
# Only whole lines are markers, and the text of a section cannot contain one. If several jobs share the comment, each
# section is folded: its heading is the line that opens it, and stays in the section as a hidden line.
_DEFAULT_ID = "default"
_MAX_ID = 64
_MAX_SLUG = 40
_MAX_LINE = 200
_MAX_HEADING = 1_000
_OPEN = " open"
_FOLD = "<!-- agenteval:fold -->"

_ORDER: tuple[Verdict | None, ...] = ("failed", "error", "unproven", None, "passed")

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_KEY = re.compile(r"[A-Za-z0-9._-]{1,100}")
_HASH_AT_END = re.compile(r"-[0-9a-f]{8}$")
_FORGED = re.compile(r"<!--(?=\s*agenteval:)")


@dataclass(frozen=True, slots=True, order=True)
class Revision:
    """Revision of a section's text; compared from left to right.

    Args:
        stamp: time of the text, in milliseconds of Unix time.
    """

    run_id: int = 0
    attempt: int = 0
    stamp: int = 0

    def __str__(self) -> str:
        return f"{self.run_id}.{self.attempt}.{self.stamp}"


@dataclass(frozen=True)
class Origin:
    """The step that writes a section, as hashes."""

    workflow: str
    job: str
    step: str

    @classmethod
    def of(cls, workflow: str, job: str, step: str) -> Self:
        """Return the origin with these names."""
        return cls(_hash(workflow), _hash(job), _hash(step))

    def is_job(self, name: str) -> bool:
        """Return whether a job of the workflow run has the name of this one."""
        return _hash(name) == self.job

    def __str__(self) -> str:
        return f"{self.workflow}.{self.job}.{self.step}"


@dataclass(frozen=True)
class Section:
    """Text of one step. Line ends become ``\\n``, outer blank lines are removed, and lines like markers are escaped.

    Args:
        head: Markdown that always stays.
        detail: Markdown that can be omitted to save space; ``None`` if it was omitted.
        notice: Markdown above the head while the job is running again.
        verdict: the verdict that the head shows; ``None`` if it is unknown.
        origin: the step that writes it; ``None`` if it is unknown.
        row: its row in the table of all jobs, as Markdown; empty if it has none.

    Raises:
        ValueError: the key has characters that are not allowed in a marker.
    """

    key: str
    head: str
    detail: str | None = ""
    revision: Revision = Revision()
    notice: str = ""
    verdict: Verdict | None = None
    origin: Origin | None = None
    row: str = ""

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise ValueError(f"{self.key!r} is not the key of a section")
        object.__setattr__(self, "head", _clean(self.head))
        object.__setattr__(self, "row", self.row if is_row(self.row) and not _FORGED.search(self.row) else "")
        object.__setattr__(self, "notice", _clean(self.notice))
        object.__setattr__(self, "detail", None if self.detail is None else _clean(self.detail))

    @property
    def label(self) -> str:
        """Return the readable part of the key."""
        return _HASH_AT_END.sub("", self.key)

    @property
    def heading(self) -> str:
        """Return the first line of the head, if it is a heading that a hidden line can hold; else an empty text."""
        line = self.head.partition("\n")[0]
        return line if line.startswith("### ") and "-->" not in line and len(line) <= _MAX_HEADING else ""

    @property
    def is_empty(self) -> bool:
        """Return whether the section only records that its job is gone."""
        return (self.head, self.notice, self.detail) == ("", "", "")

    def emptied(self, run_id: int) -> Section:
        """Return the record that the job is gone since a workflow run; texts of earlier runs cannot return."""
        return Section(self.key, "", revision=Revision(run_id))

    def lines(self) -> Iterator[str]:
        """Yield the section's parts with markers."""
        yield from self._lines(self.head)

    def folded_lines(self, attributes: str = "") -> Iterator[str]:
        """Yield the section's parts with markers, folded below its heading."""
        # The markers end a section that has lost its end.
        yield from (_FOLD, f"<details{attributes}><summary>{summary_of(self)}</summary>", "")
        hidden = self.heading
        head = f"<!-- agenteval:heading {hidden} -->{self.head[len(hidden) :]}" if hidden else self.head
        yield from self._lines(head)
        yield from (_FOLD, "</details>", "")

    def _lines(self, head: str) -> Iterator[str]:
        known = {"rev": self.revision, "of": self.origin, "verdict": self.verdict}
        attributes = " ".join(f"{name}={value}" for name, value in known.items() if value is not None)
        yield f"<!-- agenteval:section key={self.key} {attributes} -->"
        if self.is_empty:
            yield f"<!-- agenteval:end key={self.key} -->"
            return
        if self.row:
            yield f"<!-- agenteval:row {self.row} -->"
        # The blank lines end tables, quotes and HTML blocks, which would include the marker.
        if self.notice:
            yield from (self.notice, "", "<!-- agenteval:running -->")
        yield from (head, "")
        if self.detail is None:
            yield from ("<!-- agenteval:less -->", _left_out(self.label), "")
        elif self.detail:
            yield from ("<!-- agenteval:more -->", self.detail, "")
        yield f"<!-- agenteval:end key={self.key} -->"

    def size(self) -> int:
        """Return the size of the section in a comment, in characters."""
        return characters("\n".join(self.lines())) + 1

    def without_detail(self) -> Self:
        """Return the section as the parser reads it after the detail was omitted."""
        return self if self.detail == "" else replace(self, detail=None)

    def in_short(self) -> Self:
        """Return the section with only the first line of each text, and without a row."""
        head, notice = _first_line(self.head), _first_line(self.notice)
        return replace(self.without_detail(), head=head, notice=notice, row="")


@dataclass(frozen=True)
class Comment:
    """A comment with one section per key; the worst verdict comes first, then the keys decide.

    Args:
        sections: sections in any order; of two with the same key the newer one is kept, else the later one.
    """

    mark: str
    sections: tuple[Section, ...] = ()
    absent: tuple[Absent, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        newest: dict[str, Section] = {}
        for section in self.sections:
            before = newest.get(section.key)
            if before is None or section.revision >= before.revision:
                newest[section.key] = section
        object.__setattr__(self, "sections", tuple(sorted(newest.values(), key=_worst_first)))

    def section(self, key: str) -> Section | None:
        """Return the section with this key, if any."""
        return next((section for section in self.sections if section.key == key), None)

    def merged(self, sections: Iterable[Section]) -> Self:
        """Return the comment with the newer one of each section; of two equal revisions, the given one."""
        return replace(self, sections=(*self.sections, *sections))

    def render(self, limit: int = COMMENT_LIMIT, own: str = "") -> str:
        """Return the text of the comment in at most ``limit`` characters.

        A text that is too long first loses the details, the largest section first and ``own`` last. Then it loses all
        but the first lines, in the same order, and then whole sections, the oldest first. The last step ignores
        ``own``, because jobs would otherwise remove each other's sections forever.
        """
        for sections in _shorter_and_shorter(self.sections, own):
            text = "\n".join([self.mark, *_arranged(sections, self.absent)])
            if characters(text) <= limit:
                return text
        raise ReportTooLargeError(f"a comment does not fit into {limit:,} characters even with the least detail")


def _arranged(sections: Sequence[Section], absent: Sequence[Absent]) -> Iterator[str]:
    """Yield the lines of a section alone, or of several ones below a table, of which the worst is open."""
    told = [section for section in sections if not section.is_empty]
    unwritten = sum(not each.keys for each in absent)
    if len(told) + unwritten <= 1 or not any(section.row for section in told):
        for section in sections:
            yield from section.lines()
        return
    yield from overview(told, absent)
    worst = next((section for section in told if section.verdict not in {"passed", None}), None)
    for section in sections:
        if section.is_empty:
            yield from section.lines()
        else:
            yield from section.folded_lines(_OPEN if section is worst else "")


def marker(comment_id: str = "") -> str:
    """Return the hidden first line of a comment, which identifies it.

    Args:
        comment_id: distinguishes several comments on one pull request; empty for the default one. Characters
            that could end an HTML comment are replaced, and a hash keeps such ids distinct.
    """
    name = comment_id.strip() or _DEFAULT_ID
    safe = _UNSAFE.sub("-", name)[:_MAX_ID]
    return f"<!-- agenteval:comment id={safe if safe == name else f'{safe}-{_hash(name)}'} -->"


def section_key(workflow: str, job: str, *names: str) -> str:
    """Return the key of a section: readable, and unique for the arguments.

    Args:
        names: distinguish several sections of one job: the legs of a matrix, which share the job's id, and steps.
    """
    parts = (workflow, job, *names)
    slug = _UNSAFE.sub("-", "-".join(part for part in parts if part)).strip("-.")
    return f"{slug[:_MAX_SLUG] or 'section'}-{_hash(chr(0).join(parts))}"


def _worst_first(section: Section) -> tuple[int, str]:
    return (_ORDER.index(section.verdict), section.key)


def _shorter_and_shorter(sections: Sequence[Section], own: str) -> Iterator[list[Section]]:
    """Yield all sections in full, then with less content step by step."""
    now = list(sections)
    yield now
    for shorten in (Section.without_detail, Section.in_short):
        # Python's sort is stable, so all jobs cut sections of one size in the order of their keys.
        order = sorted(range(len(now)), key=lambda at: (now[at].key == own, -now[at].size()))
        for at in order:
            now[at] = shorten(now[at])
            yield now
    for section in sorted(now, key=lambda section: (section.revision, section.key))[:-1]:
        now.remove(section)
        yield now


def _left_out(label: str) -> str:
    return f"_Detail left out to stay within GitHub's limit; see the job summary of_ `{label}`."


def _first_line(text: str) -> str:
    line = text.partition("\n")[0]
    if line == text and len(line) <= _MAX_LINE:
        return text
    # A tag that is opened here and closed in the removed text would extend into the next section.
    return _TAG.sub("", line)[:_MAX_LINE]


def _clean(text: str) -> str:
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return _FORGED.sub("&lt;!--", unix_lines(whole)).strip("\n")


def unix_lines(text: str) -> str:
    """Return the text with ``\\n`` as the only line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
