"""One attempt of a pull request: repeats, resumes or follows the attempt before it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.compare.gate import GatePolicy, quarantined
from agenteval.compare.memory import burden_of, can_resume, is_decided, next_burden, with_burden
from agenteval.compare.regression.model import Burden, Decision
from agenteval.core.errors import AgentEvalError
from agenteval.core.version import __version__
from agenteval.results.memory import COMMIT, Memory
from agenteval.results.model import Results
from agenteval.run.attempts.key import attempt_key
from agenteval.run.attempts.source import AttemptSource, EarlierAttempt, Recollection
from agenteval.run.confirm.clone import Clone
from agenteval.run.resolve.spec import RunSpec

if TYPE_CHECKING:
    from agenteval.run.outcome import RunOutcome


@dataclass(frozen=True)
class Attempt:
    """An attempt that begins.

    Attributes:
        memory: its record so far.
        shown: decided results of the same key, which are shown again instead of a run.
        restore: writes the journals of the attempt that this one continues; see ``EarlierAttempt``.
        warnings: for the reports.
    """

    memory: Memory
    shown: Results | None = None
    restore: Callable[[Path], bool] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def burden(self) -> Burden:
        """What earlier attempts have proven and this one must refute."""
        return burden_of(self.memory)

    def spec(self, spec: RunSpec) -> RunSpec:
        """Return the specification of the run with what earlier attempts ask of it."""
        return replace(spec, burden=self.burden, warnings=(*spec.warnings, *self.warnings))

    def recorded(self, outcome: RunOutcome, decision: Decision | None) -> RunOutcome:
        """Return an outcome whose results contain the record of this attempt, for the next one.

        Args:
            outcome: the outcome of the run.
            decision: the comparison with the control; ``None`` if none was made.
        """
        memory = with_burden(self.memory, next_burden(self.burden, outcome.gate, decision))
        return replace(outcome, results=outcome.results.model_copy(update={"memory": memory}))


def begin_attempt(spec: RunSpec, source: AttemptSource) -> Attempt:
    """Find the earlier attempts, and what follows from them; call it before user code runs.

    Args:
        spec: the specification of the run.
        source: keeps the earlier attempts.
    """
    key, control, problems = _key(spec)
    found = source.recall()
    warnings = (*problems, *found.warnings, *_forgotten(found))
    first = Memory(attempt=1, key=key, control=control, forgotten_by=found.forgotten_by)
    if found.newest is None:
        return Attempt(first, warnings=warnings)
    return replace(_after(found.newest, first, spec.gate), warnings=warnings)


def _after(earlier: EarlierAttempt, first: Memory, policy: GatePolicy) -> Attempt:
    """Return the attempt after another one, by the policy of the gate."""
    known = earlier.memory
    if known.key != first.key:
        kept = {"attempt": known.attempt + 1, "means": known.means, "cases": known.cases}
        return Attempt(first.model_copy(update=kept))
    # Only the run that was forgotten for tells by whom.
    same = known.model_copy(update={"forgotten_by": None, "repeats": False})
    out = quarantined(earlier.results, policy)
    if is_decided(earlier.results, policy.required, out):
        return Attempt(same, shown=earlier.results)
    if can_resume(earlier.results, policy.required, out):
        return Attempt(same, restore=earlier.restore)
    return Attempt(same.model_copy(update={"attempt": known.attempt + 1}))


def _key(spec: RunSpec) -> tuple[str, str | None, tuple[str, ...]]:
    """Return the key, the control, and a warning if the key is unknown: then no other attempt has it."""
    control: str | None = None
    try:
        clone = Clone.find(spec.sources.here, spec.control_host)
        control = _control(clone, spec.baseline.results.run.commit if spec.baseline else None)
        conditions = {
            "version": __version__,
            "control": control,
            "compared": spec.baseline is not None,
            "fail_on": sorted(spec.gate.fail_on),
            "required": [spec.gate.required.strict, *spec.gate.required.patterns],
            "cases": [[item.case.id, item.iterations] for item in spec.cases],
        }
        return attempt_key(clone.root, spec.ignore, conditions), control, ()
    except AgentEvalError as error:
        note = f"it is unknown whether the files of this pull request have changed since its last run: {error}"
        return secrets.token_hex(32), control, (spec.redact(note),)


def _control(clone: Clone, baseline: str | None) -> str | None:
    """Return the control; the commit of the baseline if it is unknown, and ``None`` without any."""
    try:
        return clone.control(baseline).commit
    except AgentEvalError:
        # The commit is a text from a file.
        return baseline if baseline and COMMIT.fullmatch(baseline) else None


def _forgotten(found: Recollection) -> tuple[str, ...]:
    if found.forgotten_by is None:
        return ()
    return (f"the earlier runs of this pull request were forgotten: {found.forgotten_by} set `agenteval: forget`",)
