"""Causes as rows of a table, and the example of each with both runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agenteval.core.text.escape import one_line
from agenteval.report.view import view
from agenteval.report.view.case_kinds import KINDS, Kind
from agenteval.report.view.causes import Cause, Finding
from agenteval.report.view.parts import Section
from agenteval.report.view.timeline import DiffLine, timeline
from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.comparison import ComparedCase

Link = Callable[[str, int | None], str]

#: Rows of the visible table.
MOST_ROWS = 8
_NAMES = 2
_ALIKE = 5
_LONGEST_WORDS = 150
_METRICS = 6
_SEEN = 0.005


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One cause in one line.

    Attributes:
        icon: of its kind.
        names: the first cases.
        more: number of further cases.
        attention: whether somebody has to look at it.
        before: passed tries of the other side: ``18/18``; empty if unknown.
        now: the same of this side; ``gone`` for removed cases.
        words: what went wrong first.
    """

    icon: str
    names: tuple[str, ...]
    more: int
    attention: bool
    before: str
    now: str
    words: str


@dataclass(frozen=True, slots=True)
class Like:
    """A case with the same cause, and the address of its line."""

    name: str
    link: str


@dataclass(frozen=True, slots=True)
class Example:
    """The first case of a cause with both runs.

    Attributes:
        others: number of further cases with the same cause; ``like`` are the first of them.
        lines: the conversation, as a diff.
        scores: ``f1_score 0.98 → 0.47; helpful 0.90 → 0.20``.
        where: ``path:line``; ``link`` is its address.
        has_both: whether the answers of both runs are known.
    """

    name: str
    others: int
    lines: tuple[DiffLine, ...]
    scores: str
    where: str
    link: str
    like: tuple[Like, ...]
    has_both: bool


def others(causes: Sequence[Cause]) -> str:
    """Return the number of causes that are not listed, with the number of their cases."""
    amount = sum(len(cause.cases) for cause in causes)
    # A metric that fell together with another one has no cases.
    cases = f"{view.count(amount, 'more case')} with " if amount else ""
    # Cases that do not tell their cause are one cause here.
    least = "" if all(cause.is_common for cause in causes) else "at least "
    return f"{cases}{least}{view.count(len(causes), 'other cause')}" if causes else ""


def cause_row(cause: Cause) -> CauseRow:
    """Return a cause in one line."""
    names = tuple(found.name for found in cause.cases[:_NAMES])
    before, now, words = str(cause.before or ""), str(cause.now or ""), cause.text
    if cause.metric is not None:
        before, now = view.distinct(cause.metric.baseline, cause.metric.current)
        amount = view.count(cause.metric.n, "case")
        same = f"; {cause.answer}" if cause.alike else ""
        names, words = (f"mean of {cause.metric.id}",), f"fell over {amount} together{same}"
    if cause.kind in {"removed", "gone"}:
        now = "gone"
        words = "removed from the suite by this change: still wanted?" if cause.kind == "removed" else cause.words
    more = 0 if cause.metric is not None else len(cause.cases) - len(names)
    return CauseRow(cause.icon, names, more, cause.attention, before, now, one_line(words, _LONGEST_WORDS))


def aside_row(cause: Cause) -> CauseRow:
    """Return a cause that is not held against the change in one line, which begins with its kind."""
    row = cause_row(cause)
    kind = KINDS[cause.kind].words
    words = kind if cause.by == "kind" else one_line(f"{kind}: {cause.text}", _LONGEST_WORDS)
    return CauseRow(row.icon, row.names, row.more, row.attention, row.before, row.now, words)


def aside_title(causes: Iterable[Cause]) -> str:
    """Return ``1 flaky · 2 known failures · 4 new``: what is not held against the change."""
    amounts: Counter[str] = Counter()
    for cause in causes:
        if not cause.attention:
            amounts[cause.kind] += len(cause.cases)
    words = {kind: KINDS[kind].words for kind in KINDS}
    return " · ".join(
        view.count(amounts[kind], words[kind]) if kind == "known" else f"{amounts[kind]:,} {words[kind]}"
        for kind in KINDS
        if amounts[kind]
    )


@dataclass(frozen=True, slots=True)
class BothRuns:
    """The cases of a run by id, with their comparisons.

    Attributes:
        located: case and suite in this run.
        compared: comparison with the baseline.
        link: returns the address of a line of a suite.
    """

    located: Mapping[str, tuple[SuiteResult, CaseResult]]
    compared: Mapping[str, ComparedCase]
    link: Link

    def examples(self, causes: Iterable[Cause], *, most: int, max_text: int) -> Section[Example]:
        """Return the first case of each cause with both runs; removed cases have none.

        Args:
            causes: those that need attention.
            most: maximum number of examples.
            max_text: maximum number of characters of a text.
        """
        shown = [cause for cause in causes if cause.cases and self._can_show(cause.kind, cause.cases[0])]
        return Section(tuple(self._example(cause, cause.cases[0], max_text) for cause in shown[:most]), len(shown))

    def _can_show(self, kind: Kind, found: Finding) -> bool:
        """Return whether a case shows more than its row: an error alone does not, nor a case that passed."""
        if found.id not in self.located:
            return False
        pair = self.compared.get(found.id)
        if kind == "fell":
            return pair is not None and bool(pair.answers)
        iteration = self.located[found.id][1].telling_iteration
        return iteration is not None and (kind != "error" or len(iteration.turns) > 1)

    def _example(self, cause: Cause, found: Finding, max_text: int) -> Example:
        suite, case = self.located[found.id]
        pair = self.compared.get(found.id)
        turn = found.wrong.turn if found.wrong else None
        return Example(
            name=found.name,
            others=len(cause.cases) - 1,
            lines=tuple(timeline(case, pair, turn, max_text)),
            scores=_scores(pair),
            where=view.location(suite, case),
            link=self.link(suite.path, case.line),
            like=tuple(Like(other.name, self.link(other.path, other.line)) for other in cause.cases[1 : 1 + _ALIKE]),
            has_both=pair is not None and bool(pair.answers),
        )


def _scores(compared: ComparedCase | None) -> str:
    """Return the metrics that moved."""
    moved = [
        f"{metric.id} {' → '.join(view.distinct(metric.before, metric.after))}"
        for metric in (compared.metrics if compared else ())
        if metric.before is not None and metric.after is not None and abs(metric.before - metric.after) > _SEEN
    ]
    more = f"; and {len(moved) - _METRICS:,} more" if len(moved) > _METRICS else ""
    return f"{'; '.join(moved[:_METRICS])}{more}"
