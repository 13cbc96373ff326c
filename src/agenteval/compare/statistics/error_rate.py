"""Checks whether too many iterations were lost to errors for a verdict."""

from __future__ import annotations

from agenteval.compare.statistics.model import ErrorCounts
from agenteval.compare.statistics.parameters import GateParameters
from agenteval.core.statistics import fisher_p


def error_problem(errors: ErrorCounts, parameters: GateParameters) -> str | None:
    """Return the problem with the share of errors as text; ``None`` without a problem.

    There is a problem if too many iterations were lost, too many cases lost all iterations, or there are
    significantly more errors than in the baseline runs (one-sided Fisher test).
    """
    share = _share(errors.current, errors.current_iterations)
    if share > parameters.max_error_share:
        return f"{share:.0%} of the iterations were lost to errors, more than {parameters.max_error_share:.0%}"
    lost = _share(errors.lost_cases, errors.cases)
    if lost > parameters.max_lost_cases:
        return f"{lost:.0%} of the cases lost every iteration to errors, more than {parameters.max_lost_cases:.0%}"
    if not errors.baseline_iterations:
        return None
    p = fisher_p(errors.baseline, errors.baseline_iterations, errors.current, errors.current_iterations)
    if p < parameters.error_alpha:
        before = _share(errors.baseline, errors.baseline_iterations)
        return f"{share:.1%} of the iterations were lost to errors, in the baseline {before:.1%}"
    return None


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
