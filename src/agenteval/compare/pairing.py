"""Pairs the cases of two runs and says, per case and metric, what changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from agenteval.results.model import (
    AnswerChange,
    CaseChange,
    CaseResult,
    ComparedCase,
    IterationResult,
    PoolCase,
    PoolEntry,
    Results,
    Score,
    ScoreChange,
    SuiteResult,
    TurnResult,
)
from agenteval.results.rollup import mean, turn_means

# Answers are shown, not compared: so much of each is enough to see the difference.
_ANSWER_CHARACTERS = 4000
# The score that all scores of a case become, where a suite makes one of them.
OVERALL = "score"


@dataclass(frozen=True)
class Pairing:
    """The cases of two runs, side by side, in the order of the current run; removed ones last."""

    cases: tuple[ComparedCase, ...]

    @property
    def compared(self) -> tuple[ComparedCase, ...]:
        """Cases that both runs asked and judged the same way."""
        return tuple(case for case in self.cases if case.change in {"regressed", "improved", "unchanged"})


def pool_entry(results: Results, fingerprints: Mapping[str, str]) -> PoolEntry:
    """This run as later comparisons need it: the raw scores of every case, with its fingerprint."""
    cases = {
        case.id: PoolCase(fingerprint=fingerprints.get(case.id, ""), scores=case_scores(suite, case))
        for suite, case in results.cases()
    }
    return entry_without_cases(results).model_copy(update={"cases": cases})


def entry_without_cases(results: Results) -> PoolEntry:
    """The frame of this run's entry; long runs have its cases where their own are, see `results.archive`."""
    return PoolEntry(commit=results.run.commit, run_id=results.run.id, created_at=results.run.started_at, cases={})


def case_scores(suite: SuiteResult, case: CaseResult) -> dict[str, list[float]]:
    """Per metric the score of each whole iteration, the mean over its turns; where all become one, that one too."""
    return scores_of(case, suite.threshold)


def scores_of(case: CaseResult, threshold: float | None) -> dict[str, list[float]]:
    """As `case_scores`; the threshold is that of the suite."""
    scores: dict[str, list[float]] = {}
    whole = [iteration for iteration in case.iterations if is_whole(iteration)]
    for iteration in whole:
        for name, score in turn_means(iteration.turns).items():
            scores.setdefault(name, []).append(score)
    if threshold is not None:
        overall = [iteration.score for iteration in whole if iteration.score is not None]
        # Outlines of very long runs have no iterations.
        outline = [] if case.iterations or case.score is None else [case.score]
        scores[OVERALL] = overall or outline
    return scores


def is_whole(iteration: IterationResult) -> bool:
    """Whether every turn had an answer; the scores of the others say nothing about the whole."""
    return all(turn.error is None for turn in iteration.turns)


def pair_cases(current: Results, baseline: Results, known: Collection[str]) -> Pairing:
    """Pair by case id.

    Args:
        current: the run in question.
        baseline: the run it is measured against.
        known: ids of all cases in the suites, also those that were filtered out; only a baseline
            case that is not among them was removed.
    """
    before = {case.id: case for _, case in baseline.cases()}
    prints = fingerprints_of(current), fingerprints_of(baseline)
    cases = [_compare(case, before.get(case.id), prints) for _, case in current.cases()]
    ran = {suite.path for suite in current.suites}
    removed = [_removed(case) for suite, case in baseline.cases() if suite.path in ran and case.id not in known]
    return Pairing(tuple(cases + removed))


def _compare(
    after: CaseResult, before: CaseResult | None, prints: tuple[Mapping[str, str], Mapping[str, str]]
) -> ComparedCase:
    change = _change(after, before, prints)
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
        metrics=_score_changes(before, after) if compared and before else [],
        answers=_answers(before, after) if before and change in {"regressed", "improved"} else [],
    )


def _change(
    after: CaseResult, before: CaseResult | None, prints: tuple[Mapping[str, str], Mapping[str, str]]
) -> CaseChange:
    if before is None:
        return "new"
    now, then = prints[0].get(after.id), prints[1].get(after.id)
    if now and then and now != then:
        return "changed"
    if before.status == "passed" and after.status == "failed":
        return "regressed"
    if before.status == "failed" and after.status == "passed":
        return "improved"
    return "unchanged"


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
    )


def fingerprints_of(results: Results) -> dict[str, str]:
    """The fingerprint of each case of a run, from its own entry in its pool; empty where it has none."""
    for entry in results.pool:
        if entry.run_id == results.run.id:
            return {case_id: case.fingerprint for case_id, case in entry.cases.items()}
    return {}


def _score_changes(before: CaseResult, after: CaseResult) -> list[ScoreChange]:
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
    ]


def _scores(case: CaseResult) -> dict[str, list[Score]]:
    found: dict[str, list[Score]] = {}
    for iteration in case.iterations:
        for turn in iteration.turns:
            for score in turn.scores:
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
    """The answers of the iterations that show the change best: one passing, one failing."""
    old, new = _representative(before), _representative(after)
    then = {turn.index: turn for turn in (old.turns if old else [])}
    return [
        AnswerChange(
            turn=turn.index,
            input=_cut(turn.input) or "",
            before=_cut(then[turn.index].response) if turn.index in then else None,
            after=_cut(turn.response),
        )
        for turn in (new.turns if new else [])
        if _differs(turn, then.get(turn.index))
    ]


def _representative(case: CaseResult) -> IterationResult | None:
    """The first iteration that has the status of the case."""
    matching = [iteration for iteration in case.iterations if iteration.status == case.status]
    return next(iter(matching or case.iterations), None)


def _differs(after: TurnResult, before: TurnResult | None) -> bool:
    failed = any(score.passed is False for score in after.scores)
    return before is None or before.response != after.response or failed


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= _ANSWER_CHARACTERS:
        return text
    return text[: _ANSWER_CHARACTERS - 1] + "…"
