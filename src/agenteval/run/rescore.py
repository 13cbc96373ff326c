"""Scores the answers of a baseline again by changed metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Iterator, Mapping

from agenteval.agents.base import Reply, Request
from agenteval.agents.recording import recorded_turn
from agenteval.core.errors import ConfigError
from agenteval.core.llm.budget import Limits
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.core.records import dataclass, field, replace
from agenteval.core.redact import MASK
from agenteval.gate.pairing import Match, Rescored, own_cases
from agenteval.gate.run_scores import baseline_case, scores_of
from agenteval.gate.words import count
from agenteval.metrics.resources import GraderPool, Resources
from agenteval.metrics.rules import scores_stored_answers
from agenteval.metrics.scoring import MetricCatalog
from agenteval.results.case import CaseResult, IterationResult, SuiteResult, TurnResult
from agenteval.results.comparison import BaselineCase, BaselineRun, RescoredMetric
from agenteval.results.masking import ANSWER_FIELDS
from agenteval.results.model import OWN_NAME, Results
from agenteval.results.rollup import summarise
from agenteval.run.context import FoundBaseline
from agenteval.run.conversation import Answer, TurnRecord
from agenteval.run.scoring import case_of, rate_case, rate_iteration, rated
from agenteval.suite.model import OVERALL, Case, Fingerprints


def rescorable(case: Case, then: BaselineCase | None) -> frozenset[str]:
    """Return the metrics that can score the stored answers of a case again, because their fingerprint changed."""
    if then is None or not then.fingerprint:
        return frozenset()
    match = Match.of(baseline_case(case.fingerprints, {}), then)
    if not match.question:
        return frozenset()
    other = {metric.id for metric in case.all_metrics if not scores_stored_answers(metric)}
    names = match.changed - other
    # The aggregated score needs the scores of all metrics.
    is_whole = match.changed == names and not match.unmatched
    return names if is_whole else names - {OVERALL}


# Scores the stored answers of the baseline again with the metrics of which only the configuration changed.
#
# The answers are as untrusted as those of an agent: the metrics check them within the same limits.


# Seconds for all cases together. Metrics of texts need milliseconds.
_LONGEST_S = 300.0
_MISSING = "stored answers are missing"
_SHORTENED = "stored answers are shortened (`max_answer_bytes`)"
_MASKED = "stored answers contain masked secrets"
_LATE = "the time limit was reached"
_UNSCORED = "not every answer has a score"


def with_rescored_baseline(
    baseline: FoundBaseline, cases: Iterable[Case], limit_s: float | None = None
) -> FoundBaseline:
    """Return a baseline with new scores of the metrics whose configuration or expected answer changed.

    A case keeps its old scores if its question changed, or its answers are not whole. A metric keeps them if it needs
    more than the answer, such as a judge, or if it does not score every answer again.

    Args:
        baseline: the baseline; its results contain the answers of its newest run.
        limit_s: time limit of this run, in seconds.
    """
    then = own_cases(baseline.results)
    if not then or baseline.results.tool.name != OWN_NAME:
        return baseline
    wanted = {case.id: (case, names) for case in cases if (names := rescorable(case, then.get(case.id)))}
    if not wanted:
        return baseline
    rescoring = _Rescoring(wanted, catalog_of_answers(), time.monotonic() + min(_LONGEST_S, limit_s or _LONGEST_S))
    asyncio.run(rescoring.run(baseline.results))
    return rescoring.applied(baseline)


def catalog_of_answers() -> MetricCatalog:
    """Return metrics that may ask nobody."""
    gateway = Gateway(LlmSettings(limits=Limits(max_calls=0)))
    return MetricCatalog(Resources(gateway, GraderPool()))


def why_not_whole(case: Case, stored: CaseResult) -> str | None:
    """Return why the stored answers of a case cannot be scored again; ``None`` if they can."""
    numbers = [iteration.index for iteration in stored.iterations]
    if not numbers or len(set(numbers)) < len(numbers):
        return _MISSING
    for iteration in stored.iterations:
        if [turn.index for turn in iteration.turns] != list(range(len(case.turns))):
            return _MISSING
        for turn in iteration.turns:
            if turn.error is None and turn.response is None:
                return _MISSING
            if any(name in turn.shortened for name in ANSWER_FIELDS):
                return _SHORTENED
            if MASK in turn.model_dump_json(include=set(ANSWER_FIELDS)):
                return _MASKED
    return None


@dataclass
class _Rescoring:
    wanted: Mapping[str, tuple[Case, frozenset[str]]]
    catalog: MetricCatalog = field(repr=False)
    until: float
    scored: dict[str, CaseResult] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    why_not: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    async def run(self, baseline: Results) -> None:
        for _, stored in baseline.cases():
            if stored.id not in self.wanted:
                continue
            case, names = self.wanted[stored.id]
            why = why_not_whole(case, stored)
            if why is None and time.monotonic() >= self.until:
                why = _LATE
            found = await scored_again(case, names, stored, self.catalog) if why is None else None
            if found is None:
                self._leave(case, names, why or _UNSCORED)
            else:
                self.scored[stored.id], self.names[stored.id] = found
                self._leave(case, names - found[1], _UNSCORED)

    def _leave(self, case: Case, names: Collection[str], why: str) -> None:
        for name in sorted(names):
            self.why_not.setdefault(why, {}).setdefault(name, []).append(case.id)

    def applied(self, baseline: FoundBaseline) -> FoundBaseline:
        notes = (*baseline.notes, *self._notes(baseline.results.run.id))
        if not self.scored:
            return replace(baseline, notes=notes)
        stored = baseline.results
        suites = [
            suite.model_copy(update={"cases": [self.scored.get(case.id, case) for case in suite.cases]})
            for suite in stored.suites
        ]
        runs = stored.baseline_runs
        own = [self._entry(entry, suites) if entry.run_id == stored.run.id else entry for entry in runs]
        metrics = summarise(case for suite in suites for case in suite.cases).metrics
        summary = stored.summary.model_copy(update={"metrics": metrics})
        results = stored.model_copy(update={"suites": suites, "baseline_runs": own, "summary": summary})
        return replace(baseline, results=results, notes=notes, rescored=Rescored(stored, self._metrics))

    @property
    def _metrics(self) -> tuple[RescoredMetric, ...]:
        found: dict[str, list[str]] = {}
        for case_id, names in self.names.items():
            for name in sorted(names):
                found.setdefault(name, []).append(case_id)
        return tuple(RescoredMetric(id=name, cases=found[name]) for name in sorted(found))

    def _entry(self, entry: BaselineRun, suites: Collection[SuiteResult]) -> BaselineRun:
        cases = dict(entry.cases)
        for suite in suites:
            for case in suite.cases:
                if case.id in self.scored:
                    cases[case.id] = self._case(cases[case.id], case, suite.threshold)
        return entry.model_copy(update={"cases": cases})

    def _case(self, then: BaselineCase, case: CaseResult, threshold: float | None) -> BaselineCase:
        names = self.names[case.id]
        now = self.wanted[case.id][0].fingerprints.metrics
        prints = Fingerprints(then.fingerprint, {name: now[name] for name in names})
        scores = scores_of(case, threshold, names)
        new = baseline_case(prints, {name: scores[name] for name in names if name in scores})
        kept = {name: value for name, value in then.scores.items() if name not in names}
        lost = {name: value for name, value in then.lost.items() if name not in names}
        return then.model_copy(
            update={
                "metrics": {**then.metrics, **new.metrics},
                "scores": {**kept, **new.scores},
                "lost": {**lost, **new.lost},
            }
        )

    def _notes(self, run_id: str) -> Iterator[str]:
        for metric in self._metrics:
            cases = count(len(metric.cases), "case")
            yield f"{metric.id} was scored again for the answers of run {run_id}, since it changed in {cases}"
        for why, metrics in sorted(self.why_not.items()):
            for name, ids in metrics.items():
                cases = count(len(ids), "case")
                yield f"{name} was not scored again for the answers of run {run_id} in {cases}: {why}"


async def scored_again(
    whole: Case, names: frozenset[str], stored: CaseResult, catalog: MetricCatalog
) -> tuple[CaseResult, frozenset[str]] | None:
    """Return a case with new scores, and the metrics that scored each of its answers; ``None`` without any."""
    case = _with_metrics(whole, names)
    try:
        iterations = [
            await rate_iteration(
                case, iteration.index, [_exchange(case, iteration.index, turn) for turn in iteration.turns], catalog
            )
            for iteration in stored.iterations
        ]
        found = await rate_case(case, iterations, catalog)
    except ConfigError:
        # A requirement of a metric is missing; the run itself reports that.
        return None
    if any(turn.error and not old.error for turn, old in zip(found.turns, _turns_in_order(stored), strict=True)):
        # A hostile answer broke the scoring of its turn.
        return None
    unscored = {score.id for score in found.scores if score.status != "scored"}
    names -= unscored
    if unscored:
        # Without these scores, the aggregated one is another.
        names -= {OVERALL}
    if not names:
        return None
    new = {iteration.index: iteration for iteration in found.iterations}
    merged = [_merged(whole, iteration, new[iteration.index], names) for iteration in stored.iterations]
    result = case_of(whole, merged)
    changed = {"status": result.status, "score": result.score, "iterations": result.iterations}
    return stored.model_copy(update=changed), names


def _turns_in_order(case: CaseResult) -> list[TurnResult]:
    iterations = sorted(case.iterations, key=lambda iteration: iteration.index)
    return [turn for iteration in iterations for turn in iteration.turns]


def _with_metrics(case: Case, names: Collection[str]) -> Case:
    turns = tuple(
        replace(turn, metrics=tuple(metric for metric in turn.metrics if metric.id in names)) for turn in case.turns
    )
    return replace(case, turns=turns, metrics=tuple(metric for metric in case.metrics if metric.id in names))


def _exchange(case: Case, iteration: int, stored: TurnResult) -> TurnRecord:
    asked = case.turns[stored.index]
    request = Request(
        input=asked.input,
        case=case.name,
        case_id=case.id,
        turn=stored.index,
        iteration=iteration,
        session=f"{case.id}#{iteration}",
    )
    recorded = recorded_turn(stored)
    if recorded is None or not isinstance(recorded.answer, Reply):
        return TurnRecord(request, Answer(error=stored.error or "no answer"))
    passages = asked.retrieval_context or recorded.answer.retrieval_context
    return TurnRecord(request, Answer(recorded.answer), passages)


def _merged(case: Case, stored: IterationResult, new: IterationResult, names: Collection[str]) -> IterationResult:
    turns = [
        old.model_copy(
            update={
                "scores": [
                    *(score for score in old.scores if score.id not in names),
                    *(score for score in turn.scores if score.id in names),
                ]
            }
        )
        for old, turn in zip(stored.turns, new.turns, strict=True)
    ]
    return rated(case, stored.index, turns)
