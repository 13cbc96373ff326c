"""The call limits and cached judgements that all judges of a suite share in a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.core.authentic import seal
from agenteval.metrics.resources.judge_sample import limit_reached
from agenteval.metrics.resources.judgement_cache import JudgementCache
from agenteval.suite.evaluation import JudgeLimits
from agenteval.suite.model import Place


@dataclass
class Judgements:
    """The quotas of all suites of a run.

    Args:
        remembers: whether suites may cache judgements.
    """

    remembers: bool = True
    _entries: dict[str, QuotaEntry] = field(default_factory=dict)
    _earlier: dict[str, int] = field(default_factory=dict)

    @property
    def answered(self) -> dict[str, int]:
        """Return the number of counted answers so far, by suite."""
        return {**self._earlier, **{suite: entry.answered for suite, entry in self._entries.items()}}

    def record_spend(self, answered: Mapping[str, int]) -> None:
        """Count the answers of an earlier part of the run; call this before any judge."""
        self._earlier = dict(answered)

    def of(self, suite: Place, limits: JudgeLimits) -> QuotaEntry:
        """Return the quota of a suite.

        Args:
            suite: the file of the suite.
            limits: its limits.
        """
        key = f"{suite.directory}\n{suite.file}"
        if key not in self._entries:
            wanted = limits.cache if self.remembers else None
            cache = JudgementCache(Path(suite.directory) / wanted, seal()) if wanted else None
            self._entries[key] = QuotaEntry(limits.max_calls, cache, self._earlier.get(key, 0))
        return self._entries[key]


@dataclass
class Question:
    """A call in progress; it counts once ``answered`` is set."""

    answered: bool = False


@dataclass
class QuotaEntry:
    """Counts the judge answers for one suite.

    Attributes:
        max_calls: maximum number of answers; ``None`` for no limit.
        cache: earlier judgements; ``None`` disables the cache.
    """

    max_calls: int | None
    cache: JudgementCache | None
    answered: int = 0
    _under_way: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def question(self) -> AsyncIterator[Question]:
        """Reserve a call for the duration of the block.

        Raises:
            NotAskedError: the limit is reached.
        """
        async with self._changed:
            await self._changed.wait_for(self._is_decided)
            if self.max_calls is not None and self.answered >= self.max_calls:
                raise limit_reached(self.max_calls)
            self._under_way += 1
        question = Question()
        try:
            yield question
        finally:
            async with self._changed:
                self._under_way -= 1
                self.answered += question.answered
                self._changed.notify_all()

    def _is_decided(self) -> bool:
        """Return whether another call can be granted or refused without waiting for a running call."""
        limit = self.max_calls
        return limit is None or self.answered >= limit or self.answered + self._under_way < limit
