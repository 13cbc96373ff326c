"""Notes about drift: what it costs while the pool is of other days."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.compare.epoch import epoch_of
from agenteval.compare.phrases import quoted
from agenteval.compare.regression.model import Decision, Evidence
from agenteval.compare.regression.pool_drift import pool_drift_p
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.sides import Sides
from agenteval.core.statistics import holm
from agenteval.results.comparison import LowControl

_POOL_ALPHA, _CONTROL_ALPHA = 0.01, 0.05


def low_control(sides: Sides, decision: Decision) -> LowControl | None:
    """Return that the control scored lower than the pool; ``None`` if it did not, or if no run was made side by side.

    The limit is that at which the gate becomes strict, because the day may be a bad one. One such comparison says
    little.
    """
    policy, runs = sides.policy, epoch_of(sides.baseline).runs
    if decision.control_p is None or decision.control_p > policy.settings.calm_p or not runs:
        return None
    return LowControl(
        p=decision.control_p, epoch_began_at=runs[0].created_at, dispatches=policy.on_low_control == "dispatch"
    )


def drift_notes(evidence: Evidence, decision: Decision, settings: GateSettings) -> Iterator[str]:
    """Yield a note if the runs of the pool differ significantly, and one if the control is lower than they are."""
    p_values = pool_drift_p(evidence, settings)
    drifting = holm(list(p_values.values()), _POOL_ALPHA, len(p_values))
    names = [quoted(name) for name, drifts in zip(p_values, drifting, strict=True) if drifts]
    if names:
        yield (
            f"earlier runs of the base branch differ significantly in {', '.join(names)}: expect further runs "
            "in about 1 of 3 pull requests; a scheduled daily run of the base branch keeps the pool new"
        )
    if decision.control_p is not None and decision.control_p <= _CONTROL_ALPHA and evidence.pool:
        yield (
            "beside the change, the base commit's agent scored lower than in the earlier runs: a model or a provider "
            "may have become worse; evaluate the base branch again, so that other pull requests need fewer runs"
        )
