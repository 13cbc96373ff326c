"""The runs of the base branch over which a decline is proven, as rows of texts."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.results.comparison import Comparison

_DAY = 10


@dataclass(frozen=True, slots=True)
class DeclineRow:
    """One run of the base branch.

    Attributes:
        commit: its commit; empty if unknown.
    """

    commit: str
    day: str
    levels: str


def decline_rows(comparison: Comparison) -> tuple[DeclineRow, ...]:
    """Return the runs of a proven decline, oldest first; empty without one."""
    look = comparison.long_look
    if look is None or look.verdict != "regressed":
        return ()
    names = [metric.id for metric in look.metrics if metric.proven]
    return tuple(
        DeclineRow(
            commit=run.commit or "",
            day=run.created_at[:_DAY],
            levels=", ".join(f"{name} {100 * run.levels[name]:.1f}" for name in names if name in run.levels),
        )
        for run in look.runs
    )
