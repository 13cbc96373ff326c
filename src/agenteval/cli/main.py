"""The command line: parses options, calls the pipeline, maps outcomes to exit statuses."""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import AgentEvalError, ConfigError, Problem, unexpected_error
from agenteval.core.version import __version__

if TYPE_CHECKING:
    from agenteval.compare.gate import FailOn
    from agenteval.run.shard import Shard

_EPILOG = """exit status:
  0  the gate passed
  1  the gate failed: failures or regressions
  2  a suite, the configuration or an option is wrong; nothing was run
  3  something outside the suite broke: agent unreachable, too many errors, disk full
  130, 143  interrupted; reports hold what had finished"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments without the program's name; the process's own if not given.

    Returns:
        The exit status.
    """
    # A run keeps nearly all that it makes: looking for garbage in it every 700 objects takes a quarter of the time.
    gc.set_threshold(100_000, 50, 1000)
    # Nor is there anything to gain from a last look through all of it at the end.
    atexit.register(gc.freeze)
    _keep_streams_writable()
    arguments = _arguments(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except AgentEvalError as error:
        return _fail(error)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of our output is gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        if os.environ.get("RUNNER_DEBUG") == "1":
            raise
        return _fail(unexpected_error(error))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    arguments, rest = command_line().parse_known_args(argv)
    if any(item.startswith("-") for item in rest) or (rest and not hasattr(arguments, "suites")):
        arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        # argparse takes suites up to the first option; people also write some after it.
        arguments.suites += rest
    return arguments


def _keep_streams_writable() -> None:
    """Text that the terminal's encoding lacks is shown escaped instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _fail(error: AgentEvalError) -> int:
    from agenteval.core.text.escape import terminal
    from agenteval.run.resolve.redactor import redactor

    redact = redactor()
    problems = error.problems if isinstance(error, ConfigError) else (Problem(str(error)),)
    for problem in problems:
        print(terminal(redact(f"agenteval: {problem}"), multiline=True), file=sys.stderr)
    if len(problems) > 1:
        print(f"agenteval: {len(problems)} problems; nothing was run", file=sys.stderr)
    if isinstance(error, ConfigError) and error.fine:
        print(terminal(f"agenteval: without a mistake: {', '.join(error.fine)}"), file=sys.stderr)
    return error.exit_status


def _run(arguments: argparse.Namespace) -> int:
    from agenteval.report.write import print_table
    from agenteval.run.pipeline import run
    from agenteval.run.settings import Settings

    settings = Settings(
        suites=tuple(Path(suite) for suite in arguments.suites),
        config=_path(arguments.config),
        agent=arguments.agent,
        baseline=_path(arguments.baseline),
        out=Path(arguments.out),
        iterations=arguments.iterations,
        concurrency=arguments.concurrency,
        filter=arguments.filter,
        tags=tuple(arguments.tag),
        shard=_shard(arguments.shard),
        fail_on=_fail_on(arguments.fail_on),
        max_llm_calls=arguments.max_llm_calls,
        max_cost_usd=arguments.max_cost_usd,
        max_time_s=arguments.max_time,
        seed=arguments.seed,
        resume=arguments.resume,
        use_cache=not arguments.no_cache,
        quiet=arguments.quiet,
        traces=_path(arguments.traces),
        keep_going=arguments.keep_going,
        control=arguments.control,
        history=_path(arguments.history),
        comment_template=_path(arguments.comment_template),
        summary_template=_path(arguments.summary_template),
    )
    outcome = run(settings)
    print_table(outcome.results, outcome.view, sys.stdout)
    if not arguments.quiet:
        print(f"reports: {settings.out}/", file=sys.stderr)
    return outcome.exit_status


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _shard(text: str | None) -> Shard | None:
    if text is None:
        return None
    from agenteval.run.shard import Shard

    try:
        return Shard.parse(text)
    except ValueError as error:
        raise ConfigError(Problem(f"--shard: {error}")) from None


def _fail_on(text: str | None) -> frozenset[FailOn] | None:
    from agenteval.compare.gate import parse_fail_on

    try:
        return None if text is None else parse_fail_on(text)
    except ValueError as error:
        raise ConfigError(Problem(f"--fail-on: {error}")) from None


def _merge(arguments: argparse.Namespace) -> int:
    from agenteval.run.merge import merge_files
    from agenteval.run.settings import Settings

    settings = Settings(
        config=_path(arguments.config),
        baseline=_path(arguments.baseline),
        fail_on=_fail_on(arguments.fail_on),
        history=_path(arguments.history),
    )
    return merge_files([Path(file) for file in arguments.results], Path(arguments.output), settings).exit_status


def _compare(arguments: argparse.Namespace) -> int:
    from agenteval.run.saved_results import compare_files
    from agenteval.run.settings import Settings

    settings = Settings(fail_on=_fail_on(arguments.fail_on))
    return compare_files(Path(arguments.current), Path(arguments.baseline), settings)


def _report(arguments: argparse.Namespace) -> int:
    from agenteval.run.saved_results import render_again
    from agenteval.run.settings import Settings

    settings = Settings(
        history=_path(arguments.history),
        comment_template=_path(arguments.comment_template),
        summary_template=_path(arguments.summary_template),
    )
    return render_again(Path(arguments.results), settings, _path(arguments.out))


def _validate(arguments: argparse.Namespace) -> int:
    from agenteval.run.validate import validate_files

    return validate_files([Path(suite) for suite in arguments.suites], _path(arguments.config))


def _init(arguments: argparse.Namespace) -> int:
    from agenteval.cli.init import next_steps, workflow_warning, write_starter
    from agenteval.core.text.escape import terminal

    directory = Path(arguments.directory)
    for name in write_starter(directory, arguments.format, arguments.agent):
        print(terminal(f"wrote {directory / name}"))
    warning = workflow_warning(directory)
    if warning is not None:
        print(terminal(f"warning: {warning}"))
    print("next:")
    for step in next_steps(directory, arguments.format, arguments.agent):
        print(terminal(f"  {step}"))
    return 0


def _schema(arguments: argparse.Namespace) -> int:
    from agenteval.cli.schema import schema

    print(json.dumps(schema(arguments.name), indent=2, ensure_ascii=False))
    return 0


def _plugins(arguments: argparse.Namespace) -> int:
    from agenteval.cli.plugins import as_json, as_table
    from agenteval.core.plugins import installed

    print(as_json(installed()) if arguments.json else as_table(installed()))
    return 0


def _publish(arguments: argparse.Namespace) -> int:
    from agenteval.ci.github.publish.publisher import PublishOptions
    from agenteval.ci.github.publish.saved_results import Target, dry_run, publish_file
    from agenteval.core.text.escape import terminal

    options = PublishOptions(
        arguments.comment, arguments.comment_id, arguments.check_name, not arguments.no_annotations
    )
    target = Target(arguments.repository, arguments.pull_request, arguments.commit)
    config = _path(arguments.config)
    publish = dry_run if arguments.dry_run else publish_file
    for text in publish(Path(arguments.results), target, options, config, os.environ):
        print(terminal(text, multiline=True))
    return 0


def _action(arguments: argparse.Namespace) -> int:
    from agenteval.ci.github.action import main as action

    return action.clean_up(os.environ) if arguments.clean_up else action.main(os.environ)


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of money")
    return amount


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def command_line() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="agenteval",
        description="Evaluate an LLM agent against its suite, compare with a baseline, and gate the merge.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"agenteval {__version__}")
    commands: Any = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(commands)
    compared = _add(commands, "compare", _compare, "compare two results files and judge, without running anything")
    compared.add_argument("current", metavar="CURRENT", help="results.json, or a report directory")
    compared.add_argument("baseline", metavar="BASELINE", help="the same, of the earlier run")
    compared.add_argument("--fail-on", metavar="LIST", help="as for run")
    report = _add(commands, "report", _report, "render the reports of a results file again")
    report.add_argument("results", metavar="RESULTS", help="results.json, or a report directory")
    report.add_argument("--out", metavar="DIR", help="where to write (beside the results)")
    report.add_argument("--history", metavar="DIR", help="results.json files of earlier runs, for the trend")
    _add_templates(report)
    merged = _add(commands, "merge", _merge, "join the shards of a run, or further iterations of it, and judge them")
    merged.add_argument("results", nargs="+", metavar="RESULTS", help="results.json, or a report directory")
    merged.add_argument("-o", "--output", metavar="FILE", required=True, help="file or directory to write")
    merged.add_argument("--config", metavar="FILE", help="configuration, as for run")
    merged.add_argument("--baseline", metavar="PATH", help="results.json of an earlier run to compare with")
    merged.add_argument("--history", metavar="DIR", help="results.json files of earlier runs, for the trend")
    merged.add_argument("--fail-on", metavar="LIST", help="as for run")
    checked = _add(commands, "validate", _validate, "check suites and configuration; run nothing")
    checked.add_argument("suites", nargs="*", metavar="SUITE", help="files or directories")
    checked.add_argument("--config", metavar="FILE", help="agenteval.yaml to check")
    started = _add(commands, "init", _init, "write a suite, a configuration and a workflow to start from")
    started.add_argument("directory", nargs="?", default=".", metavar="DIRECTORY", help="where to write (here)")
    started.add_argument(
        "--format",
        metavar="FORMAT",
        choices=_Choices(_starter_formats),
        default="holodeck",
        help="format of the suite (%(default)s)",
    )
    started.add_argument(
        "--agent",
        metavar="KIND",
        choices=_Choices(_starter_agents),
        default="command",
        help="how the agent is reached (%(default)s)",
    )
    schema = _add(commands, "schema", _schema, "print the JSON Schema of a file")
    schema.add_argument("name", metavar="NAME", choices=_Choices(_schema_names), help="which file")
    plugins = _add(commands, "plugins", _plugins, "list the installed extensions and whether they may run")
    plugins.add_argument("--json", action="store_true", help="print a JSON list")
    _add_publish(commands)
    action = _add(commands, "action", _action, "the container's entry: reads INPUT_* and writes GitHub's files")
    action.add_argument("--clean-up", action="store_true", help="close what a killed run left open")
    return parser


class _Choices:
    """The values of an option, which the registries name; they are imported when they are needed."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __contains__(self, name: object) -> bool:
        return name in tuple(self._names())


def _starter_formats() -> Iterable[str]:
    from agenteval.cli.init import starter_formats

    return starter_formats()


def _starter_agents() -> Iterable[str]:
    from agenteval.cli.init import starter_agents

    return starter_agents()


def _schema_names() -> Iterable[str]:
    from agenteval.cli.schema import schema_names

    return schema_names()


def _add(
    commands: Any, name: str, function: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(command=function, parser=parser)
    return parser


def _add_templates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--comment-template", metavar="FILE", help="template of your own for comment.md")
    parser.add_argument("--summary-template", metavar="FILE", help="template of your own for summary.md")


def _add_publish(commands: Any) -> None:
    parser = _add(commands, "publish", _publish, "write a results file to GitHub: a comment, and a check run")
    parser.add_argument("results", metavar="RESULTS", help="results.json, or a report directory")
    add = parser.add_argument
    add("--dry-run", action="store_true", help="print every body and every call; make none")
    add("--repository", metavar="OWNER/NAME", help="(as the results say)")
    add("--pull-request", metavar="N", type=_positive, help="to comment on (as the results say)")
    add("--commit", metavar="SHA", help="that a check run belongs to (as the results say)")
    add("--comment", choices=("always", "changes", "failures", "never"), default="always", help="when (%(default)s)")
    add("--comment-id", metavar="ID", default="", help="tells apart several comments on one pull request")
    add("--check-name", metavar="NAME", default="", help="of a check run to make (none)")
    add("--no-annotations", action="store_true", help="no annotations in the check run")
    add("--config", metavar="FILE", help="configuration, for what fails the gate")


def _add_run(commands: Any) -> None:
    parser = _add(commands, "run", _run, "evaluate suites and write reports")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="suite files or directories; found if not given")
    add = parser.add_argument
    add("--config", metavar="FILE", help="configuration (agenteval.yaml here, beside the suite, or above)")
    add("--agent", metavar="AGENT", help="name in agenteval.yaml, replay:FILE, python:MODULE:CALLABLE, or a URL")
    add("--baseline", metavar="PATH", help="results.json of an earlier run to compare with")
    add("--control", metavar="AGENT", help="with `confirm: base`: this agent stands for the base commit's")
    add("--history", metavar="DIR", help="results.json files of earlier runs, at any depth, for the trend")
    add("--out", metavar="DIR", default="agenteval-report", help="where reports go (%(default)s)")
    add("--iterations", metavar="N", type=_positive, help="times every case runs")
    add("--concurrency", metavar="N", type=_positive, help="cases at once")
    add("-k", "--filter", metavar="TEXT", help="only cases whose name or id contains this")
    add("--tag", metavar="TAG", action="append", default=[], help="only cases with this tag; repeatable")
    add(
        "--shard",
        metavar="I/N",
        help="only the I-th of N parts of the cases; `agenteval merge` joins and judges them",
    )
    add("--fail-on", metavar="LIST", help="failures,regressions,errors (default), inconclusive; or none")
    add("--max-llm-calls", metavar="N", type=_count, help="requests to models, repeated ones included")
    add("--max-cost-usd", metavar="USD", type=_amount, help="what models may cost")
    add("--max-time", metavar="SECONDS", type=_seconds, help="for the whole run; what has not run then is an error")
    add("--seed", metavar="N", type=_count, help="of all that is left to chance; recorded in the results")
    add("--resume", action="store_true", help="finish the run that was interrupted, from the journal in --out")
    add("--no-cache", action="store_true", help="ask models again, whatever the cache holds")
    add(
        "--traces", metavar="PATH", help="score recorded traces (JSON Lines, or a folder of them); no agent is called"
    )
    add("--keep-going", action="store_true", help="with --traces: leave out lines that are no traces")
    add("--quiet", action="store_true", help="no progress, only the result")
    _add_templates(parser)
