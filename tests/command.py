"""Runs agenteval's installed command in processes that need not import agenteval again."""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests import command_server

# The copy of a process has what the copied process read from these at its start.
_READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "TZ", "MALLOC_")


def can_copy(environment: Mapping[str, str]) -> bool:
    """Return whether the copy of a process is as good as a new process with this environment."""
    return read_at_start(environment) == _STARTED_WITH


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Python and the C library read when a process starts."""
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def run_copy(
    program: str, arguments: Sequence[str], directory: Path, environment: Mapping[str, str], patience_s: float
) -> tuple[int, str, str]:
    """Run a Python program in a copy of a process that has imported agenteval, until it ends.

    Returns:
        The exit status, standard output and standard error.
    """
    asked, theirs = socket.socketpair()
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    with theirs:
        socket.send_fds(_server(), [b"\n"], [nothing, out_end, err_end, theirs.fileno()])
    for end in (nothing, out_end, err_end):
        os.close(end)
    command = {
        "program": program,
        "arguments": list(arguments),
        "directory": str(directory),
        "environment": dict(environment),
    }
    with asked, ThreadPoolExecutor(2) as readers:
        texts = [readers.submit(_read, end) for end in (out, err)]
        asked.sendall(json.dumps(command).encode())
        asked.shutdown(socket.SHUT_WR)
        with asked.makefile("r") as said:
            process = int(said.readline())
            try:
                asked.settimeout(patience_s)
                status = int(said.readline())
                return status, texts[0].result(patience_s), texts[1].result(patience_s)
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                raise


def _read(end: int) -> str:
    with os.fdopen(end, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()


_STARTED_WITH = read_at_start(os.environ)


@functools.cache
def _server() -> socket.socket:
    """Start the process that is copied; it ends with this one."""
    ours, theirs = socket.socketpair()
    with theirs:
        started = subprocess.Popen(
            [sys.executable, command_server.__file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=os.environ | _STARTED_WITH,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        started.wait()

    atexit.register(end)
    return ours
