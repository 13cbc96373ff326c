"""From tests to a verdict with its reason, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agenteval.compare.statistics.case_confirmation import CaseFinding
from agenteval.compare.statistics.case_flags import Annotations
from agenteval.compare.statistics.mean_comparison import Aggregate
from agenteval.compare.statistics.parameters import GateParameters
from agenteval.core.statistics import ROUNDING

Verdict = Literal["regressed", "inconclusive", "improved", "unchanged"]

# How many cases a reason names.
_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that is known about one metric when its verdict falls.

    Args:
        first: the first run against the pool.
        deciding: the comparisons that decide about the mean; empty where their runs are missing.
        suspicious: whether the first run called for a confirmation.
        detectable_drop: smallest drop that would have been caught, 0..1.
        regressed: cases that regressed.
        suspects: cases that may have.
        problem: why the scores say too little, such as too many errors.
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
        """p of a fall: the largest of the deciding comparisons, 1 where there is none."""
        return max((comparison.p_low for comparison in self.deciding), default=1.0)

    def fell(self, parameters: GateParameters) -> bool:
        """Whether the drop is large enough to matter, and larger than what baseline runs do among themselves."""
        return bool(self.deciding) and all(
            comparison.difference <= -parameters.min_effect + ROUNDING
            and (comparison.p_chart is None or comparison.p_chart <= parameters.alpha_chart + ROUNDING)
            for comparison in self.deciding
        )


@dataclass(frozen=True, kw_only=True)
class MetricDecision:
    """The verdict on one metric, and what it rests on.

    Args:
        metric: id of the metric.
        gating: whether it counts for the verdict on the run.
        verdict: ``regressed``, ``inconclusive``, ``improved`` or ``unchanged``.
        reason: in plain words.
        evidence: the numbers behind it.
        annotations: cases that are new, removed, flaky or in quarantine.
    """

    metric: str
    gating: bool
    verdict: Verdict
    reason: str
    evidence: Evidence
    annotations: Annotations


def judge_metric(
    evidence: Evidence, mean_regressed: bool, alpha_improved: float, parameters: GateParameters
) -> tuple[Verdict, str]:
    """The first verdict that applies, and its reason.

    Args:
        evidence: of the metric.
        mean_regressed: whether the mean fell, after the correction for several metrics.
        alpha_improved: p of a rise, up to which it is one.
        parameters: of the gate.
    """
    estimate = evidence.estimate
    if estimate is not None and (mean_regressed or evidence.regressed):
        parts = [_moved("fell", estimate, evidence.p)] if mean_regressed else []
        parts += [_named(evidence.regressed)] if evidence.regressed else []
        return "regressed", "; ".join(parts)
    problem = _problem(evidence, parameters)
    if estimate is None or problem is not None:
        return "inconclusive", problem or "no case has scores in this run and in the baseline"
    if estimate.p_high <= alpha_improved + ROUNDING and estimate.difference >= parameters.min_effect - ROUNDING:
        return "improved", _moved("rose", estimate, estimate.p_high)
    low, high = (f"{100 * bound:+.1f}" for bound in estimate.interval)
    tolerance = points(parameters.tolerance)
    if estimate.interval[0] >= -parameters.tolerance - ROUNDING:
        return "unchanged", f"a drop of more than {tolerance} is excluded: the mean moved by {low} to {high}"
    reason = f"a drop of {tolerance} cannot be excluded: the mean moved by {low} to {high} points"
    if evidence.detectable_drop is not None:
        reason += f"; a drop of {points(evidence.detectable_drop)} would probably have been caught"
    return "inconclusive", reason


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on the run: the worst of its metrics; nothing compared is inconclusive."""
    order: tuple[Verdict, ...] = ("regressed", "inconclusive", "improved", "unchanged")
    return next((verdict for verdict in order if verdict in verdicts), "inconclusive")


def points(difference: float) -> str:
    """A difference of scores, 0..1, in percentage points."""
    number = f"{100 * abs(difference):.1f}".removesuffix(".0")
    return f"{number} point" if number == "1" else f"{number} points"


def _problem(evidence: Evidence, parameters: GateParameters) -> str | None:
    estimate = evidence.estimate
    if estimate is None:
        return None
    if estimate.units < parameters.min_units:
        compared = "1 independent case was" if estimate.units == 1 else f"{estimate.units} independent cases were"
        return f"only {compared} compared, {parameters.min_units} are needed"
    if evidence.problem is not None:
        return evidence.problem
    if evidence.suspicious and not evidence.deciding:
        return f"the first run looks worse ({_p(estimate.p_low)}), and the run that would confirm it is missing"
    return None


def _moved(verb: str, estimate: Aggregate, p: float) -> str:
    means = f"from {estimate.baseline_mean:.3f} to {estimate.current_mean:.3f}"
    return f"the mean {verb} by {points(estimate.difference)}, {means} ({_p(p)})"


def _named(findings: Sequence[CaseFinding]) -> str:
    names = ", ".join(finding.count.case_id for finding in findings[:_NAMED])
    more = f" and {len(findings) - _NAMED} more" if len(findings) > _NAMED else ""
    return f"{'1 case' if len(findings) == 1 else f'{len(findings)} cases'} regressed: {names}{more}"


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
