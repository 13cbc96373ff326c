"""The outcome of a run: the gate's decision, in words and as an exit status."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.compare.gate import BROKEN, PASSED, Gate, GatePolicy, decide_gate, quarantined
from agenteval.core.errors import ConfigError, InfrastructureError
from agenteval.report.presentation import Presentation
from agenteval.report.report import Report
from agenteval.report.view.view import GateView, count
from agenteval.results.archive import Archive
from agenteval.results.history import EarlierRun
from agenteval.results.model import Results
from agenteval.run.analyse import SuiteAnalyses
from agenteval.run.compare import ComparedRun
from agenteval.run.journal.journal import CONFIRMATION_FILE
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.runner.execution import Execution


@dataclass(frozen=True)
class RunOutcome:
    """The results of a run and the gate's decision on them.

    Attributes:
        view: the decision in words.
        archive: the cases of the results in full.
        quarantined: ids of the cases that do not count.
        presentation: how comment and summary look.
    """

    results: Results
    gate: Gate
    view: GateView
    exit_status: int
    archive: Archive
    quarantined: frozenset[str] = frozenset()
    presentation: Presentation = field(default_factory=Presentation)

    def report(self, earlier: Sequence[EarlierRun], analyses: SuiteAnalyses | None = None) -> Report:
        """Return what reporters get besides the results.

        Args:
            earlier: runs of the history.
            analyses: of suites; without them no report on an analysis is written.
        """
        suites = analyses.of_suites if analyses else ()
        return Report(self.view, self.archive, tuple(earlier), suites, self.presentation)


def decide(compared: ComparedRun, spec: GateSpec, execution: Execution, further: Sequence[str]) -> RunOutcome:
    """Let the gate decide.

    Args:
        compared: the run, with its comparison if there is one.
        spec: what fails the gate.
        execution: how the run ended.
        further: warnings besides those of these.
    """
    results = compared.results
    gate = _gate(results, spec.gate)
    status = gate.exit_status
    signal = execution.signal or compared.signal
    if signal is not None:
        status = 128 + signal
    elif execution.nothing_to_check and results.run.shard is None:
        status = ConfigError.exit_status
    elif execution.unfinished and "errors" in spec.gate.fail_on and status == PASSED:
        status = BROKEN
    headline, reasons = gate.headline, gate.reasons
    if execution.signal is not None:
        headline = f"{results.summary.cases} of {execution.total} cases had finished"
        reasons = gate.reasons if results.summary.cases else ()
    elif execution.unfinished:
        cases = count(execution.total, "case")
        headline = f"the time is up: {execution.unfinished} of {cases} did not come to an end"
        reasons = tuple(dict.fromkeys((gate.headline, *gate.reasons)))
    elif compared.signal is not None:
        headline = "interrupted while what looks worse was run again"
    warnings = (*spec.warnings, *execution.warnings, *further, *compared.warnings)
    view = GateView(
        passed=status == 0,
        headline=headline,
        reasons=reasons,
        warnings=tuple(spec.redact(text) for text in warnings),
    )
    return RunOutcome(
        results=results,
        gate=gate,
        view=view,
        exit_status=status,
        archive=execution.archive,
        quarantined=quarantined(results, spec.gate),
        presentation=spec.presentation,
    )


def _gate(results: Results, policy: GatePolicy) -> Gate:
    """Return the gate's decision; a shard passes, since only the whole run is decided on."""
    part = results.run.shard
    if part is None:
        return decide_gate(results, policy)
    cases = f"{results.summary.cases} of {count(len(part.cases), 'case')}"
    return Gate(PASSED, f"shard {part.index} of {part.count}, {cases}; agenteval merge decides", ())


def make_directory(path: Path) -> None:
    """Make the report directory.

    Raises:
        InfrastructureError: it cannot be made or written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"cannot make the report directory {path}: {error.strerror}") from None
    if not os.access(path, os.W_OK):
        raise InfrastructureError(f"cannot write to the report directory {path}: permission denied")


def make_directory_of_run(path: Path) -> None:
    """Make the report directory of a run, without the confirmation of an earlier one.

    Raises:
        InfrastructureError: it cannot be made or written.
    """
    make_directory(path)
    with contextlib.suppress(OSError):
        (path / CONFIRMATION_FILE).unlink(missing_ok=True)
