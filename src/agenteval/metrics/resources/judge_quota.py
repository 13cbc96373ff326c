"""What the judges of a suite share in a run: how often they may still ask, and what they said before."""

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
    """The accounts of all suites of a run.

    Args:
        remembers: whether suites may keep what their judges said.
    """

    remembers: bool = True
    _books: dict[str, QuotaEntry] = field(default_factory=dict)
    _earlier: dict[str, int] = field(default_factory=dict)

    @property
    def answered(self) -> dict[str, int]:
        """How many answers counted so far, by suite."""
        return {**self._earlier, **{suite: book.answered for suite, book in self._books.items()}}

    def record_spend(self, answered: Mapping[str, int]) -> None:
        """Count what an earlier part of the run took; before any judge is asked."""
        self._earlier = dict(answered)

    def of(self, suite: Place, limits: JudgeLimits) -> QuotaEntry:
        """The account of a suite.

        Args:
            suite: the file that asks.
            limits: what it allows.
        """
        key = f"{suite.directory}\n{suite.file}"
        if key not in self._books:
            wanted = limits.cache if self.remembers else None
            cache = JudgementCache(Path(suite.directory) / wanted) if wanted else None
            self._books[key] = QuotaEntry(limits.max_calls, cache, self._earlier.get(key, 0))
        return self._books[key]


@dataclass
class Question:
    """A call under way; ``answered`` is set once a model answered it, which is what counts."""

    answered: bool = False


@dataclass
class QuotaEntry:
    """Counts the answers of models for one suite.

    Attributes:
        max_calls: how many there may be; ``None`` is no limit.
        cache: what judges said before; ``None`` keeps nothing.
    """

    max_calls: int | None
    cache: JudgementCache | None
    answered: int = 0
    _under_way: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def question(self) -> AsyncIterator[Question]:
        """Hold this while a model is asked.

        Raises:
            BudgetSpentError: no call is left.
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
        """Whether a call under way does not matter for whether there is another one."""
        limit = self.max_calls
        return limit is None or self.answered >= limit or self.answered + self._under_way < limit
