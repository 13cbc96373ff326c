"""The environment that users' code gets: theirs, without what belongs to the runner or to agenteval."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase

from agenteval.agents.confinement import confinement
from agenteval.suite.document import looks_secret

# Inputs and state of the action; the runner's own services, OpenID Connect among them.
_PREFIXES = ("INPUT_", "STATE_", "ACTIONS_")
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

    Tokens and inputs of the action are left out, so that an agent under test cannot act as the workflow; where
    ``pass_env`` says which secrets reach users' code, the others are, too.

    Args:
        extra: variables that the agent's definition adds; they win.
        environment: what to start from; the process environment if not given.
    """
    source = os.environ if environment is None else environment
    hidden = _NAMES | (_JOB_PATHS if source.get("GITHUB_ACTIONS") == "true" else frozenset())
    kept = {name: value for name, value in source.items() if name not in hidden and not name.startswith(_PREFIXES)}
    rules = confinement()
    if rules.pass_env is not None:
        kept = {name: value for name, value in kept.items() if _may_pass(name, rules.pass_env)}
    return {**kept, **rules.variables, **(extra or {})}


def is_private(name: str) -> bool:
    """Whether a variable is the runner's own, or may hold a secret."""
    return name in _NAMES or name.startswith(_PREFIXES) or looks_secret(name)


def _may_pass(name: str, patterns: tuple[str, ...]) -> bool:
    return not looks_secret(name) or any(fnmatchcase(name, pattern) for pattern in patterns)
