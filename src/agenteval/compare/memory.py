"""What earlier attempts of a pull request mean for the next one."""

from __future__ import annotations

from collections.abc import Collection

from agenteval.compare.gate_counts import Counts
from agenteval.compare.gate_failures import Required, failures_of
from agenteval.compare.gate_findings import failures_and_regressions, unproven_points
from agenteval.compare.regression.model import Burden, CaseFinding, Decision, MetricFinding
from agenteval.results.model import Memory, ProvenCase, ProvenMean, Results
from agenteval.results.verdict import Gate

# The exit status for a signal is above this number.
_SIGNALS = 128


def is_decided(results: Results, required: Required, out: Collection[str]) -> bool:
    """Return whether an attempt has shown something for or against the change, so that no further run may decide.

    A gate that failed only because something could not be checked has shown nothing: its cause may be a missing key.

    Args:
        required: the cases that fail the gate whenever they fail.
        out: ids of quarantined cases.
    """
    gate = results.gate
    if gate is None or gate.verdict != "failed":
        return gate is not None and gate.passed
    return bool(failures_and_regressions(results, Counts.of(results, out), failures_of(results, required, out)))


def can_resume(results: Results, required: Required, out: Collection[str]) -> bool:
    """Return whether an attempt that shows nothing can be continued, so that everything already run counts.

    It can if a signal or a limit ended it, and if only its confirmation is missing. What was not measured for another
    reason would stay so, and such an attempt begins again.

    Args:
        required: the cases that fail the gate whenever they fail.
        out: ids of quarantined cases.
    """
    gate, covered = results.gate, results.run.coverage
    if gate is None or is_decided(results, required, out):
        return False
    if not results.run.complete or (covered is not None and covered.ended_by is not None):
        return True
    if gate.exit_status > _SIGNALS:
        return True
    failing = failures_of(results, required, out)
    points = unproven_points(results, Counts.of(results, out), 0.0, out, failing)
    return gate.verdict == "unproven" and {point.what for point in points} == {"confirmation"}


def burden_of(memory: Memory | None) -> Burden:
    """Return what the next attempt must refute."""
    if memory is None:
        return Burden()
    return Burden(
        means={item.metric: item.drop for item in memory.means},
        cases={(item.metric, item.case_id): item.fall for item in memory.cases},
    )


def next_burden(before: Burden, gate: Gate, decision: Decision | None) -> Burden:
    """Return what the attempt after this one must refute.

    A passed gate, and a decision without a regression, clear what was to refute. An attempt that decides nothing
    leaves it as it was. An attempt that could not refute it adds what it has proven itself.

    Args:
        before: what this attempt had to refute.
        decision: its comparison with the control; ``None`` if none was made.
    """
    if gate.verdict == "passed":
        return Burden()
    if gate.verdict != "failed" or decision is None or decision.verdict == "unproven":
        return before
    if decision.verdict != "regressed":
        return Burden()
    found = proven(decision)
    if not decision.carried:
        return found
    return Burden(means={**before.means, **found.means}, cases={**before.cases, **found.cases})


def proven(decision: Decision) -> Burden:
    """Return the drops of means and the falls of cases that a decision has proven."""
    means = {item.metric: _drop(item) for item in decision.metrics if item.proven}
    cases = {(item.metric, item.case_id): _fall(item) for item in decision.cases if item.proven}
    return Burden(
        means={name: drop for name, drop in means.items() if drop > 0},
        cases={name: fall for name, fall in cases.items() if fall > 0},
    )


def with_burden(memory: Memory, burden: Burden) -> Memory:
    """Return the record of an attempt with what the next one must refute."""
    means = [ProvenMean(metric=metric, drop=drop) for metric, drop in sorted(burden.means.items())]
    cases = [
        ProvenCase(metric=metric, case_id=case_id, fall=fall)
        for (metric, case_id), fall in sorted(burden.cases.items())
    ]
    return memory.model_copy(update={"means": means, "cases": cases})


def _drop(finding: MetricFinding) -> float:
    return min(1.0, finding.control - finding.current)


def _fall(finding: CaseFinding) -> float:
    """Return the fall of the pass rate; a case that repeats exactly is proven without re-runs."""
    if finding.current.of and finding.control.of:
        return min(1.0, finding.fall)
    return min(1.0, finding.first.share - finding.pool.share)
