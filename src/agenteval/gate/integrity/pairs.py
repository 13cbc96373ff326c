"""Pairs the cases of the change with those of the base commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping

from agenteval.core.records import dataclass, field
from agenteval.results.comparison import PoolCase
from agenteval.suite.model import Case, Fingerprints


def digest_of(fingerprints: Fingerprints) -> str:
    """Return one hash of the question and all metrics of a case; empty if they are unknown."""
    if not fingerprints.question:
        return ""
    content = json.dumps([fingerprints.question, sorted(fingerprints.metrics.items())])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def digests_of(cases: Mapping[str, PoolCase]) -> dict[str, str]:
    """Return the hash of each case of a run by id, from the run's entry in its pool."""
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
class Pairs:
    """The cases of the change and those of the base commit.

    Attributes:
        base: the base commit's version by the id of the case in the change.
        renamed: old id by new id.
        edited: ids of cases that ask or expect something else than in the base commit.
        new: ids of the cases that the base commit does not have.
        removed: the base commit's cases that the change does not have, by id.
    """

    base: Mapping[str, Case] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    edited: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    removed: Mapping[str, Case] = field(default_factory=dict)

    def without(self, ids: Collection[str]) -> Pairs:
        """Return the pairs in which some cases of the change are new ones, and their versions are removed."""
        if not ids:
            return self
        return Pairs(
            base={case_id: case for case_id, case in self.base.items() if case_id not in ids},
            renamed={new: old for new, old in self.renamed.items() if new not in ids},
            edited=self.edited - frozenset(ids),
            new=self.new | frozenset(ids),
            removed={**self.removed, **{self.base[case_id].id: self.base[case_id] for case_id in ids}},
        )


def pair(ours: Iterable[Case], base: Iterable[Case]) -> Pairs:
    """Pair the cases of the change with those of the base commit: by id, else by fingerprint."""
    now, then = {case.id: case for case in ours}, {case.id: case for case in base}
    before = {case_id: digest_of(case.fingerprints) for case_id, case in then.items() if case_id not in now}
    after = {case_id: digest_of(case.fingerprints) for case_id, case in now.items() if case_id not in then}
    old_ids = {new: old for old, new in renamed(before, after, ()).items()}
    base_of = {
        case_id: then[old_ids.get(case_id, case_id)] for case_id in now if case_id in then or case_id in old_ids
    }
    taken = {case.id for case in base_of.values()}
    return Pairs(
        base=base_of,
        renamed=old_ids,
        edited=frozenset(case_id for case_id, theirs in base_of.items() if is_edited(now[case_id], theirs)),
        new=frozenset(now.keys() - base_of.keys()),
        removed={case_id: case for case_id, case in then.items() if case_id not in taken},
    )


def is_edited(ours: Case, theirs: Case) -> bool:
    """Return whether a case asks or expects something else than in the base commit."""
    return ours.fingerprints.question != theirs.fingerprints.question or _expected(ours) != _expected(theirs)


def _expected(case: Case) -> list[object]:
    return [(turn.ground_truth, turn.retrieval_context, dict(turn.config)) for turn in case.turns]
