"""Collects the scores of both runs by case for the statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from agenteval.compare.baseline_runs import EarlierRuns, RunScores, comparable_runs
from agenteval.compare.missing_scores import RunLosses, losses_of
from agenteval.compare.pairing import case_scores, own_cases
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.pool import baseline_pool
from agenteval.compare.statistics.model import CaseRuns, MetricRuns
from agenteval.compare.statistics.permutation import seed_of
from agenteval.results.case import CaseResult, Score, SuiteResult
from agenteval.results.comparison import PoolCase
from agenteval.results.model import Results, Run
from agenteval.suite.model import OVERALL

# Metric kinds that may call a model.
_JUDGES = frozenset({"geval", "rag", "judge", "safety"})
# Step of scores that are not only 0 and 1; most judges use tenths.
_STEP = 0.1
# Threshold for metrics with a verdict instead of a threshold; their scores are 0 and 1.
_OWN_VERDICT = 0.5


@dataclass(frozen=True)
class Confirmation:
    """The scores of confirmation runs; runs that were not made are empty.

    Attributes:
        second: the second run of the whole suite with the agent under test.
        control: the run of the base commit's agent beside ``second``.
        reruns: the re-runs of single cases with the agent under test.
        control_reruns: the re-runs of the base commit's agent beside ``reruns``.
        not_run_because: why a run is missing, as text.
    """

    second: RunScores = field(default_factory=dict)
    control: RunScores = field(default_factory=dict)
    reruns: RunScores = field(default_factory=dict)
    control_reruns: RunScores = field(default_factory=dict)
    not_run_because: str = ""

    def add_to(self, metric: MetricRuns) -> MetricRuns:
        """Return a metric with the scores of the confirmation runs."""
        if not (self.second or self.control or self.reruns or self.control_reruns):
            return metric
        name = metric.metric
        cases = (
            replace(
                case,
                second=_scores(self.second, case.case_id, name),
                control=_scores(self.control, case.case_id, name),
                reruns=_scores(self.reruns, case.case_id, name),
                control_reruns=_scores(self.control_reruns, case.case_id, name),
            )
            for case in metric.cases
        )
        return replace(metric, cases=tuple(cases))


@dataclass(frozen=True)
class Sides:
    """The two runs of a comparison.

    Attributes:
        current: the current run.
        baseline: the run to compare with; its number of errors is compared too.
        policy: the comparison policy.
        quarantined: ids of quarantined cases.
    """

    current: Results
    baseline: Results
    policy: ComparePolicy
    quarantined: frozenset[str]

    @cached_property
    def cases(self) -> Mapping[str, tuple[SuiteResult, CaseResult]]:
        """The cases of the current run by id."""
        return {case.id: (suite, case) for suite, case in self.current.cases()}

    @cached_property
    def own_scores(self) -> RunScores:
        """The scores of the current run."""
        return run_scores(self.cases.values())

    @cached_property
    def earlier(self) -> EarlierRuns:
        """The scores of the baseline runs."""
        pool = baseline_pool(self.baseline, self.current.run.id, self.policy.parameters.window)
        return comparable_runs(self.current, self.own_scores, pool)

    @cached_property
    def metrics(self) -> tuple[MetricRuns, ...]:
        """The scores of every metric in both runs, in the order of the run; metrics with only errors come last."""
        losses, before = self._losses
        scored = dict.fromkeys(
            name for metrics in self.own_scores.values() for name, found in metrics.items() if found
        )
        lost = [name for name, found in losses.by_metric.items() if found.iterations]
        grades = _grades(self.cases.values())
        metrics = []
        for name in {**scored, **dict.fromkeys(lost)}:
            cases = tuple(self._case_runs(name, grades))
            # It is unknown whether a metric without a score has a threshold.
            counts = not cases or any(case.threshold is not None for case in cases)
            # A metric without scores in the baseline cannot be compared, so it does not affect the verdict.
            is_new = bool(cases) and name not in self.earlier.metrics
            metrics.append(
                MetricRuns(
                    metric=name,
                    cases=cases,
                    seed=seed_of(self._asked(cases, name), name, self.earlier.run_ids, _drawn_by(self.current.run)),
                    step=1.0 if _is_binary(cases) else _STEP,
                    gating=self.policy.gating.get(name, counts) and not is_new,
                    errors=losses.beside(before, name),
                )
            )
        return tuple(metrics)

    @cached_property
    def _fingerprints(self) -> Mapping[str, PoolCase]:
        return own_cases(self.current)

    def _asked(self, cases: Iterable[CaseRuns], metric: str) -> str:
        """Return the fingerprints of the cases' questions and of one metric."""
        known = ((case.case_id, self._fingerprints.get(case.case_id)) for case in cases)
        return "".join(f"{key}{case.fingerprint}{case.metrics.get(metric, '')}" for key, case in known if case)

    def _case_runs(self, name: str, grades: Mapping[tuple[str, str], _Grade]) -> Iterable[CaseRuns]:
        """Yield the cases that a metric scored."""
        for case_id, (_, case) in self.cases.items():
            scores = _scores(self.own_scores, case_id, name)
            if scores:
                grade = grades[case_id, name]
                yield CaseRuns(
                    case_id=case_id,
                    current=scores,
                    baseline=tuple(_scores(run, case_id, name) for run in self.earlier.scores),
                    cluster=case.cluster,
                    threshold=grade.threshold,
                    deterministic=self.policy.is_deterministic(case_id) and not grade.judged,
                    quarantined=case_id in self.quarantined,
                )

    @property
    def lost_by_agent(self) -> frozenset[str]:
        """Ids of the metrics that lost scores because the agent failed."""
        losses, _ = self._losses
        return frozenset(name for name, found in losses.by_metric.items() if found.by_agent)

    @cached_property
    def _losses(self) -> tuple[RunLosses, RunLosses]:
        """The losses to errors of the current run and of the baseline run, without quarantined cases."""
        known: dict[str, set[str]] = {}
        for run in (self.own_scores, *self.earlier.scores):
            for case_id, metrics in run.items():
                known.setdefault(case_id, set()).update(metrics)
        expected = {case_id: sorted(names) for case_id, names in known.items() if case_id in self.cases}
        counting = [(suite, case) for suite, case in self.cases.values() if case.id not in self.quarantined]
        ids = {case.id for _, case in counting}
        before = [(suite, case) for suite, case in self.baseline.cases() if case.id in ids]
        return losses_of(counting, expected), losses_of(before, expected)


@dataclass(frozen=True)
class _Grade:
    """The score from which an iteration of a case passes a metric, and whether a model decides the score."""

    threshold: float | None
    judged: bool


def run_scores(cases: Iterable[tuple[SuiteResult, CaseResult]]) -> RunScores:
    """Return the scores of a run."""
    return {
        case.id: {name: tuple(scores) for name, scores in case_scores(suite, case).items()} for suite, case in cases
    }


def _scores(run: RunScores, case_id: str, metric: str) -> tuple[float, ...]:
    return run.get(case_id, {}).get(metric, ())


def _grades(cases: Iterable[tuple[SuiteResult, CaseResult]]) -> dict[tuple[str, str], _Grade]:
    """Return how each metric grades each case, by case id and metric id."""
    grades: dict[tuple[str, str], _Grade] = {}
    for suite, case in cases:
        found: dict[str, list[Score]] = {}
        turns: dict[str, int] = {}
        for iteration in case.iterations:
            scores = [score for turn in iteration.turns for score in turn.scores if score.score is not None]
            for score in scores:
                found.setdefault(score.id, []).append(score)
            for name, count in Counter(score.id for score in scores).items():
                turns[name] = max(turns.get(name, 1), count)
        for name, of_metric in found.items():
            grades[case.id, name] = _grade(of_metric, turns[name])
        if suite.threshold is not None:
            grades[case.id, OVERALL] = _Grade(suite.threshold, judged=True)
    return grades


def _grade(scores: Sequence[Score], turns: int) -> _Grade:
    judged = any(score.kind in _JUDGES for score in scores)
    threshold = next((score.threshold for score in scores if score.threshold is not None), None)
    if threshold is None and any(score.passed is not None for score in scores):
        # Every turn has to pass, so the mean must exceed the mean with one failed turn.
        threshold = 1 - (1 - _OWN_VERDICT) / turns
    return _Grade(threshold, judged)


def _is_binary(cases: Iterable[CaseRuns]) -> bool:
    return all(score in {0.0, 1.0} for case in cases for run in (case.current, *case.baseline) for score in run)


def _drawn_by(run: Run) -> str:
    """Return the source of random labelings: the run's seed, or else its id."""
    return run.id if run.seed is None else f"seed {run.seed}"
