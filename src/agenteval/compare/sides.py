"""Collects the scores of both runs by case: what the gate decides on."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agenteval.compare.baseline_runs import EarlierRuns, comparable_runs, valid
from agenteval.compare.pairing import Match, own_cases
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.pool import Pool, baseline_pool
from agenteval.compare.regression.model import Evidence, GatingMetric, Scores
from agenteval.compare.run_scores import ScoredTurns, case_scores, is_whole, scored_turns
from agenteval.results.case import CaseResult, Score, SuiteResult
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.model import SCHEMA_VERSION, Results, Run
from agenteval.suite.model import OVERALL

# Metric kinds that may call a model.
_JUDGES = frozenset({"geval", "rag", "judge", "safety"})
# Step of scores that are not only 0 and 1; most judges use tenths.
_STEP = 0.1
# Threshold for metrics with a verdict instead of a threshold; their scores are 0 and 1.
_OWN_VERDICT = 0.5
# Begins the text of every seed, so that another version of the gate draws other numbers.
_SEED = "agenteval-gate-v2"


@dataclass(frozen=True)
class Sides:
    """The two runs of a comparison.

    Attributes:
        baseline: the run to compare with; it contains the pool.
        unrelated: commits whose runs do not count, because they are not ancestors of the control.
        parts: the runs that the current run was merged from, if they are runs of the same cases.
    """

    current: Results
    baseline: Results
    policy: ComparePolicy
    quarantined: frozenset[str]
    unrelated: frozenset[str] = frozenset()
    parts: Sequence[PoolEntry] = ()

    @cached_property
    def cases(self) -> Mapping[str, tuple[SuiteResult, CaseResult]]:
        """The cases of the current run by id."""
        return {case.id: (suite, case) for suite, case in self.current.cases()}

    @cached_property
    def scores(self) -> Scores:
        """The scores of the current run, of all metrics."""
        return run_scores(self.cases.values(), self._asked, self.turns)

    @cached_property
    def earlier(self) -> EarlierRuns:
        """The scores of the pool."""
        return comparable_runs(self.current, self.scores, self._pool)

    @cached_property
    def turns(self) -> Mapping[str, ScoredTurns]:
        """Case id → metrics that applied in all earlier iterations → the number of turns that they scored at least.

        The pool does not tell of turns, so the baseline's run alone shows how many.
        """
        known = {case.id: case for _, case in self.baseline.cases()}
        planned = {case_id: case.planned for case_id, (_, case) in self.cases.items()}
        return {
            case_id: {name: _least_turns(known.get(case_id), name) for name in names}
            for case_id, names in self._pool.always_applied(planned).items()
        }

    def scored_before(self, case_id: str) -> frozenset[str]:
        """Return the ids of the metrics that have a comparable score of a case in any earlier run."""
        scored = (item for run in self.earlier.scores for item in run.get(case_id, {}).items())
        return frozenset(name for name, scores in scored if any(score is not None for score in scores))

    @cached_property
    def runs(self) -> tuple[Scores, ...]:
        """The scores of all runs of the change, oldest first.

        Its pool may contain runs that the baseline's lacks. A run that was merged from runs of the same cases counts
        as these.
        """
        known = {entry.run_id for entry in self.baseline.pool} | {self.baseline.run.id, self.current.run.id}
        entries = [entry for entry in self.current.pool if entry.run_id not in known]
        entries = sorted([*entries, *self.parts], key=lambda entry: entry.created_at)
        runs = comparable_runs(self.current, self.scores, Pool(tuple(entries[-self.policy.settings.window :])))
        asked = {entry.run_id: entry.made_with.iterations or 0 for entry in entries if entry.made_with is not None}
        found = tuple(
            restricted(self._with_skipped(run, asked.get(run_id, 0)), self._metrics_of_cases)
            for run_id, run in zip(runs.run_ids, runs.scores, strict=True)
        )
        return found if self.parts and found else (*found, self.evidence.first)

    def _with_skipped(self, run: Scores, iterations: int) -> Scores:
        """Return a run of a pool with lost scores where a metric was skipped that never was before.

        Args:
            iterations: its usual number of iterations; a case that the suite asks less often has fewer.
        """

        def whole(case_id: str, name: str, scores: tuple[float | None, ...]) -> tuple[float | None, ...]:
            most = min(iterations, self.cases[case_id][1].planned) if name in self.turns.get(case_id, {}) else 0
            return (*scores, *[None] * (most - len(scores)))

        return {
            case_id: {name: whole(case_id, name, scores) for name, scores in metrics.items()}
            for case_id, metrics in run.items()
            if case_id in self.cases
        }

    @cached_property
    def grades(self) -> Mapping[tuple[str, str], Grade]:
        """How each metric grades each case, by case id and metric id."""
        then = own_cases(self.baseline)
        before = [
            (suite, case)
            for suite, case in self.baseline.cases()
            if Match.of(self._questions.get(case.id), then.get(case.id)).comparable
        ]
        # A case without any answer of the current run is graded as it was before.
        return {**_grades(before), **_grades(self.cases.values())}

    @cached_property
    def gating(self) -> tuple[str, ...]:
        """The ids of the metrics that can fail the gate, in the order of the run."""
        names = dict.fromkeys(name for metrics in self.scores.values() for name in metrics)
        deciding = {name for (_, name), grade in self.grades.items() if grade.threshold is not None}
        # A metric without comparable scores in the baseline does not affect the verdict.
        before = {name for run in self.earlier.scores for metrics in run.values() for name in metrics}
        return tuple(name for name in names if name in before and self.policy.gating.get(name, name in deciding))

    @cached_property
    def evidence(self) -> Evidence:
        """What the gate decides on: cases that both sides asked in the same way, and the metrics that gate."""
        first = self._first
        return Evidence(
            metrics=tuple(self._metric(name, first) for name in self.gating),
            first=first,
            pool=tuple(restricted(run, self._metrics_of_cases) for run in self.earlier.scores),
            clusters={case_id: case.cluster for case_id in first if (case := self.cases[case_id][1]).cluster},
            repeats=self._repeats(first),
            iterations={case_id: self.cases[case_id][1].planned for case_id in first},
            is_staged=any(self.cases[case_id][1].unneeded for case_id in first),
            proves_nothing=min(self.current.schema_version, self.baseline.schema_version) < SCHEMA_VERSION,
            seed=self._seed(first),
        )

    @cached_property
    def _first(self) -> Scores:
        return dict(self._compared(self.scores))

    @cached_property
    def _metrics_of_cases(self) -> Mapping[str, frozenset[str]]:
        return {case_id: frozenset(metrics) for case_id, metrics in self._first.items()}

    @cached_property
    def _pool(self) -> Pool:
        return baseline_pool(self.baseline, self.current.run.id, self.policy.settings.window, self.unrelated)

    @cached_property
    def _asked(self) -> Mapping[str, Iterable[str]]:
        """The metrics of each case: those that the run records, or else those that scored it before."""
        known: dict[str, dict[str, None]] = {}
        for entry in self._pool.runs:
            for case_id, case in entry.cases.items():
                known.setdefault(case_id, {}).update(dict.fromkeys(case.scores))
        own = {case_id: case.metrics for case_id, case in self._questions.items()}
        return {case_id: own.get(case_id, {}) or known.get(case_id, {}) for case_id in self.cases}

    @cached_property
    def _questions(self) -> Mapping[str, PoolCase]:
        return own_cases(self.current)

    def _compared(self, scores: Scores) -> Iterator[tuple[str, Mapping[str, tuple[float | None, ...]]]]:
        """Yield the cases that count, with their gating metrics that any run of the pool scored."""
        known: dict[str, set[str]] = {}
        for run in self.earlier.scores:
            for case_id, metrics in run.items():
                known.setdefault(case_id, set()).update(metrics)
        gating = set(self.gating)
        for case_id, metrics in scores.items():
            found = {name: metrics[name] for name in metrics if name in gating & known.get(case_id, set())}
            if found and case_id not in self.quarantined:
                yield case_id, found

    def _metric(self, name: str, first: Scores) -> GatingMetric:
        cases = [case_id for case_id, metrics in first.items() if name in metrics]
        grades = {case_id: grade for case_id in cases if (grade := self.grades.get((case_id, name)))}
        return GatingMetric(
            id=name,
            thresholds={case_id: grade.threshold for case_id, grade in grades.items() if grade.threshold is not None},
            step=1.0 if self._is_binary(name, cases) else _STEP,
            mean_counts=name not in self.policy.accepted_means,
        )

    def _is_binary(self, name: str, cases: Iterable[str]) -> bool:
        runs = (self.scores, *self.earlier.scores)
        return all(
            score in {0.0, 1.0, None}
            for case_id in cases
            for run in runs
            for score in run.get(case_id, {}).get(name, ())
        )

    def _repeats(self, first: Scores) -> bool:
        """Return whether the agent is declared to repeat its answers, and no model judges them."""
        judged = {key for key, grade in self.grades.items() if grade.judged}
        return bool(first) and all(
            self.policy.is_deterministic(case_id) and (case_id, name) not in judged
            for case_id, metrics in first.items()
            for name in metrics
        )

    def _seed(self, first: Scores) -> int:
        """Return the seed, which depends only on what is compared, not on time or process."""
        asked = [
            f"{case_id}{case.fingerprint}{case.metrics.get(name, '')}"
            for case_id, metrics in first.items()
            for name in metrics
            if (case := self._questions.get(case_id))
        ]
        parts = [_SEED, *asked, *self.gating, *self.earlier.run_ids, _drawn_by(self.current.run)]
        return int.from_bytes(hashlib.sha256("\x1f".join(parts).encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Grade:
    """The score from which an iteration of a case passes a metric, and whether a model decides the score."""

    threshold: float | None
    judged: bool


def run_scores(
    cases: Iterable[tuple[SuiteResult, CaseResult]],
    asked: Mapping[str, Iterable[str]],
    turns: Mapping[str, ScoredTurns] | None = None,
) -> Scores:
    """Return the scores of cases.

    Args:
        asked: case id → ids of its metrics; they are needed where the agent failed in every iteration.
        turns: case id → how many turns of every earlier iteration each metric scored.
    """
    known = turns or {}
    return {
        case.id: {
            name: tuple(map(valid, scores))
            for name, scores in case_scores(
                suite, case, tuple(asked.get(case.id, ())), known.get(case.id, {})
            ).items()
        }
        for suite, case in cases
    }


def _least_turns(case: CaseResult | None, metric: str) -> int:
    """Return how many turns of every iteration a metric scored; at least 1."""
    whole = [iteration for iteration in case.iterations if is_whole(iteration)] if case is not None else []
    return max(1, min((scored_turns(iteration).get(metric, 0) for iteration in whole), default=1))


def restricted(scores: Scores, asked: Mapping[str, frozenset[str]]) -> Scores:
    """Return the scores of some cases and metrics."""
    return {
        case_id: {name: values for name, values in metrics.items() if name in asked[case_id]}
        for case_id, metrics in scores.items()
        if case_id in asked
    }


def _grades(cases: Iterable[tuple[SuiteResult, CaseResult]]) -> dict[tuple[str, str], Grade]:
    """Return how each metric grades each case, by case id and metric id."""
    grades: dict[tuple[str, str], Grade] = {}
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
            grades[case.id, OVERALL] = Grade(suite.threshold, judged=True)
    return grades


def _grade(scores: Sequence[Score], turns: int) -> Grade:
    judged = any(score.kind in _JUDGES for score in scores)
    threshold = next((score.threshold for score in scores if score.threshold is not None), None)
    if threshold is None and any(score.passed is not None for score in scores):
        # Every turn has to pass, so the mean must exceed the mean with one failed turn.
        threshold = 1 - (1 - _OWN_VERDICT) / turns
    return Grade(threshold, judged)


def _drawn_by(run: Run) -> str:
    """Return the source of random labelings: the run's seed, or else its id."""
    return run.id if run.seed is None else f"seed {run.seed}"
