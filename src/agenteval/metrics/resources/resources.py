"""What metrics share in a run: models, graders, embeddings, judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from agenteval.core.llm.spec import ModelSpec
from agenteval.results.model import RunUsage

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agenteval.core.llm.embeddings import Embeddings
    from agenteval.core.llm.gateway import Gateway
    from agenteval.metrics.resources.grader_pool import GraderPool
    from agenteval.metrics.resources.judge_quota import Judgements

Reply = TypeVar("Reply", bound="BaseModel")


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
        from agenteval.core.llm.embeddings import Embeddings

        return Embeddings(self.gateway, self.embedder)

    @cached_property
    def judgements(self) -> Judgements:
        """What judges of traces may still ask, and what they said before."""
        from agenteval.metrics.resources.judge_quota import Judgements

        return Judgements(self.remembers)

    @property
    def judged(self) -> Mapping[str, int]:
        """How many answers of judges counted so far, by suite."""
        return self.judgements.answered if "judgements" in self.__dict__ else {}

    async def ask(self, prompt: str, reply: type[Reply], *, sample: int = 0) -> Reply:
        """Ask the judge model; the call is cached, budgeted, limited and retried as those of built-in judges.

        Args:
            prompt: the whole question.
            reply: a pydantic model; the judge is asked for JSON of its schema.
            sample: the iteration; replies to other samples are not taken from the cache.

        Raises:
            MetricError: no judge is configured, or its reply does not fit.
            LlmError: the provider refused, or failed more often than calls are retried.
            BudgetSpentError: the run may make no further call; the score is skipped.
        """
        from agenteval.core.llm.calls import Call
        from agenteval.metrics.base import MetricError
        from agenteval.metrics.judges.reply import read_reply

        if self.judge is None:
            raise MetricError("no judge model is configured; set `judge` in agenteval.yaml")
        call = Call(self.judge, prompt, schema=reply.model_json_schema(), schema_name=reply.__name__, sample=sample)
        completion = await self.gateway.complete(call, lambda answer: read_reply(answer.text, reply))
        return read_reply(completion.text, reply)

    @property
    def asked(self) -> RunUsage:
        """The usage of all models so far: of judges and of model agents."""
        return RunUsage(
            input_tokens=self.gateway.input_tokens,
            output_tokens=self.gateway.output_tokens,
            llm_calls=self.gateway.budget.calls,
            cost_usd=self.gateway.budget.cost_usd,
        )

    def record_spend(self, spent: RunUsage, judged: Mapping[str, int]) -> None:
        """Count what an earlier part of the run spent: on models, and of each suite's limit of judgements."""
        self.gateway.record_spend(spent)
        if judged:
            self.judgements.record_spend(judged)

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
