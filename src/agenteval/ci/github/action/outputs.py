"""What the action leaves behind in the runner's files, whatever became of the run."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agenteval.ci.github.runner import annotation, append_output, append_summary, summary_room
from agenteval.core.errors import AgentEvalError
from agenteval.report.size_limits import SUMMARY_LIMIT, ReportTooLargeError
from agenteval.results.store import RESULTS_FILE
from agenteval.run.outcome import RunOutcome
from agenteval.run.resolve.redactor import redactor


class RunnerFiles:
    """The files that the runner reads after a step: outputs, job summary, and state for the end of the job.

    Args:
        environment: the variables that the runner gave the container.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def outputs(self, values: Mapping[str, str]) -> None:
        """Sets outputs of the step."""
        self._append("GITHUB_OUTPUT", values)

    def state(self, values: Mapping[str, str]) -> None:
        """Keeps values for the step's own end, where they are ``STATE_…`` variables."""
        self._append("GITHUB_STATE", values)

    def summary(self, markdown: str) -> None:
        """Adds to the job summary."""
        path = self._environment.get("GITHUB_STEP_SUMMARY")
        if path:
            with only_warned():
                append_summary(path, markdown)

    def report(self, render: Callable[[int], str]) -> None:
        """Adds a report to the job summary, with as much detail as there is room for.

        Args:
            render: makes it, in at most so many bytes.
        """
        path = self._environment.get("GITHUB_STEP_SUMMARY")
        if path:
            with only_warned():
                try:
                    text = render(summary_room(path))
                except ReportTooLargeError:
                    # Then a note takes its place.
                    text = render(SUMMARY_LIMIT)
                append_summary(path, text)

    def relative(self, path: Path) -> Path:
        """A path that later steps understand, which see the workspace elsewhere."""
        workspace = Path(self._environment.get("GITHUB_WORKSPACE") or ".").resolve()
        absolute = path.resolve()
        return absolute.relative_to(workspace) if absolute.is_relative_to(workspace) else absolute

    def give_to_user(self, directory: Path) -> None:
        """Reports belong to the workspace's owner: the container is root, later steps are not."""
        workspace = self._environment.get("GITHUB_WORKSPACE")
        if not workspace or os.geteuid() != 0:
            return
        owner = Path(workspace).stat()
        # An agent may have put a link in its place, to what is not its owner's.
        if not directory.resolve().is_relative_to(Path(workspace).resolve()):
            return
        for path in (directory, *directory.rglob("*")):
            with contextlib.suppress(OSError):
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)

    def _append(self, variable: str, values: Mapping[str, str]) -> None:
        path = self._environment.get(variable)
        for name, value in values.items() if path else ():
            with only_warned():
                append_output(str(path), name, value)


def outputs_of(outcome: RunOutcome, directory: Path) -> dict[str, str]:
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


def say(text: str) -> None:
    """One line, or a command, for the log."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def warn(texts: Sequence[str]) -> None:
    """Warnings for people: what could not be reported must not change the verdict."""
    redact = redactor()
    for text in texts:
        say(annotation("warning", redact(text), title="agenteval"))


@contextlib.contextmanager
def only_warned() -> Iterator[None]:
    """What fails inside becomes a warning."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the gate is decided already, whatever this was
        warn([str(error) if isinstance(error, AgentEvalError) else f"{type(error).__name__}: {error}"])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
