"""Turns what was loaded and asked for into a plan that can be run."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.compare.gate import is_named
from agenteval.core.llm.gateway import Gateway
from agenteval.metrics.resources.grader_pool import GraderPool
from agenteval.metrics.resources.resources import Resources
from agenteval.metrics.scoring import MetricCatalog
from agenteval.results.model import RunShard
from agenteval.run.config.model import DEFAULT_CONCURRENCY, llm_settings, time_limit_s
from agenteval.run.journal.journal import CONFIRMATION_FILE, JOURNAL_FILE
from agenteval.run.plan import Plan, PlannedCase, RunLimits
from agenteval.run.progress import make_progress
from agenteval.run.resolve.spec import Loaded, is_selected
from agenteval.run.settings import Settings

if TYPE_CHECKING:
    from agenteval.run.runner.traces import TracePlan
    from agenteval.run.shard import Shard

# What is done, in words, and the file that holds what came of it.
RUN = ("running", JOURNAL_FILE)

CONFIRMATION = ("confirming with", CONFIRMATION_FILE)


def one_shard(loaded: Loaded, shard: Shard) -> tuple[Loaded, RunShard]:
    """What is left to one part of a run, and how results.json says so.

    Args:
        loaded: suites, configuration, and the baseline whose durations divide the cases.
        shard: which part.

    Returns:
        The cases of this part without a baseline: only all parts together are compared; and the record of it.
    """
    from agenteval.run.shard import durations_of

    ids = [case.id for suite in loaded.suites for case in loaded.selected[suite.path]]
    baseline = loaded.baseline.results if loaded.baseline else None
    durations = durations_of(baseline) if baseline else {}
    own = shard.cases(ids, durations)
    selected = {path: [case for case in cases if case.id in own] for path, cases in loaded.selected.items()}
    divided_by = baseline.run.id if baseline and not durations.keys().isdisjoint(ids) else None
    record = RunShard(index=shard.index, count=shard.count, cases=ids, divided_by=divided_by)
    return replace(loaded, selected=selected, baseline=None), record


def make_trace_plan(loaded: Loaded, settings: Settings, traces: Path) -> TracePlan:
    """The plan of a run that scores recorded traces.

    Args:
        loaded: suites and configuration.
        settings: what the command line says.
        traces: the file or folder of traces.
    """
    from agenteval.run.runner.traces import TracePlan

    concurrency = _concurrency(loaded, settings)
    return TracePlan(
        run_id=_run_id(),
        suites=tuple(loaded.suites),
        traces=traces,
        keep_going=settings.keep_going,
        wanted=lambda case_id, name, tags: is_selected(case_id, name, tags, settings),
        compared=loaded.baseline is not None,
        named=lambda case: is_named(loaded.config.gate, case),
        concurrency=concurrency,
        catalog=MetricCatalog(_resources(loaded, settings, concurrency)),
        journal=settings.out / JOURNAL_FILE,
        redact=loaded.redact,
        progress=make_progress(None, sys.stderr, "scoring", bar=sys.stderr.isatty(), quiet=settings.quiet),
    )


def _run_id() -> str:
    return uuid.uuid4().hex[:12]


def _concurrency(loaded: Loaded, settings: Settings) -> int:
    by_suite = max((suite.concurrency or 0 for suite in loaded.suites), default=0)
    return settings.concurrency or loaded.config.concurrency or by_suite or DEFAULT_CONCURRENCY


def make_plan(loaded: Loaded, settings: Settings) -> Plan:
    """The plan of a run that asks agents.

    Raises:
        ConfigError: a run is to be resumed, and cannot be.
    """
    plan = replace(
        assemble_plan(planned_cases(loaded, settings), RUN, loaded, settings), compared=loaded.baseline is not None
    )
    if not settings.resume:
        return plan
    from agenteval.run.journal.resume import resumed, taken_over

    plan = resumed(plan)
    if not settings.quiet:
        sys.stderr.write(f"{taken_over(plan)}\n")
    return plan


def planned_cases(loaded: Loaded, settings: Settings) -> list[PlannedCase]:
    """The selected cases, each with its agent and iterations."""
    config = loaded.config
    asked = [
        (suite, case, settings.iterations or case.iterations or suite.iterations)
        for suite in loaded.suites
        for case in loaded.selected[suite.path]
    ]
    return [
        PlannedCase(
            suite=suite,
            case=case,
            agent=loaded.agents[case.id],
            iterations=iterations or config.iterations or 1,
            follow_recording=iterations is None,
        )
        for suite, case, iterations in asked
    ]


def assemble_plan(cases: Sequence[PlannedCase], kind: tuple[str, str], loaded: Loaded, settings: Settings) -> Plan:
    """A plan for cases.

    Args:
        cases: what to run.
        kind: ``RUN`` or ``CONFIRMATION``.
        loaded: configuration, suites, secrets.
        settings: what the caller asked for.
    """
    doing, journal = kind
    concurrency = _concurrency(loaded, settings)
    return Plan(
        run_id=_run_id(),
        cases=cases,
        pace=RunLimits(
            concurrency, loaded.config.case_timeout_s, time_limit_s(settings, loaded.config), settings.seed
        ),
        catalog=MetricCatalog(_resources(loaded, settings, concurrency)),
        journal=settings.out / journal,
        redact=loaded.redact,
        progress=make_progress(len(cases), sys.stderr, doing, bar=sys.stderr.isatty(), quiet=settings.quiet),
        compared=True,
        named=lambda case: is_named(loaded.config.gate, case),
    )


def _resources(loaded: Loaded, settings: Settings, concurrency: int) -> Resources:
    """What metrics share. Graders run under the Python of the agent beside them, where it names one."""
    interpreters = {
        agent.directory: str(agent.options["interpreter"])
        for agent in loaded.agents.values()
        if agent.options.get("interpreter")
    }
    llm = llm_settings(settings, loaded.config)
    return Resources(
        gateway=Gateway(llm),
        graders=GraderPool(interpreters, concurrency),
        judge=loaded.config.judge,
        embedder=loaded.config.embeddings,
        remembers=llm.cache is not None,
        seed=settings.seed,
    )
