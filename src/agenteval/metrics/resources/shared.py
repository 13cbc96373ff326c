"""The resources of all metrics of a run, whose suites can have different configurations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.core.errors import ConfigError, UserCodeError, raise_failures
from agenteval.core.llm.gateway import Gateway
from agenteval.metrics.resources.resources import Resources
from agenteval.results.model import UsedPlugin
from agenteval.results.summary import RunUsage


@dataclass(frozen=True)
class RunResources:
    """The resources of a run.

    Attributes:
        gateway: makes all calls to models, within the budget of the run.
        parts: the resources of each configuration; all of them use this gateway.
    """

    gateway: Gateway
    parts: Sequence[Resources]

    @property
    def asked(self) -> RunUsage:
        """The usage of all models so far: judges and model agents."""
        return RunUsage(
            input_tokens=self.gateway.input_tokens,
            output_tokens=self.gateway.output_tokens,
            llm_calls=self.gateway.budget.calls,
            cost_usd=self.gateway.budget.cost_usd,
            cached_calls=self.gateway.cached_calls,
            saved_usd=self.gateway.saved_usd,
        )

    @property
    def judged(self) -> Mapping[str, int]:
        """Return the number of counted judge answers so far, by suite."""
        found: dict[str, int] = {}
        for part in self.parts:
            # Each suite is counted by one part; the others have the number of the interrupted run.
            found |= {suite: max(number, found.get(suite, 0)) for suite, number in part.judged.items()}
        return found

    @property
    def plugins(self) -> tuple[UsedPlugin, ...]:
        """The installed packages whose metrics are used; complete after the start."""
        found = {plugin.name: plugin for part in self.parts for plugin in part.graders.plugins}
        return tuple(found[name] for name in sorted(found))

    def record_spend(self, spent: RunUsage, judged: Mapping[str, int]) -> None:
        """Count the usage of an earlier part of the run: of models, and of each suite's judge limit."""
        self.gateway.record_spend(spent)
        if judged:
            for part in self.parts:
                part.judgements.record_spend(judged)

    async def start(self) -> None:
        """Check that the registered resources exist.

        Raises:
            ConfigError: resources are missing; the error contains all of them.
            UserCodeError: all missing resources are in modules whose import fails.
        """
        failures: list[ConfigError | UserCodeError] = []
        for part in self.parts:
            try:
                await part.graders.start()
            except (ConfigError, UserCodeError) as error:
                failures.append(error)
        raise_failures(failures)

    async def close(self) -> None:
        """Close connections and processes."""
        await asyncio.gather(self.gateway.close(), *(part.graders.close() for part in self.parts))
