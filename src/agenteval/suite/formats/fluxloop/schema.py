"""Schema of a FluxLoop ``evaluation.yaml``, with the defaults of FluxLoop."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    create_model,
    field_validator,
    model_validator,
)

from agenteval.core.text import pattern_problem
from agenteval.suite.evaluation import AggregateMethod, Operator, OutlierHandling, Style, Tone
from agenteval.suite.formats.base import (
    AGENT_DESCRIPTION,
    AgentKey,
    Node,
    each_property,
    or_else,
    or_scalar,
    with_variables,
)


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


class JudgeLimitsEntry(Entry):
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
    limits: JudgeLimitsEntry = Field(default_factory=JudgeLimitsEntry)
    success_criteria: SuccessCriteriaEntry = Field(default_factory=SuccessCriteriaEntry)
    additional_analysis: AnalysisEntry = Field(default_factory=AnalysisEntry)
    report: ReportEntry = Field(default_factory=ReportEntry)
    advanced: AdvancedEntry = Field(default_factory=AdvancedEntry)
    agent: Any = Field(None, description="agenteval: the agent under test")


Parser = Literal["first_number_1_10", "json_score", "first_float"]
Flag = Literal["IGNORECASE", "MULTILINE", "DOTALL"]


class _Evaluator(Entry):
    name: str = Field(min_length=1)
    enabled: bool = True
    weight: Number = Field(1.0, ge=0)
    metadata: dict[str, Any] = Field(default_factory=dict)


class RuleEvaluatorEntry(_Evaluator):
    """``type: rule_based``; its rules are read separately, so that no mistake hides another."""

    type: Literal["rule_based"]
    rules: list[Any] = Field(min_length=1)


class ReasoningEntry(BaseModel):
    """``reasoning`` of ``model_parameters``"""

    model_config = ConfigDict(extra="allow")
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None


class TextEntry(BaseModel):
    """``text`` of ``model_parameters``"""

    model_config = ConfigDict(extra="allow")
    verbosity: Literal["low", "medium", "high"] | None = None


class ModelParameters(BaseModel):
    """``model_parameters`` of a judge: unknown keys are ignored with a warning."""

    model_config = ConfigDict(extra="allow")

    reasoning: ReasoningEntry | None = None
    text: TextEntry | None = None
    temperature: Number | None = Field(None, ge=0, le=2)
    top_p: Share | None = None
    max_tokens: Whole | None = Field(None, gt=0)
    max_output_tokens: Whole | None = Field(None, gt=0)
    presence_penalty: Number | None = Field(None, ge=-2, le=2)
    frequency_penalty: Number | None = Field(None, ge=-2, le=2)
    seed: Whole | None = None
    response_format: dict[str, Any] | None = None


class JudgeEvaluatorEntry(_Evaluator):
    """``type: llm_judge``; the pre-built ones need no template."""

    type: Literal["llm_judge"]
    model: str = Field(min_length=1)
    model_parameters: ModelParameters = Field(default_factory=ModelParameters)
    prompt_template: str | None = None
    max_score: Number = Field(10.0, gt=0)
    parser: Parser = "first_number_1_10"


class _Rule(Entry):
    check: str


class OutputNotEmpty(_Rule):
    """``output_not_empty``"""

    target: str = Field("output", min_length=1)


class Success(_Rule):
    """``success``"""


class LatencyUnder(_Rule):
    """``latency_under``"""

    budget_ms: Number = Field(gt=0)


class TokenUsageUnder(_Rule):
    """``token_usage_under``: at least one of the limits."""

    max_total_tokens: Number | None = Field(None, gt=0)
    max_prompt_tokens: Number | None = Field(None, gt=0)
    max_completion_tokens: Number | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _some_limit(self) -> TokenUsageUnder:
        if self.max_total_tokens is None and self.max_prompt_tokens is None and self.max_completion_tokens is None:
            raise ValueError("needs max_total_tokens, max_prompt_tokens or max_completion_tokens")
        return self


class Keywords(_Rule):
    """``contains`` and ``not_contains``"""

    keywords: Texts = Field(min_length=1)
    target: str = Field("output", min_length=1)
    case_sensitive: bool = False


class MatchesRegex(_Rule):
    """``matches_regex``"""

    pattern: str = Field(min_length=1)
    target: str = Field("output", min_length=1)
    flags: Annotated[list[Flag], BeforeValidator(one_as_list)] = Field(default_factory=list)

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        problem = pattern_problem(value)
        if problem is not None:
            raise ValueError(f"{value!r} is not a regular expression: {problem}")
        return value

    @field_validator("flags", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        named = one_as_list(value)
        return (
            [item.upper() if isinstance(item, str) else item for item in named] if isinstance(named, list) else value
        )


class Similarity(_Rule):
    """``similarity``; ``min_score`` is an older name of ``threshold``."""

    expected_path: str = Field(min_length=1)
    target: str = Field("output", min_length=1)
    method: Literal["difflib", "levenshtein", "embedding"] = "difflib"
    threshold: Share | None = None
    min_score: Share | None = None

    @model_validator(mode="after")
    def _one_threshold(self) -> Similarity:
        if self.threshold is not None and self.min_score is not None:
            raise ValueError("give `threshold` or `min_score`, which mean the same, not both")
        return self


RULES: dict[str, type[_Rule]] = {
    "output_not_empty": OutputNotEmpty,
    "success": Success,
    "latency_under": LatencyUnder,
    "token_usage_under": TokenUsageUnder,
    "contains": Keywords,
    "not_contains": Keywords,
    "matches_regex": MatchesRegex,
    "similarity": Similarity,
}

EVALUATORS: dict[str, type[RuleEvaluatorEntry] | type[JudgeEvaluatorEntry]] = {
    "rule_based": RuleEvaluatorEntry,
    "llm_judge": JudgeEvaluatorEntry,
}

_LISTS = frozenset({"flags", "keywords"})
# Texts that may be written as YAML numbers and booleans.
_TEXTS = frozenset({"name", "model", "prompt_template", "keywords", "pattern", "target", "expected_path"})


def published() -> Node:
    """Return the schema of a file."""
    rule: Any = Union[tuple(_rule(check, entry) for check, entry in RULES.items())]  # noqa: UP007 - made of a tuple
    rules: Any = (Annotated[list[rule], Field(min_length=1)], ...)
    by_rules: Any = create_model("RuleEvaluator", __base__=RuleEvaluatorEntry, rules=rules)
    evaluators: Any = (Annotated[list[by_rules | JudgeEvaluatorEntry], Field(min_length=1)], ...)
    agent: Any = (AgentKey | None, Field(None, description=AGENT_DESCRIPTION))
    file = create_model("EvaluationFile", __base__=EvaluationFile, evaluators=evaluators, agent=agent)
    return each_property(with_variables(file.model_json_schema()), _spelling)


def _rule(check: str, entry: type[BaseModel]) -> type[BaseModel]:
    name: Any = (Literal[check], ...)
    rule: type[BaseModel] = create_model(f"Rule_{check}", __base__=entry, check=name)
    return rule


def _spelling(key: str, value: Node) -> Node:
    """Allow a key without a value, which means its default, and a single text instead of a list."""
    if value.get("type") == "array" and value.get("items", {}).get("type") in {"string", None}:
        value = or_else(value, {"type": "string"})
    if key in _LISTS:
        # Flags in lower case, words that YAML parses as numbers.
        value = {"type": ["array", "string"]}
    if key == "quality":
        value = or_else(value, {"type": "object"})
    if key in _TEXTS:
        value = or_scalar(value)
    return or_else(value, {"type": "null"}) if "const" not in value else value
