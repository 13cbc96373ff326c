"""What judges reply, to G-Eval and to prompts. MetricError."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from pydantic import BaseModel

from agenteval.core.llm.models import ModelSpec
from agenteval.metrics.base import MetricError
from agenteval.metrics.judge_replies import check_scale, may_be_score, read_reply
from agenteval.metrics.judges import PromptJudge
from agenteval.metrics.resources import Resources


class _Scored(BaseModel):
    score: float
    reason: str = ""


class _Accepting:
    """Resources of a judge that is asked nothing: every model may be."""

    gateway: _Accepting

    def __init__(self) -> None:
        self.gateway = self

    def check(self, model: ModelSpec) -> None:
        """Accept."""


_SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number"}, "items": {"type": "array", "items": {"$ref": "#"}}},
}
_MODEL = ModelSpec(provider="openai", name="gpt-4o")
_JUDGES = tuple(
    PromptJudge("prompt", _MODEL, cast("Resources", _Accepting()), json_schema=schema, scores=("score", "other"))
    for schema in (None, _SCHEMA)
)


def target(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    with suppress(MetricError):
        check_scale(read_reply(text, _Scored).score, strict=False)
    for judge in _JUDGES:
        with suppress(MetricError):
            judge._read(text)
    for token in text.split()[:100]:
        may_be_score(token)
