"""Runs code graders, evaluation functions and users' metrics in worker processes, one pool per directory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import AgentError, ConfigError, Problem
from agenteval.results.model import UsedPlugin
from agenteval.suite.model import AgentSpec, Place

if TYPE_CHECKING:
    from agenteval.agents.worker.pool import WorkerPool

_CHECK = "agenteval.grader:check"


@dataclass(frozen=True)
class _Expected:
    """A grader that will be called, and how to find out that it is there."""

    where: Place
    called: str
    check: str
    arguments: list[Any]


class GraderPool:
    """The graders of a run.

    Args:
        interpreters: the Python interpreter of each directory whose agent names one.
        concurrency: maximum number of concurrent calls per directory.
    """

    def __init__(self, interpreters: Mapping[str, str] | None = None, concurrency: int = 8) -> None:
        self._interpreters = interpreters or {}
        self._concurrency = concurrency
        self._expected: dict[tuple[str, str, str], _Expected] = {}
        self._plugins: dict[str, str] = {}
        self._pools: dict[str, WorkerPool] = {}

    @property
    def plugins(self) -> list[UsedPlugin]:
        """The installed distributions whose metrics are used, once the pool has started."""
        return [UsedPlugin(name=name, version=version) for name, version in sorted(self._plugins.items())]

    def expect(
        self,
        where: Place,
        reference: str,
        called: str = "grader",
        *,
        check: str = _CHECK,
        options: Sequence[Any] = (),
    ) -> None:
        """Register a grader that will be called; ``start`` checks that it exists.

        Args:
            where: the metric's place; the module is imported from its directory.
            reference: ``module:callable``.
            called: the key in the suite that names it.
            check: function that runs in the worker and imports the grader; it gets ``reference`` and
            options: further arguments, as JSON.
        """
        key = (where.directory, reference, json.dumps(options, sort_keys=True, default=str))
        self._expected.setdefault(key, _Expected(where, called, check, [reference, *options]))

    async def start(self) -> None:
        """Import every expected grader.

        Raises:
            ConfigError: graders cannot be imported; the message lists them all.
        """
        checks = (self._problem(expected) for expected in self._expected.values())
        problems = [problem for problem in await asyncio.gather(*checks) if problem is not None]
        if problems:
            raise ConfigError(problems)

    async def call(self, where: Place, function: str, arguments: list[Any]) -> Mapping[str, Any]:
        """Call a built-in function that calls a grader.

        Args:
            where: the metric's place; modules are imported from its directory.
            function: ``module:callable``, which runs in the worker.
            arguments: its arguments, as JSON.

        Raises:
            AgentError: the grader raised, returned a wrong type, or its process died.
        """
        found: Mapping[str, Any] = await self._pool(where.directory).call(function, arguments)
        return found

    async def close(self) -> None:
        """Stop the worker processes."""
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))

    async def _problem(self, expected: _Expected) -> Problem | None:
        where, called, reference = expected.where, expected.called, expected.arguments[0]
        try:
            found = await self._pool(where.directory).call(expected.check, expected.arguments)
            if isinstance(found, Mapping) and "name" in found:
                self._plugins[str(found["name"])] = str(found.get("version"))
        except AgentError as error:
            message = f"the {called} {reference!r} cannot be used: {error} (looked in {where.directory})"
            return Problem(message, file=where.file, line=where.line, path=called)
        return None

    def _pool(self, directory: str) -> WorkerPool:
        pool = self._pools.get(directory)
        if pool is None:
            # Imported here: most runs call no grader.
            from agenteval.agents.worker.pool import WorkerPool

            interpreter = self._interpreters.get(directory)
            options = {"interpreter": interpreter} if interpreter else {}
            spec = AgentSpec(kind="python", target="", directory=directory, options=options, where="graders")
            pool = self._pools[directory] = WorkerPool(spec, self._concurrency)
        return pool
