"""HoloDeck's deprecated metrics, calculated by Azure's evaluation SDK (optional extra ``azure``)."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any

from agenteval.core.llm.calls import Completion, ModelCall
from agenteval.core.llm.gateway import key_of
from agenteval.core.llm.models import LlmError, ModelSpec, api_key, reachable
from agenteval.core.llm.provider_base import limit_hooks
from agenteval.core.records import dataclass
from agenteval.core.runtime import in_thread
from agenteval.metrics.base import MetricError, Observation, Outcome
from agenteval.metrics.judge_replies import quoted
from agenteval.metrics.resources import Resources

_OPENAI = "https://api.openai.com/v1"
# Bytes of the longest prompt of the evaluators below, without their inputs.
_PROMPT = 10_000
# The SDK's evaluators rate answers from 1 to 5.
_LOWEST, _HIGHEST = 1, 5
# What an evaluator gets besides the response.
_INPUTS: Mapping[str, tuple[str, ...]] = {
    "groundedness": ("query", "context"),
    "relevance": ("query",),
    "coherence": ("query",),
    "fluency": (),
    "similarity": ("query", "ground_truth"),
}
_NEEDS = {"groundedness": frozenset({"sources"}), "similarity": frozenset({"ground_truth"})}


@dataclass(frozen=True)
class AzureMetric:
    """An evaluator of the SDK that asks a model to rate from 1 to 5; the score is rating/5.

    A measurement is one call of the budget, is cached, and is subject to the limits of its provider. The SDK decides
    its prompts, parameters and retries, which are not counted and may continue after a cancelled measurement.

    Args:
        scale: divisor of the rating, instead of 5.
    """

    metric: str
    model: ModelSpec
    resources: Resources
    scale: int | None = None

    def __post_init__(self) -> None:
        reachable(self.model)
        api_key(self.model)
        # The import takes seconds, which must not count against the time limit of a measurement.
        _sdk()

    @property
    def requires(self) -> frozenset[str]:
        """The fields that the evaluator needs."""
        return _NEEDS.get(self.metric, frozenset())

    async def measure(self, observation: Observation) -> Outcome:
        """Rate the response with the SDK; an empty response scores 0 without a call."""
        if not observation.response.strip():
            return Outcome(0.0, passed=False, reason="empty response", model=self.model.label, cost_usd=0.0)
        sources, truth = "\n\n".join(observation.sources), observation.ground_truth or ""
        known = {"query": observation.input, "context": sources, "ground_truth": truth}
        given = {"response": observation.response} | {name: known[name] for name in _INPUTS[self.metric]}
        inputs = {name: quoted(text) for name, text in given.items()}
        key = ["azure", version("azure-ai-evaluation"), self.metric, inputs, observation.iteration]
        size = _PROMPT + sum(len(text.encode("utf-8", "surrogatepass")) for text in inputs.values())
        exchange = ModelCall(self.model, key_of(self.model, key), size, partial(self._ask, inputs))
        completion = await self.resources.gateway.exchange(exchange, lambda answer: _rating(answer.text))
        rating, reason = _rating(completion.text)
        cached = completion.cached
        details: dict[str, Any] = {"rating": rating, "llm_calls": int(not cached), "cached_calls": int(cached)}
        if not cached:
            details |= {"input_tokens": completion.input_tokens, "output_tokens": completion.output_tokens}
        score = rating / (self.scale or _HIGHEST)
        return Outcome(
            score, reason=reason or None, details=details, model=self.model.label, cost_usd=completion.cost_usd
        )

    async def _ask(self, inputs: Mapping[str, str]) -> Completion:
        try:
            found = await in_thread(partial(self._evaluate, inputs))
        except Exception as error:  # noqa: BLE001
            # The SDK has retried, and wraps failures in many kinds of exceptions.
            kind = "" if isinstance(error, LlmError) else f"{type(error).__name__}: "
            raise LlmError(f"{self.model.label}: {kind}{error}") from None
        usage = found.get(f"{self.metric}_properties") or {}
        rated = {"rating": found.get(self.metric), "reason": found.get(f"{self.metric}_reason")}
        return Completion(json.dumps(rated), usage.get("prompt_tokens"), usage.get("completion_tokens"))

    def _evaluate(self, inputs: Mapping[str, str]) -> Mapping[str, Any]:
        from agenteval.core.llm.openai import AZURE_API_VERSION, is_reasoning

        model = reachable(self.model)
        address = {"model": model.name, "base_url": model.endpoint or _OPENAI}
        if model.provider != "openai":
            resource = (model.endpoint or "").partition("/openai")[0]
            address = {"azure_deployment": model.name, "azure_endpoint": resource}
            address["api_version"] = model.api_version or AZURE_API_VERSION
        kind = getattr(_sdk(), f"{self.metric.title()}Evaluator")
        # Evaluators keep state, so each measurement gets a new one.
        configuration = {"type": model.provider, "api_key": api_key(model), **address}
        found: Mapping[str, Any] = kind(configuration, is_reasoning_model=is_reasoning(model.name))(**inputs)
        return found


def _sdk() -> Any:
    """Import the SDK, with its logging of server responses and its redirects switched off."""
    logging.getLogger("azure.ai.evaluation").setLevel(logging.CRITICAL + 1)
    # Some of its loggers only respect this variable.
    os.environ["PF_LOGGING_LEVEL"] = "CRITICAL"
    clients = import_module("azure.ai.evaluation._legacy.prompty._prompty")
    for name in ("AsyncAzureOpenAI", "AsyncOpenAI"):
        # The SDK makes its clients itself, and has no option for this.
        setattr(clients, name, _guarded(name))
    return import_module("azure.ai.evaluation")


def _guarded(name: str) -> Callable[..., Any]:
    """Return a function that makes one of OpenAI's clients, without redirects and with the limit of replies."""
    import openai

    def make(**options: Any) -> Any:
        hooks = limit_hooks("the judge")
        http_client = openai.DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=hooks)
        return getattr(openai, name)(**options, http_client=http_client)

    return make


def _rating(text: str) -> tuple[float, str]:
    """Return rating and reason of a stored answer, if the rating is one on the scale."""
    stored = json.loads(text)
    rating, reason = stored["rating"], str(stored["reason"] or "")
    if rating is None or math.isnan(rating):
        raise MetricError(f"the model gave no rating{': ' if reason else ''}{reason}")
    if not _LOWEST <= rating <= _HIGHEST:
        raise MetricError(f"the model rated {rating:g}, which is outside {_LOWEST} to {_HIGHEST}")
    return float(rating), reason
