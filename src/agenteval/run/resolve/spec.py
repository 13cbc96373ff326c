"""Reads everything that a run needs before its first case, and names every mistake at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from agenteval.compare.policy import quarantine_warnings
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.runtime import gc_paused
from agenteval.core.secrets import is_secret_name
from agenteval.core.text.redact import Redactor
from agenteval.report.presentation import Presentation
from agenteval.run.baseline import FoundBaseline, Search, masked, read_baseline_file
from agenteval.run.config.model import Config
from agenteval.run.config.read import find_config, read_config
from agenteval.run.resolve.agents import bind, discover_targets
from agenteval.run.resolve.defaults import with_config_defaults
from agenteval.run.resolve.named_agent import resolve_agent
from agenteval.run.resolve.presentation import presentation
from agenteval.run.settings import Settings
from agenteval.suite.formats.registry import conventional_places, discover, load_suites
from agenteval.suite.model import AgentSpec, Case, Suite

# Shorter values of secret-looking variables are words like "yes", not secrets.
_SECRET_LENGTH = 8


@dataclass(frozen=True)
class Loaded:
    """Everything that was read before the first case runs.

    Attributes:
        agents: by case id who answers.
        control: who stands for the base commit's agent, where ``--control`` names one.
        baseline: the run to compare with, if there is one.
        presentation: how comment and summary are to look.
    """

    suites: Sequence[Suite]
    config: Config
    selected: Mapping[str, Sequence[Case]]
    agents: Mapping[str, AgentSpec]
    baseline: FoundBaseline | None
    warnings: tuple[str, ...]
    redact: Redactor = field(repr=False)
    control: AgentSpec | None = None
    presentation: Presentation = field(default_factory=Presentation)

    @property
    def known(self) -> frozenset[str]:
        """The ids of all cases, also of those that a filter leaves out."""
        return frozenset(case.id for suite in self.suites for case in suite.cases)


def load(settings: Settings, where: Path | None = None) -> Loaded:
    """Read suites, configuration and baseline, and find the agents; every problem at once.

    Args:
        settings: what to read.
        where: the directory to look in first; the working directory if not given.

    Raises:
        ConfigError: with all problems of all files.
    """
    here = where or Path.cwd()
    paths = settings.suites or tuple(discover(here))
    if not paths:
        message = f"no suite given, and none in this directory (looked for {conventional_places()})"
        raise ConfigError(Problem(f"{message}; name one: agenteval run path/to/agent.yaml"))
    problems: list[Problem] = []
    with gc_paused():
        suites = load_suites(paths, problems)
    some_are_broken = bool(problems)
    config = Config()
    agents: dict[str, AgentSpec] = {}
    baseline = Search()
    control = None
    look = Presentation()
    try:
        config = read_config(find_config(settings.config, [here, *map(directory_of, paths)]))
        # Only here: what a broken configuration should define would seem to be missing.
        suites = [with_config_defaults(suite, config) for suite in suites]
        agents = _bind_all(suites, settings.agent, config, problems) if settings.traces is None else {}
        control = resolve_agent(settings.control, config, "--control") if settings.control else None
        look = presentation(settings, config, os.environ)
    except ConfigError as error:
        problems += error.problems
    try:
        if settings.baseline:
            baseline = Search(read_baseline_file(settings.baseline, suites, by_trace=settings.traces is not None))
    except ConfigError as error:
        problems += [
            Problem(f"--baseline: {problem.message}", problem.file, problem.line, problem.path)
            for problem in error.problems
        ]
    selected = {suite.path: _selected(suite, settings) for suite in suites}
    problems += _without_cases(suites) if settings.traces is None else _without_metrics(suites)
    if suites and not problems and settings.traces is None and not any(selected.values()):
        problems.append(Problem(_nothing_selected(settings)))
    secrets = config.secrets.union(*(suite.secrets for suite in suites))
    problems += _secret_names(suites, secrets)
    if problems:
        wrong = {problem.file for problem in problems}
        fine = [suite.path for suite in suites if suite.path not in wrong]
        raise ConfigError(dict.fromkeys(problems), fine if some_are_broken or len(fine) < len(suites) else ())
    if settings.baseline_source:
        baseline = settings.baseline_source.search(_asked(suites, settings))
    warnings = config.warnings + tuple(text for suite in suites for text in suite.warnings)
    warnings += _gate_warnings(settings, suites, config) + baseline.warnings
    redact = redactor(secrets)
    found = baseline.found
    return Loaded(
        suites=suites,
        config=config,
        selected=selected,
        agents=agents,
        baseline=replace(found, results=masked(found.results, redact)) if found else None,
        warnings=warnings,
        redact=redact,
        control=control,
        presentation=look,
    )


def _asked(suites: Sequence[Suite], settings: Settings) -> frozenset[str]:
    """The ids of all cases; none where recorded traces are scored, which the suites do not name."""
    return frozenset() if settings.traces else frozenset(case.id for suite in suites for case in suite.cases)


def _gate_warnings(settings: Settings, suites: Sequence[Suite], config: Config) -> tuple[str, ...]:
    """What is said about the gate and has no effect."""
    policy = config.compare
    today = datetime.now(UTC).date()
    warnings: tuple[str, ...] = ()
    # Which cases recorded traces are is known when they have been read.
    if settings.traces is None and policy.quarantine:
        cases = {(case.id, case.name) for suite in suites for case in suite.cases}
        warnings += quarantine_warnings(policy.quarantine, cases, today)
    if settings.control and not ((settings.baseline or settings.baseline_source) and policy.confirms_beside_base):
        warnings += ("--control has no effect without --baseline and `gate: {confirm: base}` or both",)
    return warnings


def _bind_all(
    suites: list[Suite], asked: str | None, config: Config, problems: list[Problem]
) -> dict[str, AgentSpec]:
    """Who answers each case, by its id; suites whose targets stand for several are replaced by what they mean."""
    agents: dict[str, AgentSpec] = {}
    discover = cache(discover_targets)
    for index, suite in enumerate(suites):
        try:
            bound = bind(suite, asked, config, discover)
        except ConfigError as error:
            problems += error.problems
        else:
            suites[index] = bound.suite
            agents |= bound.agents
    return agents


def redactor(secrets: Iterable[str] = ()) -> Redactor:
    """Masks the given secrets and the values of secret-looking environment variables."""
    ambient = (
        value
        for name, value in os.environ.items()
        if is_secret_name(name) and len(value) >= _SECRET_LENGTH and not _is_path(value)
    )
    return Redactor([*secrets, *ambient])


def directory_of(suite: Path) -> Path:
    """Where the configuration of a suite, given as file or directory, is looked for first."""
    return suite if suite.is_dir() else suite.parent


def _is_path(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        # Too long for a path, or with characters that none has.
        return False


def _without_cases(suites: Sequence[Suite]) -> list[Problem]:
    """A suite without cases would always pass."""
    message = "there is no case to run"
    recorded = f"{message}: it names no inputs; give recorded traces with --traces PATH"
    return [Problem(recorded if suite.metrics else message, file=suite.path) for suite in suites if not suite.cases]


def _without_metrics(suites: Sequence[Suite]) -> list[Problem]:
    """Only suites whose metrics stand for every answer can score recorded ones."""
    message = "--traces: recorded traces cannot be scored with this suite: its metrics belong to single cases"
    return [Problem(message, file=suite.path) for suite in suites if not suite.metrics]


def _secret_names(suites: Sequence[Suite], secrets: Iterable[str]) -> list[Problem]:
    """Names are how runs are compared, so they stand in every report as they are."""
    redact = Redactor(secret for secret in secrets if len(secret) >= _SECRET_LENGTH)
    message = "a secret from the environment is part of the name of a case, which every report shows"
    return [
        Problem(message, file=suite.path, line=case.line)
        for suite in suites
        for case in suite.cases
        if redact(name := case.id.removeprefix(suite.path)) != name
    ]


def is_selected(case_id: str, name: str, tags: Iterable[str], settings: Settings) -> bool:
    """Whether a case is among those that ``--filter`` and ``--tag`` ask for."""
    wanted = (settings.filter or "").casefold()
    return wanted in f"{case_id}\n{name}".casefold() and (
        not settings.tags or not set(settings.tags).isdisjoint(tags)
    )


def _selected(suite: Suite, settings: Settings) -> list[Case]:
    return [case for case in suite.cases if is_selected(case.id, case.name, case.tags, settings)]


def _nothing_selected(settings: Settings) -> str:
    asked = [f"--filter {settings.filter!r}"] if settings.filter else []
    asked += [f"--tag {tag}" for tag in settings.tags]
    return f"no case matches {' and '.join(asked)}"
