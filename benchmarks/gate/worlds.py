"""Worlds to test the gate in: how often cases pass, what a pull request changes, and how runs are noisy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Rates = npt.NDArray[np.float64]
Passes = npt.NDArray[np.bool_]
World = Literal["stable", "typical", "noisy"]
Change = Literal["none", "-2 pt", "-5 pt", "-10 pt", "one case", "3 %", "10 %"]
NoiseKind = Literal["independent", "correlated", "clusters", "drift 0.1", "drift 0.2"]

# Chance of a case that always passes, chance of one that always fails, and the beta distribution of the others.
_MIXES: dict[World, tuple[float, float, tuple[float, float]]] = {
    "stable": (0.90, 0.04, (5, 2)),
    "typical": (0.70, 0.10, (2, 2)),
    "noisy": (0.25, 0.05, (4, 2)),
}
_MEAN_DROPS: dict[Change, float] = {"none": 0.0, "-2 pt": 0.02, "-5 pt": 0.05, "-10 pt": 0.10}
_BROKEN_SHARES: dict[Change, float] = {"one case": 0.0, "3 %": 0.03, "10 %": 0.10}

_WITHIN_RUN = 0.3
_CLUSTER_SIZE = 5
_CLUSTER_SHARED = 0.6


def pass_rates(world: World, cases: int, generator: np.random.Generator) -> Rates:
    """Pass rate of every case; each draws its kind on its own."""
    always, never, (alpha, beta) = _MIXES[world]
    kind = generator.random(cases)
    rates = generator.beta(alpha, beta, cases)
    rates[kind < always] = 1.0
    rates[kind >= 1 - never] = 0.0
    return rates


def changed(rates: Rates, change: Change, generator: np.random.Generator) -> Rates:
    """Pass rates after the pull request: all lowered by one factor, or some of the best cases broken outright."""
    if change in _MEAN_DROPS:
        return rates * max(0.0, 1 - _MEAN_DROPS[change] / max(float(rates.mean()), 1e-9))
    broken = max(1, round(_BROKEN_SHARES[change] * len(rates)))
    # Among equals, which there are many of with rate 1, chance decides.
    best_first = np.lexsort((generator.random(len(rates)), -rates))
    after = rates.copy()
    after[best_first[:broken]] = 0.0
    return after


def cluster_of(case: int, noise: NoiseKind) -> str | None:
    """Name of a case's cluster; ``None`` in worlds without."""
    return f"cluster {case // _CLUSTER_SIZE}" if noise == "clusters" else None


@dataclass(frozen=True)
class Noise:
    """How the iterations of one run depend on each other.

    Independent; correlated within a case's run (beta-binomial, 0.3); clusters of five cases that share their
    luck with chance 0.6; or a shift of the whole run on the logit scale, normal with the given deviation.
    """

    kind: NoiseKind
    generator: np.random.Generator

    def shift(self) -> float:
        """The drift of one run; runs at the same time share it."""
        if not self.kind.startswith("drift"):
            return 0.0
        return float(self.generator.normal(0, float(self.kind.removeprefix("drift "))))

    def run(self, rates: Rates, iterations: int, shift: float) -> Passes:
        """Cases by iterations: what passed in one run."""
        now = _shifted(rates, shift) if shift else rates
        if self.kind == "correlated":
            spread = (1 - _WITHIN_RUN) / _WITHIN_RUN
            inner = (now > 0) & (now < 1)
            now = now.copy()
            now[inner] = self.generator.beta(now[inner] * spread, (1 - now[inner]) * spread)
        luck = self.generator.random((len(rates), iterations))
        if self.kind == "clusters":
            cluster = np.arange(len(rates)) // _CLUSTER_SIZE
            shared = self.generator.random((int(cluster[-1]) + 1, iterations))[cluster]
            luck = np.where(self.generator.random(luck.shape) < _CLUSTER_SHARED, shared, luck)
        return luck < now[:, None]


def _shifted(rates: Rates, shift: float) -> Rates:
    # Sure passes and failures have infinite logits and stay what they are.
    odds = rates * np.exp(shift)
    return np.asarray(odds / (1 - rates + odds), dtype=np.float64)
