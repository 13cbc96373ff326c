"""Simple gates that compare one run with one stored baseline run."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from benchmarks.gate.simulate import Cell
from benchmarks.gate.worlds import Noise, changed, pass_rates

from agenteval.core.statistics import student_t_quantile

Means = npt.NDArray[np.float64]
Alarms = npt.NDArray[np.bool_]

_ALPHA = 0.05
_FLIPS = 999
_ROUNDING = 1e-9


def naive_alarms(cell: Cell, replications: int) -> dict[str, float]:
    """Return the share of replications that each simple gate blocks, by its name."""
    generator = np.random.default_rng([cell.seed, replications])
    current, baseline = np.empty((2, replications, cell.cases))
    noise = Noise(cell.noise, generator)
    for number in range(replications):
        before = pass_rates(cell.world, cell.cases, generator)
        after = changed(before, cell.change, generator)
        baseline[number] = noise.run(before, cell.iterations, noise.shift()).mean(axis=1)
        current[number] = noise.run(after, cell.iterations, noise.shift()).mean(axis=1)
    drop = (baseline - current).mean(axis=1)
    fell, rose = _majority(baseline, current), _majority(current, baseline)
    gates = {
        "mean drop > 0": drop > _ROUNDING,
        "mean drop > 1 pt": drop > 0.01 + _ROUNDING,
        "mean drop > 5 pt": drop > 0.05 + _ROUNDING,
        "a passing case now fails": fell > 0,
        "paired permutation": _sign_flips(current - baseline, generator),
        "McNemar, exact": _mcnemar(fell, rose, ties=1.0),
        "McNemar, mid-p": _mcnemar(fell, rose, ties=0.5),
        "paired t": _paired_t(current - baseline),
    }
    return {name: float(alarms.mean()) for name, alarms in gates.items()}


def _majority(before: Means, after: Means) -> npt.NDArray[np.int64]:
    """Return for each replication the cases that mostly passed before and mostly fail now."""
    return np.asarray(np.count_nonzero((before > 0.5) & (after <= 0.5), axis=1))


def _sign_flips(differences: Means, generator: np.random.Generator) -> Alarms:
    """Run a one-sided paired permutation test with mid-p; all replications use the same random signs."""
    signs = generator.choice([-1.0, 1.0], (_FLIPS, differences.shape[1]))
    sums = signs @ differences.T
    observed = differences.sum(axis=1)
    below = (sums < observed - _ROUNDING).sum(axis=0)
    ties = (abs(sums - observed) <= _ROUNDING).sum(axis=0) + 1
    p: Means = (below + ties / 2) / (_FLIPS + 1)
    return p <= _ALPHA


def _mcnemar(fell: npt.NDArray[np.int64], rose: npt.NDArray[np.int64], ties: float) -> Alarms:
    """Run a one-sided McNemar test on majority votes; ``ties`` is the weight of the observed count."""
    return np.array(
        [_binomial_tail(f, f + r, ties) <= _ALPHA for f, r in zip(fell.tolist(), rose.tolist(), strict=True)]
    )


def _binomial_tail(count: int, total: int, ties: float) -> float:
    above = sum(math.comb(total, n) for n in range(count + 1, total + 1))
    return float(above + ties * math.comb(total, count)) / float(2**total)


def _paired_t(differences: Means) -> Alarms:
    count = differences.shape[1]
    error = differences.std(axis=1, ddof=1) / math.sqrt(count)
    t = differences.mean(axis=1) / np.maximum(error, 1e-12)
    alarms: Alarms = (error > _ROUNDING) & (t <= student_t_quantile(_ALPHA, count - 1))
    return alarms
