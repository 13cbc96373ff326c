"""The container's entry: action inputs in, the same pipeline, GitHub's files and a comment out."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from agenteval.action_inputs import Inputs, read_inputs
from agenteval.config import Settings
from agenteval.errors import AgentEvalError, ConfigError, Problem
from agenteval.github.commands import annotation, append_output, append_summary, stop_commands
from agenteval.github.event import Plan, plan, read_event
from agenteval.pipeline import Outcome, run
from agenteval.prepare import redactor
from agenteval.provenance import Provenance
from agenteval.report.markdown import render_comment, render_summary
from agenteval.report.problems import render_problems
from agenteval.results.store import RESULTS_FILE


def main(environment: Mapping[str, str]) -> int:
    """Run the action.

    Args:
        environment: the variables that the runner gave the container.

    Returns:
        The exit status, which is the gate's. Outputs, summary and comment are written whatever happens.
    """
    reporter = _Reporter(environment)
    try:
        inputs = read_inputs(environment)
        event = plan(environment, read_event(environment))
        reporter.knows(inputs, event)
        if event.refused:
            raise ConfigError(Problem(f"refused: {event.refused}"))
        settings = _settings(inputs, environment)
        with stop_commands():
            outcome = run(settings, _provenance(event))
        reporter.finished(outcome, settings)
    except AgentEvalError as error:
        reporter.failed(error)
        return error.exit_status
    except Exception as error:
        # The command line tells it as well; here it must also reach summary, outputs and comment.
        reporter.failed(AgentEvalError(f"internal error, please report it: {type(error).__name__}: {error}"))
        raise
    return outcome.exit_status


def _settings(inputs: Inputs, environment: Mapping[str, str]) -> Settings:
    """The settings of the run; from here on, the working directory is the one that was asked for."""
    directory = Path(environment.get("GITHUB_WORKSPACE") or ".") / inputs.working_directory
    try:
        os.chdir(directory)
    except OSError as error:
        raise ConfigError(Problem(f"{directory}: {error.strerror}", path="working-directory")) from None
    return inputs.settings()


def _provenance(event: Plan) -> Provenance:
    return Provenance(
        commit=event.commit,
        ref=event.ref,
        repository=event.repository,
        workflow_run_id=event.workflow_run_id,
    )


class _Reporter:
    """Writes what GitHub shows of a run, as far as this run may."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._inputs: Inputs | None = None
        self._event: Plan | None = None

    def knows(self, inputs: Inputs, event: Plan) -> None:
        """From here on it is known whether and where to comment."""
        self._inputs, self._event = inputs, event

    def finished(self, outcome: Outcome, settings: Settings) -> None:
        """Everything about a run that came to its end."""
        self._outputs(_outputs(outcome, self._relative(settings.out)))
        self._summary(render_summary(outcome.results, outcome.view))
        self._hand_over(settings.out)
        comment_id = self._inputs.comment_id if self._inputs else ""
        self._outputs({"comment-url": self._comment(render_comment(outcome.results, outcome.view, comment_id))})
        if not outcome.view.passed:
            _say(annotation("error", outcome.view.headline, title="agenteval"))

    def failed(self, error: AgentEvalError) -> None:
        """A run that could not start or broke off: what is wrong, wherever people look."""
        redact = redactor()
        problems = error.problems if isinstance(error, ConfigError) else (Problem(str(error)),)
        for problem in problems:
            where = f"{problem.path}: " if problem.path else ""
            text = redact(f"{where}{problem.message}")
            _say(annotation("error", text, file=problem.file or None, line=problem.line, title="agenteval"))
        text = redact(render_problems(problems))
        self._outputs({"verdict": "error"})
        self._summary(text)
        self._outputs({"comment-url": self._comment(text)})

    def _outputs(self, values: Mapping[str, str]) -> None:
        path = self._environment.get("GITHUB_OUTPUT")
        for name, value in values.items() if path else ():
            with _only_warned():
                append_output(str(path), name, value)

    def _summary(self, markdown: str) -> None:
        path = self._environment.get("GITHUB_STEP_SUMMARY")
        if path:
            with _only_warned():
                append_summary(path, markdown)

    def _comment(self, body: str) -> str:
        """Post or update the comment; returns its address, or an empty text and says why there is none."""
        from agenteval.github.client import Client
        from agenteval.github.comment import marker, upsert

        inputs, event = self._inputs, self._event
        if inputs is None or event is None or inputs.comment == "never":
            return ""
        if not event.may_comment or event.repository is None or event.pull_request is None:
            _say(f"agenteval: no comment: {event.reason}")
            return ""
        with _only_warned():
            client = Client.from_environment(inputs.github_token, self._environment)
            mark = marker(inputs.comment_id)
            outcome = upsert(client, event.repository, event.pull_request, body, mark)
            _say(f"agenteval: comment {outcome.action}: {outcome.url}")
            return outcome.url
        return ""

    def _relative(self, path: Path) -> Path:
        """A path that later steps understand, which see the workspace elsewhere."""
        workspace = Path(self._environment.get("GITHUB_WORKSPACE") or ".").resolve()
        absolute = path.resolve()
        return absolute.relative_to(workspace) if absolute.is_relative_to(workspace) else absolute

    def _hand_over(self, directory: Path) -> None:
        """Reports belong to the workspace's owner: the container is root, later steps are not."""
        workspace = self._environment.get("GITHUB_WORKSPACE")
        if not workspace or os.geteuid() != 0:
            return
        owner = Path(workspace).stat()
        for path in (directory, *directory.iterdir()):
            with contextlib.suppress(OSError):
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


@contextlib.contextmanager
def _only_warned() -> Iterator[None]:
    """What cannot be reported must not change the verdict: it becomes a warning."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - PyGithub raises assertions too; the gate is decided already
        text = str(error) if isinstance(error, AgentEvalError) else f"{type(error).__name__}: {error}"
        _say(annotation("warning", redactor()(text), title="agenteval"))


def _outputs(outcome: Outcome, directory: Path) -> dict[str, str]:
    """All outputs of action.yml but ``comment-url``; ``report-path`` is empty without an HTML report."""
    results = outcome.results
    summary, comparison = results.summary, results.comparison
    changes = [case.change for case in comparison.cases] if comparison else []
    html = directory / "report.html"
    return {
        "verdict": "error" if outcome.exit_status not in {0, 1} else outcome.gate.verdict,
        "pass-rate": _number(summary.pass_rate),
        "score": _number(summary.score),
        "passed": str(summary.passed),
        "failed": str(summary.failed),
        "errors": str(summary.errors),
        "skipped": str(summary.skipped),
        "total": str(summary.cases),
        "regressions": str(changes.count("regressed")),
        "improvements": str(changes.count("improved")),
        "baseline-sha": (comparison.baseline.commit or "") if comparison else "",
        "cost-usd": f"{summary.usage.cost_usd:.6f}",
        "results-path": str(directory / RESULTS_FILE),
        "junit-path": str(directory / "junit.xml"),
        "summary-path": str(directory / "summary.md"),
        "report-path": str(html) if html.exists() else "",
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
