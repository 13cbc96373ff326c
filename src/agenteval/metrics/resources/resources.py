"""Resources that metrics of one configuration share: models, graders, embeddings, judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from agenteval.core.llm.spec import ModelSpec

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agenteval.core.llm.embeddings import Embeddings
    from agenteval.core.llm.gateway import Gateway
    from agenteval.metrics.resources.grader_pool import GraderPool
    from agenteval.metrics.resources.judge_quota import Judgements

Reply = TypeVar("Reply", bound="BaseModel")


@dataclass(frozen=True)
class Resources:
    """The resources that the metrics of the suites of one configuration share.

    Attributes:
        judge: the judge for suites that do not name one, if they support a default judge.
        embedder: the embedding model for suites that do not name one.
        remembers: whether suites may cache and reuse judgements.
        seed: the random seed of metrics; ``None`` gives the same values in every run.
    """

    gateway: Gateway
    graders: GraderPool
    judge: ModelSpec | None = None
    embedder: ModelSpec | None = None
    remembers: bool = True
    seed: int | None = None

    @cached_property
    def embeddings(self) -> Embeddings:
        """The embeddings of texts, with a cache."""
        from agenteval.core.llm.embeddings import Embeddings

        return Embeddings(self.gateway, self.embedder)

    @cached_property
    def judgements(self) -> Judgements:
        """The quotas and cached judgements of trace judges."""
        from agenteval.metrics.resources.judge_quota import Judgements

        return Judgements(self.remembers)

    @property
    def judged(self) -> Mapping[str, int]:
        """Return the number of counted judge answers so far, by suite."""
        return self.judgements.answered if "judgements" in self.__dict__ else {}

    async def ask(self, prompt: str, reply: type[Reply], *, sample: int = 0) -> Reply:
        """Send a prompt to the judge model; cache, budget, limits and retries are those of built-in judges.

        Args:
            prompt: the whole prompt.
            reply: a pydantic model; the judge is asked for JSON that follows its schema.
            sample: the iteration; cached replies are reused for the same iteration only.

        Raises:
            MetricError: no judge is configured, or its reply does not follow the schema.
            LlmError: the provider refused the request, or all attempts failed.
            BudgetSpentError: the budget of the run allows no further call; the metric is skipped.
        """
        from agenteval.core.llm.calls import Call
        from agenteval.metrics.base import MetricError
        from agenteval.metrics.judges.reply import read_reply

        if self.judge is None:
            raise MetricError("no judge model is configured; set `judge` in agenteval.yaml")
        call = Call(self.judge, prompt, schema=reply.model_json_schema(), schema_name=reply.__name__, sample=sample)
        completion = await self.gateway.complete(call, lambda answer: read_reply(answer.text, reply))
        return read_reply(completion.text, reply)
