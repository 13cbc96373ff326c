"""The command ``accept``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.cli.arguments import add_command, day, positive
from agenteval.core.errors import ConfigError, Kind, Problem

if TYPE_CHECKING:
    from agenteval.results.model import Results


def add(commands: Any) -> None:
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
    from agenteval.core.masking import mask
    from agenteval.core.paths import display_path
    from agenteval.core.text.escape import terminal
    from agenteval.run.integrity.accept import Request, accept, accept_answers

    request = Request(arguments.cases, arguments.reason, arguments.until)
    accepted = (accept_answers if arguments.update else accept)(request, _results(arguments))
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
    """Return the results of the run."""
    from agenteval.results.store import read_results

    if arguments.run is None:
        lost = [name for name in ("artifact", "repository") if getattr(arguments, name) is not None]
        if lost:
            raise ConfigError(
                Problem(f"--{name}: is for --run ID, which is not given", kind=Kind.OPTION) for name in lost
            )
        return read_results(Path(arguments.results))
    from agenteval.ci.github.run_results import ARTIFACT, ReportArtifact, results_of_run
    from agenteval.run.integrity.accept import check_suites_here

    wanted = ReportArtifact(arguments.run, arguments.artifact or ARTIFACT, arguments.repository)
    results = results_of_run(wanted, os.environ, Path.cwd())
    check_suites_here(results)
    return results
