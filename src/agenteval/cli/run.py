"""The commands that read suites: ``run``, ``validate``, ``list`` and ``probe``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.cli.options import HelpAll, add_command, add_options, github_options, settings_of
from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem
from agenteval.run.options import OPTIONS

# The options that name what a run reads and selects.
_READ = (
    "suites",
    "config",
    "agent",
    "baseline",
    "control",
    "history",
    "filter",
    "tags",
    "cases",
    "traces",
    "keep_going",
)


def add_run(commands: Any) -> None:
    """Add the commands to the parser."""
    _add_run(commands)
    validated = add_command(commands, "validate", _validate, "check everything that run checks before its first call")
    add_options(validated, *_READ)
    _add_list(commands)
    _add_probe(commands)


def _add_run(commands: Any) -> None:
    parser = add_command(commands, "run", _run, "evaluate suites and write reports")
    text = "show this help with the options for experts and exit"
    parser.add_argument("--help-all", action=HelpAll, nargs=0, help=text)
    parser.experts = add_options(
        parser, *(option.name for option in OPTIONS if option.flags or option.name == "suites")
    )


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
    add_options(parser, "suites", "config", "agent", as_run=True)
    option = parser.add_argument
    option("-k", "--filter", metavar="TEXT", help="send the first case whose name or id contains this")
    option("--input", metavar="TEXT", help="send this text instead of a case; needs no suite")


@contextmanager
def _earlier_reports_told(arguments: argparse.Namespace) -> Iterator[None]:
    from agenteval.report.report import results_identity

    # --resume continues them.
    earlier = None if arguments.resume else results_identity(arguments.out)
    try:
        yield
    except (AgentEvalError, KeyboardInterrupt, SystemExit):
        # What failed before the first case does not cost the results of an earlier run.
        if earlier is not None and results_identity(arguments.out) == earlier:
            print(f"agenteval: the reports in {arguments.out}/ are those of an earlier run", file=sys.stderr)
        raise


# A part of a run replaces no whole one, which `accept`, `prove` and later runs read.
_WHOLE, _PART = Path("agenteval-report"), Path("agenteval-again")
_CHOOSING = ("filter", "tags", "cases", "failed", "failed_in")


def _run(arguments: argparse.Namespace) -> int:
    arguments.out = arguments.out or (_PART if _chooses(arguments) else _WHOLE)
    with _earlier_reports_told(arguments):
        from agenteval.report.report import print_result
        from agenteval.report.terminal_lines import TerminalDetail, next_commands
        from agenteval.run.pipeline import run, run_repeatedly

        out = arguments.out
        settings = replace(settings_of(arguments), failed_in=_failed_in(arguments))
        on_github = github_options(arguments)
        if on_github is not None and "baseline" in on_github:
            settings = replace(settings, baseline=None)
        if arguments.json and (arguments.dry_run or on_github is not None):
            other = "--dry-run" if arguments.dry_run else "--github"
            raise ConfigError(
                Problem(f"--json prints the findings of a run; remove --json or {other}", kind=Kind.OPTION)
            )
        if arguments.dry_run:
            from agenteval.run.validate import dry_run

            for line in dry_run(settings, arguments.runs):
                print(line)
            return 0
        if on_github is not None:
            from agenteval.github.action import run_on_github

            return run_on_github(settings, out, arguments.runs, on_github, os.environ)
        if arguments.runs == 1:
            outcome = run(replace(settings, out=out))
        else:
            outcome = run_repeatedly(settings, out, arguments.runs, _tell)
        if outcome.dead:
            from agenteval.cli.output import print_mistakes
            from agenteval.core.mistakes import mistakes

            print_mistakes(mistakes(outcome.dead), sys.stderr)
            sys.stderr.flush()
        if outcome.exit_status != outcome.gate.exit_status:
            print("agenteval: interrupted after the last case; the reports are complete", file=sys.stderr)
        commands = next_commands(out, arguments.words)
        # Only if both go to the same place, the message stands above the result.
        is_one_place = sys.stdout.isatty() == sys.stderr.isatty()
        explained = outcome.agent_errors if is_one_place else ()
        if arguments.json:
            from agenteval.report.findings import render

            print(render(outcome.report), end="")
            return outcome.exit_status
        print_result(outcome.report, sys.stdout, TerminalDetail(arguments.verbosity, commands, explained))
        return outcome.exit_status


def _chooses(arguments: argparse.Namespace) -> bool:
    return not arguments.github and any(getattr(arguments, name) for name in _CHOOSING)


def _tell(line: str) -> None:
    print(f"agenteval: {line}", file=sys.stderr)


def _failed_in(arguments: argparse.Namespace) -> Path | None:
    if not arguments.failed:
        failed_in: Path | None = arguments.failed_in
        return failed_in
    if arguments.resume:
        message = "the run to finish may have replaced the reports that --failed reads; name others with --failed-in"
        raise ConfigError(Problem(f"--resume: {message}", kind=Kind.OPTION))
    return _WHOLE


def _validate(arguments: argparse.Namespace) -> int:
    from agenteval.run.validate import validate

    for line in validate(settings_of(arguments)):
        print(line)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from agenteval.cli.output import suites_as_json, suites_as_text
    from agenteval.core.escape import terminal
    from agenteval.core.secrets import mask
    from agenteval.run.resolve.suites import list_suites

    suites, problems = list_suites([Path(suite) for suite in arguments.suites])
    for problem in problems:
        print(terminal(mask(f"agenteval: warning: {problem}"), multiline=True), file=sys.stderr)
    print(mask(suites_as_json(suites)) if arguments.json else terminal(mask(suites_as_text(suites)), multiline=True))
    return 0


def _probe(arguments: argparse.Namespace) -> int:
    from agenteval.run.validate import probe

    return probe(settings_of(arguments), arguments.input, print)
