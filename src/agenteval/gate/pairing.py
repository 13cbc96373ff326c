"""Pairs the cases of two runs, and determines what changed in each case and metric."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from agenteval.core.records import dataclass
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, Score, Shortened, ToolCall, TurnResult
from agenteval.results.comparison import (
    AnswerChange,
    BaselineCase,
    CaseChange,
    ComparedCase,
    EarlierScore,
    FailedOf,
    RescoredMetric,
    ScoreChange,
)
from agenteval.results.masking import whole_answer
from agenteval.results.model import Results, Run
from agenteval.results.rollup import (
    aggregated_status,
    case_status,
    iteration_status,
    mean,
    strict_case_status,
)
from agenteval.suite.model import OVERALL

# Maximum length of an answer in the comparison. Answers are only shown, not compared.
_ANSWER_CHARACTERS = 4000


def compared_cases(cases: Iterable[ComparedCase]) -> list[ComparedCase]:
    """Return the cases whose question and metrics match in both runs."""
    return [case for case in cases if case.change in {"broke", "repaired", "same"}]


def pair_cases(
    current: Results,
    baseline: Results,
    known: Collection[str],
    gone: Collection[str] = (),
    removed: Collection[str] = (),
) -> tuple[ComparedCase, ...]:
    """Pair the cases of two runs by id, in the order of the current run; removed cases come last.

    Args:
        known: ids of all cases in the suites, including filtered-out ones; a baseline case is removed only if its id
            is not among them.
        gone: paths of the baseline's suites that do not exist any more.
        removed: ids of the cases that the change is known to have removed, whatever paths exist.
    """
    before = {case.id: case for _, case in baseline.cases()}
    now, then = own_cases(current), own_cases(baseline)
    cases = [
        _compare(case, before.get(case.id), Match.of(now.get(case.id), then.get(case.id)))
        for _, case in current.cases()
    ]
    ran = {*gone, *(suite.path for suite in current.suites)}
    lost = [
        _removed(case)
        for suite, case in baseline.cases()
        if case.id in removed or (suite.path in ran and case.id not in known)
    ]
    return tuple(cases + lost)


@dataclass(frozen=True)
class Match:
    """The comparable parts of two runs of a case.

    Attributes:
        changed: ids of the metrics in both runs whose configurations differ.
        unmatched: ids of the metrics in only one run.
        kept: ids of the metrics in both runs with the same configuration; ``None`` if unknown.
    """

    question: bool = True
    changed: frozenset[str] = frozenset()
    unmatched: frozenset[str] = frozenset()
    kept: frozenset[str] | None = None

    @classmethod
    def of(cls, now: BaselineCase | None, then: BaselineCase | None) -> Match:
        """Match a case by its fingerprints; a case without a fingerprint counts as unchanged."""
        if now is None or then is None:
            return cls()
        question = not now.fingerprint or not then.fingerprint or now.fingerprint == then.fingerprint
        if not now.metrics or not then.metrics:
            return cls(question)
        kept = frozenset(now.metrics.items() & then.metrics.items())
        names = frozenset(name for name, _ in kept)
        changed = (now.metrics.keys() & then.metrics.keys()) - names
        return cls(question, frozenset(changed), frozenset(now.metrics.keys() ^ then.metrics.keys()), names)

    @property
    def comparable(self) -> bool:
        """Whether any part can be compared."""
        return self.question and (self.kept is None or bool(self.kept))

    def allows(self, metric: str) -> bool:
        """Return whether the scores of a metric can be compared."""
        return self.question and metric not in self.changed and metric not in self.unmatched


def _compare(after: CaseResult, before: CaseResult | None, match: Match) -> ComparedCase:
    change = _change(before, match)
    compared = change not in {"new", "changed"} and before is not None
    return ComparedCase(
        id=after.id,
        name=after.name,
        change=change,
        status_before=before.status if before else None,
        status_after=after.status,
        score_before=before.score if before else None,
        score_after=after.score,
        line=after.line,
        metrics=_score_changes(before, after, match) if compared and before else [],
        answers=_answers(before, after) if before and compared and _may_be_told(before, after) else [],
        tries_before=_tries(before) if before and not _passed_in_both(before, after) else None,
    )


def _may_be_told(before: CaseResult, after: CaseResult) -> bool:
    return before.status == "passed" and any(iteration.status != "passed" for iteration in after.iterations)


def _passed_in_both(before: CaseResult, after: CaseResult) -> bool:
    return all(iteration.status == "passed" for case in (before, after) for iteration in case.iterations)


def _tries(case: CaseResult) -> FailedOf:
    statuses = [iteration.status for iteration in case.iterations]
    return FailedOf(failed=len(statuses) - statuses.count("passed"), of=len(statuses))


def _change(before: CaseResult | None, match: Match) -> CaseChange:
    if before is None:
        return "new"
    return "same" if match.comparable else "changed"


def status_by(case: CaseResult, metrics: Collection[str], threshold: float | None) -> CaseStatus:
    """Return the status of a case by a selection of its metrics."""
    statuses = [_iteration_status_by(iteration, metrics, threshold) for iteration in case.iterations]
    return strict_case_status(statuses) if case.strict else case_status(statuses)


def _iteration_status_by(iteration: IterationResult, metrics: Collection[str], threshold: float | None) -> CaseStatus:
    if threshold is not None and OVERALL not in metrics:
        return "skipped"
    turns = [
        turn.model_copy(update={"scores": [score for score in turn.scores if score.id in metrics]})
        for turn in iteration.turns
    ]
    if threshold is not None:
        if _cannot_pass(iteration):
            return "failed"
        return aggregated_status(turns, iteration.score, threshold)
    if iteration.status == "error" and any(score.status == "error" for turn in turns for score in turn.scores):
        return "error"
    return iteration_status(turns)


def _cannot_pass(iteration: IterationResult) -> bool:
    """Return whether an iteration failed without an aggregated score: no missing score could reach the threshold."""
    verdicts = (score.passed for turn in iteration.turns for score in turn.scores)
    return iteration.status == "failed" and iteration.score is None and False not in verdicts


def _removed(case: CaseResult) -> ComparedCase:
    return ComparedCase(
        id=case.id,
        name=case.name,
        change="removed",
        status_before=case.status,
        status_after=None,
        score_before=case.score,
        score_after=None,
        line=case.line,
        tries_before=_tries(case),
    )


def own_cases(results: Results) -> Mapping[str, BaselineCase]:
    """Return the cases of a run with their fingerprints, from its entry in its baseline; empty without an entry."""
    return next((entry.cases for entry in results.baseline_runs if entry.run_id == results.run.id), {})


def _score_changes(before: CaseResult, after: CaseResult, match: Match) -> list[ScoreChange]:
    old, new = _scores(before), _scores(after)
    return [
        ScoreChange(
            id=name,
            before=_mean_of(old.get(name)),
            after=_mean_of(new.get(name)),
            passed_before=_all_passed(old.get(name)),
            passed_after=_all_passed(new.get(name)),
            reason=_first_reason(new.get(name)),
        )
        for name in dict.fromkeys([*new, *old])
        if name not in match.changed
    ]


def _scores(case: CaseResult) -> dict[str, list[Score]]:
    found: dict[str, list[Score]] = {}
    for score in case.scores:
        found.setdefault(score.id, []).append(score)
    return found


def _mean_of(scores: list[Score] | None) -> float | None:
    return mean([score.score for score in scores or []])


def _all_passed(scores: list[Score] | None) -> bool | None:
    verdicts = [score.passed for score in scores or [] if score.passed is not None]
    return all(verdicts) if verdicts else None


def _first_reason(scores: list[Score] | None) -> str | None:
    reasons = [score.reason for score in scores or [] if score.reason and score.passed is False]
    return reasons[0] if reasons else None


def _answers(before: CaseResult, after: CaseResult) -> list[AnswerChange]:
    """Return the turns of the iterations that best show the change: one that passed, one that failed."""
    old, new = _representative(before), after.telling_iteration
    then = {turn.index: turn for turn in (old.turns if old else [])}
    return [_answer(turn, then.get(turn.index)) for turn in (new.turns if new else [])]


def _answer(turn: TurnResult, then: TurnResult | None) -> AnswerChange:
    return AnswerChange(
        turn=turn.index,
        input=_cut(turn.input) or "",
        before=_cut(then.response) if then else None,
        after=_cut(turn.response),
        calls_before=[_call(call) for call in then.tool_calls] if then else [],
        scores_before=[_score(score) for score in then.scores if score.status != "skipped"] if then else [],
        latency_before=then.latency_ms if then else None,
        shortened_before=_whole_if_cut(then),
        shortened_after=_whole_if_cut(turn),
    )


def _call(call: ToolCall) -> ToolCall:
    shown = {"args": _cut_data(call.args), "result": _cut_data(call.result), "error": _cut(call.error)}
    return call.model_copy(update=shown)


def _cut_data(value: Any) -> Any:
    if value is None or len(text := json.dumps(value, ensure_ascii=False, default=str)) <= _ANSWER_CHARACTERS:
        return value
    return _cut(text)


def _score(score: Score) -> EarlierScore:
    return EarlierScore(
        id=score.id, score=score.score, threshold=score.threshold, passed=score.passed, status=score.status
    )


def _representative(case: CaseResult) -> IterationResult | None:
    matching = [iteration for iteration in case.iterations if iteration.status == case.status]
    return next(iter(matching or case.iterations), None)


def _whole_if_cut(turn: TurnResult | None) -> Shortened | None:
    if turn is None or turn.response is None:
        return None
    is_cut = len(turn.response) > _ANSWER_CHARACTERS or "response" in turn.shortened
    return whole_answer(turn) if is_cut else None


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= _ANSWER_CHARACTERS:
        return text
    return text[: _ANSWER_CHARACTERS - 1] + "…"


@dataclass(frozen=True)
class Rescored:
    """What a baseline was before, and what scored its answers again."""

    stored: Results
    metrics: tuple[RescoredMetric, ...]


class _Ran(Protocol):
    @property
    def commit(self) -> str | None: ...

    @property
    def ref(self) -> str | None: ...

    @property
    def uncommitted(self) -> bool: ...

    @property
    def workflow_run_id(self) -> str | None: ...


def is_merged(current: _Ran, baseline: Run) -> bool:
    """Return whether a workflow ran on the branch of its baseline."""
    return current.workflow_run_id is not None and current.ref is not None and current.ref == baseline.ref


def continues_branch(current: _Ran, baseline: Run) -> bool:
    """Return whether a run is of the branch of its baseline: a merged one, or on a laptop another commit.

    A run of the same commit on a laptop, or of files that are not committed, is of a change.
    """
    is_same = current.ref is not None and current.ref == baseline.ref
    is_other = current.commit not in {None, baseline.commit} and not current.uncommitted
    return is_merged(current, baseline) or (is_same and is_other and current.workflow_run_id is None)
