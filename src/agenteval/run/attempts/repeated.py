"""Shows the verdict of an earlier attempt again, without a single call."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.compare.gate import decide_gate, quarantined
from agenteval.report.view.view import GateView
from agenteval.results.model import Memory, Results, RunShard
from agenteval.results.store import InMemory
from agenteval.results.verdict import Gate
from agenteval.run.outcome import RunOutcome
from agenteval.run.resolve.spec import GateSpec, RunSpec

_SHORT = 7


def decided_again(results: Results, spec: GateSpec) -> Results:
    """Return a decided run with the verdict of the gate as it is configured where shards are merged.

    Shards do not know what fails the job of their merge.
    """
    memory = results.memory.model_copy(update={"repeats": False}) if results.memory else None
    results = results.model_copy(update={"memory": memory})
    return results.model_copy(update={"gate": decide_gate(results, spec.gate)})


def shown_again(results: Results, memory: Memory, spec: GateSpec) -> RunOutcome:
    """Return the outcome of an attempt that was decided before."""
    earlier = results.gate
    if earlier is None:
        raise ValueError("only a decided attempt can be shown again")
    # The headline of a repeated verdict already names the attempt.
    is_repeat = results.memory is not None and results.memory.repeats
    gate = earlier if is_repeat else _again(earlier, memory, results.run.commit)
    results = results.model_copy(update={"gate": gate, "memory": memory.model_copy(update={"repeats": True})})
    warnings: Sequence[str] = [spec.redact(text) for text in spec.warnings]
    return RunOutcome(
        results=results,
        gate=gate,
        view=GateView.of(gate, tuple(warnings)),
        exit_status=gate.exit_status,
        archive=InMemory(),
        quarantined=quarantined(results, spec.gate),
        presentation=spec.presentation,
    )


def left_out(results: Results, memory: Memory, spec: RunSpec, shard: RunShard) -> RunOutcome:
    """Return the outcome of a shard that does not run, because its run was decided before.

    Its results are those of the decided run, which the merge shows again.
    """
    decided = results.gate.headline if results.gate else ""
    headline = (
        f"shard {shard.index} of {shard.count} did not run: attempt {memory.attempt} has decided ({decided}); "
        "agenteval merge shows the verdict again"
    )
    gate = Gate(verdict="unproven", exit_status=0, headline=headline)
    record = memory.model_copy(update={"repeats": True, "left_out_for": spec.provenance.commit})
    run = results.run.model_copy(update={"shard": shard})
    return RunOutcome(
        results=results.model_copy(update={"gate": gate, "memory": record, "run": run}),
        gate=gate,
        view=GateView.of(gate, tuple(spec.redact(text) for text in spec.warnings)),
        exit_status=gate.exit_status,
        archive=InMemory(),
        presentation=spec.presentation,
    )


def _again(gate: Gate, memory: Memory, commit: str | None) -> Gate:
    """Return a verdict with where it was shown first, and what to do about a red one."""
    where = f"already shown in attempt {memory.attempt}"
    where += f" for commit {commit[:_SHORT]}" if commit else ""
    advice = "nothing has changed since" if gate.passed else "push a change or accept it"
    headline = f"{gate.headline}; {where}: {advice}"
    reasons = (headline, *gate.reasons[1:]) if gate.reasons else ()
    return gate.model_copy(update={"headline": headline, "reasons": reasons})
