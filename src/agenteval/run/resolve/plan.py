"""Turns the specification of a run into a plan that the runner can execute."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence
from dataclasses import replace

from agenteval.compare.gate import is_named
from agenteval.core.llm.gateway import Gateway
from agenteval.metrics.resources.grader_pool import GraderPool
from agenteval.metrics.resources.resources import Resources
from agenteval.metrics.scoring import MetricCatalog
from agenteval.run.plan import CaseSource, Plan
from agenteval.run.progress import Progress, make_progress
from agenteval.run.resolve.spec import RunSpec, TraceFiles


def make_plan(spec: RunSpec) -> Plan:
    """Return the plan of a run that asks agents, or scores recorded traces.

    Raises:
        ConfigError: the run is to be resumed, and cannot be.
    """
    cases = spec.cases if spec.traces is None else _recorded_cases(spec, spec.traces)
    # The number of traces is not known before they are read.
    total = len(cases) if isinstance(cases, Sequence) else None
    plan = Plan(
        run_id=_run_id(),
        cases=cases,
        limits=spec.limits,
        catalog=MetricCatalog(_resources(spec)),
        journal=spec.journal,
        redact=spec.redact,
        progress=_progress(spec, total, spec.activity if spec.traces is None else "scoring"),
        compared=spec.baseline is not None,
        named=lambda case: is_named(spec.gate, case),
    )
    if not spec.resume:
        return plan
    from agenteval.run.journal.resume import resumed, taken_over

    plan = resumed(plan)
    if not spec.quiet:
        sys.stderr.write(f"{taken_over(plan)}\n")
    return plan


def _recorded_cases(spec: RunSpec, traces: TraceFiles) -> CaseSource:
    from agenteval.run.runner.recorded import RecordedCases

    return RecordedCases(
        spec.suites,
        traces.path,
        lambda case: traces.selection.includes(case.id, case.name, case.tags),
        keep_going=traces.keep_going,
    )


def _run_id() -> str:
    return uuid.uuid4().hex[:12]


def _progress(spec: RunSpec, total: int | None, activity: str) -> Progress:
    return make_progress(total, sys.stderr, activity, bar=sys.stderr.isatty(), quiet=spec.quiet)


def _resources(spec: RunSpec) -> Resources:
    """Return what metrics share."""
    return Resources(
        gateway=Gateway(replace(spec.llm, limits=spec.limits.models)),
        graders=GraderPool(spec.interpreters, spec.limits.concurrency),
        judge=spec.judge,
        embedder=spec.embeddings,
        remembers=spec.llm.cache is not None,
        seed=spec.seed,
    )
