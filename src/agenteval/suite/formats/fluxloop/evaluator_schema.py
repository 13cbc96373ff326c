"""Schema of an evaluator in a FluxLoop ``evaluation.yaml``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from agenteval.core.text.pattern import pattern_problem
from agenteval.suite.formats.fluxloop.schema import Entry, Number, Share, Texts, Whole, one_as_list

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
