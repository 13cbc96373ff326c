"""``gate: {first: early}``: the first run of a change ends as soon as nothing looks low."""

from __future__ import annotations

import time
from collections.abc import Sequence

from agenteval.gate.run_scores import pool_entry
from agenteval.results.case import CaseResult
from agenteval.results.model import Results, RunUsage
from agenteval.results.rollup import summarise
from agenteval.results.store import InMemory
from agenteval.run.compare import comparer_of
from agenteval.run.outcome import make_results
from agenteval.run.plan import MayStop, PlannedCase, RunExecution, needs_whole_answers
from agenteval.run.resolve.spec import RunSpec
from agenteval.suite.agents import REPLAY


def stopping(spec: RunSpec) -> MayStop | None:
    """Return what decides after each pass whether a first run may end; ``None`` if it makes all iterations.

    Runs of the base branch make all of them. So do runs of which something besides the comparison needs them: suites
    that state how often a case runs, metrics over all iterations, and cases that must pass.
    """
    # Imported here: most runs have no baseline.
    from agenteval.gate.pairing import continues_branch

    baseline = spec.baseline
    if baseline is None or spec.compare.first != "early" or continues_branch(spec.provenance, baseline.results.run):
        return None
    if not spec.cases or not all(map(_may_have_fewer, spec.cases)):
        return None
    if any(spec.gate.required.names(item.case) for item in spec.cases):
        return None
    fingerprints = {item.case.id: item.case.fingerprints for item in spec.cases}

    def may_stop(cases: Sequence[tuple[str, CaseResult]]) -> bool:
        results = _so_far(spec, cases)
        results = results.model_copy(update={"pool": [pool_entry(results, fingerprints)]})
        return comparer_of(results, spec, baseline).may_stop()

    return may_stop


def _may_have_fewer(item: PlannedCase) -> bool:
    """Return whether only the comparison needs all iterations of a case."""
    suite, case = item.suite, item.case
    is_stated = suite.iterations is not None or case.iterations is not None or case.strict or item.follow_recording
    return not is_stated and item.agent.kind != REPLAY and not needs_whole_answers(suite, case)


def _so_far(spec: RunSpec, cases: Sequence[tuple[str, CaseResult]]) -> Results:
    by_suite: dict[str, list[CaseResult]] = {}
    for path, case in cases:
        by_suite.setdefault(path, []).append(case)
    execution = RunExecution(
        run_id="",
        started=time.time(),
        duration_s=0.0,
        cases=by_suite,
        summary=summarise([case for _, case in cases]),
        asked=RunUsage(),
        total=len(cases),
        answers={},
        archive=InMemory(),
    )
    return make_results(spec, execution)
