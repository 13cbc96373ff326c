"""Finds the cases that a metric decided about in the baseline, and that have no score of it in the current run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agenteval.compare.gate_counts import of_cases, some
from agenteval.compare.paired_runs import PairedRuns
from agenteval.compare.pairing import own_cases
from agenteval.results.case import CaseResult, Score, SuiteResult
from agenteval.results.comparison import PoolCase
from agenteval.results.model import OWN_NAME, Results
from agenteval.results.verdict import MendedBy, Unproven
from agenteval.suite.model import OVERALL

#: Share of the baseline's cases that may be removed or changed, or be left out of a smaller sample.
MAX_UNPAIRED = 0.20

_Cause = Literal["agent", "unavailable", "metric", "limit", "skipped"]
_WHY: dict[_Cause, tuple[str, MendedBy]] = {
    "agent": ("the agent failed", "change"),
    "unavailable": ("the agent could not be reached", "outside"),
    "metric": ("the metric ended in an error", "outside"),
    "limit": ("limits of the suite left more cases to no judge", "change"),
    "skipped": ("the metric does not apply any more", "change"),
}


def lost_scores(runs: PairedRuns) -> list[Unproven]:
    """Return the cases that lost the scores by which metrics decided about them in the baseline.

    Cases that the budget or the time limit of the run ended are not among them: the gate names the limit itself. A
    changed case is among them: a change of its expected value or of its question may be the reason why a metric does
    not apply any more.
    """
    current, baseline = runs.current, runs.baseline
    counting = {case.id for case in runs.counting() if case.change != "removed"}
    ignored = {*runs.not_gating, *(_unknown(current, baseline) if baseline.tool.name != OWN_NAME else ())}
    losses = _Losses(current, own_cases(current), own_cases(baseline))
    for suite, case in baseline.cases():
        if case.id in counting:
            for name in sorted(deciding_metrics(suite, case) - ignored):
                losses.add(case.id, name)
    return list(losses.unproven({"agent"} if runs.failures_are_scores else set()))


def deciding_metrics(suite: SuiteResult, case: CaseResult) -> set[str]:
    """Return the ids of the metrics that decided about a case; of a suite that aggregates scores, the aggregate."""
    found = {score.id for score in case.scores if score.passed is not None and score.gating}
    if suite.threshold is not None and case.score is not None:
        found.add(OVERALL)
    return found


def _unknown(current: Results, baseline: Results) -> set[str]:
    """Return the metrics of another tool that the current run does not have."""
    return set(baseline.summary.metrics) - set(current.summary.metrics)


@dataclass
class _Losses:
    """The cases that metrics decided about in the baseline, and those of them that lost their scores."""

    current: Results
    now: Mapping[str, PoolCase]
    then: Mapping[str, PoolCase]
    scored: dict[str, list[str]] = field(default_factory=dict)
    lost: dict[tuple[str, _Cause], list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cases = {case.id: (suite, case) for suite, case in self.current.cases()}

    def add(self, case_id: str, name: str) -> None:
        """Add a metric that decided about a case in the baseline."""
        self.scored.setdefault(name, []).append(case_id)
        if (
            not self._is_removed(case_id, name)
            and not self._has_score(case_id, name)
            and (cause := _cause(self._cases[case_id][1], name))
        ):
            self.lost.setdefault((name, cause), []).append(case_id)

    def unproven(self, without: Collection[_Cause]) -> Iterator[Unproven]:
        """Yield the lost scores, without some causes; metrics with the same cases and cause are one point."""
        metrics: dict[tuple[_Cause, int, tuple[str, ...]], list[str]] = {}
        for (name, cause), ids in self.lost.items():
            if cause not in without and (cause != "limit" or self._is_smaller_sample(name)):
                metrics.setdefault((cause, len(self.scored[name]), tuple(ids)), []).append(name)
        for (cause, total, case_ids), names in metrics.items():
            why, mended_by = _WHY[cause]
            cases = some([self._cases[case_id][1].name for case_id in case_ids])
            quoted = some([f"'{name}'" for name in names])
            has = "has" if len(case_ids) == 1 else "have"
            text = f"{of_cases(len(case_ids), total)} {has} no score of {quoted} any more ({why}): {cases}"
            yield Unproven(what="scores", text=text, mended_by=mended_by)

    def _is_removed(self, case_id: str, name: str) -> bool:
        """Return whether the case does not ask for a metric any more, which is counted as a removed metric."""
        now, then = self.now.get(case_id), self.then.get(case_id)
        if now is None or then is None or not now.metrics:
            return False
        return name in then.metrics and name not in now.metrics

    def _has_score(self, case_id: str, name: str) -> bool:
        suite, case = self._cases[case_id]
        pooled = self.now.get(case_id)
        if not case.iterations and pooled is not None:
            return bool(pooled.scores.get(name))
        if name == OVERALL and suite.threshold is not None:
            return case.score is not None
        return any(score.score is not None for score in _scores(case, name))

    def _is_smaller_sample(self, name: str) -> bool:
        """Return whether a metric scored clearly fewer cases than in the baseline, whichever they are."""
        scored = sum(self._has_score(case_id, name) for case_id in self._cases)
        return scored < (1 - MAX_UNPAIRED) * len(self.scored[name])


def _cause(case: CaseResult, name: str) -> _Cause | None:
    """Return why a case has no score of a metric; ``None`` if a limit of the run ended it."""
    scores = _scores(case, name)
    reasons = (*(turn.not_asked for turn in case.turns), *(score.not_asked for score in scores))
    left_out = {reason.cause for reason in reasons if reason is not None}
    if left_out & {"budget", "time"}:
        return None
    if any(turn.unavailable for turn in case.turns):
        return "unavailable"
    if any(turn.error for turn in case.turns):
        return "agent"
    if any(score.status == "error" for score in scores):
        return "metric"
    return "limit" if left_out else "skipped"


def _scores(case: CaseResult, name: str) -> list[Score]:
    """Return the scores of a metric; those of all metrics for the aggregate."""
    return [score for score in case.scores if name in {score.id, OVERALL}]
