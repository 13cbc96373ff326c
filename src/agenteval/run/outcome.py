"""What a run ends with: its results, their analysis, and the outcome for the caller."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import kind_of
from agenteval.core.records import dataclass, field, replace
from agenteval.core.shared_files import locked
from agenteval.core.text import display_path
from agenteval.core.version import __version__
from agenteval.core.writing import make_directory
from agenteval.gate.run_scores import entry_without_cases
from agenteval.gate.verdict import decide_gate, quarantined, rules_of
from agenteval.report.parts import Presentation
from agenteval.report.report import write_reports
from agenteval.results.case import SuiteResult
from agenteval.results.comparison import BaselineRun
from agenteval.results.history import EarlierRun
from agenteval.results.model import Coverage, EndedBy, Memory, Results, Run, Tool
from agenteval.results.rollup import CaseTally
from agenteval.results.store import IN_MEMORY, RESULTS_FILE, Archive
from agenteval.results.verdict import Gate
from agenteval.run.compare import ComparedRun
from agenteval.run.plan import RunExecution
from agenteval.run.resolve.spec import RunSpec
from agenteval.suite.agent_definitions import MODEL_AGENT, HolodeckProject
from agenteval.suite.model import AgentSpec, Suite

if TYPE_CHECKING:
    from agenteval.report.facts import Report
    from agenteval.results.analysis.answers import EvaluatedAnswer
    from agenteval.results.analysis.evaluate import AnalysedSuite


@dataclass(frozen=True)
class SuiteAnalyses:
    """The analyses of a run.

    Attributes:
        warnings: alerts of the analyses, and the values that could not be computed.
    """

    results: Results
    warnings: tuple[str, ...] = ()
    of_suites: tuple[AnalysedSuite, ...] = ()


def evaluate_suites(
    suites: Sequence[Suite], answers: Mapping[str, Sequence[EvaluatedAnswer]], results: Results
) -> SuiteAnalyses:
    """Evaluate every suite that defines an analysis or criteria."""
    from agenteval.results.analysis.evaluate import AnalysedSuite, evaluate
    from agenteval.suite.evaluation import Aggregate

    done = tuple(
        AnalysedSuite(
            path=suite.path,
            name=suite.name,
            answers=answers[suite.path],
            result=evaluate(answers[suite.path], suite.evaluation, suite.aggregate or Aggregate()),
            report=suite.evaluation.report,
        )
        for suite in suites
        if suite.evaluation is not None and suite.path in answers
    )
    criteria = {suite.path: list(suite.result.criteria) for suite in done}
    with_criteria = [
        suite.model_copy(update={"criteria": criteria[suite.path]}) if suite.path in criteria else suite
        for suite in results.suites
    ]
    return SuiteAnalyses(
        results=results.model_copy(update={"suites": with_criteria}),
        warnings=tuple(f"{suite.path}: {text}" for suite in done for text in suite.result.warnings),
        of_suites=done,
    )


def make_results(spec: RunSpec, execution: RunExecution) -> Results:
    """Return the results of a run before any comparison; its baseline contains only the run itself."""
    suites = [_suite_result(suite, spec, execution) for suite in spec.suites]
    results = Results(
        tool=Tool(version=__version__, plugins=list(execution.plugins)),
        run=Run(
            id=execution.run_id,
            started_at=_timestamp(execution.started),
            finished_at=_timestamp(execution.started + execution.duration_s),
            duration_s=round(execution.duration_s, 3),
            complete=execution.complete,
            commit=spec.provenance.commit,
            ref=spec.redact.data(spec.provenance.ref),
            base_ref=spec.redact.data(spec.provenance.base_ref),
            uncommitted=spec.provenance.uncommitted,
            repository=spec.provenance.repository,
            workflow_run_id=spec.provenance.workflow_run_id,
            workflow_artifact=spec.redact.data(spec.provenance.artifact),
            coverage=_coverage(spec, execution),
            shard=spec.shard,
            seed=spec.llm.seed,
            integrity=list(spec.integrity.differences),
            accepted=list(spec.integrity.keys),
        ),
        summary=execution.summary,
        suites=suites,
    )
    return (
        results.model_copy(update={"baseline_runs": [_own_entry(spec, execution, results)]})
        if execution.is_baseline_run
        else results
    )


def _suite_result(suite: Suite, spec: RunSpec, execution: RunExecution) -> SuiteResult:
    tally = execution.tallies.get(suite.path, CaseTally())
    return SuiteResult(
        path=suite.path,
        name=spec.redact(suite.name),
        format=suite.format,
        fingerprint=suite.fingerprint,
        threshold=suite.aggregate.threshold if suite.aggregate else None,
        # Only the whole run shows whether a metric measured nothing.
        unmeasured=tally.unmeasured if spec.shard is None else [],
        undecided=tally.undecided,
        goal=spec.redact(suite.evaluation.goal) if suite.evaluation and suite.evaluation.goal else None,
        cases=list(execution.cases.get(suite.path, ())),
    )


def _coverage(spec: RunSpec, execution: RunExecution) -> Coverage:
    ended_by: EndedBy | None = "budget" if execution.refused_calls else None
    if execution.signal is not None:
        ended_by = "signal"
    elif execution.unfinished:
        ended_by = "time"
    # Traces are counted when they are read.
    selected = execution.total if spec.traces else spec.coverage.selected
    finished = execution.summary.cases - execution.unfinished
    return spec.coverage.model_copy(update={"selected": selected, "finished": finished, "ended_by": ended_by})


def unscored_metrics(spec: RunSpec, execution: RunExecution) -> tuple[str, ...]:
    """Return a warning for each added metric that is only reported and scored no reply of a whole run.

    The gate decides about other metrics without a score. A shard sees only some cases.
    """
    if spec.shard is not None or not execution.complete:
        return ()
    by_case = (metric for item in spec.cases for metric in item.case.all_metrics)
    on_traces = (metric for suite in spec.suites for metric in suite.metrics) if spec.traces else ()
    scored = {name for name, metric in execution.summary.metrics.items() if metric.n}
    added = dict.fromkeys(
        metric.id for metric in (*by_case, *on_traces) if metric.requested_by == "config" and not metric.gating
    )
    return tuple(
        f"metric {name!r} has no score in this run: it was skipped or failed for every reply"
        for name in added
        if name not in scored
    )


def _own_entry(spec: RunSpec, execution: RunExecution, results: Results) -> BaselineRun:
    """Return the run's own entry in its baseline.

    Only a comparison needs the entry's cases in memory; reports read them from the archive.
    """
    entry = entry_without_cases(results)
    if entry.made_with is not None:
        made_with = entry.made_with.model_copy(update={"agents": _agent_models(spec)})
        entry = entry.model_copy(update={"made_with": made_with})
    if spec.baseline is None and spec.earlier.missing is None:
        return entry
    cases = {case_id: case for part in execution.archive.baseline_cases(entry) for case_id, case in part.items()}
    return entry.model_copy(update={"cases": cases})


def _agent_models(spec: RunSpec) -> list[str]:
    agents = {id(item.agent): item.agent for item in spec.cases}.values()
    named = [_model_of(agent) for agent in agents]
    return sorted({spec.redact(name) for name in named if isinstance(name, str) and name})


def _model_of(agent: AgentSpec) -> object:
    if agent.kind == MODEL_AGENT:
        return agent.target
    described = agent.options.get("agent")
    return described.model if isinstance(described, HolodeckProject) else agent.config.get("model")


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# The exit status for a signal is above this number.
_SIGNALS = 128


@dataclass(frozen=True)
class RunOutcome:
    """The results of a run and the gate's decision on them.

    Attributes:
        base: the baseline's run, with the runs before it.
        analyses: analyses of suites that evaluate the run as a whole; without them none is reported.
        dead: why agents and judges failed in every case.
    """

    results: Results
    gate: Gate
    warnings: tuple[str, ...]
    exit_status: int
    archive: Archive
    presentation: Presentation = field(default_factory=Presentation)
    earlier: tuple[EarlierRun, ...] = ()
    base: Results | None = None
    analyses: tuple[AnalysedSuite, ...] = ()
    dead: tuple[Problem, ...] = ()
    agent_errors: tuple[str, ...] = ()

    @property
    def is_cancelled(self) -> bool:
        """Whether a signal ended the run."""
        return self.exit_status > _SIGNALS

    def ended_by(self, signal: int | None) -> RunOutcome:
        """Return the outcome with the exit status of a signal that arrived after the run; ``None`` for no signal."""
        return self if signal is None or self.is_cancelled else replace(self, exit_status=_SIGNALS + signal)

    @cached_property
    def report(self) -> Report:
        """What every report shows."""
        # Imported here, because commands that only check import this module.
        from agenteval.report.facts import facts

        return facts(
            self.results,
            self.gate,
            self.warnings,
            archive=self.archive,
            earlier=self.earlier,
            base=self.base,
            analyses=self.analyses,
            presentation=self.presentation,
        )


def decide(compared: ComparedRun, spec: RunSpec, execution: RunExecution, further: Sequence[str]) -> RunOutcome:
    """Apply the gate to a run."""
    results = compared.results
    gate = _ended(decide_gate(results, spec.gate), execution, compared.signal)
    if execution.nothing_to_check and results.run.shard is None and gate.exit_status < _SIGNALS:
        gate = gate.model_copy(update={"verdict": "error", "exit_status": ConfigError.exit_status})
    out = quarantined(results, spec.gate)
    gate = gate.model_copy(update={"rules": rules_of(spec.gate, out)})
    results = results.model_copy(update={"gate": gate})
    warnings = (*spec.warnings, *execution.warnings, *further, *compared.warnings)
    if spec.earlier.attempt is not None:
        results = results.model_copy(update={"memory": spec.earlier.attempt.recorded(results)})
    return RunOutcome(
        results=results,
        gate=gate,
        warnings=tuple(spec.redact(text) for text in warnings),
        exit_status=gate.exit_status,
        archive=execution.archive,
        presentation=spec.presentation,
        earlier=tuple(spec.earlier.runs),
        base=spec.baseline.results if spec.baseline else None,
        dead=execution.dead,
        agent_errors=execution.agent_errors,
    )


def reported(
    outcome: RunOutcome, spec: RunSpec, analyses: SuiteAnalyses | None = None, path: Path | None = None
) -> RunOutcome:
    """Write the requested reports; return the outcome with a warning for each template that could not be used."""
    if path is None and spec.output.directory is not None:
        path = spec.output.directory / RESULTS_FILE
    if path is None:
        return outcome
    if analyses is not None:
        outcome = replace(outcome, analyses=analyses.of_suites)
    written = write_reports(outcome.report, path)
    return outcome if written is outcome.report else replace(outcome, warnings=written.warnings)


def _ended(gate: Gate, execution: RunExecution, confirming: int | None) -> Gate:
    if execution.signal is not None:
        return gate.model_copy(update={"exit_status": _SIGNALS + execution.signal})
    if confirming is None:
        return gate
    return Gate(
        verdict="error",
        exit_status=_SIGNALS + confirming,
        headline="interrupted during the passes side by side",
        reasons=gate.reasons,
    )


_SHORT = 7


def shown_again(results: Results, memory: Memory, spec: RunSpec) -> RunOutcome:
    """Return the outcome of an attempt that was decided before, without a single call."""
    earlier = results.gate
    if earlier is None:
        raise ValueError("only a decided attempt can be shown again")
    # The headline of a repeated verdict already names the attempt.
    is_repeat = results.memory is not None and results.memory.repeats
    gate = earlier if is_repeat else _again(earlier, memory, results.run.commit)
    results = results.model_copy(update={"gate": gate, "memory": memory.model_copy(update={"repeats": True})})
    return RunOutcome(
        results=results,
        gate=gate,
        warnings=tuple(map(spec.redact, spec.warnings)),
        exit_status=gate.exit_status,
        archive=IN_MEMORY,
        presentation=spec.presentation,
        earlier=tuple(spec.earlier.runs),
        base=spec.baseline.results if spec.baseline else None,
    )


def _again(gate: Gate, memory: Memory, commit: str | None) -> Gate:
    where = f"already shown in attempt {memory.attempt}"
    where += f" for commit {commit[:_SHORT]}" if commit else ""
    advice = "nothing has changed since" if gate.passed else "push a change or accept it"
    headline = f"{gate.headline}; {where}: {advice}"
    reasons = (headline, *gate.reasons[1:]) if gate.reasons else ()
    return gate.model_copy(update={"headline": headline, "reasons": reasons})


def refuse_files(path: Path) -> None:
    """Check that no part of the path of a report directory is a file."""
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
    """Create a report directory and lock it inside the block."""
    refuse_files(path)
    make_directory(path)
    with locked(path):
        yield
