"""Runs short programs on files that user code can write, with the rights of user code."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from agenteval.core.process.confinement import confined, launch, user_environment
from agenteval.core.process.process_groups import free_mark, kill_marked


def run_confined(
    argv: Sequence[str], directory: Path, timeout_s: float, errors: str = "strict"
) -> subprocess.CompletedProcess[str]:
    """Run a program as the user of user code, without its resource limits.

    A repository's configuration can make git run programs; they must not have more rights than an agent.

    Args:
        argv: the program and its arguments.
        directory: the working directory.
        timeout_s: time limit in seconds; the program is killed at the limit.
        errors: the handling of output that is not UTF-8, as in ``bytes.decode``.

    Raises:
        OSError: the program cannot be started.
        subprocess.TimeoutExpired: the program took too long.
    """
    with confined(memory_mb=None, cpu_s=None):
        started = launch(argv, user_environment())
    try:
        return subprocess.run(
            started.argv,
            cwd=directory,
            env=dict(started.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors=errors,
            timeout=timeout_s,
            check=False,
        )
    finally:
        if started.mark is not None:
            kill_marked(started.mark, None)
            free_mark(started.mark)
