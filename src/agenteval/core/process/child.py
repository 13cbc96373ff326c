"""Child processes in separate process groups, so that none of their descendants outlives them."""

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

# Number of chunks of error output to keep; messages show the end of it.
STDERR_CHUNKS = 16
# Time in seconds to wait for pending output after a program has ended.
LAST_WORDS_S = 1.0
_TAIL = 400
# Time in seconds between SIGTERM and SIGKILL.
_GRACE_S = 1.0


def find_program(name: str, directory: str, path: str | None, where: str) -> str:
    """Return a program's file, looked up on PATH, or relative to a directory if the name contains a slash.

    Raises:
        ConfigError: the program does not exist or is not executable.
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

    Callbacks receive its output. The child has ended when the program has ended: background processes may keep the
    pipes open for longer.
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
            OSError: the program cannot be executed.
            ValueError: an argument or variable contains a character that the system does not allow.
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
            # On cancellation asyncio would kill only the program, and wait for its descendants.
            await _end_once_started(starting)
            raise
        return child

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; ``None`` while it runs."""
        return self._transport.get_returncode() if self._transport else None

    def write(self, data: bytes) -> None:
        """Write to the standard input; the data is lost if the program does not read it."""
        pipe = self._stdin()
        if pipe is not None and not pipe.is_closing():
            pipe.write(data)

    def end_input(self) -> None:
        """Close the standard input after all data is sent."""
        pipe = self._stdin()
        if pipe is not None and not pipe.is_closing():
            pipe.write_eof()

    async def wait(self) -> None:
        """Wait until the program has ended."""
        await asyncio.shield(self._exited)

    async def finish(self, data: bytes = b"") -> None:
        """Wait for the program's end and its output, then end all its descendants, also on cancellation.

        Args:
            data: written to the standard input before it is closed.
        """
        try:
            self.write(data)
            self.end_input()
            await self.wait()
            # Background processes are killed, since they keep the output open.
            self.kill()
            await self.wait_for_output(LAST_WORDS_S)
        finally:
            await self.close()

    async def wait_for_output(self, seconds: float) -> None:
        """Wait until all output has arrived, at most for some seconds."""
        await asyncio.wait([self._pipes_closed], timeout=seconds)

    def marked(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with the variable that identifies the program's descendants."""
        return dict(environment) if self._token is None else {**environment, VARIABLE: self._token}

    def end(self) -> None:
        """Send SIGTERM to the process group, and SIGKILL one second later."""
        if self._last_resort is None:
            self._signal(signal.SIGTERM)
            self._last_resort = asyncio.get_running_loop().call_later(_GRACE_S, self.kill)

    def kill(self) -> None:
        """Kill the program and its descendants."""
        if self._transport is not None:
            self._signal(signal.SIGKILL)
            if self._mark is not None:
                kill_marked(self._mark, self._transport.get_pid())

    async def close(self) -> None:
        """End the program and its descendants, and close the pipes."""
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
        """Called by asyncio: the program runs."""
        if isinstance(transport, asyncio.SubprocessTransport):
            self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Called by asyncio: the program wrote."""
        self._receivers[fd](data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Called by asyncio: the other end of a pipe was closed."""
        self._open.discard(fd)
        if not self._open and not self._pipes_closed.done():
            self._pipes_closed.set_result(None)

    def process_exited(self) -> None:
        """Called by asyncio: the program has ended."""
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
    """Return the end of a program's error output, in one line."""
    text = " ".join(output[-4 * _TAIL :].decode("utf-8", "replace").split())
    return text if len(text) <= _TAIL else "…" + text[-_TAIL:]


def ending(code: int | None) -> str:
    """Return an exit status in words."""
    if code is None:
        return "is still running"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit status {code}"
