"""Schema of a HoloDeck ``agent.yaml``, for the evaluation.

HoloDeck's keys keep their names, types and defaults, so every suite that HoloDeck accepts loads unchanged.
Keys of other parts of HoloDeck are accepted and not checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from agenteval.core.llm.models import ModelSpec
from agenteval.core.text import pattern_problem
from agenteval.suite.forms import check_response_path
from agenteval.suite.model import Count

LEGACY_METRICS = ("groundedness", "relevance", "coherence", "fluency", "similarity", "safety")
MAX_FILES = 10

_GRADER = re.compile(r"[\w.]+:\w+")
MATCHERS = frozenset({"fuzzy", "regex"})
#: Types of tools that search an index that HoloDeck makes, so that HoloDeck runs their agent.
INDEXED = frozenset({"vectorstore", "hierarchical_document"})
#: Types of tools that only HoloDeck can offer to an agent.
ONLY_HOLODECK = INDEXED | {"hosted", "skill"}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _not_blank(value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise ValueError("must not be empty")
    return value


class HoloDeckModel(_Strict):
    """A model of a provider: ``evaluations.model``, a metric's ``model``, or the agent's model."""

    provider: Literal["openai", "azure_openai", "anthropic", "ollama"]
    name: str
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, gt=0)
    top_p: float | None = Field(None, ge=0, le=1)
    endpoint: str | None = None
    api_key: str | None = Field(None, repr=False)
    api_version: str | None = None
    auth_provider: str | None = None

    _name = field_validator("name")(_not_blank)

    def spec(self, variables: Mapping[str, str]) -> ModelSpec:
        """Return the model, with its provider's key of some variables if it has none."""
        return ModelSpec(**self.model_dump(exclude={"auth_provider"})).with_key_of(variables)


class _Metric(_Strict):
    threshold: float | None = Field(None, allow_inf_nan=False)
    enabled: bool = True
    fail_on_error: bool = False
    model: HoloDeckModel | None = None


class StandardMetric(_Metric):
    """``type: standard``: compared with the ground truth, without a model (except legacy metrics)."""

    type: Literal["standard"] = "standard"
    metric: Literal[
        "equality",
        "numeric",
        "f1_score",
        "bleu",
        "rouge",
        "meteor",
        "groundedness",
        "relevance",
        "coherence",
        "fluency",
        "similarity",
        "safety",
    ]
    scale: int | None = Field(None, gt=0)
    retry_on_failure: int | None = Field(None, ge=1, le=3)
    timeout_ms: int | None = Field(None, gt=0)
    custom_prompt: str | None = None
    case_insensitive: bool = False
    strip_whitespace: bool = False
    strip_punctuation: bool = False
    absolute_tolerance: float = Field(1e-6, ge=0)
    relative_tolerance: float = Field(0.0, ge=0)
    accept_percent: bool = False
    accept_thousands_separators: bool = False
    response_path: str | None = None
    variant: Literal["rouge1", "rouge2", "rougeL"] = "rougeL"

    _prompt = field_validator("custom_prompt")(_not_blank)

    @field_validator("response_path")
    @classmethod
    def _path(cls, value: str | None) -> str | None:
        return value if value is None else check_response_path(value)

    @model_validator(mode="after")
    def _variant_of_rouge(self) -> StandardMetric:
        if "variant" in self.model_fields_set and self.metric != "rouge":
            raise ValueError(f"`variant` is for rouge, not {self.metric}")
        return self


class GEvalMetric(_Metric):
    """``type: geval``: a judge model scores with criteria in plain language."""

    type: Literal["geval"] = "geval"
    name: str
    criteria: str
    evaluation_steps: list[str] | None = None
    evaluation_params: list[Literal["input", "actual_output", "expected_output", "context", "retrieval_context"]] = (
        Field(default=["actual_output"], min_length=1)
    )
    strict_mode: bool = False
    threshold: float | None = Field(None, ge=0, le=1)

    _texts = field_validator("name", "criteria")(_not_blank)


class RagMetric(_Metric):
    """``type: rag``: a judge model scores answer and retrieved passages."""

    type: Literal["rag"] = "rag"
    metric_type: Literal[
        "faithfulness",
        "answer_relevancy",
        "contextual_relevancy",
        "contextual_precision",
        "contextual_recall",
    ]
    threshold: float = Field(0.5, ge=0, le=1)
    include_reason: bool = True


class CodeMetric(_Strict):
    """``type: code``: a Python callable of the user scores the turn."""

    type: Literal["code"] = "code"
    grader: str
    name: str | None = None
    threshold: float | None = Field(None, allow_inf_nan=False)
    enabled: bool = True
    fail_on_error: bool = False

    @field_validator("grader")
    @classmethod
    def _reference(cls, value: str) -> str:
        if not _GRADER.fullmatch(value):
            raise ValueError(f"{value!r} is not of the form module.path:callable")
        return value


AnyMetric = StandardMetric | GEvalMetric | RagMetric | CodeMetric


def _metric_type(value: Any) -> str | None:
    """Return the type of a metric in a case, where ``type`` is optional."""
    if not isinstance(value, dict):
        return getattr(value, "type", None)
    if "type" in value:
        return str(value["type"])
    for key, name in (("grader", "code"), ("metric_type", "rag"), ("criteria", "geval")):
        if key in value:
            return name
    return "standard"


CaseMetric = Annotated[
    Annotated[StandardMetric, Tag("standard")]
    | Annotated[GEvalMetric, Tag("geval")]
    | Annotated[RagMetric, Tag("rag")]
    | Annotated[CodeMetric, Tag("code")],
    Discriminator(_metric_type),
]


class Evaluations(_Strict):
    """``evaluations``: the metrics of every case."""

    model: HoloDeckModel | None = None
    metrics: list[Annotated[AnyMetric, Field(discriminator="type")]] = Field(min_length=1)
    optimizer: Any = None


class ExpectedTool(_Strict):
    """A tool that must be called; arguments are literals, ``{fuzzy: …}`` or ``{regex: …}``.

    A text is the name of a tool.
    """

    name: str
    args: dict[str, Any] | None = None
    count: int = Field(1, ge=1)

    _name = field_validator("name")(_not_blank)

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if not isinstance(value, dict):
            raise ValueError("must be the name of a tool, or a mapping with `name`")
        return value

    @field_validator("count", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        if not isinstance(value, int):
            raise ValueError(f"must be a whole number, not {value!r}")
        return value

    @field_validator("args")
    @classmethod
    def _matchers(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        for key, matcher in (value or {}).items():
            _check_matcher(key, matcher)
        return value


def _check_matcher(key: str, matcher: Any) -> None:
    if not isinstance(matcher, dict) or MATCHERS.isdisjoint(matcher):
        return
    if len(matcher) != 1:
        raise ValueError(f"args.{key}: a matcher is exactly one of {{fuzzy: …}} and {{regex: …}}")
    (name, pattern), *_ = matcher.items()
    if not isinstance(pattern, str):
        raise ValueError(f"args.{key}: {name} takes text, not {pattern!r}; put it in quotes")
    if name == "regex":
        problem = pattern_problem(pattern)
        if problem is not None:
            raise ValueError(f"args.{key}: {pattern!r} is not a regular expression: {problem}")


class FileInput(_Strict):
    """A file that belongs to the input."""

    path: str | None = None
    url: str | None = None
    type: Literal["image", "pdf", "text", "excel", "word", "powerpoint", "csv"]
    description: str | None = None
    pages: list[Annotated[int, Field(gt=0)]] | None = None
    sheet: str | None = None
    range: str | None = None
    cache: bool | None = None

    @model_validator(mode="after")
    def _path_or_url(self) -> FileInput:
        if bool(self.path) == bool(self.url):
            raise ValueError("exactly one of `path` and `url` is needed")
        return self


class TurnEntry(_Strict):
    """One turn of a multi-turn case."""

    input: str
    ground_truth: str | None = None
    expected_tools: list[ExpectedTool] | None = None
    files: list[FileInput] | None = Field(None, max_length=MAX_FILES)
    retrieval_context: list[str] | None = None
    evaluations: list[CaseMetric] | None = None
    turn_config: dict[str, Any] | None = None

    _input = field_validator("input")(_not_blank)


class CaseEntry(_Strict):
    """One test case: a single exchange, or several under ``turns``."""

    name: str | None = None
    input: str | None = None
    ground_truth: str | None = None
    expected_tools: list[ExpectedTool] | None = None
    files: list[FileInput] | None = Field(None, max_length=MAX_FILES)
    retrieval_context: list[str] | None = None
    evaluations: list[CaseMetric] | None = None
    turns: list[TurnEntry] | None = Field(None, min_length=1)

    _texts = field_validator("name", "input")(_not_blank)

    @model_validator(mode="after")
    def _single_or_multi_turn(self) -> CaseEntry:
        single = ("input", "ground_truth", "expected_tools", "files", "retrieval_context")
        if self.turns is None:
            if self.input is None:
                raise ValueError("`input` is required (or `turns` for a case of several turns)")
        elif given := [name for name in single if getattr(self, name) is not None]:
            raise ValueError(f"with `turns`, these keys belong into the turns: {', '.join(given)}")
        return self


class Instructions(_Strict):
    """``instructions``: the system prompt, here or in a file; a bare text is the prompt itself."""

    file: str | None = None
    inline: str | None = None

    _texts = field_validator("file", "inline")(_not_blank)

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: Any) -> Any:
        return {"inline": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _file_or_inline(self) -> Instructions:
        if (self.file is None) == (self.inline is None):
            raise ValueError("exactly one of `inline` and `file` is needed")
        return self


class Execution(_Strict):
    """``execution``; the last three have no effect here."""

    llm_timeout: float | None = Field(None, gt=0)
    parallel_test_cases: Count | None = Field(None)
    file_timeout: float | None = Field(None, gt=0)
    download_timeout: float | None = Field(None, gt=0)
    cache_enabled: bool | None = None
    cache_dir: Any = None
    verbose: Any = None
    quiet: Any = None


class AgentFile(_Strict):
    """The whole file; ``tools_schema`` defines its tools."""

    name: str | None = None
    description: str | None = None
    author: str | None = None
    agent: Any = Field(None, description="agenteval: the agent under test")
    model: HoloDeckModel | None = None
    instructions: Instructions | None = None
    response_format: dict[str, Any] | str | None = None
    tools: list[Any] | None = None
    tool_filtering: Any = None
    evaluations: Evaluations | None = None
    test_cases: list[Any] | None = None
    test_cases_file: str | None = None
    execution: Execution | None = None
    observability: Any = None
    deployment: Any = None
    embedding_provider: Any = None
    claude: Any = None
    openai: Any = None

    _name = field_validator("name")(_not_blank)

    @field_validator("response_format", mode="before")
    @classmethod
    def _schema_or_file(cls, value: Any) -> Any:
        if value is not None and not isinstance(value, dict | str):
            raise ValueError("must be a JSON Schema, or the path of a file that holds one")
        return value
