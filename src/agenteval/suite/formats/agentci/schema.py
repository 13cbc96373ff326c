"""The JSON Schema of the files in ``.agentci/evals``, for editors."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agenteval.suite.formats.base import Node, with_variables
from agenteval.suite.model import Count

EvalType = Literal["accuracy", "performance", "semantic", "safety", "consistency", "llm", "custom"]


class _Entry(BaseModel):
    # TOML has nan and inf, which would be limits without effect.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class _Open(_Entry):
    """A table beside what is checked, in which AgentCI ignores unknown keys; the loader warns about them."""

    model_config = ConfigDict(extra="ignore")


class TargetsEntry(_Entry):
    """``targets``: the agents and tools that are evaluated; ``*`` is all."""

    agents: list[str] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _some(self) -> TargetsEntry:
        if not self.agents and not self.tools:
            raise ValueError('must name at least one agent or tool, for instance targets.agents = ["*"]')
        return self


class ConsistencyEntry(_Open):
    """``[eval.consistency]``"""

    model: str | None = Field(None, min_length=1)


class JudgeEntry(_Open):
    """``[eval.llm]``: the judge. ``output_schema`` is JSON Schema as text, or a table of fields."""

    model: str = Field(min_length=1)
    prompt: str = Field(min_length=1)
    output_schema: str | dict[str, Any] | None = None
    temperature: float | None = Field(None, ge=0)
    max_tokens: int | None = Field(None, ge=1)


class CustomEntry(_Open):
    """``[eval.custom]``: a Python function."""

    module: str
    function: str

    @field_validator("module")
    @classmethod
    def _importable(cls, value: str) -> str:
        if not re.fullmatch(r"[^\s.:/]+(\.[^\s.:/]+)*", value):
            raise ValueError(f"must be the name of a Python module, like my_package.checks, not {value!r}")
        return value

    @field_validator("function")
    @classmethod
    def _name(cls, value: str) -> str:
        if not value.isidentifier():
            raise ValueError(f"must be the name of a function in the module, not {value!r}")
        return value


class EvalEntry(_Open):
    """``[eval]``. The name of an evaluation is the name of its file; ``name`` is ignored."""

    name: str | None = None
    description: str
    type: EvalType
    targets: TargetsEntry
    iterations: Count = 1
    template: str | None = None
    consistency: ConsistencyEntry | None = None
    llm: JudgeEntry | None = None
    custom: CustomEntry | None = None
    # Cases are read separately, so that a mistake in one case does not hide others.
    cases: list[Any] = Field(default_factory=list)


class EvalFile(_Open):
    """The whole file."""

    eval: EvalEntry


class RangeEntry(_Entry):
    """A number within limits: ``{ min = 6, max = 9 }`` or ``{ equal = 10 }``."""

    min: float | None = None
    max: float | None = None
    equal: float | None = None

    @model_validator(mode="after")
    def _possible(self) -> RangeEntry:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"`min` ({self.min:g}) is above `max` ({self.max:g}), so nothing can fit")
        return self


class LatencyEntry(RangeEntry):
    """Seconds; ``min_ms`` and ``max_ms`` are milliseconds and count if there are no seconds."""

    min_ms: float | None = None
    max_ms: float | None = None

    @model_validator(mode="after")
    def _in_seconds(self) -> LatencyEntry:
        if self.min is None and self.min_ms is not None:
            self.min = self.min_ms / 1000
        if self.max is None and self.max_ms is not None:
            self.max = self.max_ms / 1000
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"the minimum ({self.min:g} s) is above the maximum ({self.max:g} s)")
        return self


class TokensEntry(_Entry):
    """Tokens of one answer: ``min``, ``max`` and ``equal`` count input and output together."""

    min: int | None = None
    max: int | None = None
    equal: int | None = None
    input_min: int | None = None
    input_max: int | None = None
    output_min: int | None = None
    output_max: int | None = None

    @model_validator(mode="after")
    def _possible(self) -> TokensEntry:
        for low, high in (("min", "max"), ("input_min", "input_max"), ("output_min", "output_max")):
            least, most = getattr(self, low), getattr(self, high)
            if least is not None and most is not None and least > most:
                raise ValueError(f"`{low}` ({least}) is above `{high}` ({most}), so nothing can fit")
        return self


class ToolCallEntry(_Entry):
    """A required tool call: arguments in order, or by name."""

    name: str = Field(min_length=1)
    args: list[Any] | dict[str, Any]


class EvaluationCase(_Open):
    """``[[eval.cases]]``"""

    index: int | None = None
    prompt: str | None = None
    context: dict[str, Any] | None = None
    output: Any = None
    case_sensitive: bool = False
    blocked: bool | None = None
    response_type: Literal["blocked", "filtered", "warning", "redirect"] | None = None
    tools: list[ToolCallEntry] | None = None
    latency: LatencyEntry | None = None
    tokens: TokensEntry | None = None
    min_similarity: float | None = Field(None, ge=0, le=1)
    score: RangeEntry | None = None
    criteria: list[str] | None = None
    reference_response: str | None = None
    parameters: dict[str, Any] | None = None

    @field_validator("prompt", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        if isinstance(value, list):
            raise ValueError("must be one text, not a list; conversations of several turns are HoloDeck's `turns`")
        return value


class TextMatchEntry(_Entry):
    """``value = {…}`` of a field: one way of matching a text."""

    exact: str | None = None
    contains: str | list[str] | None = None
    contains_any: list[str] | None = None
    startswith: str | list[str] | None = None
    endswith: str | list[str] | None = None
    match: str | None = None
    similar: str | None = None
    threshold: float | None = Field(None, ge=0, le=1)
    case_sensitive: bool = False


class OutputEntry(TextMatchEntry):
    """``output = {…}``: a text to match, or the fields of an object."""

    schema_: dict[str, Any] | None = Field(None, alias="schema")


class FieldEntry(_Entry):
    """The definition of one field, ``{ type = "int", min = 0 }``."""

    type: Any = None
    required: bool = True
    default: Any = None
    value: Any = None
    enum: list[Any] | None = None
    min_length: int | None = Field(None, ge=0)
    max_length: int | None = Field(None, ge=0)
    min: int | float | None = None
    max: int | float | None = None
    min_items: int | None = Field(None, ge=0)
    max_items: int | None = Field(None, ge=0)
    items: dict[str, Any] | None = None


class _AgentciCase(EvaluationCase):
    output: str | OutputEntry | None = None


class _AgentciEval(EvalEntry):
    cases: list[_AgentciCase] = Field(default_factory=list)


class _AgentciFile(EvalFile):
    eval: _AgentciEval


def published() -> Node:
    """Return the schema of a file."""
    return with_variables(_AgentciFile.model_json_schema())
