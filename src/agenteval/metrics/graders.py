"""Runs code graders in worker processes, one pool per suite directory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agenteval.agents.workers import WorkerPool
from agenteval.errors import AgentError, ConfigError, Problem
from agenteval.suite.model import AgentSpec, Place

_CHECK = "agenteval.grader:check"
_GRADE = "agenteval.grader:grade"


class GraderPool:
    """The graders of a run.

    Args:
        interpreters: the Python of a directory, where its agent names one.
        concurrency: graders called at once, per directory.
    """

    def __init__(self, interpreters: Mapping[str, str] | None = None, concurrency: int = 8) -> None:
        self._interpreters = interpreters or {}
        self._concurrency = concurrency
        self._expected: dict[tuple[str, str], Place] = {}
        self._pools: dict[str, WorkerPool] = {}

    def expect(self, where: Place, reference: str) -> None:
        """Say that a grader will be called; ``start`` makes sure that it is there.

        Args:
            where: the metric's place; the module is imported from its directory.
            reference: ``module:callable``.
        """
        self._expected.setdefault((where.directory, reference), where)

    async def start(self) -> None:
        """Import every expected grader.

        Raises:
            ConfigError: with all that cannot be imported.
        """
        checks = (self._problem(where, reference) for (_, reference), where in self._expected.items())
        problems = [problem for problem in await asyncio.gather(*checks) if problem is not None]
        if problems:
            raise ConfigError(problems)

    async def grade(self, where: Place, reference: str, turn: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a grader with the fields of ``GraderContext``; returns those of ``GraderResult``.

        Raises:
            AgentError: the grader raised, returned what it may not, or its process died.
        """
        found: Mapping[str, Any] = await self._pool(where.directory).call(_GRADE, [reference, turn])
        return found

    async def close(self) -> None:
        """End the worker processes."""
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))

    async def _problem(self, where: Place, reference: str) -> Problem | None:
        try:
            await self._pool(where.directory).call(_CHECK, [reference])
        except AgentError as error:
            message = f"the grader {reference!r} cannot be used: {error} (looked in {where.directory})"
            return Problem(message, file=where.file, line=where.line, path="grader")
        return None

    def _pool(self, directory: str) -> WorkerPool:
        pool = self._pools.get(directory)
        if pool is None:
            interpreter = self._interpreters.get(directory)
            options = {"interpreter": interpreter} if interpreter else {}
            spec = AgentSpec(kind="python", target="", directory=directory, options=options, where="graders")
            pool = self._pools[directory] = WorkerPool(spec, self._concurrency)
        return pool
