"""Makes the results of a run of its specification and its execution."""

from __future__ import annotations

from datetime import UTC, datetime

from agenteval.compare.pairing import entry_without_cases
from agenteval.core.version import __version__
from agenteval.results.model import PoolEntry, Results, Run, SuiteResult, Tool
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.runner.execution import Execution


def make_results(spec: RunSpec, execution: Execution) -> Results:
    """Return the results of a run with its own entry in its pool, before any comparison."""
    suites = [
        SuiteResult(
            path=suite.path,
            name=spec.redact(suite.name),
            format=suite.format,
            fingerprint=suite.fingerprint,
            threshold=suite.aggregate.threshold if suite.aggregate else None,
            cases=list(execution.cases.get(suite.path, ())),
        )
        for suite in spec.suites
    ]
    results = Results(
        tool=Tool(version=__version__, plugins=list(execution.plugins)),
        run=Run(
            id=execution.run_id,
            started_at=_timestamp(execution.started),
            finished_at=_timestamp(execution.started + execution.duration_s),
            duration_s=round(execution.duration_s, 3),
            complete=execution.complete,
            commit=spec.provenance.commit,
            ref=spec.provenance.ref,
            repository=spec.provenance.repository,
            workflow_run_id=spec.provenance.workflow_run_id,
            shard=spec.shard,
            seed=spec.seed,
        ),
        summary=execution.summary,
        suites=suites,
    )
    return (
        results.model_copy(update={"pool": [_own_entry(spec, execution, results)]})
        if execution.is_pooled
        else results
    )


def _own_entry(spec: RunSpec, execution: Execution, results: Results) -> PoolEntry:
    """Return the run's own entry in its pool.

    Only a comparison needs the cases of the entry in memory; reports read them from the archive.
    """
    entry = entry_without_cases(results)
    if spec.baseline is None:
        return entry
    cases = {case_id: case for part in execution.archive.pooled(entry) for case_id, case in part.items()}
    return entry.model_copy(update={"cases": cases})


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
