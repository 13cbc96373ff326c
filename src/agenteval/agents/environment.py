"""The environment that users' code gets: theirs, without what belongs to the runner or to agenteval."""

from __future__ import annotations

import os
from collections.abc import Mapping

_PREFIXES = ("INPUT_", "ACTIONS_")
_NAMES = frozenset(
    {
        *("GITHUB_TOKEN", "GH_TOKEN"),
        # The files by which a step talks to the runner.
        *("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
    }
)
# Inside the action these come from the job and point at the host's files, not the container's.
_JOB_PATHS = frozenset({"PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD"})


def user_environment(
    extra: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables for a process that runs users' code.

    Tokens and inputs of the action are left out, so that an agent under test cannot act as the workflow.

    Args:
        extra: variables that the agent's definition adds; they win.
        environment: what to start from; the process environment if not given.
    """
    source = os.environ if environment is None else environment
    hidden = _NAMES | (_JOB_PATHS if source.get("GITHUB_ACTIONS") == "true" else frozenset())
    kept = {name: value for name, value in source.items() if name not in hidden and not name.startswith(_PREFIXES)}
    return {**kept, **(extra or {})}
