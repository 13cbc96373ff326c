"""Runs code graders, evaluation functions and user metrics, one pool of workers per directory and environment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import (
    AgentError,
    AgentImportError,
    ConfigError,
    Kind,
    Problem,
    UserCodeError,
    raise_failures,
)
from agenteval.core.paths import working_directory_beside
from agenteval.core.process.confinement import UserCodeRules, under_rules
from agenteval.results.model import UsedPlugin
from agenteval.suite.model import AgentSpec, Place

if TYPE_CHECKING:
    from agenteval.agents.worker.pool import ImportFailure, WorkerPool

_CHECK = "agenteval.grader:check"
# Time limit for importing a grader; a limit of an evaluation covers its calls only.
IMPORT_LIMIT_S = 120.0


@dataclass(frozen=True)
class _Expected:
    """A grader that will be called, with the function that checks its existence."""

    where: Place
    called: str
    check: str
    arguments: list[Any]


class GraderPool:
    """The graders of the suites of one configuration.

    Args:
        interpreters: the Python interpreter by directory, for directories whose agent names one.
        concurrency: maximum number of concurrent calls per directory.
        rules: variables and limits of their processes; ``None`` for those in force.
    """

    def __init__(
        self,
        interpreters: Mapping[str, str] | None = None,
        concurrency: int = 8,
        rules: UserCodeRules | None = None,
    ) -> None:
        self._interpreters = interpreters or {}
        self._concurrency = concurrency
        self._rules = rules
        self._expected: dict[tuple[str, str, str, str], _Expected] = {}
        self._plugins: dict[str, str] = {}
        self._pools: dict[tuple[str, str], WorkerPool] = {}

    @property
    def plugins(self) -> list[UsedPlugin]:
        """The installed packages whose metrics are used; complete after the pool has started."""
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
            called: the key of the suite that names the grader.
            check: function that runs in the worker and imports the grader; its first argument is
                ``reference``.
            options: the other arguments of ``check``, as JSON.
        """
        key = (*_home(where), reference, json.dumps(options, sort_keys=True, default=str))
        self._expected.setdefault(key, _Expected(where, called, check, [reference, *options]))

    async def start(self) -> None:
        """Import every expected grader.

        Raises:
            ConfigError: graders do not exist or cannot be used; the message lists them all.
            UserCodeError: all graders that cannot be used are in modules whose import fails.
        """
        checks = (self._failure(expected) for expected in self._expected.values())
        raise_failures([failure for failure in await asyncio.gather(*checks) if failure is not None])

    async def call(self, where: Place, function: str, arguments: list[Any]) -> Mapping[str, Any]:
        """Call a built-in function that calls a grader.

        Args:
            where: the metric's place; modules are imported from its directory.
            function: ``module:callable``, which runs in the worker.
            arguments: its arguments, as JSON.

        Raises:
            AgentError: the grader raised, returned a wrong type, or its process died.
        """
        found: Mapping[str, Any] = await self._call(where, function, arguments)
        return found

    async def close(self) -> None:
        """Stop the worker processes."""
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))

    async def _failure(self, expected: _Expected) -> ConfigError | UserCodeError | None:
        try:
            async with asyncio.timeout(IMPORT_LIMIT_S):
                failure = await self._import_failure(expected)
                if failure is not None:
                    return failure.error(_unusable(expected, failure.message))
                found = await self._call(expected.where, expected.check, expected.arguments)
        except TimeoutError:
            why = f"importing it took longer than {IMPORT_LIMIT_S:g} s; load large data when it is first called"
            return UserCodeError(_unusable(expected, why))
        except AgentImportError as error:
            return UserCodeError(_unusable(expected, str(error)))
        except AgentError as error:
            return ConfigError(_unusable(expected, str(error)))
        if isinstance(found, Mapping) and "name" in found:
            self._plugins[str(found["name"])] = str(found.get("version"))
        return None

    async def _import_failure(self, expected: _Expected) -> ImportFailure | None:
        if expected.check != _CHECK:
            return None
        with self._under_rules():
            return await self._pool(expected.where).import_failure(expected.arguments[0])

    async def _call(self, where: Place, function: str, arguments: list[Any]) -> Any:
        with self._under_rules():
            return await self._pool(where).call(function, arguments)

    def _under_rules(self) -> AbstractContextManager[None]:
        """Return the context of everything that may start a process."""
        return nullcontext() if self._rules is None else under_rules(self._rules)

    def _pool(self, where: Place) -> WorkerPool:
        directory, home = where.directory, _home(where)
        pool = self._pools.get(home)
        if pool is None:
            # Imported here: most runs call no grader.
            from agenteval.agents.worker.pool import WorkerPool

            interpreter = self._interpreters.get(directory)
            options = {"interpreter": interpreter} if interpreter else {}
            spec = AgentSpec(
                kind="python",
                target="",
                directory=directory,
                env=where.variables,
                options=options,
                where="graders",
            )
            # For the base commit's files, the place of the working directory there.
            further = working_directory_beside(Path(directory), where.file)
            pool = self._pools[home] = WorkerPool(
                spec, self._concurrency, imported_from=str(further) if further else None
            )
        return pool


def _home(where: Place) -> tuple[str, str]:
    """Return what the graders of one pool share."""
    return where.directory, json.dumps(dict(where.variables), sort_keys=True)


def _unusable(expected: _Expected, why: str) -> Problem:
    where, called = expected.where, expected.called
    message = f"the {called} {expected.arguments[0]!r} cannot be used: {why} (looked in {where.directory})"
    return Problem(
        message, file=where.file, line=where.line, path=called, kind=Kind.USER_CODE, mark=str(expected.arguments[0])
    )
