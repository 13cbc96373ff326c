"""Draws the answers that the judges of a suite score, if its limits leave some out."""

from __future__ import annotations

import hashlib
import heapq
import math
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenteval.core.llm.errors import NotAskedError
from agenteval.results.record.fields import Record

if TYPE_CHECKING:
    from agenteval.suite.evaluation import JudgeLimits


@dataclass
class JudgeSample:
    """A random sample of the answers of each suite; every answer is added once before any is judged.

    The answers with the lowest draws are judged: a higher limit or rate judges the same answers and further ones.

    Args:
        seed: seed of the run; equal seeds draw equal samples, and ``None`` is a seed as well.
    """

    seed: int | None = None
    _suites: dict[str, _LowestDraws] = field(default_factory=dict)

    def add(self, suite: str, limits: JudgeLimits, identity: str, calls: int) -> None:
        """Add an answer.

        Args:
            suite: path of its suite.
            limits: limits of the suite's judges.
            identity: the same in every run.
            calls: number of judge calls that it needs.
        """
        drawn = draw(identity, self.seed)
        if limits.max_calls is not None and drawn < limits.sample_rate:
            self._suites.setdefault(suite, _LowestDraws(limits.max_calls)).add(drawn, calls)

    def left_out(self, suite: str, limits: JudgeLimits, identity: str) -> NotAskedError | None:
        """Return why an answer is not judged; ``None`` if it is."""
        drawn = draw(identity, self.seed)
        if drawn >= limits.sample_rate:
            share = f"sample of {100 * limits.sample_rate:g} %"
            return NotAskedError(f"not in the {share} (limits.sample_rate)", "sample", share)
        if suite in self._suites and drawn > self._suites[suite].highest:
            return limit_reached(limits.max_calls or 0)
        return None


def limit_reached(calls: int) -> NotAskedError:
    """Return the error for an answer beyond a suite's limit of judge calls."""
    limit = "limit of 1 call" if calls == 1 else f"limit of {calls} calls"
    return NotAskedError(f"limits.max_llm_calls ({calls}) is used up", "limit", limit)


def draw(identity: str, seed: int | None = None) -> float:
    """Return a random number of 0 to 1 for an answer; without a seed it is FluxLoop's."""
    drawn = identity if seed is None else f"{seed}:{identity}"
    own = int(hashlib.sha256(drawn.encode("utf-8", "surrogatepass")).hexdigest(), 16)
    return random.Random(own).random()  # noqa: S311 - no secret depends on it


def trace_identity(record: Record) -> str:
    """Return the identity of a recorded trace: its id, else its iteration, persona and input."""
    return str(record.get("trace_id") or f"{record.get('iteration')}:{record.get('persona')}:{record.get('input')}")


@dataclass
class _LowestDraws:
    """The lowest draws whose calls fit into a limit; only these are kept in memory."""

    limit: int
    calls: int = 0
    highest: float = 1.0
    _kept: list[tuple[float, int]] = field(default_factory=list)

    def add(self, drawn: float, calls: int) -> None:
        if drawn > self.highest:
            return
        # A heap with the highest draw first.
        heapq.heappush(self._kept, (-drawn, calls))
        self.calls += calls
        while self.calls > self.limit:
            refused, spared = heapq.heappop(self._kept)
            self.calls -= spared
            self.highest = math.nextafter(-refused, -1.0)
