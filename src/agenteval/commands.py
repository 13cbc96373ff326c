"""The commands that run no agent: compare, report, validate."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from agenteval.compare.compare import compare
from agenteval.compare.gate import Gate, GatePolicy, judge, parse_fail_on
from agenteval.config import CONFIG_FILE, DEFAULT_AGENT, Config, find_config, read_config, resolve_agent
from agenteval.errors import ConfigError, Problem
from agenteval.metrics.graders import GraderPool
from agenteval.pipeline import make_directory
from agenteval.prepare import directory_of
from agenteval.provenance import shown_path
from agenteval.report.escape import terminal
from agenteval.report.view import GateView, count
from agenteval.report.write import print_table, render_reports
from agenteval.results.store import read_results
from agenteval.suite.load import discover, load_suites
from agenteval.suite.model import Suite
from agenteval.suite.model_agent import model_agent_of


def compare_files(current: Path, baseline: Path, fail_on: str | None) -> int:
    """Compare two results files and judge the first.

    Raises:
        ConfigError: a file cannot be read, or ``fail_on`` is wrong.
    """
    try:
        policy = GatePolicy() if fail_on is None else GatePolicy(fail_on=parse_fail_on(fail_on))
    except ValueError as error:
        raise ConfigError(Problem(f"--fail-on: {error}")) from None
    config = read_config(find_config(None, [Path.cwd()]))
    now, then = read_results(current), read_results(baseline)
    known = {case.id for _, case in now.cases()}
    results = now.model_copy(update={"comparison": compare(now, then, known, config.tolerance)})
    gate = judge(results, policy if fail_on is not None else config.gate)
    print_table(results, _view(gate), sys.stdout)
    return gate.exit_status


def render_again(path: Path, out: Path | None) -> int:
    """Write the rendered reports of a results file.

    Raises:
        ConfigError: the file cannot be read.
        InfrastructureError: the reports cannot be written.
    """
    results = read_results(path)
    directory = out or (path if path.is_dir() else path.parent)
    make_directory(directory)
    gate = judge(results, read_config(find_config(None, [Path.cwd()])).gate)
    view = _view(gate)
    render_reports(results, view, directory)
    print_table(results, view, sys.stdout)
    return 0


def validate_files(suites: Sequence[Path], config: Path | None) -> int:
    """Check suites and configuration, and say what is in them.

    Raises:
        ConfigError: with every problem of every file; the good files are listed first.
    """
    here = Path.cwd()
    paths = list(suites) or discover(here)
    problems: list[Problem] = []
    found = find_config(config, [here, *map(directory_of, paths)])
    settings = None
    try:
        settings = read_config(found)
    except ConfigError as error:
        problems += error.problems
    if found is not None and settings is not None:
        _say(f"{shown_path(found)}: ok, {count(len(settings.agents), 'agent')}")
    if not paths and found is None:
        problems.append(Problem(f"nothing to check: no suite and no {CONFIG_FILE} in this directory"))
    for path in paths:
        try:
            for suite in load_suites([path]):
                # Only a name must be defined: a suite that names no agent may get one with --agent.
                if settings is not None and suite.agent is not None:
                    resolve_agent(suite.agent, settings, suite.path)
                check_graders(suite)
                _say(f"{suite.path}: ok, {suite.format}, {count(len(suite.cases), 'case')}")
                for warning in (*suite.warnings, *_obstacles(suite, settings)):
                    _say(f"  warning: {warning}")
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return 0


def _obstacles(suite: Suite, config: Config | None) -> list[str]:
    """Why a suite needs another agent than the one that it describes itself; it may get one with --agent."""
    if suite.agent is not None or config is None or DEFAULT_AGENT in config.agents or suite.fallback_agent is None:
        return []
    return [str(problem) for problem in model_agent_of(suite.fallback_agent).obstacles]


def check_graders(suite: Suite) -> None:
    """Import the code graders of a suite.

    Raises:
        ConfigError: with all that cannot be imported.
    """
    pool = GraderPool()
    metrics = (metric for case in suite.cases for turn in case.turns for metric in turn.metrics)
    graders = [metric for metric in metrics if metric.type == "code"]
    for metric in graders:
        pool.expect(metric.where, str(metric.options["grader"]))

    async def check() -> None:
        try:
            await pool.start()
        finally:
            await pool.close()

    if graders:
        asyncio.run(check())


def _view(gate: Gate) -> GateView:
    return GateView(passed=gate.passed, headline=gate.headline, reasons=gate.reasons, warnings=())


def _say(text: str) -> None:
    print(terminal(text))
