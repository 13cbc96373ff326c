"""Shows the verdict of an earlier attempt again, without a single call."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.compare.gate import quarantined
from agenteval.report.view.view import GateView
from agenteval.results.archive import InMemory
from agenteval.results.memory import Memory
from agenteval.results.model import Results
from agenteval.results.verdict import Gate
from agenteval.run.outcome import RunOutcome
from agenteval.run.resolve.spec import RunSpec

_SHORT = 7


def shown_again(results: Results, memory: Memory, spec: RunSpec) -> RunOutcome:
    """Return the outcome of an attempt that was decided before.

    Args:
        results: its results, with its verdict.
        memory: its record.
        spec: the specification of this run.
    """
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


def _again(gate: Gate, memory: Memory, commit: str | None) -> Gate:
    """Return a verdict with where it was shown first, and what to do about a red one."""
    where = f"already shown in attempt {memory.attempt}"
    where += f" for commit {commit[:_SHORT]}" if commit else ""
    advice = "no file that counts has changed" if gate.passed else "push a change or accept it"
    headline = f"{gate.headline}; {where}: {advice}"
    reasons = (headline, *gate.reasons[1:]) if gate.reasons else ()
    return gate.model_copy(update={"headline": headline, "reasons": reasons})
