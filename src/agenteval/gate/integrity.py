"""What was accepted, and what a comparison makes of it and of the base commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import Literal

from agenteval.core.records import dataclass, field
from agenteval.gate.failures import some
from agenteval.gate.pairing import own_cases
from agenteval.results.comparison import BaselineCase, CaseChange, CaseNote, ComparedCase
from agenteval.results.model import Acceptance, Difference, Results
from agenteval.results.verdict import Unproven
from agenteval.suite.model import Fingerprints

AcceptedChange = Literal["removed", "edited", "worse"]


def digest_of(fingerprints: Fingerprints) -> str:
    """Return one hash of the question and all metrics of a case; empty if they are unknown."""
    if not fingerprints.question:
        return ""
    content = json.dumps([fingerprints.question, sorted(fingerprints.metrics.items())])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def digests_of(cases: Mapping[str, BaselineCase]) -> dict[str, str]:
    """Return the hash of each case of a run by id, from the run's entry in its baseline."""
    return {case_id: digest_of(Fingerprints(case.fingerprint, case.metrics)) for case_id, case in cases.items()}


def renamed(before: Mapping[str, str], after: Mapping[str, str], kept: Collection[str]) -> dict[str, str]:
    """Return the cases that have another id and the same fingerprint, as old id → new id.

    Of several cases with one fingerprint, the first is paired with the first, and so on.

    Args:
        before: digest by id of the cases of the earlier state.
        kept: ids that still exist, besides those of ``after``.
    """
    waiting: dict[str, list[str]] = {}
    for case_id, digest in after.items():
        if digest and case_id not in before:
            waiting.setdefault(digest, []).append(case_id)
    found: dict[str, str] = {}
    for case_id, digest in before.items():
        if case_id not in after and case_id not in kept and waiting.get(digest):
            found[case_id] = waiting[digest].pop(0)
    return found


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
    def lowest(self) -> float:
        """The lowest mean of the metric that was accepted."""
        try:
            return float(self.after)
        except ValueError:
            return 1.0


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
    found = []
    for entry in entries:
        withdrawn = [change for change in ("removed", "edited") if (change, entry.case) in kinds]
        if not (entry.for_commit and entry.case) or entry.change in (withdrawn or ["worse"]):
            found.append(entry)
    return tuple(found)


def acknowledged(difference: Difference, accepted: Collection[Accepted]) -> Difference:
    """Return a difference with who accepted it, if somebody did."""
    if difference.kind not in {"removed", "edited"} or difference.case is None:
        return difference
    change: AcceptedChange = "removed" if difference.kind == "removed" else "edited"
    entry = accepted_of(accepted, change, difference.case, difference.fingerprint)
    if entry is None:
        return difference
    effect = "listed" if change == "removed" else "absolute"
    by = Acceptance(author=entry.author, reason=entry.reason)
    return difference.model_copy(update={"accepted_by": by, "effect": effect})


FIX = "restore {them}, or accept the change with 'agenteval accept'"
_LIVE = "evaluate the agent, or name the recording with --agent"


@dataclass(frozen=True)
class Integrity:
    """How the suites and rules of a run differ from those of the base commit.

    Attributes:
        base_cases: ids of all cases of the base commit, the new ones of renamed cases; ``None`` if it is unknown.
        accepted: the accepted changes that count in this run.
        keys: of all entries in the file, with which later runs recognise them.
        renamed: new id by old id.
    """

    differences: tuple[Difference, ...] = ()
    base_cases: frozenset[str] | None = None
    accepted: tuple[Accepted, ...] = ()
    keys: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def removed(self) -> frozenset[str]:
        """The ids of the passing cases of the baseline that the change takes away from the comparison."""
        return frozenset(
            item.case
            for item in self.differences
            if item.kind == "removed" and item.effect == "unproven" and item.case is not None
        )

    def gone_before(self, baseline: Results) -> frozenset[str]:
        """Return the ids of the baseline's cases that the base commit had removed already."""
        if self.base_cases is None:
            return frozenset()
        return frozenset(case.id for _, case in baseline.cases()) - self.base_cases

    def accepted_cases(self, current: Results, baseline: Results) -> Mapping[str, Accepted]:
        """Return the entries for cases of two runs, by case id."""
        if not any(entry.case for entry in self.accepted):
            return {}
        now, then = digests_of(own_cases(current)), digests_of(own_cases(baseline))
        found: dict[str, Accepted] = {}
        for case_id in {entry.case for entry in self.accepted if entry.case}:
            old, new = then.get(case_id, ""), now.get(case_id, "")
            changes: dict[AcceptedChange, str] = {"worse": new, "edited": new if new != old else ""}
            for change, digest in (changes | ({} if case_id in now else {"removed": old})).items():
                entry = accepted_of(self.accepted, change, case_id, digest)
                if entry is not None:
                    found.setdefault(case_id, entry)
        return found

    def accepted_metrics(self, means: Mapping[str, float | None], tolerance: float) -> Mapping[str, Accepted]:
        """Return the entries for means, by metric: the mean may not have fallen further than was accepted."""
        found = {}
        for entry in self.accepted:
            mean = means.get(entry.metric)
            if entry.metric and mean is not None and mean >= entry.lowest - tolerance:
                found[entry.metric] = entry
        return found


def withdrawn_cases(cases: Iterable[ComparedCase], out: Collection[str]) -> Iterator[Unproven]:
    """Yield the passing cases of the baseline that cannot be compared, because they are gone or other cases now.

    Quarantined and accepted cases do not count: they are ``out``.
    """
    passing = [case for case in cases if case.status_before == "passed" and case.id not in out]
    for change, words in (("removed", "no longer in the suite"), ("changed", "another case now")):
        names = [case.name for case in passing if case.change == change]
        if names:
            what = (
                "1 case that passed before is" if len(names) == 1 else f"{len(names):,} cases that passed before are"
            )
            fix = FIX.format(them="it" if len(names) == 1 else "them")
            yield Unproven(what="cases", text=f"{what} {words}: {some(names)}; {fix}", mended_by="change")


def unproven_changes(differences: Iterable[Difference]) -> Iterator[Unproven]:
    """Yield the changes of rules or agents that take something away from the comparison."""
    for item in differences:
        if item.kind == "agent" and item.effect == "unproven":
            whose = item.case or f"{item.cases:,} cases"
            text = f"the change replaces the live agent of {whose} by recorded answers; {_LIVE}"
            yield Unproven(what="rules", text=text, mended_by="change")
        if item.kind == "rules" and item.effect == "unproven":
            text = f"the change could choose its own rules: those of the base commit {item.after}"
            yield Unproven(what="rules", text=text, mended_by="outside")


def with_acceptances(cases: Iterable[ComparedCase], accepted: Mapping[str, Accepted]) -> list[ComparedCase]:
    """Return the cases with a note at each accepted one, which a comparison treats as quarantined.

    An edited case is another case than in the baseline: it must pass.
    """

    def noted(case: ComparedCase) -> ComparedCase:
        if case.id not in accepted:
            return case
        notes: list[CaseNote] = [note for note in case.notes if note != "quarantined"]
        change: CaseChange = "same" if case.change == "broke" else case.change
        if accepted[case.id].change == "edited":
            change = "changed"
        return case.model_copy(update={"change": change, "notes": [*notes, "accepted"]})

    return [noted(case) for case in cases]


def with_new_ids(results: Results, renamed: Mapping[str, str]) -> Results:
    """Return an earlier run with the new ids of renamed cases, by old id, in the run and in its baseline."""
    if not renamed:
        return results
    suites = [
        suite.model_copy(
            update={"cases": [case.model_copy(update={"id": renamed.get(case.id, case.id)}) for case in suite.cases]}
        )
        for suite in results.suites
    ]
    baseline = [
        entry.model_copy(
            update={"cases": {renamed.get(case_id, case_id): case for case_id, case in entry.cases.items()}}
        )
        for entry in results.baseline_runs
    ]
    return results.model_copy(update={"suites": suites, "baseline_runs": baseline})


def with_ids_of(now: Results, then: Results) -> Results:
    """Return the earlier of two runs with the ids that renamed cases have in the later one."""
    before, after = digests_of(own_cases(then)), digests_of(own_cases(now))
    return with_new_ids(then, renamed(before, after, {case.id for _, case in now.cases()}))
