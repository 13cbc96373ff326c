"""What the statistics or a simple rule conclude from two runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agenteval.results.comparison import ComparedCase, ComparedMetric, RunVerdict
from agenteval.results.verdict import Unproven


@dataclass(frozen=True)
class Concluded:
    """The conclusion of one rule.

    Attributes:
        unproven: lost scores and missing confirmation runs.
        details: the rule with its settings, as results.json records them; ``reason`` is always present.
        notes: messages about omitted data.
        proof: the fields of a comparison that only the statistics fill.
    """

    verdict: RunVerdict
    unproven: list[Unproven]
    metrics: list[ComparedMetric]
    cases: list[ComparedCase]
    details: dict[str, Any]
    notes: list[str]
    proof: dict[str, Any] = field(default_factory=dict)
