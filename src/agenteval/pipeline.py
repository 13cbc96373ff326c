"""One run from suites to exit status: load, run, compare, judge, report."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from agenteval import __version__
from agenteval.compare.compare import compare
from agenteval.compare.gate import Gate, GatePolicy, judge
from agenteval.compare.pair import pool_entry
from agenteval.config import DEFAULT_CONCURRENCY, Settings, llm_settings
from agenteval.errors import ConfigError, InfrastructureError
from agenteval.llm.gateway import Gateway
from agenteval.metrics.base import Resources
from agenteval.metrics.graders import GraderPool
from agenteval.metrics.scoring import MetricCatalog
from agenteval.prepare import Loaded, load
from agenteval.provenance import Provenance, provenance
from agenteval.report.view import GateView
from agenteval.report.write import print_table, write_reports
from agenteval.results.model import CaseResult, Results, Run, SuiteResult, Tool
from agenteval.results.rollup import summarise
from agenteval.run.execute import Execution, Plan, PlannedCase, execute
from agenteval.run.progress import make_progress
from agenteval.suite.model import Case
from agenteval.suite.model_agent import KIND


@dataclass(frozen=True)
class Outcome:
    """What a run led to."""

    results: Results
    gate: Gate
    view: GateView
    exit_status: int


def run(settings: Settings, place: Provenance | None = None, stream: TextIO | None = None) -> Outcome:
    """Run suites, compare, judge, and write every report.

    Args:
        settings: what to run and how.
        place: the commit that is evaluated; found out if not given.
        stream: where the final table goes; standard output if not given.

    Raises:
        ConfigError: a suite, the configuration or an option is wrong; nothing was run.
        InfrastructureError: the reports cannot be written.
    """
    loaded = load(settings)
    make_directory(settings.out)
    execution = execute(_plan(loaded, settings))
    results = _results(loaded, execution, place or provenance(os.environ, Path.cwd()))
    if loaded.baseline is not None:
        comparison = compare(results, loaded.baseline, loaded.known, loaded.config.tolerance)
        results = results.model_copy(update={"comparison": comparison})
    outcome = _judged(results, loaded, settings, execution)
    write_reports(outcome.results, outcome.view, settings.out)
    print_table(outcome.results, outcome.view, stream or sys.stdout)
    return outcome


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


def _plan(loaded: Loaded, settings: Settings) -> Plan:
    config = loaded.config
    planned = [
        PlannedCase(
            suite=suite,
            case=case,
            agent=loaded.agents[suite.path],
            iterations=settings.iterations or case.iterations or suite.iterations or config.iterations or 1,
        )
        for suite in loaded.suites
        for case in loaded.selected[suite.path]
    ]
    by_suite = max((suite.concurrency or 0 for suite in loaded.suites), default=0)
    concurrency = settings.concurrency or config.concurrency or by_suite or DEFAULT_CONCURRENCY
    return Plan(
        run_id=uuid.uuid4().hex[:12],
        cases=planned,
        concurrency=concurrency,
        catalog=MetricCatalog(_resources(loaded, settings, concurrency)),
        journal=settings.out / "journal.jsonl",
        redact=loaded.redact,
        progress=make_progress(len(planned), sys.stderr, bar=sys.stderr.isatty(), quiet=settings.quiet),
    )


def _resources(loaded: Loaded, settings: Settings, concurrency: int) -> Resources:
    """What metrics share. Graders run under the Python of the agent beside them, where it names one."""
    interpreters = {
        agent.directory: str(agent.options["interpreter"])
        for agent in loaded.agents.values()
        if agent.options.get("interpreter")
    }
    return Resources(
        gateway=Gateway(llm_settings(settings, loaded.config)), graders=GraderPool(interpreters, concurrency)
    )


def _results(loaded: Loaded, execution: Execution, place: Provenance) -> Results:
    suites = [
        SuiteResult(
            path=suite.path,
            name=loaded.redact(suite.name),
            format=suite.format,
            fingerprint=suite.fingerprint,
            cases=_in_order(loaded.selected[suite.path], execution.finished),
        )
        for suite in loaded.suites
    ]
    results = Results(
        tool=Tool(version=__version__),
        run=Run(
            id=execution.run_id,
            started_at=_timestamp(execution.started),
            finished_at=_timestamp(execution.started + execution.duration_s),
            duration_s=round(execution.duration_s, 3),
            complete=execution.signal is None,
            commit=place.commit,
            ref=place.ref,
            repository=place.repository,
            workflow_run_id=place.workflow_run_id,
        ),
        summary=summarise(
            [case for suite in suites for case in suite.cases], execution.models, _metered(loaded, suites)
        ),
        suites=suites,
    )
    fingerprints = {case.id: case.fingerprint for suite in loaded.suites for case in suite.cases}
    return results.model_copy(update={"pool": [pool_entry(results, fingerprints)]})


def _metered(loaded: Loaded, suites: Iterable[SuiteResult]) -> frozenset[str]:
    """The cases whose agent asks models through us."""
    return frozenset(case.id for suite in suites for case in suite.cases if loaded.agents[suite.path].kind == KIND)


def _in_order(cases: Sequence[Case], finished: Mapping[str, CaseResult]) -> list[CaseResult]:
    """The finished cases as the suite lists them, whatever order they ended in."""
    return [finished[case.id] for case in cases if case.id in finished]


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _judged(results: Results, loaded: Loaded, settings: Settings, execution: Execution) -> Outcome:
    policy = loaded.config.gate
    if settings.fail_on is not None:
        policy = GatePolicy(fail_on=settings.fail_on, max_error_rate=policy.max_error_rate)
    gate = judge(results, policy)
    status = gate.exit_status
    if execution.signal is not None:
        status = 128 + execution.signal
    elif execution.nothing_to_check:
        status = ConfigError.exit_status
    headline, reasons = gate.headline, gate.reasons
    if execution.signal is not None:
        total = sum(map(len, loaded.selected.values()))
        headline = f"{results.summary.cases} of {total} cases had finished"
        reasons = gate.reasons if results.summary.cases else ()
    view = GateView(
        passed=status == 0,
        headline=headline,
        reasons=reasons,
        warnings=tuple(loaded.redact(text) for text in settings.warnings + loaded.warnings + execution.warnings),
    )
    return Outcome(results=results, gate=gate, view=view, exit_status=status)
