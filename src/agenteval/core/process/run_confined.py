"""Runs short programs on files that user code can write, as the user of user code."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from agenteval.core.process.confinement import confined, launch, user_environment
from agenteval.core.process.lines import MOST_BYTES, WROTE_TOO_MUCH
from agenteval.core.process.process_groups import end_marked

_PIECE = 2**16


def run_confined(
    argv: Sequence[str],
    directory: Path,
    timeout_s: float,
    errors: str = "strict",
    stdin: IO[bytes] | int = subprocess.DEVNULL,
) -> subprocess.CompletedProcess[str]:
    """Run a program as the user of user code, and return its output as text; see ``run_confined_bytes``.

    Args:
        argv: the program and its arguments.
        directory: the working directory.
        timeout_s: time limit in seconds; the program is killed at the limit.
        errors: the handling of output that is not UTF-8, as in ``bytes.decode``.
        stdin: the standard input, an open file; by default empty.

    Raises:
        OSError: the program cannot be started, or writes too much.
        subprocess.TimeoutExpired: the program exceeded the time limit.
    """
    done = run_confined_bytes(argv, directory, timeout_s, stdin)
    output, said = (
        text.decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n") for text in (done.stdout, done.stderr)
    )
    return subprocess.CompletedProcess(done.args, done.returncode, output, said)


def run_confined_bytes(
    argv: Sequence[str],
    directory: Path,
    timeout_s: float,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program as the user of user code, without its resource limits.

    A repository's configuration can make git run programs; they must not have more rights than the agent.

    Args:
        argv: the program and its arguments.
        directory: the working directory.
        timeout_s: time limit in seconds; the program is killed at the limit.
        stdin: the standard input, an open file; by default empty.
        environment: all environment variables; by default those of user code.

    Raises:
        OSError: the program cannot be started, or writes too much.
        subprocess.TimeoutExpired: the program exceeded the time limit.
    """
    with confined(memory_mb=None, cpu_s=None):
        started = launch(argv, user_environment() if environment is None else environment, directory)
    try:
        process = subprocess.Popen(
            started.argv,
            cwd=directory,
            env=dict(started.environment),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        output, said = _outputs(process, timeout_s)
    finally:
        if started.mark is not None:
            end_marked(started.mark, None)
    if len(output) > MOST_BYTES or len(said) > MOST_BYTES:
        raise OSError(f"{Path(argv[0]).name} {WROTE_TOO_MUCH}")
    return subprocess.CompletedProcess(started.argv, process.returncode, output, said)


def _outputs(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bytes]:
    """Return what a program writes until it ends, its errors apart; the beginning if it writes too much."""
    output, said = bytearray(), bytearray()
    # A descendant can keep the pipes open for ever.
    threads = [
        threading.Thread(target=_read, args=(process, pipe, into), daemon=True)
        for pipe, into in ((process.stdout, output), (process.stderr, said))
    ]
    end = time.monotonic() + timeout_s
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            raise subprocess.TimeoutExpired(process.args, timeout_s)
        process.wait(max(0.0, end - time.monotonic()))
        return bytes(output), bytes(said)
    finally:
        process.kill()
        process.wait()


def _read(process: subprocess.Popen[bytes], pipe: IO[bytes], into: bytearray) -> None:
    """Read a pipe to its end, and end the program if it writes too much."""
    with pipe:
        while len(into) <= MOST_BYTES and (piece := pipe.read(_PIECE)):
            into += piece
    if len(into) > MOST_BYTES:
        process.kill()
