"""The required figures of the gate, and the check of simulated rates."""

from __future__ import annotations

import math

from benchmarks.gate.simulate import Cell, Tally
from benchmarks.gate.worlds import Change, World

MOST_FALSE_ALARMS = 0.03
LEAST_COVERAGE = 0.93

# Kinds of noise for which every policy must meet the limit on false alarms; `base` must meet it for all kinds. With
# `head`, correlated iterations give slightly more false alarms (3.3 % in the worst cell), and drift gives many more.
_JUDGED_NOISE = {"independent", "clusters"}
# Number of replications of the figures.
_THEIRS = 2000
# Figures are rounded to whole percent.
_ROUNDED = 0.005
# Allowed deviation in standard errors. Of about 2,000 correct rates, fewer than one exceeds it.
_ERRORS = 3.5

_CHANGES: tuple[Change, ...] = ("-2 pt", "-5 pt", "-10 pt", "one case", "3 %")

# Share of pull requests blocked, in percent, per world, cases and baseline runs; three iterations, in the order
# of _CHANGES.
_POWER: dict[tuple[World, int, int], tuple[int, ...]] = {
    ("stable", 10, 5): (9, 43, 79, 100, 100),
    ("stable", 10, 10): (19, 54, 85, 100, 100),
    ("stable", 30, 5): (34, 85, 99, 100, 100),
    ("stable", 30, 10): (41, 89, 99, 100, 100),
    ("stable", 100, 5): (76, 100, 100, 100, 100),
    ("stable", 100, 10): (82, 100, 100, 100, 100),
    ("stable", 300, 5): (99, 100, 100, 100, 100),
    ("stable", 300, 10): (99, 100, 100, 100, 100),
    ("stable", 1000, 5): (100, 100, 100, 100, 100),
    ("stable", 1000, 10): (100, 100, 100, 100, 100),
    ("typical", 10, 5): (8, 25, 60, 100, 100),
    ("typical", 10, 10): (11, 32, 67, 100, 100),
    ("typical", 30, 5): (17, 56, 95, 100, 100),
    ("typical", 30, 10): (20, 64, 97, 100, 100),
    ("typical", 100, 5): (40, 96, 100, 100, 100),
    ("typical", 100, 10): (47, 98, 100, 100, 100),
    ("typical", 300, 5): (83, 100, 100, 100, 100),
    ("typical", 300, 10): (88, 100, 100, 100, 100),
    ("typical", 1000, 5): (100, 100, 100, 100, 100),
    ("typical", 1000, 10): (100, 100, 100, 100, 100),
    ("noisy", 10, 5): (4, 10, 30, 100, 100),
    ("noisy", 10, 10): (4, 12, 36, 100, 100),
    ("noisy", 30, 5): (6, 27, 73, 100, 100),
    ("noisy", 30, 10): (8, 31, 79, 100, 100),
    ("noisy", 100, 5): (13, 68, 99, 100, 100),
    ("noisy", 100, 10): (16, 74, 100, 100, 100),
    ("noisy", 300, 5): (38, 98, 100, 100, 100),
    ("noisy", 300, 10): (43, 99, 100, 100, 100),
    ("noisy", 1000, 5): (88, 100, 100, 100, 100),
    ("noisy", 1000, 10): (91, 100, 100, 100, 100),
}


def expected_power(cell: Cell) -> float | None:
    """Return the required share of blocked pull requests; ``None`` without a figure."""
    if cell.confirm != "rerun" or cell.noise != "independent" or cell.iterations != 3:
        return None
    figures = _POWER.get((cell.world, cell.cases, cell.runs))
    if figures is None or cell.change not in _CHANGES:
        return None
    return figures[_CHANGES.index(cell.change)] / 100


def problems(cell: Cell, tally: Tally) -> list[str]:
    """Return the figures that a cell misses significantly, as text."""
    found = []
    limited = cell.noise in _JUDGED_NOISE or cell.confirm == "against-base"
    if cell.change == "none" and limited and tally.regressed_rate > _above(MOST_FALSE_ALARMS, tally.replications):
        found.append(f"{tally.regressed_rate:.1%} false alarms, allowed are {MOST_FALSE_ALARMS:.0%}")
    drifting = cell.noise.startswith("drift")
    if tally.compared and not drifting and tally.coverage < 1 - _above(1 - LEAST_COVERAGE, tally.compared):
        found.append(f"the interval covers {tally.coverage:.1%}, needed are {LEAST_COVERAGE:.0%}")
    expected = expected_power(cell)
    if expected is not None and tally.regressed_rate < _lowest(expected, tally.replications):
        found.append(f"{tally.regressed_rate:.1%} found, expected are {expected:.0%}")
    return found


def _above(rate: float, replications: int) -> float:
    return rate + _ERRORS * math.sqrt(rate * (1 - rate) / replications)


def _lowest(expected: float, replications: int) -> float:
    rate = expected - _ROUNDED
    return rate - _ERRORS * math.sqrt(rate * (1 - rate) * (1 / replications + 1 / _THEIRS))
