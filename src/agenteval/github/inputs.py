"""Inputs of action.yml, and the caches of a step."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.files import also_inside, outside_problem
from agenteval.core.llm.gateway import CACHE_DIRECTORY, default_directory, files_directory
from agenteval.core.records import dataclass, field, replace
from agenteval.core.shared_files import CACHE_KEY, key_problem
from agenteval.core.text import choices
from agenteval.core.writing import give_to_owner, make_directory, write_file
from agenteval.gate.verdict import FailOn
from agenteval.github.publisher import CommentMode
from agenteval.github.runner import say
from agenteval.run.config import Settings
from agenteval.run.config_file import names_elsewhere, place_of
from agenteval.run.options import ENGINES, INPUTS, read_shard
from agenteval.run.plan import Shard


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the inputs of the action say, and their defaults; the table of options has one for each attribute."""

    mode: Literal["run", "gate", "prove", "publish"]
    suites: tuple[Path, ...] = ()
    config: Path | None = None
    working_directory: str = ""
    setup: str = ""
    github_token: str = field(default="", repr=False)
    baseline: str
    baseline_artifact: str
    fail_on: frozenset[FailOn] | None = None
    runs: int
    shard: Shard | None = None
    cache_key: str = field(default="", repr=False)
    cache_dir: str = ""
    comment: CommentMode
    comment_id: str = ""
    check_name: str = ""
    fork_results: Literal["label", "accepted"]
    out: Path
    job: tuple[Any, ...] = (None, None, None)

    @property
    def baseline_is_searched(self) -> bool:
        """Return whether the baseline is an artifact, of the base branch or of a given run."""
        return self.baseline == "auto" or self.baseline.isdigit()

    def settings(self) -> Settings:
        """Return the settings of a run in the current directory."""
        path = self._baseline_path()
        return replace(
            self.settings_of_reports(),
            suites=self.suites,
            baseline=path if path is not None and path.exists() else None,
            out=self.out,
            shard=self.shard,
        )

    def settings_of_reports(self) -> Settings:
        """Return the settings for saved results."""
        return Settings(config=self.config, fail_on=self.fail_on, wants_baseline=self.baseline != "none")

    @property
    def missing_baseline(self) -> Path | None:
        """Return the file of the baseline if it does not exist; ``None`` if it does, or none is named."""
        path = self._baseline_path()
        return path if path is not None and not path.exists() else None

    def _baseline_path(self) -> Path | None:
        """Return the baseline file; ``None`` if there is to be no baseline, or one of a workflow run."""
        return None if self.baseline == "none" or self.baseline_is_searched else Path(self.baseline)


def variables_of(name: str) -> tuple[str, str]:
    """Return the variables of an input: with hyphens, and with underscores.

    The runner keeps hyphens in the names for the container. native/action.yml uses underscores, because its steps run
    in a shell.
    """
    variable = f"INPUT_{name.upper()}"
    return variable, variable.replace("-", "_")


def given_text(environment: Mapping[str, str], name: str) -> str:
    """Return the text of an input, or its default."""
    given = (environment.get(variable, "").strip() for variable in variables_of(name))
    default = INPUTS[name].action_default if name in INPUTS else ""
    # The runner replaces expressions.
    return next(filter(None, given), "" if "${{" in default else default)


def read_inputs(environment: Mapping[str, str]) -> Inputs:
    """Read and check every input."""
    values: dict[str, Any] = {}
    problems: list[Problem] = []

    def wrong(name: str, message: str) -> None:
        problems.append(Problem(message, path=f"input {name}", kind=Kind.GITHUB))

    for name, option in INPUTS.items():
        text = given_text(environment, name)
        if option.choices and text not in option.choices:
            wrong(name, f"{text!r} is not allowed{choices(text, option.choices)}")
        elif text:
            try:
                values[option.name] = (
                    read_shard(text, _with_strategy(environment)) if name == "shard" else option.read(text)
                )
            except ValueError as error:
                wrong(name, str(error))
    for name in sorted(names_elsewhere() - INPUTS.keys()):
        if given_text(environment, name):
            wrong(name, f"there is no such input; {place_of(name)}")
    # Other ways of running agenteval have this variable.
    values.setdefault("cache_key", environment.get(CACHE_KEY, "").strip())
    if problem := key_problem(values["cache_key"]):
        wrong("cache-key" if given_text(environment, "cache-key") else CACHE_KEY, problem)
    if problems:
        raise ConfigError(problems)
    return Inputs(**values)


def _with_strategy(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables with the place of the job in its matrix."""
    with contextlib.suppress(ValueError):
        _, _, strategy = INPUTS["job"].read(given_text(environment, "job"))
        if isinstance(strategy, dict):
            index, total, *_ = ENGINES["GitHub"]
            places = {index: strategy.get("job-index", ""), total: strategy.get("job-total", "")}
            return {**{name: str(place) for name, place in places.items()}, **environment}
    return environment


@contextmanager
def step_caches(inputs: Inputs, workspace: Path) -> Iterator[None]:
    """Use the caches of a step inside the block, and believe only entries of runs with the same key.

    Without a key, only entries of this run are believed. Neither suites nor user code get the variable.

    Args:
        workspace: the directory that a relative path of ``cache-dir`` starts from.
    """
    key = inputs.cache_key
    names = {CACHE_KEY, *variables_of("cache-key"), CACHE_DIRECTORY}
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    directory = _directory(inputs, workspace) or before.get(CACHE_DIRECTORY)
    if directory:
        os.environ[CACHE_DIRECTORY] = directory
    # Without a key one that no other process has.
    os.environ[CACHE_KEY] = key or secrets.token_hex(32)
    try:
        with also_inside(default_directory()), also_inside(files_directory()):
            yield
    finally:
        os.environ.pop(CACHE_DIRECTORY, None)
        os.environ.pop(CACHE_KEY, None)
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
