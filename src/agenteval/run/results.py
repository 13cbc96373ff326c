"""Builds the results of a run from its specification and its execution."""

from __future__ import annotations

from datetime import UTC, datetime

from agenteval.compare.run_scores import entry_without_cases
from agenteval.core.version import __version__
from agenteval.results.case import SuiteResult
from agenteval.results.comparison import PoolEntry
from agenteval.results.coverage import Coverage, EndedBy
from agenteval.results.metric_use import MetricUse
from agenteval.results.model import Results, Run, Tool
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.runner.execution import RunExecution
from agenteval.suite.holodeck_project import HolodeckProject
from agenteval.suite.model import AgentSpec, Suite
from agenteval.suite.model_agent import KIND as MODEL_AGENT


def make_results(spec: RunSpec, execution: RunExecution) -> Results:
    """Return the results of a run before any comparison; its pool contains only the run itself."""
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
            uncommitted=spec.provenance.uncommitted,
            repository=spec.provenance.repository,
            workflow_run_id=spec.provenance.workflow_run_id,
            workflow_artifact=spec.redact.data(spec.provenance.artifact),
            coverage=_coverage(spec, execution),
            shard=spec.shard,
            seed=spec.seed,
            integrity=list(spec.integrity.differences),
            accepted=list(spec.integrity.keys),
        ),
        summary=execution.summary,
        suites=suites,
    )
    return (
        results.model_copy(update={"pool": [_own_entry(spec, execution, results)]})
        if execution.is_pooled
        else results
    )


def _suite_result(suite: Suite, spec: RunSpec, execution: RunExecution) -> SuiteResult:
    use = execution.metric_use.get(suite.path, MetricUse())
    return SuiteResult(
        path=suite.path,
        name=spec.redact(suite.name),
        format=suite.format,
        fingerprint=suite.fingerprint,
        threshold=suite.aggregate.threshold if suite.aggregate else None,
        # Only the whole run shows whether a metric measured nothing.
        unmeasured=use.unmeasured if spec.shard is None else [],
        undecided=use.undecided,
        goal=spec.redact(suite.evaluation.goal) if suite.evaluation and suite.evaluation.goal else None,
        cases=list(execution.cases.get(suite.path, ())),
    )


def _coverage(spec: RunSpec, execution: RunExecution) -> Coverage:
    """Return what the run covered, and what ended it."""
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


def _own_entry(spec: RunSpec, execution: RunExecution, results: Results) -> PoolEntry:
    """Return the run's own entry in its pool.

    Only a comparison needs the entry's cases in memory; reports read them from the archive.
    """
    entry = entry_without_cases(results)
    if entry.made_with is not None:
        made_with = entry.made_with.model_copy(update={"agents": _agent_models(spec)})
        entry = entry.model_copy(update={"made_with": made_with})
    if spec.baseline is None and spec.missing_baseline is None:
        return entry
    cases = {case_id: case for part in execution.archive.pooled(entry) for case_id, case in part.items()}
    return entry.model_copy(update={"cases": cases})


def _agent_models(spec: RunSpec) -> list[str]:
    """Return the models of the agents, as far as the suites name them."""
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
