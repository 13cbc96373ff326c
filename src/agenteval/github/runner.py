"""Workflow commands and command files of the runner: outputs, job summary, state."""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TextIO

from agenteval.core.errors import AgentEvalError, InfrastructureError
from agenteval.core.escape import workflow_data, workflow_property
from agenteval.core.secrets import redactor
from agenteval.core.writing import append_file
from agenteval.report.parts import SUMMARY_LIMIT, ReportTooLargeError
from agenteval.results.store import RESULTS_FILE
from agenteval.run.outcome import RunOutcome

# The runner shows nothing above 1,048,576 bytes.
LARGEST_SUMMARY = 1_000_000

_TOO_LARGE = (
    "> [!NOTE]\n> The evaluation report is too large for the job summary ({size:,} bytes).\n"
    "> It is in the report directory, as `summary.md`.\n"
)


def append_output(path: str | Path, name: str, value: str) -> None:
    """Append one output to the file of ``GITHUB_OUTPUT``; characters that UTF-8 cannot encode become ``?``."""
    # Nobody can guess it, so no value contains it.
    delimiter = f"ghadelimiter_{secrets.token_hex(16)}"
    _append(Path(path), f"{name}<<{delimiter}\n{value}\n{delimiter}\n")


def append_summary(path: str | Path, markdown: str, limit: int = LARGEST_SUMMARY) -> bool:
    """Append Markdown to the file of ``GITHUB_STEP_SUMMARY``; return whether it fits.

    Args:
        path: the file; its current content counts.
        markdown: text to add. If it does not fit, a short note is added instead, if that fits.
    """
    file = Path(path)
    used = _size(file)
    # A heading or table must start on a new line.
    start = "\n" if used else ""
    text = f"{start}{markdown}\n"
    size = len(_encoded(text))
    if used + size <= limit:
        _append(file, text)
        return True
    note = start + _TOO_LARGE.format(size=size)
    if used + len(_encoded(note)) <= limit:
        _append(file, note)
    return False


def summary_room(path: str | Path, limit: int = LARGEST_SUMMARY) -> int:
    """Return the bytes that `append_summary` can still add; negative above the limit."""
    used = _size(Path(path))
    return limit - used - (len("\n\n") if used else len("\n"))


def annotation(
    level: Literal["error", "warning", "notice"],
    message: str,
    *,
    file: str | None = None,
    line: int | None = None,
    title: str | None = None,
) -> str:
    """Return the command that shows a message, optionally at a place in a file."""
    places = {"file": file, "line": None if line is None else str(line), "title": title}
    properties = ",".join(f"{key}={workflow_property(text)}" for key, text in places.items() if text)
    return f"::{level}{' ' if properties else ''}{properties}::{workflow_data(message)}"


@contextmanager
def stop_commands(stream: TextIO | None = None) -> Iterator[None]:
    """Disable workflow commands inside the block, for printing untrusted text."""
    out = sys.stdout if stream is None else stream
    token = secrets.token_hex(16)
    _say(out, f"::stop-commands::{token}\n")
    try:
        yield
    finally:
        # A command must start a line, and the text may not end with a line end.
        _say(out, f"\n::{token}::\n")


def _say(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size if file.exists() else 0
    except OSError as error:
        raise InfrastructureError(f"cannot read {file}: {error.strerror or error}") from error


def _append(file: Path, text: str) -> None:
    # Write bytes, because text mode would change line ends inside a value.
    try:
        append_file(file, _encoded(text))
    except OSError as error:
        raise InfrastructureError(f"cannot write to {file}: {error.strerror or error}") from error


class RunnerFiles:
    """Files that the runner reads after a step: outputs, job summary, and state for the end of the job."""

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
        "suite-total": str(results.run.coverage.cases) if results.run.coverage is not None else "",
        "regressions": str(len(comparison.worse) if comparison else 0),
        "improvements": str(comparison.improvements if comparison else 0),
        "prove": str(results.can_be_proven).lower(),
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


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
