"""Annotations at the lines of the suite files: one for each case that needs attention.

GitHub shows annotations as plain text. It rejects a check run with a character beyond U+FFFF (status 422, "invalid"
``annotations``), so such characters are replaced by their code points (``[U+1F600]``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath
from typing import Literal

from agenteval.core.text import escape
from agenteval.report.view import view
from agenteval.report.view.comparison_rows import history_note
from agenteval.results.archive import Archive, Passed
from agenteval.results.case import CaseResult, CaseStatus, SuiteResult, TurnResult
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import Results

#: GitHub accepts 255 characters.
MOST_TITLE = 255
#: A check run accepts 64 KB, a workflow command 4,096 characters. This limit fits into both.
MOST_MESSAGE = 2_000

_MOST = 1_000
_LINES = 2**31 - 1
# A headline, five facts and an answer are below MOST_MESSAGE together.
_HEADLINE = 250
_FACT = 250
_FACTS = 5
_ANSWER = 300
_BEYOND = re.compile("[\U00010000-\U0010ffff]")

_Kind = Literal["regressed", "failed", "error"]
_WORDS: dict[_Kind, str] = {"regressed": "Got worse", "failed": "Failed", "error": "Could not be evaluated"}
_KINDS: dict[CaseStatus, _Kind] = {"failed": "failed", "error": "error"}


@dataclass(frozen=True, slots=True)
class Annotation:
    """A message at a line of a file.

    Attributes:
        path: relative to the root of the repository, with forward slashes.
        line: 1-based.
        level: ``warning`` for a case that does not fail the gate.
        title: plain text, one line; may be empty.
        message: plain text, never empty.
    """

    path: str
    line: int
    level: Literal["failure", "warning"]
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class Annotations:
    """The annotations of a run, and the number of omitted cases.

    Attributes:
        items: regressions first, then failures, then errors; each in the order of the suites.
        hidden: number of cases beyond the limit.
        without_file: number of cases of suites that are not a file of the repository.
    """

    items: tuple[Annotation, ...]
    hidden: int = 0
    without_file: int = 0


def annotate(
    results: Results, archive: Archive, *, quarantined: Collection[str] = (), most: int = _MOST
) -> Annotations:
    """Return one annotation for each case that regressed, failed or could not be evaluated.

    Args:
        results: the run, with its comparison if there is one.
        archive: access to its full cases.
        quarantined: ids of quarantined cases; ids that the comparison names may be missing.
        most: maximum number of annotations.
    """
    compared = {case.id: case for case in results.comparison.cases} if results.comparison else {}
    found: dict[_Kind, list[Annotation]] = {kind: [] for kind in _WORDS}
    placed = without_file = 0
    for suite in results.suites:
        is_file = _is_in_repository(suite.path)
        for case in archive.cases(suite) if compared else _not_passed(suite, archive):
            finding = _finding(case, compared.get(case.id), case.id in quarantined)
            if finding is None:
                continue
            placed += is_file
            without_file += not is_file
            if is_file and len(found[finding.kind]) < most:
                found[finding.kind].append(finding.annotation(suite.path))
    items = tuple(chain.from_iterable(found.values()))[:most]
    return Annotations(items, placed - len(items), without_file)


def _not_passed(suite: SuiteResult, archive: Archive) -> Iterator[CaseResult]:
    for found in archive.findings(suite):
        if not isinstance(found, Passed):
            yield found[0]


@dataclass(frozen=True, slots=True)
class _Finding:
    """A case that needs attention, and its comparison."""

    kind: _Kind
    case: CaseResult
    compared: ComparedCase | None
    quarantined: bool

    @property
    def suspect(self) -> bool:
        """Whether the case is only a possible regression."""
        return self.kind != "regressed" and self.compared is not None and "suspect" in self.compared.notes

    def annotation(self, path: str) -> Annotation:
        line = self.case.line or 1
        return Annotation(
            path=path,
            line=line if 1 <= line <= _LINES else 1,
            level="warning" if self.quarantined or self.suspect else "failure",
            title=_plain(self.case.name, MOST_TITLE),
            message="\n".join([_plain(self._headline(), _HEADLINE), *self._facts(), *_answer(self.case)]),
        )

    def _headline(self) -> str:
        said = ", ".join(note for note in self._notes() if note)
        return f"{_WORDS[self.kind]}: {said}" if said else _WORDS[self.kind]

    def _notes(self) -> Iterator[str]:
        if self.compared is not None and self.kind == "regressed":
            yield from _change(self.compared)
        yield view.iterations_note(self.case)
        if self.compared is not None:
            yield history_note(self.compared)
        if self.quarantined:
            yield "in quarantine"
        elif self.suspect:
            yield "it passed before; the change is not significant"

    def _facts(self) -> Iterator[str]:
        # If a regression has no failed score, its scores dropped.
        found = view.facts(self.case) or (tuple(view.got_worse(self.compared)) if self.compared else ())
        for fact in found[:_FACTS]:
            yield _plain(str(fact), _FACT)
        if len(found) > _FACTS:
            yield f"… and {len(found) - _FACTS:,} more"


def _finding(case: CaseResult, compared: ComparedCase | None, quarantined: bool) -> _Finding | None:
    kind = _KINDS.get(case.status)
    if compared is not None and compared.change == "regressed":
        kind = "regressed"
    held = quarantined or (compared is not None and "quarantined" in compared.notes)
    return _Finding(kind, case, compared, held) if kind else None


def _change(compared: ComparedCase) -> Iterator[str]:
    if compared.status_before != compared.status_after:
        yield f"{compared.status_before} → {compared.status_after}"
    if compared.score_before != compared.score_after:
        yield "score {} → {}".format(*view.distinct(compared.score_before, compared.score_after))


def _answer(case: CaseResult) -> Iterator[str]:
    """Yield the answer of the first turn that did not pass, else of the last turn."""
    iteration = view.shown_iteration(case)
    turns = iteration.turns if iteration else []
    shown = next(filter(_is_bad, turns), turns[-1] if turns else None)
    if shown is not None and (answer := _plain(shown.response or "", _ANSWER)):
        yield f"Answer: {answer}" if len(turns) == 1 else f"Answer in turn {shown.index + 1}: {answer}"


def _is_bad(turn: TurnResult) -> bool:
    return turn.error is not None or any(score.passed is False or score.status == "error" for score in turn.scores)


def _plain(text: str, limit: int) -> str:
    """Return one line of at most ``limit`` characters that GitHub accepts and no runner executes as a command."""
    known = _BEYOND.sub(lambda found: f"[U+{ord(found[0]):X}]", escape.one_line(text, limit))
    # This step is last, because the added brackets must not complete a command in untrusted text.
    line = escape.terminal(known)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _is_in_repository(path: str) -> bool:
    """Return whether the path can be a file in the repository, with a name that GitHub accepts."""
    pure = PurePosixPath(path)
    is_inside = bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts
    return is_inside and escape.terminal(path) == path and not _BEYOND.search(path)
