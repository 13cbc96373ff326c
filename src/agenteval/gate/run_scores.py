"""The score of each iteration of a run's cases, and the run's entry in a baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from agenteval.core.records import dataclass, field
from agenteval.results.case import CaseResult, IterationResult, TurnResult
from agenteval.results.comparison import BaselineCase, BaselineRun, MadeWith
from agenteval.results.model import Results
from agenteval.results.rollup import turn_means
from agenteval.suite.model import OVERALL, Fingerprints

# Metric id → score of each iteration, 0..1; `None` if it was lost.
CaseScores = Mapping[str, Sequence[float | None]]

#: Before the name of a resource in the values of a case: no metric is called so.
RESOURCE = "resource:"

# Metric id → number of turns that it scored.
ScoredTurns = Mapping[str, int]

_UNKNOWN = Fingerprints()
_NONE: ScoredTurns = {}


def baseline_run(results: Results, fingerprints: Mapping[str, Fingerprints]) -> BaselineRun:
    """Return the entry of a run in its baseline: the raw scores and the fingerprints of every case."""
    cases: dict[str, BaselineCase] = {}
    for suite, case in results.cases():
        own = fingerprints.get(case.id, _UNKNOWN)
        cases[case.id] = baseline_case(own, scores_of(case, suite.threshold, own.metrics))
    return entry_without_cases(results).model_copy(update={"cases": cases})


def baseline_case(fingerprints: Fingerprints, scores: CaseScores) -> BaselineCase:
    """Return one case of a run of a baseline."""
    found = {name: [score for score in values if score is not None] for name, values in scores.items()}
    lost = {name: len(values) - len(found[name]) for name, values in scores.items()}
    return BaselineCase(
        fingerprint=fingerprints.question,
        metrics=dict(fingerprints.metrics),
        scores={name: values for name, values in found.items() if values},
        lost={name: number for name, number in lost.items() if number},
    )


def entry_without_cases(results: Results) -> BaselineRun:
    """Return the entry of a run in its baseline without cases; `results.archive` has the cases of large runs.

    A run that is compared with nothing begins a baseline.
    """
    run = results.run
    return BaselineRun(
        commit=run.commit,
        run_id=run.id,
        created_at=run.started_at,
        start=run.commit,
        made_with=made_with(results),
        cases={},
    )


def scores_of(
    case: CaseResult, threshold: float | None, asked: Collection[str] = (), turns: ScoredTurns = _NONE
) -> dict[str, list[float | None]]:
    """Return for each metric the score of each iteration: the mean over its turns, or the lowest, if a turn fails.

    A conversation fails by one turn, whose score would hardly move the mean.

    If the agent failed in an iteration, the score is 0 in every metric. If the agent or a judge could not be reached,
    it is `None`. Metrics that were skipped and iterations that a limit of the run ended have no entry; but an
    iteration is lost if a metric was skipped in a turn, and scores fewer turns than always before.

    Args:
        threshold: the suite's threshold of the aggregated score; ``None`` without aggregation.
        asked: ids of the metrics of the case, which are needed if no iteration was scored.
        turns: how many turns of every earlier iteration each metric scored.
    """
    if threshold is None and not turns and (plain := _plain_scores(case)):
        return plain
    iterations = [_Iteration.of(iteration, threshold) for iteration in case.iterations]
    scored = dict.fromkeys(name for iteration in iterations for name in iteration.scores)
    names = scored or dict.fromkeys(asked)
    # A metric that always applied may now apply to no iteration.
    names |= dict.fromkeys(name for name in turns if any(name in iteration.skipped for iteration in iterations))
    found: dict[str, list[float | None]] = {}
    for name in names:
        least = turns.get(name, 0)
        values = [iteration.score(name, least) for iteration in iterations if iteration.has(name, least)]
        if values:
            found[name] = values
    if threshold is not None and not case.iterations and case.score is not None:
        # The results of a large run contain some cases without their iterations.
        found[OVERALL] = [case.score]
    return found


def _plain_scores(case: CaseResult) -> dict[str, list[float | None]]:
    if (
        len(case.iterations) != 1
        or len(case.iterations[0].turns) != 1
        or case.iterations[0].turns[0].error is not None
    ):
        return {}
    scores = case.iterations[0].turns[0].scores
    found: dict[str, list[float | None]] = {score.id: [score.score] for score in scores if score.status == "scored"}
    return found if len(found) == len(scores) else {}


def case_amounts(case: CaseResult, resources: Collection[str]) -> dict[str, list[float | None]]:
    """Return what each iteration of a case took of some resources: seconds, US dollars, tokens.

    An iteration that did not end with an answer, or did not report the amount, is lost.
    """
    found: dict[str, list[float | None]] = {}
    for name in resources:
        rows = [_amount(iteration, name) if is_whole(iteration) else None for iteration in case.iterations]
        if any(value is not None for value in rows):
            found[RESOURCE + name] = rows
    return found


def _amount(iteration: IterationResult, name: str) -> float | None:
    amounts = [amount_of(turn, name) for turn in iteration.turns]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


def amount_of(turn: TurnResult, name: str) -> float | None:
    """Return what a turn took of a resource: seconds, US dollars, tokens; ``None`` if it did not report it."""
    if name == "latency":
        return None if turn.latency_ms is None else turn.latency_ms / 1000
    if turn.usage is None:
        return None
    if name == "cost":
        return turn.usage.cost_usd
    tokens = (turn.usage.input_tokens, turn.usage.output_tokens)
    return None if tokens == (None, None) else float(sum(number or 0 for number in tokens))


def is_whole(iteration: IterationResult) -> bool:
    """Return whether every turn had an answer; partial iterations cannot be compared."""
    return all(turn.error is None for turn in iteration.turns)


@dataclass(frozen=True)
class _Iteration:
    """The scores of one iteration.

    Attributes:
        end: ``failed``: the agent failed; ``lost``: it could not be reached; ``limited``: a limit ended it.
        scores: score of each metric; ``None`` if the metric failed.
        turns: how many turns each metric scored.
        skipped: ids of the metrics that did not apply to the answer of a turn.
    """

    end: Literal["answered", "failed", "lost", "limited"]
    scores: Mapping[str, float | None] = field(default_factory=dict)
    turns: ScoredTurns = field(default_factory=dict)
    skipped: frozenset[str] = frozenset()

    @classmethod
    def of(cls, iteration: IterationResult, threshold: float | None) -> _Iteration:
        if not is_whole(iteration):
            if any(turn.not_asked for turn in iteration.turns):
                return cls("limited")
            return cls("lost" if any(turn.unavailable for turn in iteration.turns) else "failed")
        scores: dict[str, float | None] = dict.fromkeys(_broken(iteration))
        scores |= turn_means(iteration.turns)
        scores |= _failed_turns(iteration.turns)
        if threshold is not None and (iteration.score is not None or iteration.status == "error"):
            scores[OVERALL] = iteration.score
        return cls("answered", scores, scored_turns(iteration), frozenset(_skipped(iteration)))

    def has(self, metric: str, least: int) -> bool:
        if self.end == "answered":
            return metric in self.scores or self._lacks(metric, least)
        return self.end != "limited"

    def score(self, metric: str, least: int) -> float | None:
        if self.end == "failed":
            return 0.0
        return None if self._lacks(metric, least) else self.scores.get(metric)

    def _lacks(self, metric: str, least: int) -> bool:
        return metric in self.skipped and self.turns.get(metric, 0) < least


def _failed_turns(turns: Sequence[TurnResult]) -> dict[str, float]:
    if len(turns) == 1:
        return {}
    scores = [score for turn in turns for score in turn.scores]
    failed = {score.id for score in scores if score.passed is False}
    return {name: min(item.score for item in scores if item.id == name and item.score is not None) for name in failed}


def scored_turns(iteration: IterationResult) -> ScoredTurns:
    """Return how many turns of an iteration each metric scored."""
    return Counter(score.id for turn in iteration.turns for score in turn.scores if score.score is not None)


def _skipped(iteration: IterationResult) -> Iterator[str]:
    for turn in iteration.turns:
        yield from (score.id for score in turn.scores if score.status == "skipped" and score.not_asked is None)


def _broken(iteration: IterationResult) -> list[str]:
    return [score.id for turn in iteration.turns for score in turn.scores if score.status == "error"]


# Metric kinds whose scores a model decides.
_JUDGES = frozenset({"geval", "rag", "judge", "safety"})


def made_with(results: Results) -> MadeWith:
    """Return what a run was made with, as far as its results tell: they do not name the models of agents."""
    judges: set[str] = set()
    lengths: Counter[int] = Counter()
    for _, case in results.cases():
        if case.iterations:
            lengths[case.planned] += 1
        scores = (score for iteration in case.iterations for turn in iteration.turns for score in turn.scores)
        judges.update(score.model for score in scores if score.model and score.kind in _JUDGES)
    usual = max(lengths, key=lambda length: (lengths[length], length), default=None)
    return MadeWith(judges=sorted(judges), iterations=usual)


def declared_change(now: MadeWith | None, then: MadeWith | None) -> str:
    """Return what differs between two runs, as text; empty if nothing that both know differs."""
    return "; ".join(_changes(now, then)) if now is not None and then is not None else ""


def _changes(now: MadeWith, then: MadeWith) -> Iterator[str]:
    for name, after, before in (("agent", now.agents, then.agents), ("judge", now.judges, then.judges)):
        # With an added or a removed judge, the others still make the runs comparable.
        if set(after) - set(before) and set(before) - set(after):
            yield f"the model of the {name} changed from {', '.join(before)} to {', '.join(after)}"
    if now.iterations and then.iterations and now.iterations != then.iterations:
        yield f"iterations changed from {then.iterations} to {now.iterations}"
