"""Schema of a FluxLoop ``evaluation.yaml``, with the defaults of FluxLoop's documentation."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from agenteval.suite.evaluation import AggregateMethod, Operator, OutlierHandling, Style, Tone


def number(value: Any) -> Any:
    """Return the value; refuse booleans, which pydantic reads as 0 or 1."""
    if isinstance(value, bool):
        raise ValueError("must be a number, not a boolean")
    return value


def one_as_list(value: Any) -> Any:
    """Return a single text as a list."""
    return [value] if isinstance(value, str) else value


Number = Annotated[float, BeforeValidator(number), Field(allow_inf_nan=False)]

Whole = Annotated[int, BeforeValidator(number)]

Share = Annotated[float, BeforeValidator(number), Field(ge=0, le=1)]

Texts = Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(one_as_list)]


class Entry(BaseModel):
    """Use the default for a key without a value, except if null is a valid value."""

    model_config = ConfigDict(extra="forbid")
    null_counts: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        dropped = cls.model_fields.keys() - cls.null_counts
        return {key: item for key, item in value.items() if item is not None or key not in dropped}


def _quality_goal(value: Any) -> bool | float:
    """Criterion on an evaluator: true for its threshold, or the required mean score."""
    said = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in said:
        return said[value.strip().lower()]
    try:
        goal = float(value)
    except (TypeError, ValueError, OverflowError):
        goal = -1.0
    if not 0 <= goal <= 1:
        raise ValueError("must be true or false, or the required mean score, 0 to 1")
    return goal


class GoalEntry(Entry):
    """``evaluation_goal``"""

    text: str = ""


class AggregateEntry(Entry):
    """``aggregate``"""

    method: AggregateMethod = "weighted_sum"
    threshold: Share = 0.7
    by_persona: bool = True


class LimitsEntry(Entry):
    """``limits``; ``null`` removes a limit, and turns the cache off."""

    null_counts = frozenset({"max_llm_calls", "timeout_seconds", "cache"})

    sample_rate: Share = 1.0
    max_llm_calls: Whole | None = Field(50, ge=0)
    timeout_seconds: Number | None = Field(60.0, gt=0)
    cache: str | None = "evaluation_cache.jsonl"


class TimeCriterion(Entry):
    """``avg_response_time``, ``max_response_time``"""

    enabled: bool = False
    threshold_ms: Number | None = Field(None, ge=0)


class ErrorRateCriterion(Entry):
    """``error_rate``"""

    enabled: bool = False
    threshold_percent: Number | None = Field(None, ge=0, le=100)


class PerformanceCriteria(Entry):
    """``success_criteria.performance``"""

    all_traces_successful: bool = False
    avg_response_time: TimeCriterion = Field(default_factory=TimeCriterion)
    max_response_time: TimeCriterion = Field(default_factory=TimeCriterion)
    error_rate: ErrorRateCriterion = Field(default_factory=ErrorRateCriterion)


class ToolCallingEntry(Entry):
    """``success_criteria.functionality.tool_calling``"""

    enabled: bool = False
    all_calls_successful: bool = False
    appropriate_selection: bool = False
    correct_parameters: bool = False
    proper_timing: bool = False
    handles_failures: bool = False


class FunctionalityCriteria(Entry):
    """``success_criteria.functionality``"""

    tool_calling: ToolCallingEntry = Field(default_factory=ToolCallingEntry)


class SuccessCriteriaEntry(Entry):
    """``success_criteria``"""

    performance: PerformanceCriteria = Field(default_factory=PerformanceCriteria)
    quality: dict[str, Annotated[bool | float, PlainValidator(_quality_goal)]] = Field(default_factory=dict)
    functionality: FunctionalityCriteria = Field(default_factory=FunctionalityCriteria)


class PersonaAnalysis(Entry):
    """``additional_analysis.persona``"""

    enabled: bool = False
    focus_personas: Texts = Field(default_factory=list)


class PerformanceAnalysis(Entry):
    """``additional_analysis.performance``"""

    detect_outliers: bool = False
    trend_analysis: bool = False


class FailureAnalysis(Entry):
    """``additional_analysis.failures``"""

    enabled: bool = False
    categorize_causes: bool = False


class ComparisonAnalysis(Entry):
    """``additional_analysis.comparison``"""

    enabled: bool = False
    baseline_path: str | None = None


class AnalysisEntry(Entry):
    """``additional_analysis``"""

    persona: PersonaAnalysis = Field(default_factory=PersonaAnalysis)
    performance: PerformanceAnalysis = Field(default_factory=PerformanceAnalysis)
    failures: FailureAnalysis = Field(default_factory=FailureAnalysis)
    comparison: ComparisonAnalysis = Field(default_factory=ComparisonAnalysis)


class SectionsEntry(Entry):
    """``report.sections``; the style decides for other sections."""

    executive_summary: bool | None = None
    key_metrics: bool | None = None
    detailed_results: bool | None = None
    statistical_analysis: bool | None = None
    failure_cases: bool | None = None
    success_examples: bool | None = None
    recommendations: bool | None = None
    action_items: bool | None = None


class VisualizationsEntry(Entry):
    """``report.visualizations``"""

    charts_and_graphs: bool = True
    tables: bool = True
    interactive: bool = True


class ReportEntry(Entry):
    """``report``"""

    style: Style = "standard"
    sections: SectionsEntry = Field(default_factory=SectionsEntry)
    visualizations: VisualizationsEntry = Field(default_factory=VisualizationsEntry)
    tone: Tone = "balanced"
    output: Literal["md", "html", "both"] = "both"
    template_path: str | None = None


class StatisticsEntry(Entry):
    """``advanced.statistical_tests``"""

    enabled: bool = False
    significance_level: Number = Field(0.05, gt=0, lt=1)
    confidence_interval: Number = Field(0.95, gt=0, lt=1)


class OutliersEntry(Entry):
    """``advanced.outliers``"""

    detection: bool = False
    handling: OutlierHandling = "analyze_separately"


class AlertCondition(Entry):
    """One of ``advanced.alerts.conditions``"""

    metric: str = Field(min_length=1)
    threshold: Number
    operator: Operator = ">="


class AlertsEntry(Entry):
    """``advanced.alerts``"""

    enabled: bool = False
    conditions: list[AlertCondition] = Field(default_factory=list)


class AdvancedEntry(Entry):
    """``advanced``"""

    statistical_tests: StatisticsEntry = Field(default_factory=StatisticsEntry)
    outliers: OutliersEntry = Field(default_factory=OutliersEntry)
    alerts: AlertsEntry = Field(default_factory=AlertsEntry)


class EvaluationFile(Entry):
    """The whole file; evaluators are read separately, so that a mistake in one does not hide others."""

    evaluation_goal: GoalEntry = Field(default_factory=GoalEntry)
    evaluators: list[Any] = Field(min_length=1)
    aggregate: AggregateEntry = Field(default_factory=AggregateEntry)
    limits: LimitsEntry = Field(default_factory=LimitsEntry)
    success_criteria: SuccessCriteriaEntry = Field(default_factory=SuccessCriteriaEntry)
    additional_analysis: AnalysisEntry = Field(default_factory=AnalysisEntry)
    report: ReportEntry = Field(default_factory=ReportEntry)
    advanced: AdvancedEntry = Field(default_factory=AdvancedEntry)
    agent: Any = Field(None, description="agenteval: the agent under test")
