"""What a metric is, and the registry that finds it by name.

A metric is a frozen dataclass with one method. A new one is a new file and a line in ``REGISTRY``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from agenteval.errors import AgentEvalError
from agenteval.results.model import RunUsage, ToolCall, Usage
from agenteval.suite.model import MetricConfig, ModelSpec

if TYPE_CHECKING:
    from agenteval.llm.embeddings import Embeddings
    from agenteval.llm.gateway import Gateway
    from agenteval.metrics.graders import GraderPool
    from agenteval.metrics.judgements import Judgements


@dataclass(frozen=True, slots=True)
class Observation:
    """One turn as metrics see it: what was asked, what was expected, what came.

    ``raised`` is the exception with which a tool under test refused to answer; ``trace`` is the record of a trace, or
    one made of the reply, for metrics that read fields by their path.
    """

    input: str
    response: str
    ground_truth: str | None = None
    retrieval_context: tuple[str, ...] | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    latency_ms: float | None = None
    usage: Usage | None = None
    context: tuple[str, ...] | None = None
    case: str = ""
    turn: int = 0
    iteration: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    raised: str | None = None
    trace: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """What the answer may rest on: the texts of the turn's files, then the passages retrieved."""
        return (*(self.context or ()), *(self.retrieval_context or ()))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a metric found.

    Attributes:
        score: 0..1, higher is better.
        passed: the metric's own verdict; a threshold in the suite overrules it, unless it is ``decided``.
        reason: one or two sentences for people.
        details: further numbers, as JSON.
        model: the judge, if one was asked.
        cost_usd: what asking took; ``None`` where the price is not known.
    """

    score: float
    passed: bool | None = None
    decided: bool = False
    reason: str | None = None
    details: Mapping[str, Any] | None = None
    model: str | None = None
    cost_usd: float | None = None


class MetricError(AgentEvalError):
    """A metric could not be computed; the message says why."""


class Metric(Protocol):
    """Anything that scores a reply.

    ``requires`` names the fields of the observation without which the metric has nothing to say.
    """

    @property
    def requires(self) -> frozenset[str]:
        """``ground_truth``, ``retrieval_context``, ``context`` and ``sources``, as far as needed."""
        ...

    def measure(self, observation: Observation, /) -> Outcome | Awaitable[Outcome]:
        """Score one reply.

        Raises:
            MetricError: it cannot be computed.
        """
        ...


class CaseMetric(Protocol):
    """Anything that scores the answers of all iterations of a case together."""

    def measure_all(self, observations: Sequence[Observation], /) -> Sequence[Outcome] | Awaitable[Sequence[Outcome]]:
        """Score all iterations that have an answer; one outcome for each, in their order.

        Raises:
            MetricError: it cannot be computed.
        """
        ...


# Metric type → module and class; imported when a suite asks for it, so that nobody pays for the rest.
REGISTRY: Mapping[str, tuple[str, str]] = {
    "equality": ("agenteval.metrics.deterministic", "Equality"),
    "numeric": ("agenteval.metrics.deterministic", "Numeric"),
    "f1_score": ("agenteval.metrics.overlap", "TokenF1"),
    "bleu": ("agenteval.metrics.overlap", "Bleu"),
    "rouge": ("agenteval.metrics.overlap", "Rouge"),
    "meteor": ("agenteval.metrics.meteor", "Meteor"),
    "geval": ("agenteval.metrics.judge", "GEval"),
    "rag": ("agenteval.metrics.judge", "Rag"),
    "groundedness": ("agenteval.metrics.azure", "AzureMetric"),
    "relevance": ("agenteval.metrics.azure", "AzureMetric"),
    "coherence": ("agenteval.metrics.azure", "AzureMetric"),
    "fluency": ("agenteval.metrics.azure", "AzureMetric"),
    "similarity": ("agenteval.metrics.azure", "AzureMetric"),
    "code": ("agenteval.metrics.code", "CodeGrader"),
    "tools": ("agenteval.metrics.tools", "ExpectedTools"),
    "text_match": ("agenteval.metrics.text_match", "TextMatchMetric"),
    "similar": ("agenteval.metrics.similarity", "Similar"),
    "schema": ("agenteval.metrics.schema", "Schema"),
    "tool_calls": ("agenteval.metrics.tool_calls", "ToolCalls"),
    "safety": ("agenteval.metrics.safety", "Safety"),
    "judge": ("agenteval.metrics.prompt_judge", "PromptJudge"),
    "custom": ("agenteval.metrics.custom", "CustomFunction"),
    "rules": ("agenteval.metrics.rules", "RuleBased"),
    "trace_judge": ("agenteval.metrics.trace_judge", "TraceJudge"),
    # Over all iterations of a case:
    "latency": ("agenteval.metrics.performance", "Latency"),
    "tokens": ("agenteval.metrics.performance", "Tokens"),
    "consistency": ("agenteval.metrics.similarity", "Consistency"),
}


@dataclass(frozen=True)
class Resources:
    """What metrics of one run share.

    Attributes:
        judge: the model that judges where a suite names none and can do without.
        embedder: the model that compares meanings where a suite names none.
        remembers: whether suites may keep what their judges said, and take it instead of asking again.
        seed: of what metrics leave to chance; ``None`` is the same in every run.
    """

    gateway: Gateway
    graders: GraderPool
    judge: ModelSpec | None = None
    embedder: ModelSpec | None = None
    remembers: bool = True
    seed: int | None = None

    @cached_property
    def embeddings(self) -> Embeddings:
        """The way to vectors of texts, which remembers those that it has."""
        from agenteval.llm.embeddings import Embeddings

        return Embeddings(self.gateway, self.embedder)

    @cached_property
    def judgements(self) -> Judgements:
        """What judges of traces may still ask, and what they said before."""
        from agenteval.metrics.judgements import Judgements

        return Judgements(self.remembers)

    @property
    def judged(self) -> Mapping[str, int]:
        """How many answers of judges counted so far, by suite."""
        return self.judgements.answered if "judgements" in self.__dict__ else {}

    def charge(self, asked: RunUsage, judged: Mapping[str, int]) -> None:
        """Put on the accounts what an earlier part of the run took."""
        self.gateway.charge(asked)
        if judged:
            self.judgements.charge(judged)

    async def start(self) -> None:
        """Make sure that what the metrics will use is there.

        Raises:
            ConfigError: it is not.
        """
        await self.graders.start()

    async def close(self) -> None:
        """Close connections and processes."""
        await self.gateway.close()
        await self.graders.close()


def build(config: MetricConfig, resources: Resources) -> Any:
    """The metric that a configuration describes: a ``Metric``, or a ``CaseMetric``.

    A metric with a field ``resources`` gets those of the run, one with a field ``where`` gets the place
    of its configuration.

    Raises:
        ConfigError: what the metric needs on this machine is missing.
    """
    module, name = REGISTRY[config.type]
    kind = getattr(import_module(module), name)
    offered = {"resources": resources, "where": config.where}
    wanted = {item.name for item in fields(kind)}
    return kind(**config.options, **{key: value for key, value in offered.items() if key in wanted})
