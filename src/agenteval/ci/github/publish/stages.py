"""Compares the gate of the first stage with that of the second one. Pure.

The results carry the decision of the job that evaluated them, and its rules. Both are claims: a fork's job can write
anything. The second stage decides by the rules of the base branch, and says where the claims differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agenteval.results.verdict import Gate, Rules, Verdict

_ORDER: tuple[Verdict, ...] = ("passed", "unproven", "failed", "error")
_NAMED = 5


@dataclass(frozen=True)
class Agreed:
    """The decision that both stages show.

    Attributes:
        gate: the worse one of both decisions.
        warnings: where the first stage had other rules.
        contradiction: why the decision is worse than that of the first stage's job; empty if it is not.
    """

    gate: Gate
    warnings: tuple[str, ...] = ()
    contradiction: str = ""


def agreed(own: Gate, own_rules: Rules, claim: Gate | None) -> Agreed:
    """Return the decision on results that another job has decided on.

    Args:
        own: the decision by the rules of the base branch.
        own_rules: these rules.
        claim: the decision that the results contain; ``None`` if the job did not decide.
    """
    if claim is None:
        return Agreed(own)
    warnings = tuple(_other_rules(own_rules, claim.rules)) if claim.rules is not None else ()
    if _badness(claim) > _badness(own):
        return Agreed(claim, warnings)
    if own.exit_status and not claim.exit_status:
        why = "; ".join(warnings) or "its results do not support its decision"
        return Agreed(own, warnings, f"the job that evaluated this commit ended green ({claim.verdict}): {why}")
    return Agreed(own, warnings)


def _badness(gate: Gate) -> tuple[bool, int]:
    return (gate.exit_status != 0, _ORDER.index(gate.verdict))


def _other_rules(own: Rules, claim: Rules) -> Iterator[str]:
    if set(own.fail_on) != set(claim.fail_on):
        ours, theirs = (", ".join(rules.fail_on) or "none" for rules in (own, claim))
        yield f"it failed on {theirs}, and the base branch fails on {ours}; give both workflows the same `fail-on`"
    if own.max_error_rate != claim.max_error_rate:
        theirs, ours = (f"{rules.max_error_rate:g}" for rules in (claim, own))
        yield f"its `max_error_rate` was {theirs}, and that of the base branch is {ours}"
    if extra := sorted(set(claim.quarantine) - set(own.quarantine)):
        more = f" and {len(extra) - _NAMED} more" if len(extra) > _NAMED else ""
        yield f"it did not count {', '.join(extra[:_NAMED])}{more}, which the base branch has not quarantined"
