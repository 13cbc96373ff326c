"""The call limits and cached judgements that all judges of a suite share in a run."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import heapq
import json
import math
import os
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import InfrastructureError
from agenteval.core.llm.models import NotAskedError
from agenteval.core.records import dataclass, field
from agenteval.core.shared_files import Seal, read_cache_file, seal
from agenteval.core.writing import make_directory, open_file
from agenteval.suite.model import Place

if TYPE_CHECKING:
    from agenteval.suite.evaluation import JudgeLimits


# The field of a line that contains the code of the others.
_CODE = "mac"
_NAME = "judgement"


class JudgementCache:
    """A file of judgements.

    Invalid lines and those that the seal does not confirm are skipped; if the file cannot be written, judgements are
    not cached.

    Args:
        seal: decides which lines are believed; its codes are an additional field, which FluxLoop ignores.
    """

    def __init__(self, path: Path, seal: Seal) -> None:
        self._path = path
        self._seal = seal

    def get(self, key: str, server: str) -> str | None:
        """Return a judgement; ``None`` if it is not cached.

        Args:
            server: the address of the judge, which FluxLoop's key does not contain.
        """
        for record in reversed(self._records.get(key, ())):
            content = {name: value for name, value in record.items() if name != _CODE}
            if self._seal.confirms(record.get(_CODE), _NAME, server, key, _canonical(content)):
                response: str = record["response"]
                return response
        return None

    def put(
        self, key: str, server: str, *, raw_score: float, reason: str, response: str, parameters: Mapping[str, Any]
    ) -> None:
        """Store a judgement."""
        if self.get(key, server) is not None:
            return
        line = _line(
            {
                "key": key,
                "raw_score": raw_score,
                "reason": reason,
                "response": response,
                "model_parameters": dict(parameters),
            }
        )
        # As a reader finds it, which differs for values that JSON does not have.
        record = json.loads(line)
        code = self._seal.code(_NAME, server, key, _canonical(record))
        if code is not None:
            record[_CODE] = code
            line = _line(record)
        self._records.setdefault(key, []).append(record)
        with contextlib.suppress(OSError, InfrastructureError):
            self._append(line)

    def _append(self, line: bytes) -> None:
        """Append one line in a single write, so that several processes can append at the same time."""
        make_directory(self._path.parent)
        descriptor = open_file(self._path.parent, self._path.name, os.O_APPEND | os.O_CREAT)
        try:
            size = os.fstat(descriptor).st_size
            if size:
                os.lseek(descriptor, size - 1, os.SEEK_SET)
                # A previous writer may have been killed in the middle of a line.
                line = line if os.read(descriptor, 1) == b"\n" else b"\n" + line
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    @cached_property
    def _records(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        with contextlib.suppress(OSError):
            for line in (read_cache_file(self._path) or b"").splitlines():
                with contextlib.suppress(ValueError, RecursionError):
                    record = json.loads(line)
                    if isinstance(record, dict) and _are_texts(record.get("key"), record.get("response")):
                        found.setdefault(record["key"], []).append(record)
        return found


def _are_texts(*values: object) -> bool:
    return all(isinstance(value, str) for value in values)


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


def _canonical(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True)


def judgement_key(
    *, evaluator: str, model: str, parameters: Mapping[str, Any], prompt: str, trace_id: Any, iteration: Any
) -> str:
    """Return the unique key of a judgement, which is FluxLoop's if the prompt is FluxLoop's.

    Args:
        prompt: the template with its placeholders replaced.
    """
    content = {
        "evaluator": evaluator,
        "model": model,
        "model_parameters": dict(parameters),
        "prompt": prompt,
        "trace_id": trace_id,
        "iteration": iteration,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


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
        """Add an answer."""
        drawn = draw(identity, self.seed)
        if limits.max_calls is not None and drawn < limits.sample_rate:
            self._suites.setdefault(suite, _LowestDraws(limits.max_calls)).add(drawn, calls)

    @property
    def calls(self) -> Mapping[str, int]:
        """Return the calls that the sample of each suite needs."""
        return {suite: lowest.calls for suite, lowest in self._suites.items()}

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


def trace_identity(record: Mapping[str, Any]) -> str:
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


@dataclass
class Judgements:
    """The quotas of all suites of a run.

    Attributes:
        planned: the calls that the sample of each suite needs, by its path, if no reply has to be repeated.
    """

    remembers: bool = True
    planned: dict[str, int] = field(default_factory=dict)
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
        """Return the quota of a suite."""
        key = f"{suite.directory}\n{suite.file}"
        if key not in self._entries:
            wanted = limits.cache if self.remembers else None
            cache = JudgementCache(Path(suite.directory) / wanted, seal()) if wanted else None
            self._entries[key] = QuotaEntry(
                limits.max_calls, cache, self.planned.get(suite.file, 0), self._earlier.get(key, 0)
            )
        return self._entries[key]


@dataclass
class QuotaEntry:
    """Counts the judge answers for one suite.

    Attributes:
        max_calls: maximum number of answers; ``None`` for no limit.
        cache: earlier judgements; ``None`` disables the cache.
        planned: the calls that the sample needs, and repeated questions; a repeat never takes a call of the sample.
        answered: number of answers so far, usable or not.
    """

    max_calls: int | None
    cache: JudgementCache | None
    planned: int = 0
    answered: int = 0
    _under_way: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def question(self) -> AsyncIterator[None]:
        """Reserve a call for the duration of the block."""
        async with self._changed:
            await self._changed.wait_for(self._is_decided)
            if self.max_calls is not None and self.answered >= self.max_calls:
                raise limit_reached(self.max_calls)
            self._under_way += 1
        try:
            yield
        finally:
            async with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def may_repeat(self) -> bool:
        """Return whether the limit leaves a call to repeat a running question, whose answer cannot be used."""
        limit = self.max_calls
        if limit is not None and (self.planned >= limit or self.answered + self._under_way > limit):
            return False
        self.planned += 1
        return True

    def _is_decided(self) -> bool:
        limit = self.max_calls
        return limit is None or self.answered >= limit or self.answered + self._under_way < limit
