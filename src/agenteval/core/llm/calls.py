"""What is asked of a language model and what comes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agenteval.core.llm.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Call:
    """One prompt to one model.

    Attributes:
        schema: JSON Schema that the reply should follow; providers that cannot enforce it ignore it.
        schema_name: what the schema is called in the request.
        top_logprobs: how many alternatives per token to ask for; 0 asks for none.
        sample: tells repeats apart, so that the cache never answers one repeat with another.
        options: what else is asked of the model, named as in OpenAI's chat completions (``reasoning_effort``,
            ``verbosity``, ``seed``, ...); other providers ignore it.
    """

    model: ModelSpec
    prompt: str
    schema: Mapping[str, Any] | None = None
    schema_name: str = "reply"
    top_logprobs: int = 0
    sample: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered.

    Attributes:
        logprobs: per token, as OpenAI's API returns it; ``None`` where the provider has none.
        cost_usd: ``None`` where the price of the model is not known.
        cached: taken from the cache, so it cost nothing now.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    logprobs: list[Any] | None = None
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question to one model, however it is asked.

    Attributes:
        key: tells it apart from every other question; see ``agenteval.core.llm.cache.key_of``.
        size: characters of the question, by which its price is estimated.
        send: asks once, without retries of its own; raises ``LlmError``.
        timeout_s: limit for one attempt; ``None`` takes the run's.
    """

    model: ModelSpec
    key: str
    size: int
    send: Callable[[], Awaitable[Completion]]
    timeout_s: float | None = None


@dataclass
class Tally:
    """What several answers took together; those from the cache are counted apart, as they cost nothing."""

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cached_output_tokens: int = 0
    cost_usd: float | None = 0.0

    def add(self, completion: Completion) -> None:
        """Count one answer; the cost is unknown as soon as that of one is."""
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
        """Send one request, without retries of its own.

        Raises:
            LlmError: it failed.
        """
        ...

    async def embed(self, text: str) -> Completion:
        """Send one text for its vector, which comes as a JSON list.

        Raises:
            LlmError: it failed, or there are no embeddings here.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
