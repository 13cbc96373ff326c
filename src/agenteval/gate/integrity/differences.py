"""Pairs the cases of the change with those of the base commit, and lists how they and their metrics differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from agenteval.core.escape import one_line
from agenteval.core.records import asdict, dataclass, field
from agenteval.results.comparison import PoolCase
from agenteval.results.model import Difference
from agenteval.suite.model import OVERALL, Case, Fingerprints, MetricConfig, Suite

# Maximum number of characters of a value.
_LONGEST = 200
# More new cases than these are counted, not listed.
_MOST_NEW = 20


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


@dataclass(frozen=True)
class Change:
    """A value that differs.

    Attributes:
        setting: its name; empty if the whole thing was added or removed.
        before: the value in the base commit; ``None`` for none.
        loosens: whether passing becomes easier.
    """

    setting: str
    before: str | None
    after: str | None
    loosens: bool = False


def case_differences(
    ours: Mapping[str, Case], pairs: Pairs, passing: Collection[str], k: Callable[[Case], int]
) -> Iterator[Difference]:
    """Yield the differences of cases, then those of metrics; equal ones of several cases together.

    Args:
        ours: the cases of the change, by id.
        pairs: these with their versions in the base commit.
        passing: ids of the cases that passed in the baseline.
    """
    for case_id, case in pairs.removed.items():
        effect = "unproven" if case_id in passing else "listed"
        digest = digest_of(case.fingerprints)
        yield Difference(kind="removed", case=case_id, before=case.name, effect=effect, fingerprint=digest)
    for new, old in pairs.renamed.items():
        yield Difference(kind="renamed", case=new, before=old, after=new, effect="paired")
    for case_id in (case_id for case_id in ours if case_id in pairs.edited):
        yield _edited(ours[case_id], pairs.base[case_id])
    new_cases = [case_id for case_id in ours if case_id in pairs.new]
    if len(new_cases) > _MOST_NEW:
        yield Difference(kind="new", cases=len(new_cases), effect="absolute")
    else:
        yield from (Difference(kind="new", case=case_id, effect="absolute") for case_id in new_cases)
    yield from _grouped(ours, pairs, k)


def _edited(ours: Case, theirs: Case) -> Difference:
    old, new = _content(theirs), _content(ours)
    what = next((key for key in (*old, *new) if old.get(key) != new.get(key)), "files")
    return Difference(
        kind="edited",
        case=ours.id,
        setting=what,
        before=shown(old.get(what)),
        after=shown(new.get(what)),
        effect="base",
        fingerprint=digest_of(ours.fingerprints),
    )


def _content(case: Case) -> dict[str, Any]:
    several = len(case.turns) > 1
    found: dict[str, Any] = {}
    for place, turn in enumerate(case.turns):
        of_turn = f" of turn {place + 1}" if several else ""
        found[f"input{of_turn}"] = turn.input
        found[f"ground_truth{of_turn}"] = turn.ground_truth
        found[f"retrieval_context{of_turn}"] = turn.retrieval_context
        found[f"context{of_turn}"] = dict(turn.context)
        found[f"config{of_turn}"] = dict(turn.config)
    return found


def _grouped(ours: Mapping[str, Case], pairs: Pairs, k: Callable[[Case], int]) -> Iterator[Difference]:
    groups: dict[tuple[str, Change], list[str]] = {}
    for case_id, theirs in pairs.base.items():
        for metric, change in _changes(ours[case_id], theirs, k):
            groups.setdefault((metric, change), []).append(case_id)
    for (metric, change), ids in groups.items():
        yield Difference(
            kind="metric" if metric else "case",
            case=ids[0] if len(ids) == 1 else None,
            cases=len(ids) if len(ids) > 1 else 0,
            metric=metric or None,
            setting=change.setting or None,
            before=change.before,
            after=change.after,
            effect="base",
            loosens=change.loosens,
        )


def trace_differences(ours: Suite, theirs: Suite) -> Iterator[Difference]:
    """Yield the differences of the metrics by which two versions of a suite score recorded traces."""
    now, then = (
        Case(suite.path, suite.name, (), metrics=suite.metrics, aggregate=suite.aggregate) for suite in (ours, theirs)
    )
    for metric, change in _changes(now, then, lambda _: 1):
        yield Difference(
            kind="metric",
            metric=metric,
            setting=change.setting or None,
            before=change.before,
            after=change.after,
            effect="base",
            loosens=change.loosens,
        )


def _changes(ours: Case, theirs: Case, k: Callable[[Case], int]) -> Iterator[tuple[str, Change]]:
    """Yield each metric with a change of it; without a metric, a change of the case."""
    before, after = k(theirs), k(ours)
    if before != after:
        yield "", Change("iterations", shown(before), shown(after), after < before)
    if theirs.strict != ours.strict:
        yield "", Change("strict", shown(theirs.strict), shown(ours.strict), theirs.strict)
    if theirs.aggregate != ours.aggregate:
        yield OVERALL, Change("aggregation", _aggregation(theirs), _aggregation(ours))
    old, new = _by_id(theirs), _by_id(ours)
    for name in dict.fromkeys((*old, *new)):
        for change in metric_changes(old.get(name), new.get(name)):
            yield name, change


def _aggregation(case: Case) -> str | None:
    return None if case.aggregate is None else shown(asdict(case.aggregate))


def _by_id(case: Case) -> Mapping[str, MetricConfig]:
    return {metric.id: metric for metric in case.all_metrics}


def metric_changes(before: MetricConfig | None, after: MetricConfig | None) -> Iterable[Change]:
    """Return how the configuration of a metric differs; ``None`` for a metric that is not there."""
    if before is None or after is None:
        return [Change("", "there" if before else None, "there" if after else None, loosens=after is None)]
    return list(_configured(before, after))


def _configured(before: MetricConfig, after: MetricConfig) -> Iterator[Change]:
    if before.threshold != after.threshold:
        lowered = before.threshold is not None and (after.threshold is None or after.threshold < before.threshold)
        yield Change("threshold", shown(before.threshold), shown(after.threshold), lowered)
    for name in ("type", "response_path", "gating", "fail_on_error"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield Change(name, shown(old), shown(new), name in {"gating", "fail_on_error"} and not new)
    for name in dict.fromkeys((*before.options, *after.options)):
        old, new = before.options.get(name), after.options.get(name)
        if old != new:
            yield Change(name, shown(old), shown(new))


def shown(value: Any) -> str | None:
    """Return a value as a short text of one line; ``None`` for none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return one_line(value, _LONGEST)
    if isinstance(value, int | float):
        return f"{value:g}"
    label = getattr(value, "label", None)
    if isinstance(label, str):
        return one_line(label, _LONGEST)
    try:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError):
        # An object of the program can contain anything, for instance the key of a model.
        return f"#{hashlib.sha256(repr(value).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return one_line(text, _LONGEST)
