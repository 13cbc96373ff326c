"""Call limits and cached judgements that the judges of a suite share in a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.core.llm.errors import BudgetSpentError
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
    _books: dict[str, QuotaEntry] = field(default_factory=dict)
    _earlier: dict[str, int] = field(default_factory=dict)

    @property
    def answered(self) -> dict[str, int]:
        """Return the number of counted answers so far, by suite."""
        return {**self._earlier, **{suite: book.answered for suite, book in self._books.items()}}

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
        if key not in self._books:
            wanted = limits.cache if self.remembers else None
            cache = JudgementCache(Path(suite.directory) / wanted) if wanted else None
            self._books[key] = QuotaEntry(limits.max_calls, cache, self._earlier.get(key, 0))
        return self._books[key]


@dataclass
class Question:
    """A call in progress; ``answered`` is set once a model has answered, which makes it count."""

    answered: bool = False


@dataclass
class QuotaEntry:
    """Counts the models' answers for one suite.

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
        """Reserve a call while a model is asked.

        Raises:
            BudgetSpentError: the limit is reached.
        """
        async with self._changed:
            await self._changed.wait_for(self._is_decided)
            if self.max_calls is not None and self.answered >= self.max_calls:
                raise BudgetSpentError(f"limits.max_llm_calls ({self.max_calls}) is used up")
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
        """Return whether another call can be granted or refused without waiting for a call in progress."""
        limit = self.max_calls
        return limit is None or self.answered >= limit or self.answered + self._under_way < limit
