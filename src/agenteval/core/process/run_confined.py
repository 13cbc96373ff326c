"""Runs short programs that read what users' code can write, with no more rights than that has."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from agenteval.core.process.confinement import confined, launch, user_environment
from agenteval.core.process.process_groups import free_mark, kill_marked


def run_confined(
    argv: Sequence[str], directory: Path, timeout_s: float, errors: str = "strict"
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, as whom users' code runs, without its limits.

    A repository's configuration names programs for git to run; they must not get more than an agent.

    Args:
        argv: the program and its arguments.
        directory: where it runs.
        timeout_s: when it is killed.
        errors: what becomes of output that is not UTF-8, as for ``bytes.decode``.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it took too long.
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
