"""Runs user code in worker processes with the user's interpreter."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval.agents.base import read_json
from agenteval.core.child import LAST_WORDS_S, Child, LastOutput, ending, find_program
from agenteval.core.confine import WROTE_TOO_MUCH, Lines, check_access, confinement, user_environment
from agenteval.core.errors import (
    AgentError,
    AgentImportError,
    ConfigError,
    InfrastructureError,
    Kind,
    TransientAgentError,
    UserCodeError,
    agent_problem,
)
from agenteval.core.text import repository_of, working_directory
from agenteval.suite.model import AgentSpec

_SCRIPT = Path(__file__).with_name("worker.py")


class WorkerPool:
    """Worker processes that run user code.

    All calls share one worker. A cancelled call (timeout) retires its worker: running calls finish there, new calls
    go to a new worker, and the old worker is then killed with its descendants. When a worker dies, its calls are
    repeated once, each in a separate worker, so that only the responsible call fails.

    Args:
        spec: the definition of the user's code; modules are imported from its directory.
        concurrency: maximum number of concurrent calls.
        paths: directories of the user's modules, before the directory of the definition.
        imported_from: directory with further modules, after it.
        judges: whether the code judges the agent: after a kill it is not started again, because the agent, which
            may be the killer, can have changed its files.
    """

    def __init__(
        self,
        spec: AgentSpec,
        concurrency: int,
        paths: Sequence[str] = (),
        imported_from: str | None = None,
        *,
        judges: bool = False,
    ) -> None:
        self._judges = judges
        self._killed = ""
        self._spec = spec
        self._concurrency = concurrency
        self._paths = paths
        self._imported_from = imported_from
        self._current: _Worker | None = None
        self._all: set[_Worker] = set()
        self._starting = asyncio.Lock()

    @property
    def is_running(self) -> bool:
        """Whether a worker is running that accepts calls."""
        return self._current is not None and self._current.alive

    async def load(self, reference: str) -> None:
        """Import an object of the user."""
        failure = await self.import_failure(reference)
        if failure is not None:
            error, why = failure
            raise error(agent_problem(self._spec.where, why, Kind.USER_CODE))

    async def import_failure(self, reference: str) -> tuple[type[ConfigError | UserCodeError], str] | None:
        """Import an object of the user; return the class of the error and why, if that failed."""
        worker = await self._shared()
        try:
            await worker.request({"load": reference})
        except (_CallError, _WorkerDied) as error:
            is_missing = isinstance(error, _CallError) and error.kind == "missing"
            # Otherwise its module is broken.
            fix = _INSTALL if not is_missing and "ModuleNotFoundError" in str(error) else ""
            return ConfigError if is_missing else UserCodeError, f"{error} (in {worker.interpreter}){fix}"
        return None

    async def call(self, target: str, args: list[Any], load: str | None = None) -> Any:
        """Call ``target(*args)``; arguments and result are JSON.

        Args:
            target: a built-in function, as ``module:name``.
            load: an object of the user that the worker imports before the call, if it has not yet.
        """
        worker = await self._shared()
        message = {"call": target, "args": args, **({} if load is None else {"load": load})}
        try:
            return await self._request(worker, message)
        except _WorkerDied as first:
            if self._judges and first.killed:
                raise InfrastructureError(self._not_again(str(first))) from None
            if not first.had_company:
                raise first.failure() from None
        except _CallError as error:
            raise error.failure() from None
        return await self._alone(message)

    async def close(self) -> None:
        """Kill every worker."""
        await asyncio.gather(*(worker.close() for worker in list(self._all)))

    async def _alone(self, message: Mapping[str, Any]) -> Any:
        worker = await self._start(threads=1)
        try:
            return await worker.request(message)
        except _WorkerDied as death:
            raise death.failure() from None
        except _CallError as error:
            raise error.failure() from None
        finally:
            await worker.close()
            self._all.discard(worker)

    async def _request(self, worker: _Worker, message: Mapping[str, Any]) -> Any:
        try:
            return await worker.request(message)
        except asyncio.CancelledError:
            if self._current is worker:
                self._current = None
            worker.retire()
            if self._judges and confinement().owner is not None and _is_of_change(self._spec.directory):
                # A stopped process does not answer either.
                self._not_again("the agent's process did not answer in time")
            raise

    def _not_again(self, ended: str) -> str:
        self._killed = self._killed or ended.replace("the agent's process", "the process of graders and metrics", 1)
        return f"{self._killed}; it is not started again, because its files may have changed since the run began"

    async def _shared(self) -> _Worker:
        if self._current is not None and self._current.alive:
            return self._current
        if self._judges and (ended := self._killed or (self._current.killed if self._current else "")):
            raise InfrastructureError(self._not_again(ended))
        async with self._starting:
            if self._current is None or not self._current.alive:
                self._current = await self._start(threads=self._concurrency)
            return self._current

    async def _start(self, threads: int) -> _Worker:
        self._all = {worker for worker in self._all if worker.running}
        environment = user_environment(self._spec.env)
        if self._paths:
            environment["PYTHONPATH"] = os.pathsep.join(
                [*self._paths, *filter(None, [environment.get("PYTHONPATH")])]
            )
        interpreter = find_interpreter(self._spec, environment)
        await asyncio.to_thread(check_access, interpreter, self._spec.directory, self._spec.where)
        worker = _Worker(interpreter)
        try:
            await worker.start(self._spec, environment, threads, self._imported_from)
        except (OSError, ValueError) as error:
            raise ConfigError(agent_problem(self._spec.where, f"{interpreter} cannot be started: {error}")) from None
        self._all.add(worker)
        return worker


def _is_of_change(directory: str) -> bool:
    """Return whether a directory is in the workspace; the base commit's files are elsewhere."""
    here = working_directory().resolve()
    return Path(directory).resolve().is_relative_to(repository_of(here) or here)


def find_interpreter(spec: AgentSpec, environment: Mapping[str, str]) -> str:
    """Return the Python interpreter of the user's environment.

    In order: the agent's ``interpreter``, ``AGENTEVAL_PYTHON``, the active virtual environment,
    ``python3`` on PATH, and the one that runs agenteval.
    """
    path = environment.get("PATH")
    asked = spec.options.get("interpreter") or environment.get("AGENTEVAL_PYTHON")
    if asked:
        return find_program(str(asked), spec.directory, path, spec.where)
    active = environment.get("VIRTUAL_ENV")
    candidate = Path(active, "bin", "python") if active else None
    if candidate and os.access(candidate, os.X_OK):
        return str(candidate)
    try:
        return find_program("python3", spec.directory, path, spec.where)
    except ConfigError:
        return sys.executable


_INSTALL = "; install it there, or name the Python that has it with `interpreter` of the agent"


class _CallError(Exception):
    """The user's code raised an exception."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind

    def failure(self) -> AgentError:
        """Return the error for callers."""
        return AgentImportError(str(self)) if self.kind == "broken" else AgentError(str(self))


class _WorkerDied(Exception):  # noqa: N818 - named after the event
    """The process ended during a call."""

    def __init__(self, message: str, *, had_company: bool, killed: bool) -> None:
        super().__init__(message)
        self.had_company = had_company
        self.killed = killed

    def failure(self) -> AgentError:
        """Return the error for callers; it is transient if the process was killed."""
        return TransientAgentError(str(self)) if self.killed else AgentError(str(self))


class _Worker:
    def __init__(self, interpreter: str) -> None:
        self.interpreter = interpreter
        self._child: Child | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._retired = False
        self._problem = ""
        self._lines = Lines(self._deliver, lambda: self._break_off(f"{WROTE_TOO_MUCH} in one reply"))
        self._outgoing: list[bytes] = []
        self._errors = LastOutput()

    async def start(
        self, spec: AgentSpec, environment: Mapping[str, str], threads: int, imported_from: str | None
    ) -> None:
        """Start the process."""
        # Under another user than agenteval's, all user code has the same user. On a laptop, debuggers may attach.
        hidden = ("hidden",) if confinement().owner is not None else ()
        more = (f"from:{imported_from}",) if imported_from else ()
        argv = (self.interpreter, "-u", str(_SCRIPT), spec.directory, str(threads), *hidden, *more)
        self._child = await Child.start(argv, spec.directory, environment, self._lines.add, self._errors.add)
        self._watcher = asyncio.create_task(self._watch(self._child))

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.returncode is None

    @property
    def alive(self) -> bool:
        return self.running and not self._retired and not self._problem

    @property
    def killed(self) -> str:
        """How a signal that agenteval did not send ended the process; empty otherwise."""
        code = self._child.returncode if self._child is not None else None
        return f"the agent's process {ending(code)}" if code is not None and code < 0 and not self._problem else ""

    async def request(self, message: Mapping[str, Any]) -> Any:
        self._next_id += 1
        number = self._next_id
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        self._send(json.dumps({"id": number, **message}).encode() + b"\n")
        try:
            return await future
        finally:
            self._pending.pop(number, None)
            self._kill_if_done()

    def retire(self) -> None:
        self._retired = True
        self._kill_if_done()

    async def close(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        if self._child is not None:
            await self._child.close()

    def _kill_if_done(self) -> None:
        if self._retired and not self._pending and self._child is not None:
            self._child.end()

    def _send(self, line: bytes) -> None:
        """Queue a request; requests of the same loop iteration are written together."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(line)

    def _flush(self) -> None:
        lines, self._outgoing = self._outgoing, []
        if self._child is not None:
            self._child.write(b"".join(lines))

    def _deliver(self, line: bytes) -> None:
        try:
            reply = read_json(line)
            future = self._pending.get(reply["id"])
            failed, result = "error" in reply, reply.get("error", reply.get("value"))
            kind = str(reply.get("kind"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, AgentError) as error:
            self._break_off(f"sent a line that is not a reply ({error})")
            return
        if future is None or future.done():
            return
        if failed:
            future.set_exception(_CallError(str(result), kind))
        else:
            future.set_result(result)

    def _break_off(self, problem: str) -> None:
        self._problem = self._problem or problem
        if self._child is not None:
            self._child.kill()

    async def _watch(self, child: Child) -> None:
        await child.wait()
        await child.wait_for_output(LAST_WORDS_S)
        detail = self._errors.text()
        what = self._problem or ending(child.returncode)
        message = f"the agent's process {what}" + (f": {detail}" if detail else "")
        had_company = len(self._pending) > 1
        killed = not self._problem and (child.returncode or 0) < 0
        for future in list(self._pending.values()):
            if not future.done():
                future.set_exception(_WorkerDied(message, had_company=had_company, killed=killed))
        await child.close()
