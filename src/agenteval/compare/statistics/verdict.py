"""Derives a verdict and its reason from the tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agenteval.compare.statistics.case_confirmation import CaseFinding
from agenteval.compare.statistics.case_flags import Annotations
from agenteval.compare.statistics.mean_comparison import Aggregate
from agenteval.compare.statistics.parameters import GateParameters
from agenteval.core.statistics import ROUNDING

Verdict = Literal["regressed", "unproven", "improved", "unchanged"]

# Maximum number of cases in a reason.
_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The findings about one metric that its verdict uses.

    Args:
        first: the comparison of the first run with the pool.
        deciding: the comparisons that decide about the mean; empty if their runs are missing.
        suspicious: whether the first run needed a confirmation.
        detectable_drop: smallest drop that the comparison can detect, 0..1.
        regressed: cases that regressed.
        suspects: cases with a suspected regression.
        problem: why the scores are insufficient, for instance too many errors.
    """

    first: Aggregate | None
    deciding: tuple[Aggregate, ...]
    suspicious: bool
    detectable_drop: float | None
    regressed: tuple[CaseFinding, ...]
    suspects: tuple[CaseFinding, ...]
    problem: str | None

    @property
    def estimate(self) -> Aggregate | None:
        """The comparison to report."""
        return self.deciding[0] if self.deciding else self.first

    @property
    def p(self) -> float:
        """p-value of a drop: the largest of the deciding comparisons, 1 without any."""
        return max((comparison.p_low for comparison in self.deciding), default=1.0)

    def fell(self, parameters: GateParameters) -> bool:
        """Return whether the drop is large enough to count and exceeds the variation of the baseline runs."""
        return bool(self.deciding) and all(
            comparison.difference <= -parameters.min_effect + ROUNDING
            and (comparison.p_chart is None or comparison.p_chart <= parameters.alpha_chart + ROUNDING)
            for comparison in self.deciding
        )


@dataclass(frozen=True, kw_only=True)
class MetricDecision:
    """The verdict on one metric, and its evidence.

    Args:
        metric: id of the metric.
        gating: whether it counts for the verdict on the run.
        verdict: ``regressed``, ``unproven``, ``improved`` or ``unchanged``.
        reason: the reason as text.
        evidence: the numbers behind the verdict.
        annotations: cases that are new, removed, flaky or quarantined.
    """

    metric: str
    gating: bool
    verdict: Verdict
    reason: str
    evidence: Evidence
    annotations: Annotations

    @property
    def lost(self) -> bool:
        """Whether a gating metric lost too many scores to errors."""
        return self.gating and self.evidence.problem is not None


def judge_metric(
    evidence: Evidence, mean_regressed: bool, alpha_improved: float, parameters: GateParameters
) -> tuple[Verdict, str]:
    """Return the first verdict that applies, and its reason.

    Args:
        evidence: the evidence about the metric.
        mean_regressed: whether the mean dropped, after the correction for several metrics.
        alpha_improved: p-value of a rise at or below which the metric improved.
        parameters: parameters of the gate.
    """
    estimate = evidence.estimate
    if estimate is not None and (mean_regressed or evidence.regressed):
        parts = [_moved("dropped", estimate, evidence.p)] if mean_regressed else []
        parts += [_named(evidence.regressed)] if evidence.regressed else []
        return "regressed", "; ".join(parts)
    problem = _problem(evidence)
    if problem is not None:
        return "unproven", problem
    if estimate is None:
        return "unchanged", "no case has scores in this run and in the baseline"
    if estimate.units < parameters.min_units:
        return "unchanged", _too_few(estimate.units, parameters.min_units)
    if estimate.p_high <= alpha_improved + ROUNDING and estimate.difference >= parameters.min_effect - ROUNDING:
        return "improved", _moved("rose", estimate, estimate.p_high)
    return "unchanged", _excluded(estimate.interval, evidence.detectable_drop, parameters.tolerance)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the worst verdict of the metrics; unchanged without compared metrics."""
    order: tuple[Verdict, ...] = ("regressed", "unproven", "improved", "unchanged")
    return next((verdict for verdict in order if verdict in verdicts), "unchanged")


def points(difference: float) -> str:
    """Format a difference of scores, 0..1, in percentage points."""
    number = f"{100 * abs(difference):.1f}".removesuffix(".0")
    return f"{number} point" if number == "1" else f"{number} points"


def _problem(evidence: Evidence) -> str | None:
    """Return why a metric is neither proven to have regressed nor cleared: lost scores, or a missing confirmation."""
    if evidence.problem is not None:
        return evidence.problem
    estimate = evidence.estimate
    if estimate is not None and evidence.suspicious and not evidence.deciding:
        return f"the first run suggests a drop ({_p(estimate.p_low)}), and the confirmation run is missing"
    return None


def _too_few(units: int, needed: int) -> str:
    compared = "1 independent case was" if units == 1 else f"{units} independent cases were"
    return f"only {compared} compared; a change of the mean can be detected from {needed} on"


def _excluded(interval: tuple[float, float], detectable_drop: float | None, tolerance: float) -> str:
    """Return the drop that the interval excludes, and for a larger one than the tolerance, what would be detected."""
    low, high = (f"{100 * bound:+.1f}" for bound in interval)
    if interval[0] >= -tolerance - ROUNDING:
        return f"a drop of more than {points(tolerance)} is excluded: the mean changed by {low} to {high}"
    reason = f"a drop of more than {points(interval[0])} is excluded: the mean changed by {low} to {high} points"
    if detectable_drop is not None:
        reason += f"; a drop of {points(detectable_drop)} would probably have been detected"
    return reason


def _moved(verb: str, estimate: Aggregate, p: float) -> str:
    means = f"from {estimate.baseline_mean:.3f} to {estimate.current_mean:.3f}"
    return f"the mean {verb} by {points(estimate.difference)}, {means} ({_p(p)})"


def _named(findings: Sequence[CaseFinding]) -> str:
    names = ", ".join(finding.count.case_id for finding in findings[:_NAMED])
    more = f" and {len(findings) - _NAMED} more" if len(findings) > _NAMED else ""
    return f"{'1 case' if len(findings) == 1 else f'{len(findings)} cases'} regressed: {names}{more}"


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
