"""What somebody accepted: changes that a comparison would otherwise not let pass."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from datetime import date
from typing import Literal

from agenteval.core.records import dataclass
from agenteval.results.model import Acceptance, Difference

AcceptedChange = Literal["removed", "edited", "regressed"]


@dataclass(frozen=True)
class Accepted:
    """One accepted change, of a case or of the mean of a metric.

    Attributes:
        until: the last day, in UTC.
        case: id of the case; empty for a metric.
        metric: id of the metric; empty for a case.
        before: what it was, for people; of a metric the mean.
        author: author of the entry in git; empty if it is unknown.
        for_commit: whether it was accepted for the commit that is evaluated, whatever its content is, instead of
            for a content.
    """

    change: AcceptedChange
    reason: str
    until: date
    case: str = ""
    metric: str = ""
    fingerprint: str = ""
    before: str = ""
    after: str = ""
    author: str = ""
    line: int | None = None
    for_commit: bool = False

    @property
    def key(self) -> str:
        """A hash by which later runs recognise the entry."""
        content = [self.change, self.reason, str(self.until), self.case, self.metric]
        content += [self.fingerprint, self.before, self.after]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    @property
    def acceptance(self) -> Acceptance:
        """Who accepted it, and why, for results.json."""
        return Acceptance(author=self.author, reason=self.reason)


def in_force(entries: Iterable[Accepted], merged: Collection[str], today: date) -> tuple[Accepted, ...]:
    """Return the entries that count in a run.

    Args:
        merged: keys of the entries that the baseline's run had: there, the base branch has caught up.
    """
    return tuple(entry for entry in entries if entry.key not in merged and today <= entry.until)


def accepted_of(entries: Iterable[Accepted], change: AcceptedChange, case_id: str, digest: str) -> Accepted | None:
    """Return the entry for a change of a case; ``None`` if the case changed again since, or nobody accepted it."""
    of_case = (entry for entry in entries if (entry.change, entry.case) == (change, case_id))
    same = (entry for entry in of_case if entry.for_commit or entry.fingerprint == digest)
    return next(same, None) if digest else None


def settled(entries: Iterable[Accepted], differences: Iterable[Difference]) -> tuple[Accepted, ...]:
    """Return the entries without those for a commit that are about another change of the case than it has.

    Args:
        entries: the entries in force; for a commit, they name every change that a case can have.
    """
    kinds = {(item.kind, item.case) for item in differences}

    def has(entry: Accepted) -> bool:
        if not entry.for_commit or not entry.case:
            return True
        withdrawn = [change for change in ("removed", "edited") if (change, entry.case) in kinds]
        return entry.change in (withdrawn or ["regressed"])

    return tuple(entry for entry in entries if has(entry))


def acknowledged(difference: Difference, accepted: Collection[Accepted]) -> Difference:
    """Return a difference with who accepted it, if somebody did."""
    if difference.kind not in {"removed", "edited"} or difference.case is None:
        return difference
    change: AcceptedChange = "removed" if difference.kind == "removed" else "edited"
    entry = accepted_of(accepted, change, difference.case, difference.fingerprint)
    if entry is None:
        return difference
    effect = "listed" if change == "removed" else "absolute"
    return difference.model_copy(update={"accepted_by": entry.acceptance, "effect": effect})
