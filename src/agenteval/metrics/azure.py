"""HoloDeck's deprecated metrics, calculated by Azure's evaluation SDK (optional extra ``azure``)."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.llm.calls import Completion, ModelCall
from agenteval.core.llm.gateway import key_of
from agenteval.core.llm.models import LlmError, ModelSpec
from agenteval.core.llm.provider_base import limit_hooks
from agenteval.core.llm.providers import api_key, reachable
from agenteval.core.runtime import in_thread
from agenteval.metrics.base import MetricError, Observation, Outcome
from agenteval.metrics.resources import Resources
from agenteval.suite.model import Place

_OPENAI = "https://api.openai.com/v1"
# Bytes of the longest prompt of the evaluators below, without their inputs.
_PROMPT = 10_000
# The SDK's evaluators rate answers from 1 to 5.
_LOWEST, _HIGHEST = 1, 5
_CLASSES: Mapping[str, str] = {
    "groundedness": "GroundednessEvaluator",
    "relevance": "RelevanceEvaluator",
    "coherence": "CoherenceEvaluator",
    "fluency": "FluencyEvaluator",
    "similarity": "SimilarityEvaluator",
}
_NEEDS: Mapping[str, frozenset[str]] = {
    "groundedness": frozenset({"sources"}),
    "similarity": frozenset({"ground_truth"}),
}


@dataclass(frozen=True, slots=True)
class AzureMetric:
    """An evaluator of the SDK that asks a model to rate from 1 to 5; the score is rating/5.

    A measurement counts as one call of the budget, is cached, and is subject to the limits of its provider.
    The SDK decides its prompts, parameters and retries. Retries
    are not counted, and a cancelled measurement may continue in the background while the SDK retries.

    Args:
        metric: ``groundedness``, ``relevance``, ``coherence``, ``fluency`` or ``similarity``.
        model: a model of provider ``azure_openai`` or ``openai``.
        scale: divisor of the rating, instead of 5.
    """

    metric: str
    model: ModelSpec
    resources: Resources
    where: Place
    scale: int | None = None

    def __post_init__(self) -> None:
        try:
            reachable(self.model)
            api_key(self.model)
        except ConfigError as error:
            message = f"the deprecated metric {self.metric}: {error.problems[0].message}"
            raise ConfigError(
                Problem(message, file=self.where.file, line=self.where.line, kind=Kind.REQUIREMENT)
            ) from None
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
        inputs = self._inputs(observation)
        key = ["azure", version("azure-ai-evaluation"), self.metric, inputs, observation.iteration]
        exchange = ModelCall(self.model, key_of(self.model, key), _size(inputs.values()), partial(self._ask, inputs))
        completion = await self.resources.gateway.exchange(exchange, lambda answer: _rating(answer.text))
        rating, reason = _rating(completion.text)
        details: dict[str, Any] = {
            "rating": rating,
            "llm_calls": 0 if completion.cached else 1,
            "cached_calls": 1 if completion.cached else 0,
        }
        if not completion.cached:
            details |= {"input_tokens": completion.input_tokens, "output_tokens": completion.output_tokens}
        return Outcome(
            score=rating / (self.scale or _HIGHEST),
            reason=reason or None,
            details=details,
            model=self.model.label,
            cost_usd=completion.cost_usd,
        )

    def _inputs(self, observation: Observation) -> dict[str, str]:
        """Return the evaluator's arguments; files and retrieved passages are its context."""
        inputs = {"response": observation.response}
        if self.metric != "fluency":
            inputs["query"] = observation.input
        if self.metric == "groundedness":
            inputs["context"] = "\n\n".join(observation.sources)
        if self.metric == "similarity":
            inputs["ground_truth"] = observation.ground_truth or ""
        return inputs

    async def _ask(self, inputs: Mapping[str, str]) -> Completion:
        try:
            found = await in_thread(partial(self._evaluate, inputs))
        except LlmError as error:
            raise LlmError(f"{self.model.label}: {error}") from None
        except Exception as error:  # noqa: BLE001
            # The SDK has retried, and wraps failures in many kinds of exceptions.
            raise LlmError(f"{self.model.label}: {type(error).__name__}: {error}") from None
        usage = found.get(f"{self.metric}_properties") or {}
        rated = {"rating": found.get(self.metric), "reason": found.get(f"{self.metric}_reason")}
        return Completion(
            text=json.dumps(rated),
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
        )

    def _evaluate(self, inputs: Mapping[str, str]) -> Mapping[str, Any]:
        """Run one evaluation; blocks."""
        from agenteval.core.llm.openai import is_reasoning

        kind = getattr(_sdk(), _CLASSES[self.metric])
        # Evaluators keep state, so each measurement gets a new one.
        evaluator = kind(self._configuration(), is_reasoning_model=is_reasoning(self.model.name))
        found: Mapping[str, Any] = evaluator(**inputs)
        return found

    def _configuration(self) -> dict[str, str]:
        from agenteval.core.llm.openai import AZURE_API_VERSION

        model = reachable(self.model)
        shared = {"type": model.provider, "api_key": api_key(model)}
        if model.provider == "openai":
            return {**shared, "model": model.name, "base_url": model.endpoint or _OPENAI}
        return {
            **shared,
            "azure_deployment": model.name,
            "azure_endpoint": model.endpoint or "",
            "api_version": model.api_version or AZURE_API_VERSION,
        }


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


def _size(inputs: Iterable[str]) -> int:
    return _PROMPT + sum(len(text.encode("utf-8", "surrogatepass")) for text in inputs)


def _rating(text: str) -> tuple[float, str]:
    """Return rating and reason of a stored answer.

    Raises:
        MetricError: there is no rating, or it is outside the scale.
    """
    stored = json.loads(text)
    rating, reason = stored["rating"], str(stored["reason"] or "")
    if rating is None or math.isnan(rating):
        raise MetricError(f"the model gave no rating{': ' if reason else ''}{reason}")
    if not _LOWEST <= rating <= _HIGHEST:
        raise MetricError(f"the model rated {rating:g}, which is outside {_LOWEST} to {_HIGHEST}")
    return float(rating), reason
