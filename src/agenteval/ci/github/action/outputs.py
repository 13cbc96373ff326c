"""Writes the runner's files: outputs, job summary and state."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agenteval.ci.github.runner import annotation, append_output, append_summary, summary_room
from agenteval.core.errors import AgentEvalError
from agenteval.core.masking import redactor
from agenteval.report.size_limits import SUMMARY_LIMIT, ReportTooLargeError
from agenteval.results.store import RESULTS_FILE
from agenteval.run.outcome import RunOutcome


class RunnerFiles:
    """Files that the runner reads after a step: outputs, job summary, and state for the end of the job.

    Args:
        environment: environment variables of the container, as the runner set them.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def outputs(self, values: Mapping[str, str]) -> None:
        """Set outputs of the step."""
        self._append("GITHUB_OUTPUT", values)

    def state(self, values: Mapping[str, str]) -> None:
        """Store values for the end of the step, which reads them as ``STATE_…`` variables."""
        self._append("GITHUB_STATE", values)

    def summary(self, markdown: str) -> None:
        """Append to the job summary."""
        path = self._environment.get("GITHUB_STEP_SUMMARY")
        if path:
            with only_warned():
                append_summary(path, markdown)

    def report(self, render: Callable[[int], str]) -> None:
        """Append a report to the job summary, with as much detail as fits.

        Args:
            render: renders the report in at most the given number of bytes.
        """
        path = self._environment.get("GITHUB_STEP_SUMMARY")
        if path:
            with only_warned():
                try:
                    text = render(summary_room(path))
                except ReportTooLargeError:
                    # Write a note instead.
                    text = render(SUMMARY_LIMIT)
                append_summary(path, text)

    def relative(self, path: Path) -> Path:
        """Return a path for later steps, which see the workspace at another path."""
        workspace = Path(self._environment.get("GITHUB_WORKSPACE") or ".").resolve()
        absolute = path.resolve()
        return absolute.relative_to(workspace) if absolute.is_relative_to(workspace) else absolute

    def _append(self, variable: str, values: Mapping[str, str]) -> None:
        path = self._environment.get(variable)
        for name, value in values.items() if path else ():
            with only_warned():
                append_output(str(path), name, value)


def outputs_of(outcome: RunOutcome, directory: Path) -> dict[str, str]:
    """Return all outputs of action.yml except ``comment-url``; ``report-path`` is empty without an HTML report."""
    results = outcome.results
    summary, comparison = results.summary, results.comparison
    changes = [case.change for case in comparison.cases] if comparison else []
    html = directory / "report.html"
    return {
        "verdict": outcome.gate.verdict,
        "pass-rate": _number(summary.pass_rate),
        "score": _number(summary.score),
        "passed": str(summary.passed),
        "failed": str(summary.failed),
        "errors": str(summary.errors),
        "skipped": str(summary.skipped),
        "total": str(summary.cases),
        "suite-total": _count(results.run.coverage.cases if results.run.coverage is not None else None),
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
    """Write one line or a workflow command to the log, without secrets."""
    sys.stdout.write(redactor()(text) + "\n")
    sys.stdout.flush()


def warn(texts: Sequence[str]) -> None:
    """Write warnings to the log; a failed report does not change the verdict."""
    redact = redactor()
    for text in texts:
        say(annotation("warning", redact(text), title="agenteval"))


@contextlib.contextmanager
def only_warned() -> Iterator[None]:
    """Turn an exception inside the block into a warning."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the gate is already decided
        warn([str(error) if isinstance(error, AgentEvalError) else f"{type(error).__name__}: {error}"])


def _count(value: int | None) -> str:
    return "" if value is None else str(value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
