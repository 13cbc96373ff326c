"""Entry point of the container: reads inputs, runs the pipeline, writes GitHub's files, comment and check run."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from agenteval.ci.github.action.context import Context
from agenteval.ci.github.action.isolation import isolated, restore_ownership
from agenteval.ci.github.action.outputs import RunnerFiles, outputs_of, say, warn
from agenteval.ci.github.checks.check_run import CheckRun, as_commands
from agenteval.ci.github.event import run_page
from agenteval.ci.github.publish.publisher import Content, Publisher, content_of
from agenteval.ci.github.runner import annotation, stop_commands
from agenteval.core.errors import AgentEvalError, ConfigError, Problem, unexpected_error
from agenteval.report.markdown.placeholders import render_problems, render_unfinished
from agenteval.report.markdown.render import render_summary
from agenteval.report.write import print_table
from agenteval.results.store import RESULTS_FILE
from agenteval.run.outcome import RunOutcome
from agenteval.run.pipeline import run
from agenteval.run.resolve.redactor import redactor

#: Default directory of the results to merge.
SHARDS = "agenteval-shards"
# State of the step; its end reads them as ``STATE_…`` variables.
_CHECK, _STAGE = "check", "stage"
_RUNNING, _FINISHED = "running", "finished"
# The runner shows ten annotations of a level per step, and one is for the gate.
_COMMANDS = 9


def main(environment: Mapping[str, str]) -> int:
    """Run the action.

    Args:
        environment: environment variables of the container, as the runner set them.

    Returns:
        The exit status of the gate. Outputs, summary and comment are always written.
    """
    files = RunnerFiles(environment)
    context = None
    # The first process of a container gets only the signals that it handles.
    signal.signal(signal.SIGTERM, _end)
    try:
        context = Context.read(environment)
        with isolated(environment):
            return _act(context, files)
    except AgentEvalError as error:
        _failed(error, context, files)
        return error.exit_status
    except Exception as error:
        # The command line reports it too; the action also writes it to summary, outputs and comment.
        _failed(unexpected_error(error), context, files)
        raise


def clean_up(environment: Mapping[str, str]) -> int:
    """Run the end of the step, in a separate container: remove the "in progress" note of a killed run.

    Returns:
        0; a failure is a warning.
    """
    restore_ownership(environment)
    if environment.get(f"STATE_{_STAGE}") != _RUNNING:
        return 0
    try:
        context = Context.read(environment)
    except AgentEvalError as error:
        warn([str(error)])
        return 0
    RunnerFiles(environment).summary(render_unfinished(context.event.commit or "", run_page(environment)))
    publisher = context.publisher
    if publisher is not None:
        check = environment.get(f"STATE_{_CHECK}", "")
        publisher.check = CheckRun(int(check)) if check.isascii() and check.isdigit() else None
        publisher.abandon()
        _tell(publisher)
    return 0


def _end(number: int, _frame: object) -> NoReturn:
    """Handle a signal before or after the run; the end of the step removes the "in progress" note."""
    raise SystemExit(128 + number)


def _act(context: Context, files: RunnerFiles) -> int:
    if context.event.refused:
        raise ConfigError(Problem(f"refused: {context.event.refused}"))
    context.enter()
    if context.inputs.mode == "publish":
        return _publish_first_stage(context, files)
    _begin(context, files)
    settings, host = context.inputs.settings(), context.run_context()
    directory = Path(context.inputs.report_dir)
    with stop_commands():
        if context.inputs.mode == "merge":
            from agenteval.run.merge import merge_files

            outcome = merge_files(_parts(context.inputs.suites), directory, settings, host)
        else:
            outcome = run(settings, host)
            print_table(outcome.results, outcome.view, sys.stdout)
    _finish(context, files, outcome, directory)
    return outcome.exit_status


def _begin(context: Context, files: RunnerFiles) -> None:
    """Announce that the evaluation is running, and record that the note must be removed."""
    publisher = context.publisher
    if publisher is None:
        return
    publisher.begin()
    check = {_CHECK: str(publisher.check.id)} if publisher.check else {}
    files.state(check | {_STAGE: _RUNNING})


def _finish(context: Context, files: RunnerFiles, outcome: RunOutcome, directory: Path) -> None:
    """Write all outputs of a finished run."""
    files.outputs(outputs_of(outcome, files.relative(directory)))
    look = outcome.presentation
    files.report(lambda room: render_summary(outcome.results, outcome.view, limit=room, presentation=look))
    files.give_to_user(directory)
    content = content_of(
        outcome.results, outcome.view, context.options, outcome.archive, outcome.quarantined, presentation=look
    )
    _publish(context, files, content)
    publisher = context.publisher
    if publisher is None or publisher.check is None:
        for line in as_commands(content.annotations, _COMMANDS):
            say(line)
    if not outcome.view.passed:
        say(annotation("error", outcome.view.headline, title="agenteval"))


def _failed(error: AgentEvalError, context: Context | None, files: RunnerFiles) -> None:
    """Write the problems of a run that could not start or failed to all outputs."""
    redact = redactor()
    problems = error.problems if isinstance(error, ConfigError) else (Problem(str(error)),)
    for problem in problems:
        where = f"{problem.path}: " if problem.path else ""
        text = redact(f"{where}{problem.message}")
        say(annotation("error", text, file=problem.file or None, line=problem.line, title="agenteval"))
    text = redact(render_problems(problems))
    files.outputs({"verdict": "error"})
    files.summary(text)
    if context is not None:
        files.give_to_user(Path(context.inputs.report_dir))
    if context is not None and context.inputs.mode != "publish":
        title = redact(f"{len(problems)} problems" if len(problems) > 1 else problems[0].message)
        _publish(context, files, Content(title, text, text, "failure"))


def _publish(context: Context, files: RunnerFiles, content: Content) -> None:
    publisher = context.publisher
    url = ""
    if publisher is not None:
        url = publisher.finish(content)
        _tell(publisher)
    if context.event.reason and not context.event.may_comment:
        say(f"agenteval: no comment: {context.event.reason}")
    files.outputs({"comment-url": url})
    files.state({_STAGE: _FINISHED})


def _publish_first_stage(context: Context, files: RunnerFiles) -> int:
    """Publish another workflow run; the exit status tells whether publishing worked, not the gate."""
    from agenteval.ci.github.action.fork_publish import publish_first_stage

    published = publish_first_stage(context)
    if published is None:
        return 0
    files.summary(published.content.markdown)
    files.outputs({"comment-url": published.comment_url, "verdict": published.verdict})
    for line in published.done:
        say(f"agenteval: {line}")
    return 0


def _parts(places: tuple[str, ...]) -> list[Path]:
    """Return the results files at the given paths, or at the default path."""
    folders = [Path(place) for place in places] or [Path(SHARDS)]
    files = sorted(file for place in folders for file in ([place] if place.is_file() else place.rglob(RESULTS_FILE)))
    if not files:
        raise ConfigError(Problem(f"there is no {RESULTS_FILE} in {', '.join(map(str, folders))}", path="suite"))
    return files


def _tell(publisher: Publisher) -> None:
    for line in publisher.done:
        say(f"agenteval: {line}")
    # A failure at the start of a run usually repeats at its end.
    warn(list(dict.fromkeys(publisher.problems)))
