"""The baseline of a repository's first pull request: a run of the base commit's agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agenteval.core.escape import one_line
from agenteval.gate.proof import CannotRunError
from agenteval.gate.run_scores import pool_entry
from agenteval.gate.words import count
from agenteval.results.case import CaseResult
from agenteval.results.history import why_not_evaluated
from agenteval.results.model import Results
from agenteval.results.rollup import agent_errors, summarise
from agenteval.run.baseline import FoundBaseline
from agenteval.run.confirm.passes import Passes
from agenteval.suite.model import Fingerprints

_COMMIT = 7
_LONGEST_ERROR = 300


def first_baseline(results: Results, passes: Passes) -> FoundBaseline:
    """Run the suite with the base commit's agent, with as many iterations as a first run.

    Args:
        results: the first run of the pull request.

    Raises:
        CannotRunError: the base cannot run.
    """
    cases = {item.case.id: item for item in passes.spec.cases}
    asked = [case.id for _, case in results.cases() if case.id in cases and case.status != "skipped"]
    iterations = max((cases[case_id].iterations for case_id in asked), default=1)
    done = passes.made("base", asked, iterations)
    made = _results_of(done, results, passes)
    if why := why_not_evaluated(made.summary):
        raise CannotRunError(f"{why}{_first_error(made)}", "outside", "base")
    where = f"the base commit {made.run.commit[:_COMMIT]}" if made.run.commit else "the deployment of the base commit"
    missing = passes.spec.missing_baseline
    # The reason can be a missing permission, which would cost this run in every pull request.
    *notes, reason = (missing.reasons if missing is not None else ()) or ("no earlier run was found",)
    calls = count(iterations * len(done), "call")
    made_now = f"so the suite ran once at {where} ({calls}), and this is the baseline"
    return FoundBaseline(made, (*notes, f"{reason}; {made_now}"))


def _first_error(made: Results) -> str:
    errors = sorted(text for _, case in made.cases() for text in agent_errors(case.turns))
    return f": {one_line(errors[0], _LONGEST_ERROR)}" if errors else ""


def _results_of(done: Sequence[tuple[str, CaseResult]], results: Results, passes: Passes) -> Results:
    """Return the run of the base commit's agent as the results of a run of the base branch."""
    by_id = {case.id: case for _, case in done}
    fingerprints = _fingerprints(by_id, passes)
    suites = [
        suite.model_copy(update={"cases": [by_id[case.id] for case in suite.cases if case.id in fingerprints]})
        for suite in results.suites
    ]
    branch = passes.spec.control_host.rule.branch
    run = results.run.model_copy(
        update={
            "id": f"{results.run.id}.base",
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "commit": passes.commit,
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


def _fingerprints(cases: Mapping[str, CaseResult], passes: Passes) -> Mapping[str, Fingerprints]:
    """Return the fingerprints of the cases of both commits, with the metrics that they share."""
    shared = passes.shared()
    found = {}
    for item in passes.spec.cases:
        own = item.case.fingerprints
        if item.case.id in cases and item.case.id in shared:
            names = shared[item.case.id]
            metrics = own.metrics if names is None else {name: own.metrics[name] for name in names}
            found[item.case.id] = Fingerprints(own.question, metrics)
    return found
