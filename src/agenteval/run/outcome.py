"""The outcome of a run: the gate's decision, as text and as an exit status."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from agenteval.compare.gate import decide_gate, quarantined, rules_of
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files.lock import locked
from agenteval.core.files.reading import kind_of
from agenteval.core.files.writing import make_directory
from agenteval.core.paths import display_path
from agenteval.report.presentation import Presentation
from agenteval.report.report import Report
from agenteval.report.view.view import GateView
from agenteval.results.archive import Archive
from agenteval.results.history import EarlierRun
from agenteval.results.model import Results
from agenteval.results.verdict import Gate
from agenteval.run.analyse import SuiteAnalyses
from agenteval.run.compare import ComparedRun
from agenteval.run.outlook import outlook_of
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.runner.execution import RunExecution

# The exit status for a signal is above this number.
_SIGNALS = 128


@dataclass(frozen=True)
class RunOutcome:
    """The results of a run and the gate's decision on them.

    Attributes:
        view: the decision as text.
        archive: reads the cases of the results in full.
        quarantined: ids of the cases that do not affect the gate.
        presentation: templates and links of comment and summary.
        agent_problems: why agents failed in all of their cases, or were too slow.
        agent_errors: the errors of cases that these explain.
    """

    results: Results
    gate: Gate
    view: GateView
    exit_status: int
    archive: Archive
    quarantined: frozenset[str] = frozenset()
    presentation: Presentation = field(default_factory=Presentation)
    agent_problems: tuple[Problem, ...] = ()
    agent_errors: tuple[str, ...] = ()

    @property
    def is_cancelled(self) -> bool:
        """Whether a signal ended the run."""
        return self.exit_status > _SIGNALS

    def ended_by(self, signal: int | None) -> RunOutcome:
        """Return the outcome with the exit status of a signal that arrived after the run; ``None`` for no signal."""
        return self if signal is None or self.is_cancelled else replace(self, exit_status=_SIGNALS + signal)

    def report(self, earlier: Sequence[EarlierRun], analyses: SuiteAnalyses | None = None) -> Report:
        """Return the input of reporters besides the results.

        Args:
            earlier: runs of the history.
            analyses: the analyses of suites; without them no analysis report is written.
        """
        suites = analyses.of_suites if analyses else ()
        return Report(self.view, self.archive, tuple(earlier), suites, self.presentation)


def decide(compared: ComparedRun, spec: GateSpec, execution: RunExecution, further: Sequence[str]) -> RunOutcome:
    """Apply the gate to a run.

    Args:
        compared: the run, with its comparison if there is a baseline.
        spec: the policy of the gate.
        execution: how the run ended.
        further: additional warnings.
    """
    results = compared.results
    gate = _ended(decide_gate(results, spec.gate), execution, compared.signal)
    if execution.nothing_to_check and results.run.shard is None and gate.exit_status < _SIGNALS:
        gate = _uncheckable(gate)
    out = quarantined(results, spec.gate)
    gate = gate.model_copy(update={"rules": rules_of(spec.gate, out)})
    results = results.model_copy(update={"gate": gate, "outlook": outlook_of(results, spec.compare)})
    warnings = (*spec.warnings, *execution.warnings, *further, *compared.warnings)
    view = GateView.of(gate, tuple(spec.redact(text) for text in warnings))
    return RunOutcome(
        results=results,
        gate=gate,
        view=view,
        exit_status=gate.exit_status,
        archive=execution.archive,
        quarantined=out,
        presentation=spec.presentation,
        agent_problems=execution.agent_problems,
        agent_errors=execution.agent_errors,
    )


def _ended(gate: Gate, execution: RunExecution, confirming: int | None) -> Gate:
    """Return the decision on a run that a signal ended, if one did.

    Args:
        gate: the decision on the results.
        execution: how the run ended.
        confirming: number of the signal that interrupted the confirmation run.
    """
    if execution.signal is not None:
        return gate.model_copy(update={"exit_status": _SIGNALS + execution.signal})
    if confirming is None:
        return gate
    return Gate(
        verdict="error",
        exit_status=_SIGNALS + confirming,
        headline="interrupted during the confirmation run",
        reasons=gate.reasons,
    )


def _uncheckable(gate: Gate) -> Gate:
    """Return the decision on merged runs in which no metric applies to any case."""
    return gate.model_copy(update={"verdict": "error", "exit_status": ConfigError.exit_status})


def refuse_files(path: Path) -> None:
    """Check that no part of the path of a report directory is a file.

    Raises:
        ConfigError: one is.
    """
    # A link to nothing is not a directory either.
    parts = (path, *path.parents)
    file = next((part for part in parts if os.path.lexists(part) and not part.is_dir()), None)
    if file is not None:
        kind = kind_of(file.stat(follow_symlinks=file.exists()).st_mode)
        shown = file if file.is_symlink() else display_path(file)
        message = f"{shown} is {kind}, not a directory; name another directory for the reports"
        raise ConfigError(Problem(message, kind=Kind.OPTION))


@contextmanager
def report_directory(path: Path) -> Iterator[None]:
    """Create a report directory and lock it inside the block.

    Raises:
        ConfigError: the path, or a part of it, is a file.
        InfrastructureError: it cannot be created, is not writable, or another program writes to it.
    """
    refuse_files(path)
    make_directory(path)
    with locked(path):
        yield
