"""The commands that read suites: ``run``, ``validate``, ``list`` and ``probe``."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.cli.options import (
    add_command,
    add_github_options,
    add_templates,
    add_verbosity,
    amount,
    count,
    fail_on,
    github_options,
    not_empty,
    path,
    seconds,
    times,
)
from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem

if TYPE_CHECKING:
    from agenteval.run.config import Settings
    from agenteval.run.shard import Shard


def add_run(commands: Any) -> None:
    """Add the commands to the parser."""
    _add_run(commands)
    _add_inputs(
        add_command(commands, "validate", _validate, "check everything that run checks before its first call")
    )
    _add_list(commands)
    _add_probe(commands)


def _add_run(commands: Any) -> None:
    parser = add_command(commands, "run", _run, "evaluate suites and write reports")
    _add_inputs(parser)
    failed = parser.add_mutually_exclusive_group().add_argument
    failed(
        "--failed",
        action="store_true",
        help="run only the cases that did not pass in the last run; its reports are in --out",
    )
    failed(
        "--failed-in",
        metavar="PATH",
        type=not_empty,
        help="run only the cases that did not pass in another run: results.json, or a directory with it",
    )
    option = parser.add_argument
    option(
        "--out",
        type=not_empty,
        metavar="DIR",
        default="agenteval-report",
        help="directory for reports; default: %(default)s",
    )
    option("--iterations", metavar="N", type=times, help="number of times each case runs")
    option(
        "--runs",
        metavar="N",
        type=times,
        default=1,
        help="number of runs, each with the one before it as its baseline; together they are a baseline; default: 1",
    )
    option("--concurrency", metavar="N", type=times, help="cases that run at the same time")
    option(
        "--shard",
        metavar="I/N",
        help="run only shard I of N; `agenteval merge` joins the shards and decides the gate",
    )
    option(
        "--prove",
        action="store_true",
        help="prove an improvement of a change too, side by side with the base commit, as on the base branch",
    )
    option(
        "--fail-on",
        metavar="LIST",
        help="results that fail the gate: failures,regressions,unproven,errors (all by default); or none",
    )
    option("--max-llm-calls", metavar="N", type=count, help="limit of requests to models, including retries")
    option("--max-cost-usd", metavar="USD", type=amount, help="limit of the cost of models in US dollars")
    option(
        "--time-limit",
        metavar="SECONDS",
        type=seconds,
        help="time limit for the whole run in seconds; cases not finished by then are errors",
    )
    option("--seed", metavar="N", type=count, help="random seed; recorded in results.json")
    option("--resume", action="store_true", help="finish an interrupted run from the journal in --out")
    option("--no-cache", action="store_true", help="neither read nor write the cache of model replies")
    option("--quiet", action="store_true", help="show only the result, no progress")
    add_verbosity(parser)
    option(
        "--dry-run",
        action="store_true",
        help="check everything, and show what the run and a suspicion would cost; call nothing",
    )
    add_github_options(parser)


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the options that name what a run reads and selects."""
    parser.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE",
        help="suite files, directories, or patterns like agents/*; default: suites at the usual paths",
    )
    option = parser.add_argument
    option(
        "--config",
        metavar="FILE",
        help="configuration of all suites; default: for each suite the nearest agenteval.yaml at or above it",
    )
    option("--agent", metavar="AGENT", help="name in agenteval.yaml, replay:FILE, python:MODULE:NAME, or a URL")
    option(
        "--baseline",
        metavar="PATH",
        help="results.json of an earlier run; with run --github also auto (searched), or the id of a workflow run",
    )
    option(
        "--control",
        metavar="AGENT",
        help="deployment of the base commit's agent; default: `control:` of the agent",
    )
    option("--history", metavar="DIR", help="results.json files of earlier runs, at any depth, for the trend")
    option("-k", "--filter", metavar="TEXT", help="run only cases whose name or id contains this text")
    option("--tag", metavar="TAG", action="append", default=[], help="run only cases with this tag; repeatable")
    option(
        "--case",
        metavar="CASE",
        action="append",
        default=[],
        help="run only the case with this name or id; repeatable",
    )
    option(
        "--traces",
        metavar="PATH",
        type=not_empty,
        help="score recorded traces (a JSON Lines file, or a folder) without calling an agent",
    )
    option("--keep-going", action="store_true", help="with --traces: leave out lines that are not traces")
    add_templates(parser)


def _add_list(commands: Any) -> None:
    listed = add_command(commands, "list", _list, "list the suites of a repository")
    listed.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE",
        help="suite files, directories, or patterns like agents/*; default: this directory and all below",
    )
    listed.add_argument("--json", action="store_true", help="print a JSON list, for the matrix of a workflow")


def _add_probe(commands: Any) -> None:
    parser = add_command(
        commands, "probe", _probe, "send one case to its agent; show request, reply and what is understood"
    )
    option = parser.add_argument
    option("suites", nargs="*", metavar="SUITE", help="files or directories, as for run")
    option("--config", metavar="FILE", help="configuration, as for run")
    option("--agent", metavar="AGENT", help="as for run")
    option("-k", "--filter", metavar="TEXT", help="send the first case whose name or id contains this")
    option("--input", metavar="TEXT", help="send this text instead of a case; needs no suite")


def _run(arguments: argparse.Namespace) -> int:
    from agenteval.report.report import results_identity

    # --resume continues them.
    earlier = None if arguments.resume else results_identity(Path(arguments.out))
    try:
        return _evaluate(arguments)
    except (AgentEvalError, KeyboardInterrupt, SystemExit):
        # What failed before the first case does not cost the results of an earlier run.
        if earlier is not None and results_identity(Path(arguments.out)) == earlier:
            print(f"agenteval: the reports in {arguments.out}/ are those of an earlier run", file=sys.stderr)
        raise


def _evaluate(arguments: argparse.Namespace) -> int:
    from agenteval.report.report import print_result
    from agenteval.report.terminal_lines import TerminalDetail, next_commands
    from agenteval.run.pipeline import run_repeatedly

    out = Path(arguments.out)
    settings = replace(
        _inputs(arguments),
        failed_in=_failed_in(arguments),
        iterations=arguments.iterations,
        concurrency=arguments.concurrency,
        shard=_shard(arguments.shard),
        prove=arguments.prove,
        fail_on=fail_on(arguments.fail_on),
        max_llm_calls=arguments.max_llm_calls,
        max_cost_usd=arguments.max_cost_usd,
        time_limit_s=arguments.time_limit,
        seed=arguments.seed,
        resume=arguments.resume,
        use_cache=not arguments.no_cache,
        quiet=arguments.quiet,
        verbosity=arguments.verbosity,
    )
    on_github = github_options(arguments)
    if on_github is not None and on_github.baseline is not None:
        settings = replace(settings, baseline=None)
    if arguments.dry_run:
        from agenteval.run.validate import dry_run

        for line in dry_run(settings, arguments.runs):
            print(line)
        return 0
    if on_github is not None:
        from agenteval.github.action import run_on_github

        return run_on_github(settings, out, arguments.runs, on_github, os.environ)
    outcome = run_repeatedly(settings, out, arguments.runs, lambda line: print(f"agenteval: {line}", file=sys.stderr))
    if outcome.agent_problems:
        from agenteval.cli.output import print_mistakes
        from agenteval.core.mistakes import mistakes

        print_mistakes(mistakes(outcome.agent_problems), sys.stderr)
        sys.stderr.flush()
    if outcome.exit_status != outcome.gate.exit_status:
        print("agenteval: interrupted after the last case; the reports are complete", file=sys.stderr)
    commands = next_commands(out, arguments.words)
    # Only if both go to the same place, the message stands above the result.
    is_one_place = sys.stdout.isatty() == sys.stderr.isatty()
    explained = outcome.agent_errors if is_one_place else ()
    detail = TerminalDetail(arguments.verbosity, outcome.archive, commands, explained)
    print_result(outcome.results, outcome.view, sys.stdout, detail)
    return outcome.exit_status


def _failed_in(arguments: argparse.Namespace) -> Path | None:
    if not arguments.failed:
        return path(arguments.failed_in)
    if arguments.resume:
        message = "the run to finish may have replaced the reports that --failed reads; name others with --failed-in"
        raise ConfigError(Problem(f"--resume: {message}", kind=Kind.OPTION))
    return Path(arguments.out)


def _validate(arguments: argparse.Namespace) -> int:
    from agenteval.run.validate import validate

    for line in validate(_inputs(arguments)):
        print(line)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from agenteval.cli.output import suites_as_json, suites_as_text
    from agenteval.core.escape import terminal
    from agenteval.core.secrets import mask
    from agenteval.run.suite_list import list_suites

    found = list_suites([Path(suite) for suite in arguments.suites])
    for problem in found.problems:
        print(terminal(mask(f"agenteval: warning: {problem}"), multiline=True), file=sys.stderr)
    print(
        mask(suites_as_json(found.suites))
        if arguments.json
        else terminal(mask(suites_as_text(found.suites)), multiline=True)
    )
    return 0


def _probe(arguments: argparse.Namespace) -> int:
    from agenteval.run.config import Settings
    from agenteval.run.probe import probe

    settings = Settings(
        suites=tuple(Path(suite) for suite in arguments.suites),
        config=path(arguments.config),
        agent=arguments.agent,
        filter=arguments.filter,
    )
    return probe(settings, arguments.input, print)


def _inputs(arguments: argparse.Namespace) -> Settings:
    from agenteval.run.config import Settings

    return Settings(
        suites=tuple(Path(suite) for suite in arguments.suites),
        config=path(arguments.config),
        agent=arguments.agent,
        baseline=path(arguments.baseline),
        filter=arguments.filter,
        tags=tuple(arguments.tag),
        cases=tuple(arguments.case),
        traces=path(arguments.traces),
        keep_going=arguments.keep_going,
        control=arguments.control,
        history=path(arguments.history),
        comment_template=path(arguments.comment_template),
        summary_template=path(arguments.summary_template),
    )


def _shard(text: str | None) -> Shard | None:
    if text is None:
        return None
    from agenteval.run.shard import Shard

    try:
        return Shard.parse(text)
    except ValueError as error:
        raise ConfigError(Problem(f"--shard: {error}", kind=Kind.OPTION)) from None
