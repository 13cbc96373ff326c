"""Calls of language models and their answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import dataclass, field


@dataclass(frozen=True)
class Call:
    """One prompt to one model.

    Attributes:
        schema: JSON Schema of the reply; providers that cannot enforce it ignore it.
        top_logprobs: number of alternatives per token to request; 0 requests none.
        sample: number of the repetition; the cache stores repetitions separately.
        options: other options, named as in OpenAI's chat completions (``reasoning_effort``, ``verbosity``, ``seed``,
            ...); other providers ignore them.
        by_agent: whether the agent under test sends the prompt; its answers are cached only if the settings allow it.
    """

    model: ModelSpec
    prompt: str
    schema: Mapping[str, Any] | None = None
    schema_name: str = "reply"
    top_logprobs: int = 0
    sample: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    by_agent: bool = False
    may_repeat: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Completion:
    """A model's answer.

    Attributes:
        logprobs: per token, as in OpenAI's API; ``None`` if the provider has none.
        cost_usd: ``None`` if the price of the model is unknown.
        is_cut: whether the answer reached the limit of tokens.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    logprobs: list[Any] | None = None
    cached: bool = False
    is_cut: bool = False


@dataclass(frozen=True)
class ModelCall:
    """One question to one model, independent of how it is sent.

    Attributes:
        key: identifies the question; see ``agenteval.core.llm.gateway.key_of``.
        size: length of the question in bytes, from which its price is estimated.
        send: sends one request without retries; raises ``LlmError``.
        may_repeat: asked whether the question may be sent once more if its answer cannot be used.
    """

    model: ModelSpec
    key: str
    size: int
    send: Callable[[], Awaitable[Completion]]
    timeout_s: float | None = None
    by_agent: bool = False
    may_repeat: Callable[[], bool] | None = None


@dataclass
class CallTotals:
    """The totals of several answers; cached answers are counted separately, since they cost nothing."""

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cached_output_tokens: int = 0
    cost_usd: float | None = 0.0

    def add(self, completion: Completion) -> None:
        """Add one answer; the total cost is unknown if the cost of any answer is."""
        if completion.cached:
            self.cached += 1
            self.cached_input_tokens += completion.input_tokens or 0
            self.cached_output_tokens += completion.output_tokens or 0
            return
        self.calls += 1
        self.input_tokens += completion.input_tokens or 0
        self.output_tokens += completion.output_tokens or 0
        known = self.cost_usd is not None and completion.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (completion.cost_usd or 0.0) if known else None


class Provider(Protocol):
    """The client of one provider."""

    async def complete(self, call: Call) -> Completion:
        """Send one request, without retries."""
        ...

    async def embed(self, text: str) -> Completion:
        """Request the vector of a text, returned as a JSON list."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
