"""Turns the specification of a run into a plan that the runner can execute."""

from __future__ import annotations

import sys
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from agenteval.compare.gate import is_named
from agenteval.core.llm.gateway import Gateway
from agenteval.metrics.resources.grader_pool import GraderPool
from agenteval.metrics.resources.resources import Resources
from agenteval.metrics.scoring import MetricCatalog
from agenteval.run.plan import Plan
from agenteval.run.progress import Progress, make_progress
from agenteval.run.resolve.spec import RunSpec, TraceFiles

if TYPE_CHECKING:
    from agenteval.run.runner.traces import TracePlan


def make_plan(spec: RunSpec) -> Plan:
    """Return the plan of a run that asks agents.

    Raises:
        ConfigError: the run is to be resumed, and cannot be.
    """
    plan = Plan(
        run_id=_run_id(),
        cases=spec.cases,
        limits=spec.limits,
        catalog=MetricCatalog(_resources(spec)),
        journal=spec.journal,
        redact=spec.redact,
        progress=_progress(spec, len(spec.cases), spec.activity),
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


def make_trace_plan(spec: RunSpec, traces: TraceFiles) -> TracePlan:
    """Return the plan of a run that scores recorded traces."""
    from agenteval.run.runner.traces import TracePlan

    return TracePlan(
        run_id=_run_id(),
        suites=spec.suites,
        traces=traces.path,
        keep_going=traces.keep_going,
        wanted=traces.selection.includes,
        compared=spec.baseline is not None,
        named=lambda case: is_named(spec.gate, case),
        concurrency=spec.limits.concurrency,
        catalog=MetricCatalog(_resources(spec)),
        journal=spec.journal,
        redact=spec.redact,
        progress=_progress(spec, None, "scoring"),
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
