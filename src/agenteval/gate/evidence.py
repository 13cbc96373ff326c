"""Collects the values of both runs by metric and case: what the gate decides on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from agenteval.core.records import dataclass
from agenteval.gate.baseline import EarlierScores, Scores, UsableRuns, comparable_runs, first_runs, usable_runs, valid
from agenteval.gate.decide import Evidence
from agenteval.gate.pairing import Match, own_cases
from agenteval.gate.run_scores import RESOURCE, ScoredTurns, case_amounts, is_whole, scored_turns, scores_of
from agenteval.gate.values import TOLERANCE, ComparePolicy, GateMetric, Pass, Values
from agenteval.results.case import CaseResult, Score, SuiteResult
from agenteval.results.comparison import BaselineCase, BaselineRun
from agenteval.results.model import Results
from agenteval.suite.model import OVERALL

# Threshold for metrics with a verdict instead of a threshold; their scores are 0 and 1.
_OWN_VERDICT = 0.5
# No amount is smaller, so that its logarithm exists.
_SMALLEST = 1e-9


@dataclass(frozen=True)
class Sides:
    """The two runs of a comparison.

    Attributes:
        baseline: the run to compare with; it contains the runs before it.
        unrelated: commits whose runs do not count, because they are not ancestors of the base commit.
    """

    current: Results
    baseline: Results
    policy: ComparePolicy
    quarantined: frozenset[str] = frozenset()
    unrelated: frozenset[str] = frozenset()

    @cached_property
    def cases(self) -> Mapping[str, tuple[SuiteResult, CaseResult]]:
        """The cases of the current run by id."""
        return {case.id: (suite, case) for suite, case in self.current.cases()}

    @cached_property
    def scores(self) -> Scores:
        """The values of the current run, of all metrics."""
        return self.scores_of(self.cases.values())

    def scores_of(self, cases: Iterable[tuple[SuiteResult, CaseResult]]) -> Scores:
        """Return the values of cases by case and metric, as those of the current run."""
        return {
            case.id: {
                name: tuple(valid(name, value) for value in values)
                for name, values in {
                    **scores_of(case, suite.threshold, self._asked.get(case.id, {}), self.turns.get(case.id, {})),
                    **case_amounts(case, self.policy.resources),
                }.items()
            }
            for suite, case in cases
        }

    @cached_property
    def usable(self) -> UsableRuns:
        """The runs that may raise a suspicion."""
        return usable_runs(self.baseline, self.current.run.id, self.unrelated)

    @cached_property
    def earlier(self) -> EarlierScores:
        """The values of the baseline."""
        return comparable_runs(self.current, self.usable)

    @cached_property
    def turns(self) -> Mapping[str, ScoredTurns]:
        """Case id → metrics that applied in all earlier iterations → the number of turns that they scored at least.

        The earlier runs do not tell of turns, so the baseline's run alone shows how many.
        """
        known = {case.id: case for _, case in self.baseline.cases()}
        planned = {case_id: case.planned for case_id, (_, case) in self.cases.items()}
        return {
            case_id: {name: _least_turns(known.get(case_id), name) for name in names if not name.startswith(RESOURCE)}
            for case_id, names in self.usable.always_applied(planned).items()
        }

    def scored_before(self, case_id: str) -> frozenset[str]:
        """Return the ids of the metrics that have a comparable score of a case in any earlier run."""
        scored = (item for run in self.earlier.scores for item in run.get(case_id, {}).items())
        return frozenset(name for name, scores in scored if any(score is not None for score in scores))

    @cached_property
    def thresholds(self) -> Mapping[tuple[str, str], float]:
        """The score from which an iteration of a case passes a metric, by case id and metric id."""
        then = own_cases(self.baseline)
        before = [
            (suite, case)
            for suite, case in self.baseline.cases()
            if Match.of(self._questions.get(case.id), then.get(case.id)).comparable
        ]
        # A case without any answer of the current run is graded as it was before.
        return {**_thresholds(before), **_thresholds(self.cases.values())}

    @cached_property
    def gating(self) -> tuple[str, ...]:
        """The ids of the metrics that can fail the gate, with a threshold or without, those with scores first."""
        names = dict.fromkeys(name for metrics in self.scores.values() for name in metrics)
        deciding = {score.id for _, case in self.cases.values() for score in case.scores if score.gating}
        # A metric without comparable values in the baseline does not affect the verdict.
        before = {name for run in self.earlier.scores for metrics in run.values() for name in metrics}
        found = [name for name in names if name in before and self._gates(name, deciding)]
        return tuple(sorted(found, key=lambda name: name.startswith(RESOURCE)))

    def _gates(self, name: str, deciding: set[str]) -> bool:
        if name.startswith(RESOURCE):
            return name.removeprefix(RESOURCE) in self.policy.resources
        return self.policy.gating.get(name, name in deciding)

    def label(self, metric: str, case_id: str) -> str:
        """Return the name of a metric in the family: with its suite, if several suites have it."""
        name = metric.removeprefix(RESOURCE)
        suite, _ = self.cases[case_id]
        return f"{name} of {suite.path}" if len(self._suites_of.get(metric, ())) > 1 else name

    @cached_property
    def _suites_of(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = {}
        for case_id, metrics in self.scores.items():
            for name in metrics:
                found.setdefault(name, set()).add(self.cases[case_id][0].path)
        return found

    @cached_property
    def compared(self) -> Mapping[str, frozenset[str]]:
        """Id of each case that counts → its gating metrics that any run of the baseline has."""
        known: dict[str, set[str]] = {}
        for run in self.earlier.scores:
            for case_id, metrics in run.items():
                known.setdefault(case_id, set()).update(metrics)
        found = {
            case_id: frozenset(metrics) & set(self.gating) & known.get(case_id, set())
            for case_id, metrics in self.scores.items()
            if case_id not in self.quarantined
        }
        return {case_id: metrics for case_id, metrics in found.items() if metrics}

    @cached_property
    def metrics(self) -> Mapping[str, GateMetric]:
        """The family: label → how its values are judged."""
        found: dict[str, dict[str, float]] = {}
        slack: dict[str, float] = {}
        accepted: set[str] = set()
        for name in self.gating:
            for case_id, metrics in self.compared.items():
                if name in metrics:
                    label = self.label(name, case_id)
                    found.setdefault(label, {})
                    accepted |= {label} if name in self.policy.accepted_means else set()
                    slack[label] = math.log1p(self._allowed(name)) if name.startswith(RESOURCE) else 0.0
                    if (case_id, name) in self.thresholds:
                        found[label][case_id] = self.thresholds[case_id, name]
        return {label: GateMetric(None, slack[label], by_case, label in accepted) for label, by_case in found.items()}

    def _allowed(self, name: str) -> float:
        return next((share for key, share in self.policy.resources.items() if RESOURCE + key == name), TOLERANCE)

    def allowed(self, label: str) -> float | None:
        """Return by how much a resource may rise; ``None`` for a score."""
        metric = self.metrics.get(label)
        return math.expm1(metric.slack) if metric is not None and metric.slack else None

    @cached_property
    def evidence(self) -> Evidence:
        """What the gate decides on."""
        return Evidence(
            first=self._values(self.scores),
            baseline=[self._values(run) for run in self.earlier.scores],
            metrics=self.metrics,
            can_run=self.policy.can_run and not any(case_id in self.policy.recorded for case_id in self.compared),
        )

    def first_runs(self) -> list[Mapping[str, Values]]:
        """Return the values of the first runs since the start."""
        runs = comparable_runs(self.current, UsableRuns(tuple(first_runs(self.baseline)))).scores
        return [self._values(run) for run in runs]

    def one_pass(self, cases: Iterable[tuple[SuiteResult, CaseResult]]) -> Pass:
        """Return the values of one pass."""
        found = self._values(self.scores_of(cases))
        return {label: {case: row[-1] for case, row in values.items() if row} for label, values in found.items()}

    def _values(self, scores: Scores) -> dict[str, Values]:
        found: dict[str, dict[str, Sequence[float | None]]] = {label: {} for label in self.metrics}
        for case_id, metrics in scores.items():
            for name in self.compared.get(case_id, ()):
                label = self.label(name, case_id)
                if name in metrics and label in found:
                    row = metrics[name]
                    found[label][case_id] = list(map(_logarithm, row)) if name.startswith(RESOURCE) else row
        return {label: dict(values) for label, values in found.items()}

    @cached_property
    def _asked(self) -> Mapping[str, Collection[str]]:
        known: dict[str, dict[str, None]] = {}
        for entry in self.usable.runs:
            for case_id, case in entry.cases.items():
                known.setdefault(case_id, {}).update(
                    dict.fromkeys(name for name in case.scores if not name.startswith(RESOURCE))
                )
        own = {case_id: case.metrics for case_id, case in self._questions.items()}
        return {case_id: own.get(case_id, {}) or known.get(case_id, {}) for case_id in self.cases}

    @cached_property
    def _questions(self) -> Mapping[str, BaselineCase]:
        return own_cases(self.current)

    def entries_of(self, passes: Mapping[str, Values], own: BaselineRun) -> list[BaselineRun]:
        """Return the whole passes of a proof as an entry of a baseline."""
        names = {self.label(name, case): (case, name) for case, metrics in self.compared.items() for name in metrics}
        cases: dict[str, BaselineCase] = {}
        for label, values in passes.items():
            if label not in names:
                continue
            name = names[label][1]
            for case_id, row in values.items():
                known = [value for value in row if value is not None]
                amounts = [math.exp(-value) for value in known] if name.startswith(RESOURCE) else known
                case = cases.setdefault(case_id, own.cases[case_id].model_copy(update={"scores": {}, "lost": {}}))
                cases[case_id] = case.model_copy(update={"scores": {**case.scores, name: amounts}})
        return [own.model_copy(update={"run_id": f"{own.run_id}.1", "cases": cases})] if cases else []


def _logarithm(amount: float | None) -> float | None:
    return None if amount is None else -math.log(max(amount, _SMALLEST))


def _least_turns(case: CaseResult | None, metric: str) -> int:
    whole = [iteration for iteration in case.iterations if is_whole(iteration)] if case is not None else []
    return max(1, min((scored_turns(iteration).get(metric, 0) for iteration in whole), default=1))


def _thresholds(cases: Iterable[tuple[SuiteResult, CaseResult]]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for suite, case in cases:
        scores: dict[str, list[Score]] = {}
        turns: dict[str, int] = {}
        for iteration in case.iterations:
            scored = [score for turn in iteration.turns for score in turn.scores if score.score is not None]
            for score in scored:
                scores.setdefault(score.id, []).append(score)
            for name, count in Counter(score.id for score in scored).items():
                turns[name] = max(turns.get(name, 1), count)
        for name, of_metric in scores.items():
            threshold = _threshold(of_metric, turns[name])
            if threshold is not None:
                found[case.id, name] = threshold
        if suite.threshold is not None:
            found[case.id, OVERALL] = suite.threshold
    return found


def _threshold(scores: Sequence[Score], turns: int) -> float | None:
    threshold = next((score.threshold for score in scores if score.threshold is not None), None)
    if threshold is None and any(score.passed is not None for score in scores):
        # Every turn has to pass, so the mean must exceed the mean with one failed turn.
        threshold = 1 - (1 - _OWN_VERDICT) / turns
    return threshold
