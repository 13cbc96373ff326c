"""The registry of built-in metrics; a metric is imported when a suite uses it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

from pydantic import PlainValidator

from agenteval.core.arguments import problems
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, fields, is_dataclass, replace
from agenteval.core.text import choices
from agenteval.metrics.base import CaseMetric, Metric, metric_problem
from agenteval.metrics.resources import Resources
from agenteval.suite.model import MetricConfig, MetricKind

_RESOURCES = "resources"
# The same limit as for metrics of agenteval.yaml.
_TIMEOUT_S = 60.0
# The boundary between the words of `TokenCount`; none inside an abbreviation.
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def _checked(metric: Any) -> Any:
    if isinstance(metric, MetricConfig):
        found = problems(metric, MetricConfig, "metric")
        if found:
            raise ValueError("; ".join(map(str, found)))
        problem = metric_problem(metric.metric) if metric.metric is not None else None
    else:
        problem = metric_problem(metric)
    if problem is not None:
        raise ValueError(problem)
    return metric


#: A metric of a caller: an instance, or a configuration that names it.
GivenMetric = Annotated[Metric | CaseMetric | MetricConfig, PlainValidator(_checked)]


def given_metric(metric: GivenMetric) -> MetricConfig:
    """Return the configuration of a metric that a caller passes.

    The metric is named after its class, ``token_count`` for ``TokenCount``; its errors make the case an error.
    """
    if isinstance(metric, MetricConfig):
        return replace(metric, timeout_s=metric.timeout_s or _TIMEOUT_S)
    cls = type(metric)
    config = MetricConfig(
        id=_WORD.sub("_", cls.__name__).lower(),
        type=f"{cls.__module__}.{cls.__qualname__}",
        kind="custom",
        options={name: getattr(metric, name) for name in _fields(metric) if name != _RESOURCES},
        timeout_s=_TIMEOUT_S,
        metric=metric,
    )
    try:
        # Compared with that of other runs.
        _ = config.content
    except Exception as error:  # noqa: BLE001 - the options may be any objects
        raise ConfigError(
            Problem(f"the options of {cls.__name__} have no text form: {error}", path="metrics", kind=Kind.USER_CODE)
        ) from None
    return config


def with_resources(metric: Any, resources: Resources) -> Any:
    """Return a caller's metric; its field ``resources``, if it has one, is set to those of the run."""
    if _RESOURCES not in _fields(metric):
        return metric
    try:
        return replace(metric, resources=resources)
    except Exception as error:  # noqa: BLE001 - code of the caller
        message = f"{type(metric).__name__} cannot be made with `resources`: {type(error).__name__}: {error}"
        raise ConfigError(Problem(message, path="metrics", kind=Kind.USER_CODE)) from None


def _fields(metric: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(metric) if item.init) if is_dataclass(metric) else ()


# Fields of a metric that `build` fills, so they are not options of a suite.
_GIVEN = frozenset({"resources", "where"})


@dataclass(frozen=True)
class MetricType:
    """A registered metric.

    Attributes:
        implementation: ``module:class``.
        summary: meaning of its score, for the documentation.
    """

    name: str
    kind: MetricKind
    implementation: str
    summary: str

    def load(self) -> Any:
        """Import the metric's class: a ``Metric`` or a ``CaseMetric``."""
        module, _, name = self.implementation.partition(":")
        return getattr(import_module(module), name)

    @property
    def requires(self) -> frozenset[str] | None:
        """The fields of an observation that the metric needs; ``None`` if they depend on its options."""
        found: object = getattr(self.load(), "requires", frozenset())
        return found if isinstance(found, frozenset) else None

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its options."""
        return tuple(
            item.name
            for item in fields(self.load())
            if item.init and item.name not in _GIVEN and not item.name.startswith("_")
        )


def _built_in(name: str, kind: MetricKind, place: str, summary: str) -> MetricType:
    return MetricType(name, kind, f"agenteval.metrics.{place}", summary)


METRICS = (
    _built_in("equality", "standard", "text:Equality", "1 if answer and ground truth are the same text"),
    _built_in("numeric", "standard", "text:Numeric", "1 if two numbers agree within a tolerance"),
    _built_in("f1_score", "standard", "overlap:TokenF1", "token F1 as SQuAD defines it"),
    _built_in("bleu", "standard", "overlap:Bleu", "sentence BLEU by sacrebleu"),
    _built_in("rouge", "standard", "overlap:Rouge", "ROUGE F-measure by rouge-score"),
    _built_in("meteor", "standard", "overlap:Meteor", "METEOR by NLTK, with WordNet"),
    _built_in("geval", "geval", "deepeval:GEval", "G-Eval: a judge model by criteria in plain language"),
    _built_in("rag", "rag", "deepeval:Rag", "a judge model on the answer and the retrieved passages"),
    _built_in("groundedness", "standard", "azure:AzureMetric", "deprecated: Azure's rating divided by 5"),
    _built_in("relevance", "standard", "azure:AzureMetric", "deprecated: Azure's rating divided by 5"),
    _built_in("coherence", "standard", "azure:AzureMetric", "deprecated: Azure's rating divided by 5"),
    _built_in("fluency", "standard", "azure:AzureMetric", "deprecated: Azure's rating divided by 5"),
    _built_in("similarity", "standard", "azure:AzureMetric", "deprecated: Azure's rating divided by 5"),
    _built_in("code", "code", "code:CodeGrader", "the score of a user's grader"),
    _built_in("tools", "tools", "tool_calls:ExpectedTools", "1 if the expected tools were called"),
    _built_in("text_match", "match", "text:TextMatchMetric", "1 if the answer matches a text or a pattern"),
    _built_in("similar", "match", "similarity:Similar", "cosine similarity of the answer and a reference"),
    _built_in("schema", "schema", "schema:Schema", "1 if the answer is JSON that follows a schema"),
    _built_in("tool_calls", "tools", "tool_calls:ToolCalls", "1 if the expected tool calls were made"),
    _built_in("safety", "safety", "blocked:Safety", "1 if a request is refused, or answered, as expected"),
    _built_in("judge", "judge", "judges:PromptJudge", "a judge model's score by a prompt"),
    _built_in("custom", "custom", "code:CustomFunction", "the score of a user's function"),
    _built_in("python", "custom", "code:UserMetric", "the score of a user's metric, see Adding metrics"),
    _built_in("rules", "rule", "rules:RuleBased", "the mean of several rules on the trace"),
    _built_in("trace_judge", "judge", "judges:TraceJudge", "a judge model's score of the trace"),
    # Over all iterations of a case:
    _built_in("latency", "performance", "performance:Latency", "1 if the mean time is within the limits"),
    _built_in("tokens", "performance", "performance:Tokens", "1 if the mean numbers of tokens are within the limits"),
    _built_in("consistency", "consistency", "similarity:Consistency", "how similar the answers of a case are"),
)
REGISTRY: Mapping[str, MetricType] = {item.name: item for item in METRICS}


def metric_type(name: str) -> MetricType:
    """Find a metric by name."""
    if name not in REGISTRY:
        message = f"no metric {name!r}{choices(name, REGISTRY, 'known')}"
        raise ConfigError(Problem(message, kind=Kind.UNKNOWN_NAME))
    return REGISTRY[name]


def is_case_metric(config: MetricConfig) -> bool:
    """Return whether a metric scores all iterations of a case together."""
    return hasattr(config.metric if config.metric is not None else metric_type(config.type).load(), "measure_all")


def build(config: MetricConfig, resources: Resources) -> Any:
    """Create the metric of a configuration: a ``Metric`` or a ``CaseMetric``.

    Its field ``resources``, if it has one, is set to those of the run; its field ``where`` to the place of its
    configuration.
    """
    if config.metric is not None:
        return with_resources(config.metric, resources)
    kind = metric_type(config.type)
    for name in config.options:
        if name not in kind.options:
            message = f"no option {name!r}{choices(name, kind.options, 'known')}"
            raise ConfigError(Problem(message, path=config.type, kind=Kind.UNKNOWN_NAME))
    cls = kind.load()
    given = {"resources": resources, "where": config.where}
    declared = {item.name for item in fields(cls)}
    try:
        return cls(**config.options, **{key: value for key, value in given.items() if key in declared})
    except (TypeError, ValueError) as error:
        raise ConfigError(Problem(f"the options are wrong: {error}", path=config.type, kind=Kind.VALUE)) from None
