"""The commands that read results files: ``compare``, ``explain-gate``, ``report``, ``open`` and ``merge``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from agenteval.cli.arguments import add_command, add_templates, add_verbosity, fail_on, not_empty, path
from agenteval.core.errors import ConfigError, Kind, Problem


def add(commands: Any) -> None:
    """Add the commands to the parser."""
    compared = add_command(
        commands, "compare", _compare, "compare two results files and decide the gate, without running anything"
    )
    compared.add_argument("current", metavar="CURRENT", help="results.json, or a report directory")
    compared.add_argument(
        "baseline", metavar="BASELINE", help="results.json, or a report directory, of the earlier run"
    )
    compared.add_argument("--config", metavar="FILE", help="configuration, as for run")
    compared.add_argument("--fail-on", metavar="LIST", help="as for run")
    add_verbosity(compared)
    explained = add_command(
        commands, "explain-gate", _explain_gate, "show what the gate finds with the earlier runs, and what it costs"
    )
    explained.add_argument(
        "results",
        nargs="?",
        default="agenteval-report",
        metavar="RESULTS",
        help="results.json, or a report directory, of a run of the base branch; default: %(default)s",
    )
    explained.add_argument("--config", metavar="FILE", help="configuration, as for run")
    explained.add_argument("--json", action="store_true", help="print JSON")
    report = add_command(commands, "report", _report, "write the reports of a results file again")
    report.add_argument("results", metavar="RESULTS", help="results.json, or a report directory")
    report.add_argument("--config", metavar="FILE", help="configuration, as for run")
    report.add_argument(
        "--out", type=not_empty, metavar="DIR", help="directory to write to; default: beside the results"
    )
    report.add_argument(
        "--format",
        choices=("markdown", "json", "html", "junit"),
        help="write only this report, to FILE or to standard output; default: as the name of FILE ends, else json",
    )
    report.add_argument("-o", "--output", type=not_empty, metavar="FILE", help="write only one report, to this file")
    report.add_argument("--history", metavar="DIR", help="results.json files of earlier runs, for the trend")
    add_templates(report)
    add_verbosity(report)
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
    merged.add_argument(
        "-o", "--output", type=not_empty, metavar="FILE", required=True, help="file or directory to write"
    )
    merged.add_argument("--config", metavar="FILE", help="configuration, as for run")
    merged.add_argument("--baseline", metavar="PATH", help="results.json of an earlier run to compare with")
    merged.add_argument("--history", metavar="DIR", help="results.json files of earlier runs, for the trend")
    merged.add_argument("--fail-on", metavar="LIST", help="as for run")
    add_verbosity(merged)


def _compare(arguments: argparse.Namespace) -> int:
    from agenteval.run.saved_results import compare_files
    from agenteval.run.settings import Settings

    settings = Settings(
        config=path(arguments.config), fail_on=fail_on(arguments.fail_on), verbosity=arguments.verbosity
    )
    return compare_files(Path(arguments.current), Path(arguments.baseline), settings)


def _explain_gate(arguments: argparse.Namespace) -> int:
    from agenteval.cli.explain import as_json, as_text
    from agenteval.run.explain import explain_file
    from agenteval.run.settings import Settings

    explanation = explain_file(Path(arguments.results), Settings(config=path(arguments.config)))
    print(as_json(explanation) if arguments.json else as_text(explanation))
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from agenteval.run.saved_results import render_again, render_one
    from agenteval.run.settings import Settings

    settings = Settings(
        config=path(arguments.config),
        history=path(arguments.history),
        comment_template=path(arguments.comment_template),
        summary_template=path(arguments.summary_template),
        verbosity=arguments.verbosity,
    )
    if arguments.format is None and arguments.output is None:
        return render_again(Path(arguments.results), settings, path(arguments.out))
    if arguments.out is not None:
        raise ConfigError(Problem("--out is for all reports; give --out, or --format and --output", kind=Kind.OPTION))
    return render_one(Path(arguments.results), settings, arguments.format, path(arguments.output))


def _open(arguments: argparse.Namespace) -> int:
    from agenteval.cli.open_report import report_page, show
    from agenteval.core.text.escape import terminal

    page = report_page(Path(arguments.path))
    print(terminal(str(page)))
    show(page, os.environ)
    return 0


def _merge(arguments: argparse.Namespace) -> int:
    from agenteval.run.merge import merge_files
    from agenteval.run.settings import Settings

    settings = Settings(
        config=path(arguments.config),
        baseline=path(arguments.baseline),
        fail_on=fail_on(arguments.fail_on),
        history=path(arguments.history),
        verbosity=arguments.verbosity,
    )
    return merge_files([Path(file) for file in arguments.results], Path(arguments.output), settings).exit_status
