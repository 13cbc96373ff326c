"""The result of all analyses of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.results.analysis.alerts import Alert
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.criteria import Check, overall
from agenteval.results.analysis.failures import Failures
from agenteval.results.analysis.inference import Statistics
from agenteval.results.analysis.outliers import Outliers
from agenteval.results.analysis.personas import PersonaStats
from agenteval.results.analysis.recommendations import Recommendation
from agenteval.results.analysis.summary import Summary
from agenteval.results.analysis.summary_baseline import BaselineComparison
from agenteval.results.analysis.trend import Trends
from agenteval.results.case import Criterion
from agenteval.suite.evaluation import Aggregate, Evaluation, EvaluationReport


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The result of all analyses. Disabled analyses are ``None`` or empty.

    Attributes:
        evaluation: the suite's evaluation settings.
        aggregate: how final scores were computed.
        personas: persona → figures, sorted by name.
        checks: the criteria, in suite order.
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
        """The criteria for results.json: times in seconds, rates 0..1."""
        return [check.criterion for check in self.checks]

    @property
    def success(self) -> bool | None:
        """Whether all criteria are met, which one without data is not; ``None`` without criteria."""
        return overall(self.checks)

    @property
    def warnings(self) -> list[str]:
        """Warnings that do not fail the run: alerts, criteria without data, an unusable baseline."""
        found = [f"alert: {alert}" for alert in self.alerts if alert.triggered or alert.value is None]
        unknown = [check.name for check in self.checks if check.met is None]
        found += [f"criterion {name} could not be checked: data is missing" for name in unknown]
        if self.comparison and self.comparison.message:
            found.append(self.comparison.message)
        return found


@dataclass(frozen=True, slots=True)
class AnalysedSuite:
    """The analysis of one suite.

    Attributes:
        path: path of the suite.
        answers: the analysed answers.
        report: settings of its report; ``None`` for only the usual reports.
    """

    path: str
    name: str
    answers: Sequence[EvaluatedAnswer]
    result: EvaluationResult
    report: EvaluationReport | None
