"""Groups the cases of a run by what went wrong first, so that every report says one cause once.

:func:`causes_of` is the one function for all reports. ``report.html`` reads large runs case by case: it takes the
:func:`finding` of each case, and then :func:`by_cause`.

Example::

    for cause in causes_of(results):
        print(cause.icon, ", ".join(cause.names), cause.before, "→", cause.now, cause.why)

    # ❌ refund-desk, refund-chair 9/9 → 0/3 each the answer says 14 days
    # ❌ cancel-then-refund 9/9 → 0/3 turn 1: cancel_order was not called
    # ➕ gift-card None → 3/3 new

Cases of one kind have one cause if

1. they ended in the same error, after numbers, quotes, ids and addresses are replaced by ``#``;
2. or else at least three of them now give the same answer;
3. or else the same metric gives the same reason in the same turn, after that replacement.

Cases that nobody has to explain, such as new or removed ones, are one group for each kind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from agenteval.core import escape
from agenteval.core.records import dataclass
from agenteval.report import words as write
from agenteval.report.cases import (
    KINDS,
    Kind,
    Kinds,
    Wrong,
    fallen_metrics,
    first_wrong,
    kind_of_removed,
    words_of_agent,
)
from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.comparison import ComparedCase, ComparedMetric, Comparison, FailedOf, Proof
from agenteval.results.masking import whole_answer
from agenteval.results.model import Results

# Quotes, ids, addresses and numbers vary between cases with the same cause. An apostrophe in a word is no quote.
_QUOTE = re.compile(r"""["][^"]*"|`[^`]*`|“[^”]*”|«[^»]*»|'(?<!\w')[^']*'(?!\w)|‘(?<!\w‘)[^’]*’(?!\w)""")
_VARIES = re.compile(r"\d|@|://")
_ADDRESS = re.compile(r"\w+://\S+|[^\s@]+@[^\s@]+")
_ID_OR_NUMBER = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{7,}|\d+(?:[.,:]\d+)*")


def alike(text: str) -> str:
    """Return a text with ``#`` in the place of numbers, quotes, ids and addresses, on one line."""
    words = _QUOTE.sub("#", text).split()
    return " ".join(_without_ids(word) if _VARIES.search(word) else word for word in words)


def _without_ids(word: str) -> str:
    return _ID_OR_NUMBER.sub("#", _ADDRESS.sub("#", word))


#: From so many cases on, an answer that all of them give is their cause.
FEWEST_ALIKE = 3
_LONGEST_ANSWER = 200
_LONGEST_WHY = 150
# Cases that a row names.
_NAMES = 2
# From so many cases on, and more than half of those that broke, one cause outside of the cases is likely.
_MANY = 20

_EXPLAINED = frozenset(
    {"broke", "failed", "error", "fell", "suspicious", "cleared", "known", "quarantined", "accepted", "skipped"}
)
By = Literal["kind", "metric", "error", "answer", "reason", "score"]


@dataclass(frozen=True)
class CaseChange:
    """One case that did not simply pass as before; without the case itself and its answers.

    Attributes:
        path: the suite; with ``line``, the place of the case.
        wrong: what went wrong first, if anything did.
        before: passed tries of the base or the earlier runs; ``None`` if they are unknown.
        now: passed tries of this run, or of its passes side by side; ``None`` if they are unknown.
        answer: the wrong answer, at most 200 characters; ``None`` without one.
        fell_with: for the kind ``fell``, the metric whose mean fell.
        blocks: for the kind ``suspicious``, whether the check fails until it is proven, cleared or accepted.
    """

    id: str
    name: str
    kind: Kind
    path: str = ""
    line: int | None = None
    wrong: Wrong | None = None
    before: FailedOf | None = None
    now: FailedOf | None = None
    answer: str | None = None
    answer_hash: str = ""
    fell_with: str = ""
    blocks: bool = False

    @property
    def error(self) -> tuple[str, str]:
        """What cases that ended in the same error have in common; empty without an error."""
        wrong = self.wrong
        return (wrong.metric, alike(wrong.words)) if wrong is not None and wrong.is_error else ("", "")


@dataclass(frozen=True)
class Cause:
    """Cases with the same cause.

    Attributes:
        words: what went wrong first, on one line; for other kinds, their words.
        cases: in the order of the run. A metric that fell together with another one may have none.
        turn: the turn in which it went wrong, 1-based; ``None`` in cases of one turn, or if the turns differ.
        by: what its cases have in common: an error, an answer, a reason, the metric that fell, one that is too low,
            or only the kind.
        metric: for the kind ``fell``, the metric.
        alike: for the kind ``fell``, how many of its cases give one answer now, at least three and half of them;
            0 without such an answer.
    """

    kind: Kind
    words: str
    cases: tuple[CaseChange, ...]
    turn: int | None = None
    by: By = "kind"
    metric: ComparedMetric | None = None
    alike: int = 0
    answer: str = ""

    @property
    def icon(self) -> str:
        """The icon of its kind, for Markdown."""
        return KINDS[self.kind].icon

    @property
    def attention(self) -> bool:
        """Whether somebody has to look at it."""
        return KINDS[self.kind].attention

    @property
    def is_common(self) -> bool:
        """Whether its cases have more in common than their kind; of a large run, not every case tells its cause."""
        return self.by != "kind" or self.kind not in _EXPLAINED

    @property
    def text(self) -> str:
        """What went wrong first, with its turn: ``turn 1: cancel_order was not called``."""
        return f"turn {self.turn}: {self.words}" if self.turn else self.words

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its first cases, or the metric that fell; ``more`` counts the other cases."""
        return (
            tuple(found.name for found in self.cases[:_NAMES])
            if self.metric is None
            else (f"mean of {self.metric.id}",)
        )

    @property
    def more(self) -> int:
        """The number of cases that ``names`` leaves out."""
        return max(0, len(self.cases) - _NAMES) if self.metric is None else 0

    @property
    def unit(self) -> str:
        """What its numbers are: ``Passed`` tries, a ``Score``, or the ``Amount`` of a resource."""
        return "Passed" if self.metric is None else "Score" if self.metric.allowed is None else "Amount"

    @property
    def before(self) -> str:
        """The passed tries of each case on the other side: ``9/9``, or ``7/9 to 9/9``; or the earlier mean."""
        return self._means[0] if self.metric is not None else _span(found.before for found in self.cases)

    @property
    def now(self) -> str:
        """The same of this side: ``0/3``, ``0/3 each``; ``gone`` for removed cases."""
        if self.metric is not None or self.kind in {"removed", "gone"}:
            return "gone" if self.metric is None else self._means[1]
        tries = _span(found.now for found in self.cases)
        return f"{tries} each" if tries and len(self.cases) > 1 and " " not in tries else tries

    @property
    def _means(self) -> tuple[str, str]:
        metric = self.metric
        if metric is None:
            return "", ""
        if metric.allowed is None:
            return write.distinct(metric.baseline, metric.current)
        return write.resource(metric.id, metric.baseline), write.resource(metric.id, metric.current)

    @property
    def why(self) -> str:
        """What went wrong first, on one short line; what is not held against the change begins with its kind."""
        text = self.text
        if self.metric is not None:
            moved = "fell" if self.metric.allowed is None else "rose"
            same = f"; {self.answer}" if self.alike else ""
            text = f"{moved} over {write.count(self.metric.n, 'case')} together{same}"
        elif self.kind == "removed":
            text = "removed from the suite by this change: still wanted?"
        elif self.example is not None and self.example.blocks:
            text = f"blocks until settled: {text}"
        elif not self.attention:
            first = "in the first run, " if self.kind == "cleared" else ""
            text = KINDS[self.kind].words if self.by == "kind" else f"{KINDS[self.kind].words}: {first}{text}"
        return escape.one_line(text, _LONGEST_WHY)

    @property
    def example(self) -> CaseChange | None:
        """The case to show with both runs: the first one."""
        return self.cases[0] if self.cases else None


def causes_of(results: Results) -> tuple[Cause, ...]:
    """Return all causes of a run, the most important kind first, then the largest.

    A case that passed as before has none; every other case has exactly one. Which cases are together does not depend
    on their order.
    """
    comparison = results.comparison
    compared = {case.id: case for case in comparison.cases} if comparison else {}
    kinds, proofs = Kinds.of(results), proofs_by_case(comparison)
    found = [
        finding(case, suite, compared.get(case.id), kinds, proofs.get(case.id)) for suite, case in results.cases()
    ]
    found += [removed(case) for case in compared.values() if case.change == "removed"]
    return by_cause((item for item in found if item is not None), fallen_metrics(comparison))


def by_cause(findings: Iterable[CaseChange], fallen: Iterable[ComparedMetric] = ()) -> tuple[Cause, ...]:
    """Group the findings of the cases of a run, and the metrics whose mean fell; see :func:`causes_of`."""
    everything = list(findings)
    answers = Counter((found.kind, found.answer_hash) for found in everything if found.answer_hash)
    metrics = {metric.id: metric for metric in fallen}
    groups: dict[_Key, list[CaseChange]] = {("fell", "metric", name, None, ""): [] for name in metrics}
    for found in everything:
        groups.setdefault(_key(found, answers), []).append(found)
    causes = [_cause(key, tuple(cases), metrics) for key, cases in groups.items()]
    order = list(KINDS)
    return tuple(sorted(causes, key=lambda cause: (order.index(cause.kind), not cause.is_common, -len(cause.cases))))


def largest_cause(causes: Iterable[Cause]) -> Cause | None:
    """Return the cause that most cases have; ``None`` if no cause is common to several cases.

    That a metric is too low in several cases is no cause.
    """
    common = [cause for cause in causes if cause.is_common and cause.by != "score" and len(cause.cases) > 1]
    return max(common, key=lambda cause: len(cause.cases)) if common else None


def finding(
    case: CaseResult,
    suite: SuiteResult,
    compared: ComparedCase | None,
    kinds: Kinds,
    proof: Proof | None = None,
) -> CaseChange | None:
    """Return the finding of a case, with the proof of its re-runs; ``None`` if it passed as before."""
    kind = kinds.kind(case, compared)
    if kind is None:
        return None
    wrong, turn = first_wrong(case, compared) if kind in _EXPLAINED else (None, None)
    answer = turn.response if turn is not None and case.status != "error" else None
    whole = whole_answer(turn) if turn is not None and answer is not None else None
    before, now = _tries(case, compared, proof)
    return CaseChange(
        id=case.id,
        name=case.name,
        kind=kind,
        path=suite.path,
        line=case.line,
        wrong=wrong,
        before=before,
        now=now,
        answer=None if answer is None else escape.one_line(answer, _LONGEST_ANSWER),
        answer_hash=whole.sha256 if whole else "",
        fell_with=kinds.fallen[case.id] if kind == "fell" else "",
        blocks=kind == "suspicious" and kinds.blocks,
    )


def removed(compared: ComparedCase) -> CaseChange:
    """Return the finding of a case that only the baseline has."""
    path, _, _ = compared.id.partition("::")
    return CaseChange(compared.id, compared.name, kind_of_removed(compared), path, before=_earlier(compared))


def proofs_by_case(comparison: Comparison | None) -> dict[str, Proof]:
    """Return the clearest proof about each case; several metrics can find the same case."""
    clearest: dict[str, Proof] = {}
    for proof in comparison.proofs if comparison else ():
        if proof.case is None or proof.better:
            continue
        known = clearest.get(proof.case)
        if known is None or _clarity(proof) > _clarity(known):
            clearest[proof.case] = proof
    return clearest


def _clarity(proof: Proof) -> tuple[bool, float]:
    return proof.proven, proof.current.failed / max(1, proof.current.of)


#: What the cases of a group have in common: kind, by, the metric that fell or found the mistake, turn and text.
_Key = tuple[Kind, By, str, int | None, str]


def _key(found: CaseChange, answers: Counter[tuple[Kind, str]]) -> _Key:
    kind, wrong = found.kind, found.wrong
    if kind == "fell":
        return kind, "metric", found.fell_with, None, ""
    if kind not in _EXPLAINED:
        return kind, "kind", "", None, ""
    metric, error = found.error
    if metric:
        return kind, "error", metric, None, error
    # That answers are the same explains why cases fail, not why they were skipped.
    if kind != "skipped" and found.answer_hash and answers[kind, found.answer_hash] >= FEWEST_ALIKE:
        return kind, "answer", "", None, found.answer_hash
    if wrong is None:
        return kind, "kind", "", None, ""
    turn = wrong.turn if kind != "skipped" else None
    return kind, "score" if wrong.is_score else "reason", wrong.metric, turn, alike(wrong.words)


def _cause(key: _Key, cases: tuple[CaseChange, ...], metrics: Mapping[str, ComparedMetric]) -> Cause:
    kind, by, metric, *_ = key
    words, turn = KINDS[kind].words, None
    if by == "answer":
        words = _same_answer(cases[0].answer or "")
    elif by == "kind" and kind in _EXPLAINED and all(found.now is None for found in cases):
        # The case was too much to be held in memory.
        words = f"{words}: report.html tells why"
    elif by in {"error", "reason", "score"}:
        first, turns = cases[0].wrong, {found.wrong.turn for found in cases if found.wrong}
        words, turn = first.words if first else words, turns.pop() if len(turns) == 1 else None
        if by == "score" and len({found.wrong.words for found in cases if found.wrong}) > 1:
            words = f"{metric} is too low"
    elif metric in metrics:
        words = _fell(metrics[metric])
    if by != "metric":
        return Cause(kind, words, cases, turn, by)
    return Cause(kind, words, cases, turn, by, metrics.get(metric), *_one_answer(cases))


def _one_answer(cases: Sequence[CaseChange]) -> tuple[int, str]:
    # A case that still passes at times may give this answer as before.
    broken = [found for found in cases if found.answer_hash and found.now is not None and not found.now.passed]
    amounts = Counter(found.answer_hash for found in broken)
    most, amount = amounts.most_common(1)[0] if amounts else ("", 0)
    if amount < FEWEST_ALIKE or 2 * amount < len(cases):
        return 0, ""
    answer = next(found.answer or "" for found in broken if found.answer_hash == most)
    return amount, _same_answer(answer, "all" if amount == len(cases) else f"{amount:,}")


def _same_answer(answer: str, who: str = "all") -> str:
    return f"{who} give the same answer now: “{answer}”" if answer.strip() else f"{who} give an empty answer now"


def _fell(metric: ComparedMetric) -> str:
    if metric.allowed is not None:
        return f"{metric.id} rose by {100 * metric.difference:.0f} % ({100 * metric.allowed:.0f} % allowed)"
    before, after = write.distinct(metric.baseline, metric.current)
    return f"{metric.id} fell from {before} to {after} over {write.count(metric.n, 'case')}"


def _span(tries: Iterable[FailedOf | None]) -> str:
    known = sorted(
        {item for item in tries if item is not None}, key=lambda item: (item.passed / max(1, item.of), item.of)
    )
    return " to ".join(map(str, dict.fromkeys((*known[:1], *known[-1:]))))


def _tries(
    case: CaseResult, compared: ComparedCase | None, proof: Proof | None
) -> tuple[FailedOf | None, FailedOf | None]:
    if proof is not None and proof.current.of and proof.control.of:
        return proof.control, proof.current
    failed = sum(iteration.status != "passed" for iteration in case.iterations)
    now = FailedOf(failed=failed, of=len(case.iterations)) if case.iterations else None
    return _earlier(compared) if compared else None, now


def _earlier(compared: ComparedCase) -> FailedOf | None:
    if history := compared.history:
        return FailedOf(failed=round((1 - history.pass_rate) * history.iterations), of=history.iterations)
    return compared.tries_before


def is_about(cause: Cause, error: str) -> bool:
    """Return whether a cause is an error of the agent, as a case has it."""
    example = cause.example
    return example is not None and example.error == ("agent", alike(words_of_agent(error)))


def others(causes: Sequence[Cause]) -> str:
    """Return the number of causes that are not listed, with the number of their cases."""
    amount = sum(len(cause.cases) for cause in causes)
    # A metric that fell together with another one has no cases.
    cases = f"{write.count(amount, 'more case')} with " if amount else ""
    # Cases that do not tell their cause are one cause here.
    least = "" if all(cause.is_common for cause in causes) else "at least "
    return f"{cases}{least}{write.count(len(causes), 'other cause')}" if causes else ""


def aside_title(causes: Iterable[Cause]) -> str:
    """Return ``1 not proven worse · 2 known failures · 4 new``: what is not held against the change."""
    amounts = Counter(cause.kind for cause in causes if not cause.attention for _ in cause.cases)
    known = "known failure" if amounts["known"] == 1 else "known failures"
    words = {kind: known if kind == "known" else KINDS[kind].words for kind in KINDS}
    return " · ".join(f"{amounts[kind]:,} {words[kind]}" for kind in KINDS if amounts[kind])


def one_cause_is_likely(causes: Sequence[Cause]) -> bool:
    """Return whether so many cases have one cause that something outside of them is likely to have changed."""
    worse = [cause for cause in causes if cause.kind in {"broke", "failed", "error", "fell"}]
    # The cases of a mean that fell have one cause if they give one answer.
    most = max((cause.alike if cause.kind == "fell" else len(cause.cases) for cause in worse), default=0)
    return most > _MANY and 2 * most > sum(len(cause.cases) for cause in worse)
