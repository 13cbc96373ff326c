"""Inputs of action.yml, and the caches of a step."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.core.files import also_inside, outside_problem
from agenteval.core.llm.gateway import CACHE_DIRECTORY, default_directory, files_directory
from agenteval.core.shared_files import CACHE_KEY, Seal, key_problem, sealed
from agenteval.core.start import RENAMED
from agenteval.core.text import choices
from agenteval.core.writing import give_to_owner, make_directory, write_file
from agenteval.gate.verdict import FailOn, parse_fail_on
from agenteval.github.baseline_search import OnMissing
from agenteval.github.publisher import CommentMode
from agenteval.github.runner import say
from agenteval.run.config import Settings
from agenteval.run.shard import Shard
from agenteval.suite.model import MOST

# Inputs of action.yml, in the variables ``INPUT_`` plus the name in upper case.
#
# The runner keeps hyphens in the names for the container. native/action.yml uses underscores, because its steps run
# in a shell.


Mode = Literal["run", "gate", "publish"]
#: Who accepts the results of a fork's job: a label of the pull request, or the reviewers of the job's environment.
ForkResults = Literal["label", "accepted"]

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "mode": ("run", "gate", "publish"),
    "comment": ("always", "changes", "failures", "never"),
    "on-missing-baseline": ("pass", "warn", "fail"),
    "annotations": ("true", "false"),
    "fork-results": ("label", "accepted"),
}
_DEFAULTS = {
    "mode": "run",
    "baseline": "auto",
    "baseline-artifact": "agenteval",
    "comment": "always",
    "on-missing-baseline": "warn",
    "annotations": "true",
    "fork-results": "label",
    "report-dir": "agenteval-report",
}

_DIGITS = 15


def given_text(environment: Mapping[str, str], name: str) -> str:
    """Return the text of an input, or its default."""
    given = (environment.get(variable, "").strip() for variable in variables_of(name))
    return next(filter(None, given), _DEFAULTS.get(name, ""))


@dataclass(frozen=True)
class Inputs:
    """Inputs of the action; an empty input means agenteval's default."""

    mode: Mode = "run"
    suites: tuple[str, ...] = ()
    config: str = ""
    working_directory: str = ""
    setup: str = ""
    github_token: str = field(default="", repr=False)
    baseline: str = "auto"
    baseline_artifact: str = "agenteval"
    baseline_branch: str = ""
    on_missing_baseline: OnMissing = "warn"
    fail_on: frozenset[FailOn] | None = None
    iterations: int | None = None
    runs: int = 1
    concurrency: int | None = None
    filter: str = ""
    shard: Shard | None = None
    max_llm_calls: int | None = None
    max_cost_usd: float | None = None
    cache_key: str = field(default="", repr=False)
    cache_dir: str = ""
    comment: CommentMode = "always"
    comment_id: str = ""
    check_name: str = ""
    fork_results: ForkResults = "label"
    annotations: bool = True
    report_dir: str = "agenteval-report"
    comment_template: str = ""
    summary_template: str = ""
    matrix: str = ""
    check_run_id: str = ""

    @property
    def baseline_is_searched(self) -> bool:
        """Return whether the baseline is an artifact, of the base branch or of a given run."""
        return self.baseline == "auto" or self.baseline.isdigit()

    def settings(self) -> Settings:
        """Return the settings of a run in the current directory."""
        path = self._baseline_path()
        return Settings(
            suites=tuple(Path(suite) for suite in self.suites),
            config=Path(self.config) if self.config else None,
            baseline=path if path is not None and path.exists() else None,
            out=Path(self.report_dir),
            iterations=self.iterations,
            concurrency=self.concurrency,
            filter=self.filter or None,
            shard=self.shard,
            fail_on=self.fail_on,
            needs_baseline=self._needs_baseline,
            max_llm_calls=self.max_llm_calls,
            max_cost_usd=self.max_cost_usd,
            **self._templates(),
        )

    def settings_of_reports(self) -> Settings:
        """Return the settings for saved results."""
        config = Path(self.config) if self.config else None
        return Settings(config=config, fail_on=self.fail_on, needs_baseline=self._needs_baseline, **self._templates())

    @property
    def _needs_baseline(self) -> bool:
        return self.on_missing_baseline == "fail" and self.baseline != "none"

    def _templates(self) -> dict[str, Any]:
        named = {"comment_template": self.comment_template, "summary_template": self.summary_template}
        return {name: Path(path) for name, path in named.items() if path}

    @property
    def missing_baseline(self) -> Path | None:
        """Return the file of the baseline if it does not exist; ``None`` if it does, or none is named."""
        path = self._baseline_path()
        return path if path is not None and not path.exists() else None

    def _baseline_path(self) -> Path | None:
        """Return the baseline file; ``None`` if there is to be no baseline, or one of a workflow run."""
        return None if self.baseline == "none" or self.baseline_is_searched else Path(self.baseline)


def variables_of(name: str) -> tuple[str, str]:
    """Return the variables of an input: with hyphens, and with underscores."""
    variable = f"INPUT_{name.upper()}"
    return variable, variable.replace("-", "_")


def read_inputs(environment: Mapping[str, str]) -> Inputs:
    """Read and check every input.

    Raises:
        ConfigError: with every invalid input.
    """
    reader = _InputReader(environment)
    inputs = reader.read()
    if reader.problems:
        raise ConfigError(reader.problems)
    return inputs


class _InputReader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.problems: list[Problem] = []

    def read(self) -> Inputs:
        return Inputs(
            mode=self._choice("mode"),
            suites=self._suites(),
            config=self._text("config"),
            working_directory=self._text("working-directory"),
            setup=self._text("setup"),
            github_token=self._text("github-token"),
            baseline=self._text("baseline"),
            baseline_artifact=self._text("baseline-artifact"),
            baseline_branch=self._text("baseline-branch").removeprefix("refs/heads/"),
            on_missing_baseline=self._choice("on-missing-baseline"),
            fail_on=self._fail_on(),
            iterations=self._times("iterations"),
            runs=self._times("runs") or 1,
            concurrency=self._times("concurrency"),
            filter=self._text("filter"),
            shard=self._shard(),
            max_llm_calls=self._whole_number("max-llm-calls", least=0),
            max_cost_usd=self._amount("max-cost-usd"),
            cache_key=self._cache_key(),
            cache_dir=self._text("cache-dir"),
            comment=self._choice("comment"),
            comment_id=self._text("comment-id"),
            check_name=self._text("check-name"),
            fork_results=self._choice("fork-results"),
            annotations=self._choice("annotations") == "true",
            report_dir=self._text("report-dir"),
            comment_template=self._text("comment-template"),
            summary_template=self._text("summary-template"),
            matrix=self._text("matrix"),
            check_run_id=self._text("check-run-id"),
        )

    def _text(self, name: str) -> str:
        return given_text(self._environment, name)

    def _cache_key(self) -> str:
        """Return the input; without it, the variable that other ways of running agenteval read."""
        name = "cache-key" if self._text("cache-key") else CACHE_KEY
        key = self._text("cache-key") or self._environment.get(CACHE_KEY, "").strip()
        problem = key_problem(key)
        if problem:
            self._wrong(name, problem)
        return key

    def _suites(self) -> tuple[str, ...]:
        try:
            return tuple(shlex.split(self._text("suite")))
        except ValueError as error:
            self._wrong("suite", f"a quote is not closed: {error}")
            return ()

    def _choice(self, name: str) -> Any:
        value = self._text(name)
        value = RENAMED.get(name, {}).get(value, value)
        allowed = _CHOICES[name]
        if value not in allowed:
            self._wrong(name, f"{value!r} is not allowed{choices(value, allowed)}")
        return value

    def _shard(self) -> Shard | None:
        text = self._text("shard")
        try:
            return Shard.parse(text) if text else None
        except ValueError as error:
            self._wrong("shard", str(error))
            return None

    def _fail_on(self) -> frozenset[FailOn] | None:
        text = self._text("fail-on")
        try:
            return parse_fail_on(text) if text else None
        except ValueError as error:
            self._wrong("fail-on", str(error))
            return None

    def _whole_number(self, name: str, least: int = 1) -> int | None:
        text = self._text(name)
        if not text:
            return None
        # Python refuses numbers with thousands of digits.
        if text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) >= least:
            return int(text)
        self._wrong(name, f"{text!r} is not a whole number from {least}")
        return None

    def _times(self, name: str) -> int | None:
        """Return how often, or how many at the same time."""
        number = self._whole_number(name)
        if number is not None and number > MOST:
            self._wrong(name, f"{number:,} is more than {MOST:,}")
        return number

    def _amount(self, name: str) -> float | None:
        text = self._text(name)
        if not text:
            return None
        try:
            amount = float(text)
        except ValueError:
            amount = -1.0
        if 0 <= amount < float("inf"):
            return amount
        self._wrong(name, f"{text!r} is not an amount in US dollars")
        return None

    def _wrong(self, name: str, message: str) -> None:
        self.problems.append(Problem(message, path=f"input {name}", kind=Kind.GITHUB))


@contextmanager
def step_caches(inputs: Inputs, workspace: Path) -> Iterator[None]:
    """Use the caches of a step inside the block, and believe only entries of runs with the same key.

    Without a key, only entries of this run are believed. The key is not in the environment inside the block, where
    suites and user code could get it.

    Args:
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
