"""Parses options, calls the pipeline, and maps outcomes to exit statuses."""

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
  3  the infrastructure failed: agent unreachable, too many errors, disk full
  130, 143  interrupted by SIGINT or SIGTERM; reports contain the finished cases"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: arguments without the program's name; default: ``sys.argv``.

    Returns:
        The exit status.
    """
    # A run keeps almost all its objects. Collecting garbage every 700 objects would take a quarter of the time.
    gc.set_threshold(100_000, 50, 1000)
    # The last collection at exit is not needed either.
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
        # The reader of the output has ended, so the error cannot be shown.
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
        # argparse accepts suites only before the first option; users also write them after it.
        arguments.suites += rest
    return arguments


def _keep_streams_writable() -> None:
    """Escape characters that the terminal's encoding lacks instead of raising."""
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
        print(terminal(f"agenteval: without problems: {', '.join(error.fine)}"), file=sys.stderr)
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
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount in US dollars")
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
    """Return the parser of all commands."""
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
    compared = _add(
        commands, "compare", _compare, "compare two results files and decide the gate, without running anything"
    )
    compared.add_argument("current", metavar="CURRENT", help="results.json, or a report directory")
    compared.add_argument(
        "baseline", metavar="BASELINE", help="results.json, or a report directory, of the earlier run"
    )
    compared.add_argument("--fail-on", metavar="LIST", help="as for run")
    report = _add(commands, "report", _report, "write the reports of a results file again")
    report.add_argument("results", metavar="RESULTS", help="results.json, or a report directory")
    report.add_argument("--out", metavar="DIR", help="directory to write to; default: beside the results")
    report.add_argument("--history", metavar="DIR", help="results.json files of earlier runs, for the trend")
    _add_templates(report)
    merged = _add(commands, "merge", _merge, "join the shards of a run, or further iterations, and decide the gate")
    merged.add_argument("results", nargs="+", metavar="RESULTS", help="results.json, or a report directory")
    merged.add_argument("-o", "--output", metavar="FILE", required=True, help="file or directory to write")
    merged.add_argument("--config", metavar="FILE", help="configuration, as for run")
    merged.add_argument("--baseline", metavar="PATH", help="results.json of an earlier run to compare with")
    merged.add_argument("--history", metavar="DIR", help="results.json files of earlier runs, for the trend")
    merged.add_argument("--fail-on", metavar="LIST", help="as for run")
    checked = _add(commands, "validate", _validate, "check suites and configuration without running anything")
    checked.add_argument("suites", nargs="*", metavar="SUITE", help="files or directories")
    checked.add_argument("--config", metavar="FILE", help="agenteval.yaml to check")
    started = _add(commands, "init", _init, "write a starter: a suite, a configuration, a workflow and an agent")
    started.add_argument("directory", nargs="?", default=".", metavar="DIRECTORY", help="directory to write to")
    started.add_argument(
        "--format",
        metavar="FORMAT",
        choices=_Choices(_starter_formats),
        default="holodeck",
        help="format of the suite; default: %(default)s",
    )
    started.add_argument(
        "--agent",
        metavar="KIND",
        choices=_Choices(_starter_agents),
        default="command",
        help="kind of the agent; default: %(default)s",
    )
    schema = _add(commands, "schema", _schema, "print the JSON Schema of a file")
    schema.add_argument("name", metavar="NAME", choices=_Choices(_schema_names), help="which file")
    plugins = _add(commands, "plugins", _plugins, "list the installed extensions and whether they may run")
    plugins.add_argument("--json", action="store_true", help="print a JSON list")
    _add_publish(commands)
    action = _add(commands, "action", _action, "run the container action: read INPUT_* and write GitHub's files")
    action.add_argument("--clean-up", action="store_true", help="remove the 'in progress' note of a killed run")
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
    parser.add_argument("--comment-template", metavar="FILE", help="user template for comment.md")
    parser.add_argument("--summary-template", metavar="FILE", help="user template for summary.md")


def _add_publish(commands: Any) -> None:
    parser = _add(commands, "publish", _publish, "post a results file to GitHub as a comment and a check run")
    parser.add_argument("results", metavar="RESULTS", help="results.json, or a report directory")
    add = parser.add_argument
    add("--dry-run", action="store_true", help="print every API call with its body; make none")
    add("--repository", metavar="OWNER/NAME", help="repository; default: from the results")
    add("--pull-request", metavar="N", type=_positive, help="pull request to comment on; default: from the results")
    add("--commit", metavar="SHA", help="commit of the check run; default: from the results")
    add(
        "--comment",
        choices=("always", "changes", "failures", "never"),
        default="always",
        help="when to comment; default: %(default)s",
    )
    add("--comment-id", metavar="ID", default="", help="distinguishes several comments on one pull request")
    add("--check-name", metavar="NAME", default="", help="name of a check run to create; default: no check run")
    add("--no-annotations", action="store_true", help="create the check run without annotations")
    add("--config", metavar="FILE", help="agenteval.yaml with the gate's settings")


def _add_run(commands: Any) -> None:
    parser = _add(commands, "run", _run, "evaluate suites and write reports")
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help="suite files or directories; default: suites at the usual paths"
    )
    add = parser.add_argument
    add(
        "--config",
        metavar="FILE",
        help="configuration; default: agenteval.yaml here, beside the suite, or in a parent directory",
    )
    add("--agent", metavar="AGENT", help="name in agenteval.yaml, replay:FILE, python:MODULE:CALLABLE, or a URL")
    add("--baseline", metavar="PATH", help="results.json of an earlier run to compare with")
    add("--control", metavar="AGENT", help="with `confirm: base`: agent to run instead of the base commit's")
    add("--history", metavar="DIR", help="results.json files of earlier runs, at any depth, for the trend")
    add("--out", metavar="DIR", default="agenteval-report", help="directory for reports; default: %(default)s")
    add("--iterations", metavar="N", type=_positive, help="number of times each case runs")
    add("--concurrency", metavar="N", type=_positive, help="cases that run at the same time")
    add("-k", "--filter", metavar="TEXT", help="run only cases whose name or id contains this text")
    add("--tag", metavar="TAG", action="append", default=[], help="run only cases with this tag; repeatable")
    add(
        "--shard",
        metavar="I/N",
        help="run only shard I of N; `agenteval merge` joins the shards and decides the gate",
    )
    add(
        "--fail-on",
        metavar="LIST",
        help="results that fail the gate: failures,regressions,errors (default), inconclusive; or none",
    )
    add("--max-llm-calls", metavar="N", type=_count, help="limit of requests to models, including retries")
    add("--max-cost-usd", metavar="USD", type=_amount, help="limit of the cost of models in US dollars")
    add(
        "--max-time",
        metavar="SECONDS",
        type=_seconds,
        help="time limit for the whole run in seconds; cases not finished by then are errors",
    )
    add("--seed", metavar="N", type=_count, help="random seed; recorded in results.json")
    add("--resume", action="store_true", help="finish an interrupted run from the journal in --out")
    add("--no-cache", action="store_true", help="neither read nor write the cache of model replies")
    add(
        "--traces",
        metavar="PATH",
        help="score recorded traces (a JSON Lines file, or a folder) without calling an agent",
    )
    add("--keep-going", action="store_true", help="with --traces: leave out lines that are not traces")
    add("--quiet", action="store_true", help="show only the result, no progress")
    _add_templates(parser)
