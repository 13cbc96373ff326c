"""What the user of user code may enter and execute."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from agenteval.core.errors import UserCodeError, agent_problem
from agenteval.core.process.confinement import owner_in
from agenteval.core.process.run_confined import run_confined

_ENTERS, _EXECUTES = 41, 42
_SCRIPT = f'[ -x "$1" ] || exit {_ENTERS}; [ -x "$2" ] || exit {_EXECUTES}'
_TIMEOUT_S = 10.0


def check_access(program: str, directory: str, where: str) -> None:
    """Check that the user of user code can start a program in a directory.

    Args:
        program: the program's file.
        directory: its working directory.
        where: ``file:line`` of the definition, for messages.

    Raises:
        UserCodeError: the user has no right to do so.
    """
    owner = owner_in(Path(directory))
    refused = _refused_to_this_user(program, directory) if owner is None else _refused(program, directory)
    if not refused:
        return
    user = f"user {os.geteuid() if owner is None else owner.uid}"
    if refused == _ENTERS:
        advice = "give the user the right to enter it and the directories above it (chmod a+x)"
        raise UserCodeError(agent_problem(where, f"{user} cannot enter {directory}; {advice}"))
    advice = "give the user the right to execute it and to enter the directories above it (chmod a+x)"
    raise UserCodeError(agent_problem(where, f"{user} cannot execute {program}; {advice}, or name another program"))


def _refused_to_this_user(program: str, directory: str) -> int:
    if not os.access(directory, os.X_OK):
        return _ENTERS
    return 0 if os.access(program, os.X_OK) else _EXECUTES


def _refused(program: str, directory: str) -> int:
    argv = ("/bin/sh", "-c", _SCRIPT, "sh", directory, program)
    try:
        return run_confined(argv, Path(directory), _TIMEOUT_S, errors="replace").returncode
    except (OSError, subprocess.TimeoutExpired):
        # The start of the program will report the error.
        return 0
