"""The command that runs nothing: validate."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agenteval.agents.registry import unavailable_agents
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.paths import display_path
from agenteval.core.text.escape import terminal
from agenteval.report.view.view import count
from agenteval.run.config.model import CONFIG_FILE, DEFAULT_AGENT, Config
from agenteval.run.config.read import read_config
from agenteval.run.resolve.agents import bind
from agenteval.run.resolve.named_agent import resolve_agent
from agenteval.run.resolve.presentation import presentation
from agenteval.run.resolve.sources import Sources
from agenteval.run.resolve.suites import collected, config_path, suite_paths
from agenteval.run.settings import Settings
from agenteval.suite.formats.registry import load_suites
from agenteval.suite.model import Suite
from agenteval.suite.model_agent import model_agent_of

# Metric types that call Python code of the user, and the option that names it.
_GRADERS = {"code": "grader", "custom": "function"}


def validate_files(suites: Sequence[Path], config: Path | None) -> int:
    """Check suites and configuration, and say what is in them.

    Raises:
        ConfigError: with every problem of every file; the good files are listed first.
    """
    sources = Sources(Path.cwd(), tuple(suites), config)
    paths = suite_paths(sources)
    problems: list[Problem] = []
    found = config_path(sources, paths)
    known = None
    with collected(problems):
        known = read_config(found)
        presentation(Settings(), known, os.environ)
    if found is not None and known is not None:
        tools = f", {count(len(known.tools), 'tool')}" if known.tools else ""
        _say(f"{display_path(found)}: ok, {count(len(known.agents), 'agent')}{tools}")
        # They may be installed where the suite is run.
        for obstacle in unavailable_agents([*known.agents.values(), *known.tools.values()]):
            _say(f"  warning: {obstacle}")
    if not paths and found is None:
        problems.append(Problem(f"nothing to check: no suite and no {CONFIG_FILE} in this directory"))
    for suite in load_suites(paths, problems):
        with collected(problems):
            _check_names(suite, known)
            unusable = check_graders(suite)
            _say(f"{suite.path}: ok, {suite.format}, {count(len(suite.cases), 'case')}")
            for warning in (*suite.warnings, *unusable, *_obstacles(suite, known)):
                _say(f"  warning: {warning}")
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return 0


def _check_names(suite: Suite, config: Config | None) -> None:
    """What a suite names must be defined; what it leaves open may still come with ``--agent``.

    Raises:
        ConfigError: a name is not defined.
    """
    if config is None:
        return
    if suite.agent is not None:
        resolve_agent(suite.agent, config, suite.path)
    elif config.agents or config.tools:
        named = [case for case in suite.cases if case.target is not None and not case.target.is_pattern]
        if named:
            bind(replace(suite, cases=tuple(named)), None, config)


def _obstacles(suite: Suite, config: Config | None) -> list[str]:
    """Why a suite needs another agent than the one that it describes itself; it may get one with --agent."""
    if suite.agent is not None or config is None or DEFAULT_AGENT in config.agents or suite.fallback_agent is None:
        return []
    return [str(problem) for problem in model_agent_of(suite.fallback_agent).obstacles]


def check_graders(suite: Suite) -> list[str]:
    """Import the Python code that judges the answers of a suite.

    Returns:
        What of AgentCI's evaluation functions cannot be imported here: that tool looks for them when they are called.

    Raises:
        ConfigError: with all code graders that cannot be imported.
    """
    _import_graders(suite, "code")
    try:
        _import_graders(suite, "custom")
    except ConfigError as error:
        return [str(problem) for problem in error.problems]
    return []


def _import_graders(suite: Suite, kind: str) -> None:
    metrics = [metric for case in suite.cases for metric in case.all_metrics if metric.type == kind]
    if not metrics:
        return
    # Imported here: most suites have no such metric.
    from agenteval.metrics.resources.grader_pool import GraderPool

    pool = GraderPool()
    called = _GRADERS[kind]
    for metric in metrics:
        pool.expect(metric.where, str(metric.options[called]), called)

    async def check() -> None:
        try:
            await pool.start()
        finally:
            await pool.close()

    asyncio.run(check())


def _say(text: str) -> None:
    print(terminal(text))
