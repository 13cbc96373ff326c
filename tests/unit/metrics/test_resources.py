"""Calls of the judge model by metrics of other packages."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel

from agenteval.core.llm.calls import Call, Completion
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.core.llm.models import ModelSpec
from agenteval.metrics.base import MetricError
from agenteval.metrics.resources import GraderPool, Resources


class Verdict(BaseModel):
    score: float
    reason: str = ""


@dataclass
class Provider:
    """A provider that always replies with the same text."""

    text: str
    calls: list[Call] = field(default_factory=list)

    async def complete(self, call: Call) -> Completion:
        self.calls.append(call)
        return Completion(self.text)

    async def embed(self, text: str) -> Completion:
        raise NotImplementedError

    async def close(self) -> None:
        """Do nothing: no connection is open."""


def ask(provider: Provider, judge: ModelSpec | None) -> Verdict:
    async def asked() -> Verdict:
        gateway = Gateway(LlmSettings(), provider_for=lambda _: provider)
        return await Resources(gateway, GraderPool(), judge).ask("How friendly?", Verdict, sample=2)

    return asyncio.run(asked())


JUDGE = ModelSpec("openai", "judge")


def test_a_reply_is_an_instance_of_the_model() -> None:
    provider = Provider('```json\n{"score": 0.5, "reason": "so"}\n```')
    assert ask(provider, JUDGE) == Verdict(score=0.5, reason="so")
    (call,) = provider.calls
    assert (call.model, call.prompt, call.schema, call.sample) == (
        JUDGE,
        "How friendly?",
        Verdict.model_json_schema(),
        2,
    )


@pytest.mark.parametrize(
    ("text", "judge", "message"),
    [("fine", JUDGE, "not JSON"), ('{"score": "high"}', JUDGE, "does not fit Verdict"), ("", None, "set `judge`")],
)
def test_unusable_values_are_errors(text: str, judge: ModelSpec | None, message: str) -> None:
    with pytest.raises(MetricError, match=message):
        ask(Provider(text), judge)
