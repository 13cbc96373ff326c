"""The commands that read results files, accept changes, and help newcomers."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.cli.options import Choices, add_command, add_options, day, positive, settings_of
from agenteval.core.errors import ConfigError, Kind, Problem

if TYPE_CHECKING:
    from agenteval.results.model import Results


def add_accept(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "accept", _accept, "accept what a run found, in .agenteval/accepted.yaml")
    option = parser.add_argument
    option(
        "cases", nargs="*", metavar="CASE", help="id or name of a case, or of a metric; default: all that was found"
    )
    option("--reason", metavar="TEXT", required=True, help="why the change is right")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--from",
        dest="results",
        metavar="RESULTS",
        default="agenteval-report",
        help="results.json, or a report directory, of the run; default: %(default)s",
    )
    source.add_argument(
        "--run", metavar="ID", type=positive, help="id of a workflow run on GitHub, whose results are downloaded"
    )
    option("--artifact", metavar="NAME", help="artifact of --run; default: agenteval")
    option("--repository", metavar="OWNER/NAME", help="repository of --run; default: the remote origin's")
    option("--update", action="store_true", help="write the answers of the run as expected answers into the suites")
    option("--dry-run", action="store_true", help="show what would be written; write nothing")
    option("--until", metavar="DATE", type=day, help="last day, YYYY-MM-DD in UTC; default: in 30 days")


def _accept(arguments: argparse.Namespace) -> int:
    from agenteval.core.escape import terminal
    from agenteval.core.secrets import mask
    from agenteval.core.text import display_path
    from agenteval.run.accept import AcceptRequest, accept

    request = AcceptRequest(arguments.cases, arguments.reason, arguments.until, arguments.update)
    accepted = accept(request, _results(arguments))
    for file in accepted.files:
        print(terminal(mask(file.diff), multiline=True))
    for entry in accepted.entries:
        change = f": {entry.before} → {entry.after}" if entry.before and entry.after else ""
        print(terminal(f"accepted {entry.case or entry.metric} ({entry.change}{change})"))
    names = ", ".join([*(file.name for file in accepted.files), display_path(accepted.path)])
    if arguments.dry_run:
        print(terminal(f"nothing was written; without --dry-run: {names}"))
        return 0
    accepted.write()
    print(terminal(f"wrote {names}; commit it, so that it is reviewed with the change"))
    return 0


def _results(arguments: argparse.Namespace) -> Results:
    from agenteval.results.store import read_results

    if arguments.run is None:
        lost = [name for name in ("artifact", "repository") if getattr(arguments, name) is not None]
        if lost:
            raise ConfigError(
                Problem(f"--{name}: is for --run ID, which is not given", kind=Kind.OPTION) for name in lost
            )
        return read_results(Path(arguments.results))
    from agenteval.github.saved_results import results_of_run
    from agenteval.run.accept import check_suites_here

    results = results_of_run(arguments.run, os.environ, Path.cwd(), arguments.artifact, arguments.repository)
    check_suites_here(results)
    return results


def add_project(commands: Any) -> None:
    """Add the commands to the parser."""
    add_command(commands, "demo", _demo, "show the gate stop a change that makes an example agent worse; offline")
    started = add_command(
        commands, "init", _init, "write a starter: a suite, a configuration, a workflow and an agent"
    )
    started.add_argument("directory", nargs="?", default=".", metavar="DIRECTORY", help="directory to write to")
    started.add_argument(
        "--format",
        metavar="FORMAT",
        choices=Choices("agenteval.cli.init:starter_formats"),
        help="format of the suite: %(choices)s; default: that of agent.yaml",
    )
    started.add_argument(
        "--agent",
        metavar="KIND",
        choices=Choices("agenteval.cli.init:starter_agents"),
        default="command",
        help="kind of the agent: %(choices)s; default: %(default)s",
    )
    explained = add_command(commands, "explain", _explain, "say what a concept, a metric or a setting means")
    explained.add_argument("name", nargs="*", metavar="NAME", help="what to explain; default: list all names")
    schema = add_command(commands, "schema", _schema, "print the JSON Schema of a file")
    schema.add_argument(
        "name", metavar="NAME", choices=Choices("agenteval.cli.explanations:schema_names"), help="which file"
    )
    add_command(commands, "plugins", _plugins, "list the installed extensions and whether they may run")


def _demo(_: argparse.Namespace) -> int:
    from functools import partial

    from agenteval.cli.demo import demo

    demo(partial(print, flush=True))
    return 0


def _init(arguments: argparse.Namespace) -> int:
    from agenteval.cli.init import USUAL_BRANCH, default_branch, next_steps, starter_for, write_starter
    from agenteval.core.escape import terminal

    directory = Path(arguments.directory)
    branch = default_branch(directory)
    if not branch and sys.stdin.isatty() and sys.stdout.isatty():
        with contextlib.suppress(EOFError):
            branch = input(f"default branch of the repository [{USUAL_BRANCH}]: ").strip() or USUAL_BRANCH
    starter = starter_for(directory, arguments.format, arguments.agent, branch or USUAL_BRANCH)
    for line in write_starter(starter):
        print(terminal(line))
    if not branch:
        guess = f"git does not tell the default branch; if it is not {USUAL_BRANCH}"
        folder, name, _ = starter.files[-1]
        print(terminal(f"{guess}, set `branches:` in {folder / name}"))
    print("next:")
    for step in next_steps(starter):
        print(terminal(f"  {step}"))
    print("to block merges, require the check `evaluate`: repository settings, Rules, Rulesets, status checks")
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    from agenteval.cli.explanations import all_names, explain

    for line in explain(arguments.name) if arguments.name else all_names():
        print(line)
    return 0


def _schema(arguments: argparse.Namespace) -> int:
    from agenteval.cli.explanations import schema

    print(json.dumps(schema(arguments.name), indent=2, ensure_ascii=False))
    return 0


def _plugins(_: argparse.Namespace) -> int:
    from agenteval.cli.output import as_table
    from agenteval.core.plugins import installed

    print(as_table(installed()))
    return 0


def add_results(commands: Any) -> None:
    """Add the commands to the parser."""
    compared = add_command(
        commands, "compare", _compare, "compare two results files and decide the gate, without running anything"
    )
    compared.add_argument("current", metavar="CURRENT", help="results.json, or a report directory")
    compared.add_argument("earlier", metavar="BASELINE", help="that of the earlier run")
    add_options(compared, "config", "fail_on", as_run=True)
    add_options(compared, "verbosity")
    proved = add_command(
        commands, "prove", _prove, "run what may be worse in a results file side by side with the base commit"
    )
    proved.add_argument("results", metavar="RESULTS", help="results.json, or a report directory")
    add_options(proved, "config", "control", "fail_on", "shard", as_run=True)
    proved.add_argument(
        "--out",
        dest="directory",
        type=Path,
        metavar="DIR",
        help="directory to write to; default: the results are replaced",
    )
    add_options(proved, "verbosity")
    report = add_command(commands, "report", _report, "write the reports of a results file again, or compare several")
    several = "results.json, or a report directory; several are one HTML page with a column for each"
    report.add_argument("results", nargs="+", metavar="RESULTS", help=several)
    add_options(report, "config", as_run=True)
    report.add_argument(
        "--out", dest="directory", type=Path, metavar="DIR", help="directory to write to; default: beside the results"
    )
    report.add_argument(
        "--format",
        choices=("markdown", "json", "html", "junit"),
        help="write only this report, to FILE or to standard output; default: as the name of FILE ends, else json",
    )
    report.add_argument("-o", "--output", type=Path, metavar="FILE", help="write only one report, to this file")
    add_options(report, "history", "verbosity")
    opened = add_command(
        commands, "open", _open, "open report.html of the last run in the browser, and print its path"
    )
    opened.add_argument(
        "path",
        nargs="?",
        default="agenteval-report",
        metavar="PATH",
        help="report directory, or the page itself; default: %(default)s",
    )
    merged = add_command(
        commands, "merge", _merge, "join the shards of a run, or further iterations, and decide the gate"
    )
    merged.add_argument("results", nargs="+", metavar="RESULTS", help="results.json, or a report directory")
    merged.add_argument("-o", "--output", type=Path, metavar="FILE", required=True, help="file or directory to write")
    add_options(merged, "config", "baseline", "fail_on", as_run=True)
    add_options(merged, "history", "verbosity")


def _compare(arguments: argparse.Namespace) -> int:
    from agenteval.run.saved_results import compare_files

    return compare_files(Path(arguments.current), Path(arguments.earlier), settings_of(arguments))


def _prove(arguments: argparse.Namespace) -> int:
    from agenteval.run.prove import prove_file

    return prove_file(Path(arguments.results), arguments.directory, settings_of(arguments)).exit_status


def _report(arguments: argparse.Namespace) -> int:
    from agenteval.run.saved_results import render_again, render_one

    settings, results = settings_of(arguments), [Path(path) for path in arguments.results]
    if len(results) == 1 and arguments.format is None and arguments.output is None:
        return render_again(results[0], settings, arguments.directory)
    if arguments.directory is not None:
        raise ConfigError(Problem("--out is for all reports; give -o FILE for one report", kind=Kind.OPTION))
    return render_one(results, settings, arguments.format, arguments.output)


def _open(arguments: argparse.Namespace) -> int:
    from agenteval.cli.output import report_page, show
    from agenteval.core.escape import terminal

    page = report_page(Path(arguments.path))
    print(terminal(str(page)))
    show(page, os.environ)
    return 0


def _merge(arguments: argparse.Namespace) -> int:
    from agenteval.run.merge import merge_files

    return merge_files(
        [Path(file) for file in arguments.results], arguments.output, settings_of(arguments)
    ).exit_status
