"""``gate.staged``: a first run asks settled cases only once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agenteval.core.errors import AgentEvalError
from agenteval.run.plan import PlannedCase, needs_whole_answers
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.settings import Settings
from agenteval.suite.agents import REPLAY

if TYPE_CHECKING:
    from agenteval.compare.gate_failures import Required
    from agenteval.run.confirm.control import PreparedControl


def staged(spec: RunSpec, settings: Settings, control: PreparedControl | AgentEvalError | None = None) -> RunSpec:
    """Return the specification whose settled cases run once, if the gate is staged.

    Runs of the base branch, and those that make a pool, run whole: their scores tell which cases are settled.

    Args:
        control: tells which earlier runs do not count.
    """
    found = spec.baseline or spec.baseline_of_whole
    if not spec.compare.staged or settings.is_whole or found is None:
        return spec
    # Imported here: most runs are not staged.
    from agenteval.compare.settled import settled_in
    from agenteval.compare.unpaired import continues_branch

    baseline = found.results
    if spec.compare.confirm == "off" or continues_branch(spec.provenance, baseline.run):
        return spec
    may_be = {item.case.id: item for item in spec.cases if _may_be_asked_once(item, spec.gate.required)}
    unrelated = frozenset() if control is None or isinstance(control, AgentEvalError) else control.unrelated
    known = {case_id: item.case.fingerprints for case_id, item in may_be.items()}
    settled = settled_in(baseline, known, spec.compare, unrelated)
    cases = [replace(item, unneeded=item.iterations - 1) if item.case.id in settled else item for item in spec.cases]
    return replace(spec, cases=tuple(cases))


def _may_be_asked_once(item: PlannedCase, required: Required) -> bool:
    """Return whether nothing but the comparison needs all iterations of a case."""
    return (
        item.iterations > 1
        and item.agent.kind != REPLAY
        and not needs_whole_answers(item.suite, item.case)
        and not required.names(item.case)
    )
