"""What judging recorded traces may take."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JudgeLimits:
    """Limits for all judges of a suite together.

    They say nothing about how an answer is judged, so they do not show in what identifies a case (its ``repr``).

    Attributes:
        sample_rate: the share of answers that are judged, 0..1.
        max_calls: answers of models in one run; ``None`` is no limit.
        timeout_s: for one call; ``None`` is the run's.
        cache: file of earlier judgements, relative to the suite's directory; ``None`` keeps none.
    """

    sample_rate: float = field(default=1.0, repr=False)
    max_calls: int | None = field(default=50, repr=False)
    timeout_s: float | None = field(default=60.0, repr=False)
    cache: str | None = field(default="evaluation_cache.jsonl", repr=False)
