"""Child processes in separate process groups, so that none of their descendants outlives them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval.core.confine import launch
from agenteval.core.errors import ConfigError, agent_problem
from agenteval.core.process_groups import VARIABLE, end_orphans, new_token
from agenteval.core.secrets import redactor

_KEPT = 64 * 1024

_SHOWN = 400


class LastOutput:
    """Keeps the end of an output, however it is divided into pieces."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._is_cut = False

    def add(self, data: bytes) -> None:
        """Add the next piece."""
        self._data += data
        if len(self._data) > 2 * _KEPT:
            del self._data[:-_KEPT]
            self._is_cut = True

    def text(self) -> str:
        """Return the end of the output as one line without secrets."""
        text, redact = self._data.decode("utf-8", "replace"), redactor()
        if self._is_cut:
            text = text[redact.remains(text) :]
        line = " ".join(redact(text).split())
        return line if len(line) <= _SHOWN else "…" + line[-_SHOWN:]


# Time in seconds to wait for pending output after a program has ended: its background processes may still write some.
LAST_WORDS_S = 1.0
# Time in seconds for the errors of a program that has ended, before a background process must be keeping them open.
_ARRIVAL_S = 0.02
# Time in seconds between SIGTERM and SIGKILL.
_GRACE_S = 1.0


def find_program(name: str, directory: str, path: str | None, where: str) -> str:
    """Return a program's file, looked up on PATH, or relative to a directory if the name contains a slash."""
    found = shutil.which(str(Path(directory) / name)) if "/" in name else shutil.which(name, path=path)
    if found is None:
        place = f"relative to {directory}" if "/" in name else "on PATH"
        raise ConfigError(
            agent_problem(where, f"the program {name!r} does not exist or is not executable (looked {place})")
        )
    return found


class Child(asyncio.SubprocessProtocol):
    """A running program.

    Callbacks receive its output, and an empty piece at the end of each output. The child has ended when the program
    has ended; background processes may keep the pipes open for longer.

    Attributes:
        was_cut_off: whether background processes could have written more when they were ended.
    """

    was_cut_off = False

    def __init__(self, on_output: Callable[[bytes], None], on_errors: Callable[[bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        self._receivers = {1: on_output, 2: on_errors}
        self._open = {1, 2}
        self._output_closed: asyncio.Future[None] = loop.create_future()
        self._pipes_closed: asyncio.Future[None] = loop.create_future()
        self._exited: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        self._token = new_token()
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
        started = launch(argv, environment, directory)
        child = cls(on_output, on_errors)
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                lambda: child,
                *started.argv,
                cwd=directory,
                env={**started.environment, VARIABLE: child._token},
                start_new_session=True,
            )
        )
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # On cancellation asyncio would kill only the program, and would wait for its descendants.
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

    def pause_output(self) -> None:
        """Read no more of the standard output; the program waits when the pipe is full."""
        pipe = self._stdout()
        if pipe is not None and not pipe.is_closing():
            pipe.pause_reading()

    def resume_output(self) -> None:
        """Read the standard output again."""
        pipe = self._stdout()
        if pipe is not None and not pipe.is_closing():
            pipe.resume_reading()

    async def wait(self) -> None:
        """Wait until the program has ended."""
        await asyncio.shield(self._exited)

    async def finish(self, data: bytes = b"") -> None:
        """Wait for the program's end and its output, then end all its descendants, also on cancellation."""
        try:
            self.write(data)
            self.end_input()
            await self.wait()
            await asyncio.wait([self._output_closed], timeout=LAST_WORDS_S)
            await self.wait_for_output(_ARRIVAL_S)
            if self._open:
                # Background processes keep the pipes open, so they are killed.
                self.was_cut_off = 1 in self._open
                self.kill()
                await self._end_orphans()
                await self.wait_for_output(LAST_WORDS_S)
        finally:
            await self.close()

    async def wait_for_output(self, seconds: float) -> None:
        """Wait until all output has arrived, at most for some seconds."""
        await asyncio.wait([self._pipes_closed], timeout=seconds)

    def end(self) -> None:
        """Send SIGTERM to the process group, and SIGKILL one second later."""
        if self._last_resort is None:
            self._signal(signal.SIGTERM)
            self._last_resort = asyncio.get_running_loop().call_later(_GRACE_S, self.kill)

    def kill(self) -> None:
        """Kill the program and its process group, without waiting for their end."""
        self._signal(signal.SIGKILL)

    async def close(self) -> None:
        """End the program and its descendants, and close the pipes, also on further cancellations."""
        if self.returncode is None:
            self.end()
        try:
            await self.wait()
        finally:
            self.kill()
            try:
                await _finished(self._end_orphans())
            finally:
                if self._last_resort is not None:
                    self._last_resort.cancel()
                if self._transport is not None:
                    self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle asyncio's event: the program has started."""
        if isinstance(transport, asyncio.SubprocessTransport):
            self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Handle asyncio's event: the program has written output."""
        self._receivers[fd](data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Handle asyncio's event: the other end of a pipe was closed."""
        if fd in self._open:
            self._open.discard(fd)
            self._receivers[fd](b"")
        if fd == 1 and not self._output_closed.done():
            self._output_closed.set_result(None)
        if not self._open and not self._pipes_closed.done():
            self._pipes_closed.set_result(None)

    def process_exited(self) -> None:
        """Handle asyncio's event: the program has ended."""
        if not self._exited.done():
            self._exited.set_result(None)

    async def _end_orphans(self) -> None:
        if self._transport is not None:
            await asyncio.wait([self._exited], timeout=LAST_WORDS_S)
            await end_orphans(self._token, self._transport.get_pid())

    def _signal(self, number: signal.Signals) -> None:
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), number)

    def _stdin(self) -> asyncio.WriteTransport | None:
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        return pipe if isinstance(pipe, asyncio.WriteTransport) else None

    def _stdout(self) -> asyncio.ReadTransport | None:
        pipe = self._transport.get_pipe_transport(1) if self._transport else None
        return pipe if isinstance(pipe, asyncio.ReadTransport) else None


async def _end_once_started(starting: asyncio.Future[tuple[Any, Child]]) -> None:
    await _done(starting)
    if not starting.cancelled() and starting.exception() is None:
        _, child = starting.result()
        await child.close()


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """Finish work before a cancellation takes effect."""
    task = asyncio.ensure_future(work)
    if await _done(task):
        raise asyncio.CancelledError
    await task


async def _done(future: asyncio.Future[Any]) -> bool:
    """Wait for a future, whatever is cancelled meanwhile; return whether that was asked."""
    was_cancelled = False
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            was_cancelled = True
    return was_cancelled


def ending(code: int | None) -> str:
    """Return an exit status in words."""
    if code is None:
        return "is still running"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit status {code}"
