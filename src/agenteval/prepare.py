"""Reads everything that a run needs before its first case, and names every mistake at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agenteval.config import Config, Settings, find_config, read_config, resolve_agent
from agenteval.errors import ConfigError, Problem
from agenteval.report.escape import Redactor
from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.suite.document import looks_secret
from agenteval.suite.load import discover, load_suites
from agenteval.suite.model import AgentSpec, Case, Suite

# Shorter values of secret-looking variables are words like "yes", not secrets.
_SECRET_LENGTH = 8


@dataclass(frozen=True)
class Loaded:
    """Everything that was read before the first case runs."""

    suites: Sequence[Suite]
    config: Config
    selected: Mapping[str, Sequence[Case]]
    agents: Mapping[str, AgentSpec]
    baseline: Results | None
    warnings: tuple[str, ...]
    redact: Redactor = field(repr=False)

    @property
    def known(self) -> frozenset[str]:
        """The ids of all cases, also of those that a filter leaves out."""
        return frozenset(case.id for suite in self.suites for case in suite.cases)


def load(settings: Settings) -> Loaded:
    """Read suites, configuration and baseline, and find the agents; every problem at once.

    Raises:
        ConfigError: with all problems of all files.
    """
    here = Path.cwd()
    paths = settings.suites or tuple(discover(here))
    if not paths:
        message = "no suite given, and no agent.yaml in this directory"
        raise ConfigError(Problem(f"{message}; name one: agenteval run path/to/agent.yaml"))
    problems: list[Problem] = []
    suites: list[Suite] = []
    config = Config()
    baseline = None
    try:
        suites = load_suites(paths)
    except ConfigError as error:
        problems += error.problems
    try:
        config = read_config(find_config(settings.config, [here, *map(directory_of, paths)]))
    except ConfigError as error:
        problems += error.problems
    try:
        baseline = read_results(settings.baseline) if settings.baseline else None
    except ConfigError as error:
        problems += [
            Problem(f"--baseline: {problem.message}", problem.file, problem.line, problem.path)
            for problem in error.problems
        ]
    agents: dict[str, AgentSpec] = {}
    for suite in suites if not problems else ():
        try:
            spec = resolve_agent(settings.agent or suite.agent, config, suite.path, suite.fallback_agent)
            agents[suite.path] = with_limit(spec, suite)
        except ConfigError as error:
            problems += error.problems
    selected = {suite.path: _selected(suite, settings) for suite in suites}
    problems += _without_cases(suites)
    if suites and not problems and not any(selected.values()):
        problems.append(Problem(_nothing_selected(settings)))
    secrets = config.secrets.union(*(suite.secrets for suite in suites))
    problems += _secret_names(suites, secrets)
    if problems:
        raise ConfigError(problems)
    warnings = config.warnings + tuple(text for suite in suites for text in suite.warnings)
    return Loaded(
        suites=suites,
        config=config,
        selected=selected,
        agents=agents,
        baseline=baseline,
        warnings=warnings,
        redact=redactor(secrets),
    )


def redactor(secrets: Iterable[str] = ()) -> Redactor:
    """Masks the given secrets and the values of secret-looking environment variables."""
    ambient = (
        value
        for name, value in os.environ.items()
        if looks_secret(name) and len(value) >= _SECRET_LENGTH and not _is_path(value)
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
    message = "there is no case to run; add some below `test_cases`"
    return [Problem(message, file=suite.path) for suite in suites if not suite.cases]


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


def with_limit(spec: AgentSpec, suite: Suite) -> AgentSpec:
    """The agent with the suite's time limit, if it has none of its own."""
    if spec.timeout_s is not None or suite.turn_timeout_s is None:
        return spec
    return replace(spec, timeout_s=suite.turn_timeout_s)


def _selected(suite: Suite, settings: Settings) -> list[Case]:
    wanted = (settings.filter or "").casefold()
    return [
        case
        for case in suite.cases
        if wanted in f"{case.id}\n{case.name}".casefold()
        and (not settings.tags or set(settings.tags) & set(case.tags))
    ]


def _nothing_selected(settings: Settings) -> str:
    asked = [f"--filter {settings.filter!r}"] if settings.filter else []
    asked += [f"--tag {tag}" for tag in settings.tags]
    return f"no case matches {' and '.join(asked)}"
