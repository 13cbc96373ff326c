"""The caches of a step: where they are, and which of their entries are believed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agenteval.ci.github.action.inputs import Inputs, variables_of
from agenteval.ci.github.action.outputs import say
from agenteval.core.authentic import CACHE_KEY, Seal, sealed
from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.files.boundary import also_inside, outside_problem
from agenteval.core.files.writing import give_to_owner, make_directory, write_file
from agenteval.core.llm.cache import CACHE_DIRECTORY, default_directory, files_directory


@contextmanager
def step_caches(inputs: Inputs, workspace: Path) -> Iterator[None]:
    """Use the caches of a step inside the block, and believe only entries of runs with the same key.

    Without a key, only entries of this run are believed. The key is not in the environment inside the block, where
    suites and user code could get it.

    Args:
        inputs: the inputs of the action.
        workspace: the directory that a relative path of ``cache-dir`` starts from.

    Raises:
        ConfigError: the directory is outside of the workspace.
    """
    key = inputs.cache_key
    names = {CACHE_KEY, *variables_of("cache-key"), CACHE_DIRECTORY}
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    directory = _directory(inputs, workspace) or before.get(CACHE_DIRECTORY)
    if directory:
        os.environ[CACHE_DIRECTORY] = directory
    try:
        with (
            sealed(Seal(key) if key else Seal.random()),
            also_inside(default_directory()),
            also_inside(files_directory()),
        ):
            yield
    finally:
        os.environ.pop(CACHE_DIRECTORY, None)
        os.environ.update(before)


def _directory(inputs: Inputs, workspace: Path) -> str:
    if not inputs.cache_dir:
        return ""
    directory = workspace / inputs.cache_dir
    if problem := outside_problem(directory):
        raise ConfigError(Problem(problem, path="input cache-dir", kind=Kind.GITHUB))
    if not inputs.cache_key:
        say("agenteval: cache-dir without cache-key: replies of earlier runs are not used; set cache-key")
    _hide_from_git(directory)
    return str(directory)


def _hide_from_git(directory: Path) -> None:
    """Write a .gitignore: new files of the workspace would make an attempt another one."""
    with contextlib.suppress(OSError, AgentEvalError):
        if not (directory / ".gitignore").exists():
            make_directory(directory)
            write_file(directory, ".gitignore", ["*\n"])
            give_to_owner(directory)
