"""A step of a workflow: reads inputs, runs the pipeline, writes GitHub's outputs; also for the command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import AgentEvalError, ConfigError, Kind, Problem, problems_of, unexpected_error
from agenteval.core.escape import address, markdown_inline
from agenteval.core.files import below
from agenteval.core.mistakes import Mistake, counted, mistakes
from agenteval.core.secrets import redactor, shortened
from agenteval.core.shared_files import CACHE_KEY
from agenteval.github.check_run import CheckRun, as_commands
from agenteval.github.client import GitHubClient, GithubError
from agenteval.github.context import Context
from agenteval.github.event import run_page
from agenteval.github.inputs import read_inputs, step_caches
from agenteval.github.isolation import isolated, restore_files
from agenteval.github.publisher import Content, Publisher, content_of
from agenteval.github.runner import RunnerFiles, annotation, outputs_of, say, stop_commands, warn
from agenteval.github.workspace import (
    check_report_directory,
    give_back,
    named_report_directory,
    out_of_reach,
    within_workspace,
    without_earlier_reports,
    workspace_of_user,
)
from agenteval.report.markdown import render_summary
from agenteval.report.overview import render_problems, render_unfinished, render_unpublished
from agenteval.report.report import print_result
from agenteval.report.terminal_lines import TerminalDetail
from agenteval.results.comparison import Comparison
from agenteval.results.store import RESULTS_FILE
from agenteval.run.config import Settings
from agenteval.run.outcome import RunOutcome
from agenteval.run.pipeline import run_repeatedly

if TYPE_CHECKING:
    from github.Issue import Issue
    from github.Repository import Repository

#: Default directory of the results to decide on.
SHARDS = "agenteval-shards"
# State of the step; its end reads them as ``STATE_…`` variables.
_CHECK, _STAGE = "check", "stage"
_RUNNING, _FINISHED = "running", "finished"
# The runner shows ten annotations of a level per step, and one is for the gate.
_COMMANDS = 9


def main(environment: Mapping[str, str]) -> int:
    """Run the action in the environment of its step; return the exit status of the gate."""
    return _run_step(environment, lambda: Context.read(environment), named_report_directory(environment))


def _run_step(environment: Mapping[str, str], read: Callable[[], Context], reports: Path | None) -> int:
    """Run a step of a workflow; outputs, summary and comment are always written."""
    files = RunnerFiles(environment)
    context = None
    try:
        with without_earlier_reports(reports, environment):
            context = read()
            with (
                workspace_of_user(environment),
                within_workspace(environment),
                isolated(environment),
                step_caches(context.inputs, context.workspace),
            ):
                return _act(context, files)
    except AgentEvalError as error:
        _failed(error, context, files)
        return error.exit_status
    except (KeyboardInterrupt, SystemExit):
        # A signal before or after the run; the end of the step removes the "in progress" note.
        files.outputs({"verdict": "error"})
        raise
    except Exception as error:
        # The command line reports it too; the action also writes it to summary, outputs and comment.
        _failed(unexpected_error(error), context, files)
        raise


def clean_up(environment: Mapping[str, str]) -> int:
    """Run the end of the step, in a separate container: remove the "in progress" note of a killed run."""
    give_back(environment)
    restore_files(environment)
    if environment.get(f"STATE_{_STAGE}") != _RUNNING:
        return 0
    try:
        context = Context.read(environment)
    except AgentEvalError as error:
        warn([str(error)])
        return 0
    text = render_unfinished(context.event.commit or "", run_page(environment), context.step.title)
    RunnerFiles(environment).summary(text)
    publisher = context.publisher
    if publisher is not None:
        check = environment.get(f"STATE_{_CHECK}", "")
        publisher.check = CheckRun(int(check)) if check.isascii() and check.isdigit() else None
        publisher.abandon()
        _tell(publisher, RunnerFiles(environment))
    return 0


def _act(context: Context, files: RunnerFiles) -> int:
    if context.event.refused:
        raise ConfigError(Problem(f"refused: {context.event.refused}", kind=Kind.GITHUB))
    if context.inputs.mode == "publish":
        return _publish_first_stage(context, files)
    if context.inputs.mode != "gate":
        context.check_checkout()
    context.enter()
    check_report_directory(context.inputs.out)
    runs = context.runs
    # User code can rename the working directory. Its path is where later steps look for the reports.
    directory = Path.cwd() / context.inputs.out
    _begin(context, files)
    settings, host = context.settings, context.run_context()
    with stop_commands(), out_of_reach(directory) as private:
        if context.inputs.mode == "gate":
            from agenteval.run.merge import merge_files

            outcome = merge_files(_parts(context.inputs.suites), private, settings, host)
        elif context.inputs.mode == "prove":
            from agenteval.run.prove import prove_file

            outcome = prove_file(_whole_run(context.inputs.suites), private, settings, host)
        else:
            host = replace(host, published=directory)
            outcome = run_repeatedly(settings, private, runs, lambda line: say(f"agenteval: {line}"), host)
            print_result(outcome.report, sys.stdout, TerminalDetail(settings.verbosity))
    _finish(context, files, outcome, directory)
    return outcome.exit_status


def _begin(context: Context, files: RunnerFiles) -> None:
    publisher = context.publisher
    if publisher is None:
        return
    publisher.begin()
    check = {_CHECK: str(publisher.check.id)} if publisher.check else {}
    files.state(check | {_STAGE: _RUNNING})


def _finish(context: Context, files: RunnerFiles, outcome: RunOutcome, directory: Path) -> None:
    files.outputs(outputs_of(outcome, files.relative(directory)))
    files.report(lambda room: render_summary(outcome.report, limit=room))
    content = content_of(outcome.report, context.options, name=context.step.title)
    if outcome.is_cancelled:
        _abandon(context, files)
        return
    _publish(context, files, content)
    _report_decline(context, outcome)
    _annotate(mistakes(outcome.dead))
    publisher = context.publisher
    if publisher is None or publisher.check is None:
        for line in as_commands(content.annotations, _COMMANDS):
            say(line)
    if outcome.exit_status:
        say(annotation("error", outcome.gate.headline, title="agenteval"))


def _abandon(context: Context, files: RunnerFiles) -> None:
    """Say on GitHub that the run was cancelled: its check run is no failure, and nobody needs a comment."""
    if context.publisher is not None:
        context.publisher.abandon()
        _tell(context.publisher, files)
    files.state({_STAGE: _FINISHED})


def _report_decline(context: Context, outcome: RunOutcome) -> None:
    """Open or update an issue if a look back at the base branch proved a decline; a failure is a warning."""
    comparison, repository = outcome.results.comparison, context.event.repository
    is_proven = comparison is not None and comparison.state == "proven" and bool(comparison.decline)
    if comparison is None or not is_proven or repository is None:
        return
    branch = (context.event.ref or "").removeprefix("refs/heads/")
    try:
        title, body = _issue_text(comparison, branch, run_page(context.environment))
        done, url = _publish_issue(context.client(), repository, title, body)
    except AgentEvalError as error:
        warn([f"the base branch declines slowly ({comparison.headline}), and no issue reports it: {error}"])
    else:
        say(f"agenteval: issue {done}: {url}")


_COMMIT = 12
_ISSUE_TITLE_LIMIT = 200


def _issue_text(comparison: Comparison, branch: str, run_url: str) -> tuple[str, str]:
    """Return the title and body of the issue about a proven decline; later runs find it by its first line."""
    # The start names the state that was left: an issue of another one is another issue.
    start = re.sub("[^0-9a-f]", "", comparison.start_sha or "")
    mark = f"<!-- agenteval:decline {start[:_COMMIT]} -->"
    title = shortened(f"agenteval: {comparison.headline} on {branch}", _ISSUE_TITLE_LIMIT)
    lines = [
        mark,
        f"{markdown_inline(comparison.decline)}",
        "",
        f"The newest commit ran side by side with the early one in [this run]({address(run_url)}). "
        "Look for the cause in the merges since then, repair it, and close this issue.",
    ]
    return title, "\n".join(lines) + "\n"


_ISSUE_PERMISSIONS = ("issues: write",)
# Anybody can open an issue in a public repository and quote the mark of another one.
_TRUSTED = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


def _publish_issue(client: GitHubClient, repository: str, title: str, body: str) -> tuple[str, str]:
    """Open the issue, or update the open one with the same first line; return which of both, and its address."""
    with client.open(f"open an issue in {repository}", _ISSUE_PERMISSIONS) as api:
        place = api.get_repo(repository)
        known = _known(place, body.partition("\n")[0])
        if known is None:
            return "opened", place.create_issue(title, body).html_url
        known.edit(title=title, body=body)
        return "updated", known.html_url


def _known(place: Repository, mark: str) -> Issue | None:
    for issue in place.get_issues(state="open", sort="created", direction="asc"):
        is_marked = (issue.body or "").partition("\n")[0].strip() == mark
        if is_marked and issue.pull_request is None and _is_trusted(issue):
            return issue
    return None


def _is_trusted(issue: Issue) -> bool:
    association = issue.raw_data.get("author_association")
    return issue.user.type == "Bot" or association in _TRUSTED


def _failed(error: AgentEvalError, context: Context | None, files: RunnerFiles) -> None:
    redact = redactor()
    found = mistakes(problems_of(error))
    _annotate(found)
    text = render_problems(problems_of(error), context.step.title if context else "")
    files.outputs({"verdict": "error"})
    files.summary(text)
    if context is not None and context.inputs.mode != "publish":
        title = redact(counted(found) if len(found) > 1 else found[0].problem.message)
        _publish(context, files, Content(title, text, text, "failure"))


def _annotate(found: Sequence[Mistake]) -> None:
    redact = redactor()
    for mistake in found:
        place, text = mistake.problem, redact(f"{mistake.text}\n{mistake.page}")
        say(annotation("error", text, file=redact(place.file) or None, line=place.line, title="agenteval"))


def _publish(context: Context, files: RunnerFiles, content: Content) -> None:
    publisher = context.publisher
    url = ""
    if publisher is not None:
        url = publisher.finish(content)
        _tell(publisher, files)
    if context.event.reason and not context.event.may_comment:
        say(f"agenteval: no comment: {context.event.reason}")
    files.outputs({"comment-url": url})
    files.state({_STAGE: _FINISHED})


def _publish_first_stage(context: Context, files: RunnerFiles) -> int:
    from agenteval.github.fork_publish import publish_first_stage

    every = publish_first_stage(context)
    for published in every:
        files.summary(published.content.job_summary)
        for line in published.done:
            say(f"agenteval: {line}")
    for worst in every[:1]:
        files.outputs({"comment-url": worst.comment_url, "verdict": worst.verdict})
    contradictions = dict.fromkeys(published.contradiction for published in every if published.contradiction)
    problems = dict.fromkeys(map(redactor(), (problem for published in every for problem in published.problems)))
    for text in (*problems, *contradictions):
        say(annotation("error", text, title="agenteval"))
    if problems:
        files.summary(render_unpublished(list(problems)))
        return GithubError.exit_status
    return 1 if contradictions else 0


def _parts(places: tuple[Path, ...]) -> list[Path]:
    # Other tools name their files otherwise, so a folder without results.json is left to the reader of all tools.
    return [
        file
        for place in places or (Path(SHARDS),)
        for file in ([place] if place.is_file() else _results_below(place))
    ]


def _whole_run(places: tuple[Path, ...]) -> Path:
    found = _parts(places)
    if len(found) != 1:
        message = f"mode prove is for one run, and there are {len(found)}; merge the shards first, with mode gate"
        raise ConfigError(Problem(message, path="suite", kind=Kind.GITHUB))
    return found[0]


def _results_below(place: Path) -> list[Path]:
    try:
        found = [folder / name for folder, _, names in below(place) for name in names if name == RESULTS_FILE]
        return sorted(found) or [place]
    except OSError as error:
        raise ConfigError(Problem(f"{place} {error.strerror}", path="suite", kind=Kind.GITHUB)) from None


def _tell(publisher: Publisher, files: RunnerFiles) -> None:
    for line in publisher.done:
        say(f"agenteval: {line}")
    # A failure at the start of a run usually repeats at its end.
    problems = list(dict.fromkeys(publisher.problems))
    warn(problems)
    if problems:
        files.summary(render_unpublished([redactor()(problem) for problem in problems]))


_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")


def run_on_github(
    settings: Settings, out: Path, runs: int, given: Mapping[str, Any], environment: Mapping[str, str]
) -> int:
    """Run suites in a job of a workflow, in the working directory; return the exit status of the gate.

    Args:
        given: the options of the command line that are inputs too, by name.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        raise ConfigError(
            Problem("--github needs a job of a GitHub workflow; GITHUB_ACTIONS is not 'true'", kind=Kind.GITHUB)
        )
    if settings.resume:
        raise ConfigError(
            Problem("--resume has no effect with --github, because user code can write the journal", kind=Kind.GITHUB)
        )
    asked: dict[str, Any] = {"baseline": "none", "comment": "never", **given}
    inputs = replace(
        read_inputs({name: environment[name] for name in (CACHE_KEY,) if name in environment}),
        working_directory=str(Path.cwd()),
        github_token=next((environment[name] for name in _TOKENS if environment.get(name)), ""),
        runs=runs,
        shard=settings.shard,
        out=out,
        **asked,
    )
    return _run_step(environment, lambda: Context.of(environment, inputs, replace(settings, out=out)), out)
