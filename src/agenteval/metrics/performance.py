"""Limits on latency and tokens, checked on the mean over all iterations of a case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from agenteval.core.records import dataclass
from agenteval.metrics.base import MetricError, Observation, Outcome

_NOTHING_NEEDED: frozenset[str] = frozenset()
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Latency:
    """1 if the mean latency is within the limits, else 0. All limits are in seconds."""

    minimum: float | None = None
    maximum: float | None = None
    equal: float | None = None
    requires: ClassVar[frozenset[str]] = _NOTHING_NEEDED

    def measure_all(self, observations: Sequence[Observation]) -> list[Outcome]:
        """Score the answers of all iterations together."""
        known = [item.latency_ms / 1000 for item in observations if item.latency_ms is not None]
        if len(known) < len(observations):
            raise MetricError(f"{_of(len(observations) - len(known), observations)} without a latency")
        return _outcomes(observations, known, (self.minimum, self.maximum, self.equal), " s")


@dataclass(frozen=True)
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
        counts = [
            (None, None) if item.usage is None else (item.usage.input_tokens, item.usage.output_tokens)
            for item in observations
        ]
        both = (self.minimum, self.maximum, self.equal)
        parts = (
            (0, (self.input_min, self.input_max, None), " input tokens"),
            (1, (self.output_min, self.output_max, None), " output tokens"),
        )
        problems = []
        for place, limits, unit in parts:
            if any(limit is not None for limit in limits):
                known = [pair[place] for pair in counts]
                problems += _problems(_mean(_complete(known, unit)), limits, unit)
        if any(limit is not None for limit in both):
            for place, _, unit in parts:
                _complete([pair[place] for pair in counts], unit)
        totals = [(given or 0) + (written or 0) for given, written in counts]
        return _outcomes(observations, totals, both, " tokens", problems)


def _complete(counts: Sequence[int | None], unit: str) -> list[int]:
    # What an answer without a count left out could be any number.
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        raise MetricError(
            f"{_of(len(counts) - len(known), counts)} without{unit}: "
            "the reply of the agent needs usage.input_tokens and usage.output_tokens"
        )
    return known


def _of(amount: int, answers: Sequence[object]) -> str:
    return f"{amount:,} of {len(answers):,} {'answer' if len(answers) == 1 else 'answers'}"


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
