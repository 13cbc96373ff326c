"""The baseline of a repository's first pull request: one run of the base commit's agent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from agenteval.compare.phrases import count
from agenteval.compare.regression.model import Request, Unavailable
from agenteval.compare.run_scores import pool_entry
from agenteval.core.escape import one_line
from agenteval.results.case import CaseResult
from agenteval.results.history import why_not_evaluated
from agenteval.results.model import Results
from agenteval.results.rollup import agent_errors, summarise
from agenteval.run.baseline import FoundBaseline
from agenteval.run.confirm.requests import FinishedRuns
from agenteval.run.confirm.runs import ConfirmingRuns
from agenteval.suite.model import Fingerprints

_COMMIT = 7
_LONGEST_ERROR = 300


def first_baseline(results: Results, runs: ConfirmingRuns) -> FoundBaseline | Unavailable:
    """Run the suite once with the base commit's agent.

    Returns:
        The run as a baseline, or why it cannot be made.
    """
    cases = {item.case.id: item for item in runs.spec.cases}
    wanted = {
        case.id: len(case.iterations) or cases[case.id].iterations
        for _, case in results.cases()
        if case.id in cases and case.status != "skipped"
    }
    request = Request(stage="screen", sides=("control",), iterations=wanted, is_whole=True)
    finished = runs.answer(request)
    if finished.unavailable is not None:
        return finished.unavailable
    made = _results_of(finished, results, runs)
    if why := why_not_evaluated(made.summary):
        return Unavailable("control", f"{why}{_first_error(made)}")
    where = f"the base commit {made.run.commit[:_COMMIT]}" if made.run.commit else "the deployment of the base commit"
    calls = sum(wanted[case.id] for _, case in made.cases())
    missing = runs.spec.missing_baseline
    # The reason can be a missing permission, which would cost this run in every pull request.
    *notes, reason = (missing.reasons if missing is not None else ()) or ("no earlier run was found",)
    made_now = f"so the suite ran once at {where} ({count(calls, 'call')}), and this is the baseline"
    return FoundBaseline(made, (*notes, f"{reason}; {made_now}"))


def _first_error(made: Results) -> str:
    errors = sorted(text for _, case in made.cases() for text in agent_errors(case.turns))
    return f": {one_line(errors[0], _LONGEST_ERROR)}" if errors else ""


def _results_of(finished: FinishedRuns, results: Results, runs: ConfirmingRuns) -> Results:
    """Return the run of the base commit's agent as the results of a run of the base branch."""
    by_id = {case.id: case for _, case in finished.side("control")}
    fingerprints = _fingerprints(by_id, runs)
    suites = [
        suite.model_copy(update={"cases": [by_id[case.id] for case in suite.cases if case.id in fingerprints]})
        for suite in results.suites
    ]
    branch = runs.spec.control_host.rule.branch
    run = results.run.model_copy(
        update={
            "id": f"{results.run.id}.control",
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "commit": runs.control_commit,
            "ref": f"refs/heads/{branch}" if branch else None,
            "workflow_run_id": None,
            "workflow_artifact": None,
            "integrity": [],
            "accepted": [],
        }
    )
    kept = [case for suite in suites for case in suite.cases]
    made = results.model_copy(
        update={"run": run, "suites": suites, "summary": summarise(kept), "gate": None, "pool": [], "memory": None}
    )
    return made.model_copy(update={"pool": [pool_entry(made, fingerprints)]})


def _fingerprints(cases: Mapping[str, CaseResult], runs: ConfirmingRuns) -> Mapping[str, Fingerprints]:
    """Return the fingerprints of the cases of both commits, with the metrics that they share."""
    shared = runs.shared()
    found = {}
    for item in runs.spec.cases:
        own = item.case.fingerprints
        if item.case.id in cases and item.case.id in shared:
            names = shared[item.case.id]
            metrics = own.metrics if names is None else {name: own.metrics[name] for name in names}
            found[item.case.id] = Fingerprints(own.question, metrics)
    return found
