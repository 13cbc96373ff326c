"""Child processes in groups of their own, so that nothing they started outlives them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval.core.errors import ConfigError, agent_problem
from agenteval.core.process.confinement import launch
from agenteval.core.process.orphans import VARIABLE, end_orphans, new_token
from agenteval.core.process.process_groups import free_mark, kill_marked

# Of the error output, the last chunks are kept; a message shows the end of it.
STDERR_CHUNKS = 16
# After a program's end, so long (seconds) is waited for output that is still on its way.
LAST_WORDS_S = 1.0
_TAIL = 400
# What is asked to end has so long (seconds) before it is killed.
_GRACE_S = 1.0


def find_program(name: str, directory: str, path: str | None, where: str) -> str:
    """The program's file: looked up on PATH, or relative to a directory if the name has a slash.

    Raises:
        ConfigError: there is no such program, or it is not executable.
    """
    found = shutil.which(str(Path(directory) / name)) if "/" in name else shutil.which(name, path=path)
    if found is None:
        place = f"relative to {directory}" if "/" in name else "on PATH"
        raise ConfigError(
            agent_problem(where, f"the program {name!r} does not exist or is not executable (looked {place})")
        )
    return found


class Child(asyncio.SubprocessProtocol):
    """A running program.

    What it writes goes to callbacks, and its end is told by the program alone: something that it left in the
    background may keep the pipes open for as long as it likes.
    """

    def __init__(
        self, on_output: Callable[[bytes], None], on_errors: Callable[[bytes], None], mark: int | None = None
    ) -> None:
        loop = asyncio.get_running_loop()
        self._mark = mark
        self._receivers = {1: on_output, 2: on_errors}
        self._open = {1, 2}
        self._pipes_closed: asyncio.Future[None] = loop.create_future()
        self._exited: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        self._token = new_token() if mark is None else None
        self._last_resort: asyncio.TimerHandle | None = None

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        directory: str,
        environment: Mapping[str, str],
        on_output: Callable[[bytes], None],
        on_errors: Callable[[bytes], None],
    ) -> Child:
        """Start a program.

        Raises:
            OSError: it cannot be executed.
            ValueError: an argument or variable holds a character that no program can get.
        """
        started = launch(argv, environment)
        child = cls(on_output, on_errors, started.mark)
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                lambda: child,
                *started.argv,
                cwd=directory,
                env=child.marked(started.environment),
                start_new_session=True,
            )
        )
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # Given up half-way: asyncio would kill the program alone and wait for what that has started.
            await _end_once_started(starting)
            raise
        return child

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; ``None`` while it runs."""
        return self._transport.get_returncode() if self._transport else None

    def write(self, data: bytes) -> None:
        """Send to its standard input; lost if it does not read it."""
        pipe = self._stdin()
        if pipe is not None and not pipe.is_closing():
            pipe.write(data)

    def end_input(self) -> None:
        """Close its standard input once everything is sent."""
        pipe = self._stdin()
        if pipe is not None and not pipe.is_closing():
            pipe.write_eof()

    async def wait(self) -> None:
        """Until the program has ended."""
        await asyncio.shield(self._exited)

    async def finish(self, data: bytes = b"") -> None:
        """Wait for its end and for what it wrote; then nothing that it started is left, also when cancelled.

        Args:
            data: the last that it gets on its standard input.
        """
        try:
            self.write(data)
            self.end_input()
            await self.wait()
            # What it left in the background ends with it, and with that what keeps the output open.
            self.kill()
            await self.wait_for_output(LAST_WORDS_S)
        finally:
            await self.close()

    async def wait_for_output(self, seconds: float) -> None:
        """Until everything it wrote has arrived, or for so long."""
        await asyncio.wait([self._pipes_closed], timeout=seconds)

    def marked(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment by which what it leaves behind is known."""
        return dict(environment) if self._token is None else {**environment, VARIABLE: self._token}

    def end(self) -> None:
        """Ask it and everything it started to end, and kill what does not."""
        if self._last_resort is None:
            self._signal(signal.SIGTERM)
            self._last_resort = asyncio.get_running_loop().call_later(_GRACE_S, self.kill)

    def kill(self) -> None:
        """End it and everything it started, at once."""
        if self._transport is not None:
            self._signal(signal.SIGKILL)
            if self._mark is not None:
                kill_marked(self._mark, self._transport.get_pid())

    async def close(self) -> None:
        """End it and everything it started, and give back the pipes."""
        if self.returncode is None:
            self.end()
        try:
            await self.wait()
            self.kill()
            if self._token is not None and self._transport is not None:
                await end_orphans(self._token, self._transport.get_pid())
        finally:
            self.kill()
            if self._last_resort is not None:
                self._last_resort.cancel()
            if self._transport is not None:
                self._transport.close()
            if self._mark is not None:
                free_mark(self._mark)
                self._mark = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's: the program runs."""
        if isinstance(transport, asyncio.SubprocessTransport):
            self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Asyncio's: it wrote."""
        self._receivers[fd](data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Asyncio's: a pipe has no other end any more."""
        self._open.discard(fd)
        if not self._open and not self._pipes_closed.done():
            self._pipes_closed.set_result(None)

    def process_exited(self) -> None:
        """Asyncio's: it has ended."""
        if not self._exited.done():
            self._exited.set_result(None)

    def _signal(self, number: signal.Signals) -> None:
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), number)

    def _stdin(self) -> asyncio.WriteTransport | None:
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        return pipe if isinstance(pipe, asyncio.WriteTransport) else None


async def _end_once_started(starting: asyncio.Future[tuple[Any, Child]]) -> None:
    while not starting.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([starting])
    if not starting.cancelled() and starting.exception() is None:
        _, child = starting.result()
        await child.close()


def tail(output: bytes) -> str:
    """The end of a program's error output, for a message."""
    text = " ".join(output[-4 * _TAIL :].decode("utf-8", "replace").split())
    return text if len(text) <= _TAIL else "…" + text[-_TAIL:]


def ending(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None:
        return "is still running"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit status {code}"
