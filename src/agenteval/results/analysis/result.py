"""Everything that was found out about a run as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agenteval.results.analysis.alerts import Alert
from agenteval.results.analysis.criteria import Check, overall
from agenteval.results.analysis.failures import Failures
from agenteval.results.analysis.inference import Statistics
from agenteval.results.analysis.outliers import Outliers
from agenteval.results.analysis.personas import PersonaStats
from agenteval.results.analysis.recommendations import Recommendation
from agenteval.results.analysis.summary import Summary
from agenteval.results.analysis.summary_baseline import BaselineComparison
from agenteval.results.analysis.trend import Trends
from agenteval.results.model import Criterion
from agenteval.suite.evaluation import Aggregate, Evaluation


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """A run seen as a whole. Analyses that nobody asked for are ``None`` or empty.

    Attributes:
        evaluation: what was asked for.
        aggregate: how final scores were made.
        personas: persona → its numbers, by name.
        checks: the conditions, in the suite's order.
    """

    evaluation: Evaluation
    aggregate: Aggregate
    summary: Summary
    personas: Mapping[str, PersonaStats]
    checks: tuple[Check, ...]
    outliers: Outliers | None
    trends: Trends | None
    failures: Failures | None
    comparison: BaselineComparison | None
    statistics: Statistics | None
    alerts: tuple[Alert, ...]
    recommendations: tuple[Recommendation, ...]

    @property
    def criteria(self) -> list[Criterion]:
        """The conditions for results.json: times in seconds, rates 0..1."""
        return [check.criterion for check in self.checks]

    @property
    def success(self) -> bool | None:
        """Whether all conditions hold that could be checked; ``None`` where none could."""
        return overall(self.checks)

    @property
    def warnings(self) -> list[str]:
        """What must be seen although it fails nothing: alerts, criteria without data, a baseline that is no good."""
        found = [f"alert: {alert}" for alert in self.alerts if alert.triggered or alert.value is None]
        found += [
            f"criterion {check.name} could not be checked: no data" for check in self.checks if check.met is None
        ]
        if self.comparison and self.comparison.message:
            found.append(self.comparison.message)
        return found
