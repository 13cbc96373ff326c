"""What earlier attempts of a pull request mean for the next one."""

from __future__ import annotations

from agenteval.compare.regression.model import Burden, CaseFinding, Decision, Failures, MetricFinding
from agenteval.results.memory import Memory, ProvenCase, ProvenMean
from agenteval.results.model import Results
from agenteval.results.verdict import Gate


def is_decided(gate: Gate | None) -> bool:
    """Return whether a gate has decided for or against the change; another run of the same files must not."""
    return gate is not None and gate.verdict in {"passed", "failed"}


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
        gate: its verdict.
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


def can_resume(results: Results) -> bool:
    """Return whether an attempt that decided nothing is continued, so that everything already run counts.

    Errors would stay as they are, so an attempt with errors begins again, unless a signal or a limit ended it.
    """
    covered = results.run.coverage
    was_ended = not results.run.complete or (covered is not None and covered.ended_by is not None)
    return not is_decided(results.gate) and (was_ended or not results.summary.errors)


def _drop(finding: MetricFinding) -> float:
    return min(1.0, finding.control - finding.current)


def _fall(finding: CaseFinding) -> float:
    """Return the fall of the pass rate; a case that repeats exactly is proven without re-runs."""
    if finding.current.of and finding.control.of:
        return min(1.0, finding.fall)
    return min(1.0, _rate(finding.first) - _rate(finding.pool))


def _rate(failures: Failures) -> float:
    return failures.failed / failures.of if failures.of else 0.0
