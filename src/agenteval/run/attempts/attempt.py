"""One attempt of a pull request: repeats, resumes or follows the attempt before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agenteval.compare.gate import GatePolicy, quarantined
from agenteval.compare.memory import burden_of, can_resume, is_decided, next_burden, with_burden
from agenteval.compare.regression.model import Burden, Decision
from agenteval.results.model import Memory, Results
from agenteval.run.attempts.identity import Identity, identity_of_run
from agenteval.run.attempts.source import AttemptSource, EarlierAttempt, Recollection
from agenteval.run.resolve.spec import GateSpec, RunSpec

if TYPE_CHECKING:
    from agenteval.run.outcome import RunOutcome

SpecT = TypeVar("SpecT", bound=GateSpec)


@dataclass(frozen=True)
class Attempt:
    """An attempt that begins.

    Attributes:
        shown: decided results of the same key, which are shown again instead of a run.
        continued: results of the same key that decided nothing and still count.
        restore: writes the journals of the attempt that this one continues or shows; see ``EarlierAttempt``.
    """

    memory: Memory
    shown: Results | None = None
    continued: Results | None = None
    restore: Callable[[Path], bool] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def burden(self) -> Burden:
        """What earlier attempts have proven and this one must refute."""
        return burden_of(self.memory)

    def spec(self, spec: SpecT) -> SpecT:
        """Return the specification of the run with what earlier attempts ask of it."""
        return replace(spec, burden=self.burden, warnings=(*spec.warnings, *self.warnings))

    def recorded(self, outcome: RunOutcome, decision: Decision | None) -> RunOutcome:
        """Return an outcome whose results contain the record of this attempt, for the next one.

        Args:
            decision: the comparison with the control; ``None`` if none was made.
        """
        memory = with_burden(self.memory, next_burden(self.burden, outcome.gate, decision))
        return replace(outcome, results=outcome.results.model_copy(update={"memory": memory}))


def begin_attempt(spec: RunSpec, source: AttemptSource) -> Attempt:
    """Find the earlier attempts, and what follows from them; call it before user code runs."""
    # Shards are not compared.
    is_asked = spec.shard is None and spec.compare.is_asked_to_prove
    return attempt_after(identity_of_run(spec), spec.gate, source, is_asked=is_asked)


def attempt_after(
    identity: Identity, policy: GatePolicy, source: AttemptSource, *, is_asked: bool = False
) -> Attempt:
    """Return the attempt after the newest earlier one.

    Args:
        identity: tells it apart from others.
        is_asked: whether somebody asks for the proof of an improvement, which further runs can give.
    """
    found = source.recall()
    warnings = (*identity.warnings, *found.warnings, *_forgotten(found))
    key, control = identity.key, identity.control
    first = Memory(attempt=1, key=key.counting, whole=key.whole, control=control, forgotten_by=found.forgotten_by)
    if found.newest is None:
        return Attempt(first, warnings=warnings)
    return replace(_after(found.newest, first, policy, is_asked=is_asked), warnings=warnings)


def _after(earlier: EarlierAttempt, first: Memory, policy: GatePolicy, *, is_asked: bool) -> Attempt:
    """Return the attempt after another one, by the policy of the gate.

    A file that does not count keeps a change red. It makes nothing green: an agent can read any file. A green attempt
    is continued if the proof of an improvement is asked for and it has none.
    """
    known = earlier.memory
    out = quarantined(earlier.results, policy)
    is_same = known.whole == first.whole
    stays_red = known.key == first.key and not _is_green(earlier)
    # Only the run that was forgotten for tells by whom.
    same = known.model_copy(update={"forgotten_by": None, "repeats": False, "left_out_for": None})
    if is_same and is_asked and _is_green(earlier) and not _is_answered(earlier.results):
        return Attempt(same, continued=earlier.results, restore=earlier.restore)
    if (is_same or stays_red) and is_decided(earlier.results, policy.required, out):
        # A later run may continue a green attempt, to prove an improvement.
        return Attempt(same, shown=earlier.results, restore=earlier.restore if _is_green(earlier) else None)
    if not is_same:
        kept = {"attempt": known.attempt + 1, "means": known.means, "cases": known.cases}
        return Attempt(first.model_copy(update=kept))
    if can_resume(earlier.results, policy.required, out):
        return Attempt(same, continued=earlier.results, restore=earlier.restore)
    return Attempt(same.model_copy(update={"attempt": known.attempt + 1}))


def _is_green(earlier: EarlierAttempt) -> bool:
    return earlier.results.gate is not None and earlier.results.gate.passed


def _is_answered(results: Results) -> bool:
    """Return whether an attempt has looked for the proof of an improvement; what stopped it may be over."""
    requested = results.comparison.requested if results.comparison is not None else None
    return requested is not None and requested.verdict != "unproven"


def _forgotten(found: Recollection) -> tuple[str, ...]:
    if found.forgotten_by is None:
        return ()
    return (f"the earlier runs of this pull request were forgotten: {found.forgotten_by} set `agenteval: forget`",)
