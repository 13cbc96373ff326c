"""Turns the specification of a run into a plan that the runner can execute."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

from agenteval.compare.gate import is_quarantined_by_name
from agenteval.core.llm.gateway import Gateway
from agenteval.metrics.resources.grader_pool import GraderPool
from agenteval.metrics.resources.resources import Resources
from agenteval.metrics.resources.shared import RunResources
from agenteval.metrics.scoring import MetricCatalog
from agenteval.report.view.view import count
from agenteval.run.plan import CaseSource, Plan, SuitePlan
from agenteval.run.progress import CONFIRMING, Progress, make_progress
from agenteval.run.resolve.spec import RunSpec, SuiteSpec, TraceFiles


def make_plan(spec: RunSpec) -> Plan:
    """Return the plan of a run that calls agents or scores recorded traces.

    Raises:
        ConfigError: the run is to be resumed, and cannot be resumed.
    """
    cases = spec.cases if spec.traces is None else _recorded_cases(spec, spec.traces)
    gateway = Gateway(spec.llm)
    by_config = {id(settings): _suite_plan(spec, settings, gateway) for settings in spec.settings.values()}
    suites = {path: by_config[id(settings)] for path, settings in spec.settings.items()}
    plan = Plan(
        run_id=_run_id(),
        cases=cases,
        limits=spec.limits,
        suites=suites,
        resources=RunResources(gateway, [plan.catalog.resources for plan in by_config.values()]),
        seed=spec.seed,
        journal=spec.journal,
        redact=spec.redact,
        progress=_progress(spec),
        compared=spec.baseline is not None or spec.missing_baseline is not None,
        is_quarantined_by_name=lambda case: is_quarantined_by_name(spec.gate, case),
        max_answer_bytes=spec.max_answer_bytes,
        conditions=spec.conditions,
        replaced=tuple(_replaced(spec)),
    )
    if not spec.resume:
        return plan
    from agenteval.run.journal.resume import resume_notice, resumed

    plan = resumed(plan)
    if not spec.quiet:
        sys.stderr.write(f"{resume_notice(plan)}\n")
    return plan


def _replaced(spec: RunSpec) -> Iterator[Path]:
    """Yield the directories with files of an earlier run, which this run replaces."""
    if spec.activity is CONFIRMING:
        # The reports of the run that is confirmed are written already.
        return
    if spec.out is not None and not spec.resume:
        yield spec.out
    if spec.published is not None:
        yield spec.published


def _recorded_cases(spec: RunSpec, traces: TraceFiles) -> CaseSource:
    from agenteval.run.runner.recorded import RecordedCases

    return RecordedCases(
        [(suite, traces.paths[suite.path]) for suite in spec.suites],
        lambda case: traces.selection.includes(case.id, case.name, case.tags),
        names=traces.selection.names,
        redact=spec.redact,
        keep_going=traces.keep_going,
        may_be_streams=traces.may_be_streams,
    )


def _run_id() -> str:
    return uuid.uuid4().hex[:12]


def _progress(spec: RunSpec) -> Progress:
    counted = sum(item.iterations for item in spec.cases) if spec.activity is CONFIRMING else len(spec.cases)
    # The number of traces is unknown until they are read.
    total = None if spec.traces is not None else counted
    bar = sys.stderr.isatty()
    title = _title(spec) if bar else ""
    return make_progress(total, sys.stderr, spec.activity, bar=bar, quiet=spec.quiet, title=title)


def _title(spec: RunSpec) -> str:
    """Return what is run, as in ``support-bot · 118 cases × 3 · http https://agent.example/chat``."""
    names = {item.suite.name for item in spec.cases}
    amounts = {item.iterations for item in spec.cases}
    agents = {(item.agent.kind, item.agent.target) for item in spec.cases}
    if len(names) != 1:
        return ""
    times = f" × {min(amounts)}" if amounts != {1} and len(amounts) == 1 else ""
    parts = [f"{count(len(spec.cases), 'case')}{times}"]
    if len(agents) == 1:
        kind, target = agents.pop()
        parts.append(f"{kind} {target if isinstance(target, str) else ' '.join(target)}".strip())
    return " · ".join((names.pop(), *parts))


def _suite_plan(spec: RunSpec, settings: SuiteSpec, gateway: Gateway) -> SuitePlan:
    """Return what the suites of one configuration share."""
    resources = Resources(
        gateway=gateway,
        graders=GraderPool(settings.interpreters, spec.limits.concurrency, settings.rules),
        judge=settings.judge,
        embedder=settings.embeddings,
        remembers=spec.llm.cache is not None,
        seed=spec.seed,
    )
    return SuitePlan(MetricCatalog(resources), settings.rules, settings.case_s, settings.config)
