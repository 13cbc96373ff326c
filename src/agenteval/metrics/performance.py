"""Limits on latency and tokens, checked on the mean over all iterations of a case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from agenteval.metrics.base import MetricError, Observation, Outcome

_NOTHING_NEEDED: frozenset[str] = frozenset()
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Latency:
    """1 if the mean latency is within the limits, else 0. All limits are in seconds."""

    minimum: float | None = None
    maximum: float | None = None
    equal: float | None = None
    requires: ClassVar[frozenset[str]] = _NOTHING_NEEDED

    def measure_all(self, observations: Sequence[Observation]) -> list[Outcome]:
        """Score the answers of all iterations together."""
        known = [item.latency_ms / 1000 for item in observations if item.latency_ms is not None]
        if not known:
            raise MetricError("no answer has a latency")
        return _outcomes(observations, known, (self.minimum, self.maximum, self.equal), " s")


@dataclass(frozen=True, slots=True)
class Tokens:
    """1 if the mean numbers of tokens are within the limits, else 0.

    ``minimum``, ``maximum`` and ``equal`` count input and output together.
    """

    minimum: int | None = None
    maximum: int | None = None
    equal: int | None = None
    input_min: int | None = None
    input_max: int | None = None
    output_min: int | None = None
    output_max: int | None = None
    requires: ClassVar[frozenset[str]] = _NOTHING_NEEDED

    def measure_all(self, observations: Sequence[Observation]) -> list[Outcome]:
        """Score the answers of all iterations together."""
        used = [item.usage for item in observations if item.usage is not None]
        inputs = [usage.input_tokens for usage in used if usage.input_tokens is not None]
        outputs = [usage.output_tokens for usage in used if usage.output_tokens is not None]
        totals = [
            (usage.input_tokens or 0) + (usage.output_tokens or 0)
            for usage in used
            if usage.input_tokens is not None or usage.output_tokens is not None
        ]
        if not totals:
            raise MetricError(
                "the agent reports no tokens: its reply needs usage.input_tokens and usage.output_tokens"
            )
        parts = (
            (inputs, (self.input_min, self.input_max, None), " input tokens"),
            (outputs, (self.output_min, self.output_max, None), " output tokens"),
        )
        problems = []
        for counts, limits, unit in parts:
            if any(limit is not None for limit in limits):
                if not counts:
                    raise MetricError(f"the agent reports no{unit}")
                problems += _problems(_mean(counts), limits, unit)
        return _outcomes(observations, totals, (self.minimum, self.maximum, self.equal), " tokens", problems)


_Limits = tuple[float | None, float | None, float | None]


def _outcomes(
    observations: Sequence[Observation],
    values: Sequence[float],
    limits: _Limits,
    unit: str,
    others: Sequence[str] = (),
) -> list[Outcome]:
    """Return the same outcome for every iteration, because the limits apply to the case."""
    mean, late = _mean(values), percentile_95(values)
    problems = [*_problems(mean, limits, unit), *others]
    spread = f"mean {mean:.4g}{unit}" + (f", p95 {late:.4g}{unit}" if len(values) > 1 else "")
    reason = f"{'; '.join(problems)}; {spread}" if problems else spread
    details = {"mean": mean, "p95": late, "min": min(values), "max": max(values), "n": len(values)}
    outcome = Outcome(0.0 if problems else 1.0, passed=not problems, decided=True, reason=reason, details=details)
    return [outcome] * len(observations)


def _problems(mean: float, limits: _Limits, unit: str) -> list[str]:
    least, most, equal = limits
    found = []
    if least is not None and mean < least - _ROUNDING:
        found.append(f"expected at least {least:g}{unit}, got {mean:.4g}")
    if most is not None and mean > most + _ROUNDING:
        found.append(f"expected at most {most:g}{unit}, got {mean:.4g}")
    if equal is not None and abs(mean - equal) > _ROUNDING:
        found.append(f"expected {equal:g}{unit}, got {mean:.4g}")
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def percentile_95(values: Sequence[float]) -> float:
    """Return the smallest value that at least 95 % of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[math.ceil(0.95 * len(ordered)) - 1]
