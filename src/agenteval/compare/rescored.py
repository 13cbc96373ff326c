"""A baseline whose stored answers metrics scored again, because only the configuration of the metrics changed."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.results.comparison import RescoredMetric
from agenteval.results.model import Results


@dataclass(frozen=True)
class Rescored:
    """What a baseline was before, and what scored its answers again."""

    stored: Results
    metrics: tuple[RescoredMetric, ...]
