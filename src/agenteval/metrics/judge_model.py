"""Lets deepeval's metrics ask models through the gateway."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

# Before the first import of deepeval, which else reports home and reads .env files.
os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "1")
os.environ.setdefault("DEEPEVAL_DISABLE_DOTENV", "1")

from deepeval.metrics.g_eval.schema import ReasonScore
from deepeval.models import DeepEvalBaseLLM
from openai.types.chat import ChatCompletion
from pydantic import BaseModel, ValidationError

from agenteval.llm.budget import Budget
from agenteval.llm.gateway import Accept, Gateway
from agenteval.llm.model import Call, Completion
from agenteval.metrics.base import MetricError
from agenteval.metrics.judge_reply import json_object
from agenteval.suite.model import ModelSpec

_TOP_LOGPROBS = 5


@dataclass
class Spent:
    """What one measurement took, cached answers apart."""

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def add(self, completion: Completion) -> None:
        """Count one answer."""
        if completion.cached:
            self.cached += 1
            return
        self.calls += 1
        self.input_tokens += completion.input_tokens or 0
        self.output_tokens += completion.output_tokens or 0
        known = self.cost_usd is not None and completion.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (completion.cost_usd or 0.0) if known else None


class JudgeModel(DeepEvalBaseLLM):  # type: ignore[no-untyped-call] # deepeval's own hook has no types
    """One model for one measurement; what it took stands in ``spent``."""

    def __init__(self, spec: ModelSpec, gateway: Gateway, sample: int) -> None:
        self._spec = spec
        self._gateway = gateway
        self._sample = sample
        self.spent = Spent()
        super().__init__(spec.name)

    @property
    def budget(self) -> Budget:
        """The account that this judge's calls go on."""
        return self._gateway.budget

    def load_model(self) -> JudgeModel:
        """Nothing to load: the gateway holds the clients."""
        return self

    def get_model_name(self) -> str:
        """The name in deepeval's messages."""
        return self._spec.label

    def generate(self, *_: Any, **__: Any) -> Any:
        """deepeval asks asynchronously only; there is no other way to the gateway."""
        raise MetricError("judges are asked asynchronously")

    async def a_generate(self, prompt: str, schema: type[BaseModel] | None = None) -> Any:
        """The answer as an instance of the schema, or as text where there is none.

        Raises:
            MetricError: the answer is no JSON, or does not follow the schema.
        """
        json_schema = schema.model_json_schema() if schema is not None else None
        name = schema.__name__ if schema is not None else "reply"
        call = Call(self._spec, prompt, schema=json_schema, schema_name=name, sample=self._sample)
        if schema is None:
            return (await self._ask(call, lambda _: None)).text
        completion = await self._ask(call, lambda answer: _read(answer.text, schema))
        return _read(completion.text, schema)

    async def a_generate_with_schema(self, *args: Any, schema: Any = None, **_: Any) -> Any:
        """As ``a_generate``; deepeval's own would ask twice where a TypeError is raised inside."""
        return await self.a_generate(args[0], schema)

    async def a_generate_raw_response(self, prompt: str, top_logprobs: int = _TOP_LOGPROBS) -> tuple[Any, float]:
        """The answer with the probabilities of its tokens, by which G-Eval weighs the score.

        Raises:
            AttributeError: this model gives none; deepeval then takes the plain score.
        """
        if not supports_logprobs(self._spec):
            raise AttributeError("no log probabilities")
        call = Call(self._spec, prompt, top_logprobs=min(top_logprobs, _TOP_LOGPROBS), sample=self._sample)
        completion = await self._ask(call, lambda answer: _read(answer.text, ReasonScore))
        return _chat_completion(self._spec.name, completion), 0.0

    async def _ask(self, call: Call, accept: Accept) -> Completion:
        completion = await self._gateway.complete(call, accept)
        self.spent.add(completion)
        return completion


def _read(text: str, schema: type[BaseModel]) -> BaseModel:
    try:
        return schema.model_validate(json_object(text))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise MetricError(f"the judge's reply does not fit {schema.__name__}: {place}: {first['msg']}") from None


def supports_logprobs(spec: ModelSpec) -> bool:
    """Whether a model gives token probabilities, by deepeval's list of OpenAI's models."""
    from deepeval.models.llms.constants import OPENAI_MODELS_DATA

    if spec.provider not in {"openai", "azure_openai"}:
        return False
    data = OPENAI_MODELS_DATA.get(spec.name)
    data = data() if callable(data) else data
    return bool(data is not None and data.supports_log_probs)


def _chat_completion(model: str, completion: Completion) -> ChatCompletion:
    """What deepeval expects of OpenAI's client, rebuilt, as the answer may come from the cache."""
    logprobs = None if completion.logprobs is None else {"content": completion.logprobs, "refusal": None}
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": completion.text},
        "logprobs": logprobs,
    }
    return ChatCompletion.model_validate(
        {"id": "", "created": 0, "object": "chat.completion", "model": model, "choices": [choice]}
    )
