"""Lists how the cases and metrics of the change differ from those of the base commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from agenteval.core.escape import one_line
from agenteval.core.records import asdict, dataclass
from agenteval.gate.integrity.pairs import Pairs, digest_of
from agenteval.results.model import Difference
from agenteval.suite.model import OVERALL, Case, MetricConfig, Suite

# Maximum number of characters of a value.
_LONGEST = 200
# More new cases than these are counted, not listed.
_MOST_NEW = 20


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
