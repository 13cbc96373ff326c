"""What simulated pull requests without a change met, as ``benchmarks/gate`` measures it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """Simulated pull requests without a change, in suites of one size.

    The three figures of each kind are without drift, with drift between days (standard deviation of 0.5 logits), and
    where the provider changed for the worse since the pool (by 0.5 logits).

    Args:
        false_alarms: shares of red ones.
        extra_runs: mean further runs of the suite, both sides, single cases included.
    """

    settings: str = "default"
    cases: int = 50
    iterations: int = 3
    runs: int = 10
    source: str
    false_alarms: tuple[float, float, float]
    extra_runs: tuple[float, float, float]

    def distance(self, cases: int, iterations: int, runs: int) -> float:
        """Return how far another suite is, in ratios of its sizes."""
        pairs = ((self.cases, cases), (self.iterations, iterations), (self.runs, runs))
        return sum(abs(math.log(max(own, 1) / max(other, 1))) for own, other in pairs)


_A, _C, _H = (f"benchmarks/gate, table {letter}" for letter in "ACH")
SIMULATED = (
    Simulated(source=_A, false_alarms=(0.004, 0.006, 0.019), extra_runs=(0.17, 0.62, 1.45)),
    Simulated(source=_A, cases=200, false_alarms=(0.003, 0.016, 0.020), extra_runs=(0.19, 1.19, 3.00)),
    Simulated(source=_A, iterations=5, false_alarms=(0.005, 0.010, 0.019), extra_runs=(0.15, 0.65, 1.80)),
    Simulated(source=_H, iterations=1, false_alarms=(0.001, 0.002, 0.010), extra_runs=(0.41, 0.97, 1.94)),
    Simulated(source=_H, cases=20, false_alarms=(0.002, 0.003, 0.007), extra_runs=(0.21, 0.66, 1.35)),
    Simulated(source=_H, cases=10, false_alarms=(0.001, 0.006, 0.005), extra_runs=(0.26, 0.70, 1.22)),
    Simulated(source=_H, cases=5, false_alarms=(0.001, 0.000, 0.004), extra_runs=(0.19, 0.32, 0.87)),
    Simulated(source=_A, runs=3, false_alarms=(0.002, 0.006, 0.018), extra_runs=(0.15, 0.59, 1.24)),
    Simulated(source=_A, runs=1, false_alarms=(0.001, 0.004, 0.007), extra_runs=(0.17, 0.60, 0.91)),
    Simulated(source=_C, settings="thrifty", false_alarms=(0.004, 0.004, 0.017), extra_runs=(0.13, 0.58, 1.36)),
    Simulated(source=_C, settings="thorough", false_alarms=(0.006, 0.006, 0.023), extra_runs=(0.26, 0.76, 1.75)),
)


def nearest(settings: str | None, cases: int, iterations: int, runs: int) -> Simulated | None:
    """Return the simulated suite that is most like another one; ``None`` for settings that were not simulated."""
    known = [cell for cell in SIMULATED if cell.settings == settings]
    return min(known, key=lambda cell: cell.distance(cases, iterations, runs), default=None)
