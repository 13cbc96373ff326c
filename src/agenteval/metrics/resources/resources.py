"""What metrics share in a run: models, graders, embeddings, judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from agenteval.core.llm.spec import ModelSpec
from agenteval.results.model import RunUsage

if TYPE_CHECKING:
    from agenteval.core.llm.embeddings import Embeddings
    from agenteval.core.llm.gateway import Gateway
    from agenteval.metrics.resources.grader_pool import GraderPool
    from agenteval.metrics.resources.judge_quota import Judgements


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
