"""Versions of cases in the base commit and in the change: which one runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from agenteval.core.records import dataclass, field, replace
from agenteval.run.rules.differences import Pairs, pair
from agenteval.suite.model import Case, MetricConfig, Suite


@dataclass(frozen=True)
class Versions:
    """The versions of cases that run.

    Attributes:
        pairs: the cases of the change with their versions in the base commit.
        accepted: ids of the edited cases whose new version decides alone, because somebody accepted it.
    """

    pairs: Pairs
    accepted: Collection[str] = ()
    _known: dict[str, Sequence[Case]] = field(default_factory=dict, repr=False)

    def of(self, case_id: str) -> Sequence[Case]:
        """Return the version that decides, and the version of the change, with its own id, if it edited the case."""
        if case_id not in self._known:
            self._known[case_id] = tuple(self._of(self.pairs.ours[case_id]))
        return self._known[case_id]

    def _of(self, case: Case) -> Iterator[Case]:
        theirs = self.pairs.base.get(case.id)
        if theirs is None or case.id in self.accepted:
            yield case
            return
        same = replace(theirs, id=case.id, name=case.name, line=case.line, target=case.target)
        if case.id not in self.pairs.edited:
            yield _with_new_metrics(same, case)
            return
        yield same
        free = edited_id(case.id)
        while free in self.pairs.ours:
            free = edited_id(free)
        yield replace(case, id=free, name=edited_id(case.name))


def edited_id(case_id: str) -> str:
    """Return the id of the version of the change, which runs beside the one of the base commit."""
    return f"{case_id} (edited)"


def _with_new_metrics(case: Case, ours: Case) -> Case:
    if case.aggregate is not None or ours.aggregate is not None or len(case.turns) != len(ours.turns):
        # A combined score must not change.
        return case
    known = {metric.id for metric in case.all_metrics}
    added = [_reported(turn.metrics, known) for turn in ours.turns]
    over_iterations = _reported(ours.metrics, known)
    if not any(added) and not over_iterations:
        return case
    turns = (replace(turn, metrics=(*turn.metrics, *new)) for turn, new in zip(case.turns, added, strict=True))
    return replace(case, turns=tuple(turns), metrics=(*case.metrics, *over_iterations))


def _reported(metrics: Iterable[MetricConfig], known: Collection[str]) -> tuple[MetricConfig, ...]:
    return tuple(
        replace(metric, gating=False, threshold=None, fail_on_error=False)
        for metric in metrics
        if metric.id not in known
    )


def pair_suites(ours: Sequence[Suite], theirs: Sequence[Suite]) -> tuple[Pairs, Mapping[str, Suite | None]]:
    """Pair the cases of the change with those of the base commit, and each suite with the one that it continues.

    A suite continues the one with its path; a new one that of its first paired case. A case that the change has moved
    into another suite counts as removed and new: its rules are other ones.

    Returns:
        The pairs, and the base commit's version of each suite of the change, by path; ``None`` for a new one.
    """
    pairs = pair(*((case for suite in suites for case in suite.cases) for suites in (ours, theirs)))
    by_path = {suite.path: suite for suite in theirs}
    home = {case.id: suite for suite in theirs for case in suite.cases}
    continued: dict[str, Suite | None] = {}
    base: dict[str, Case] = {}
    for suite in ours:
        found = {case.id: pairs.base[case.id] for case in suite.cases if case.id in pairs.base}
        first = next((home[case.id] for case in found.values()), None)
        continued[suite.path] = by_path.get(suite.path, first)
        base |= {case_id: case for case_id, case in found.items() if home[case.id] is continued[suite.path]}
    return Pairs(pairs.ours, pairs.theirs, base), continued


def suite_version(ours: Suite, theirs: Suite | None, versions: Versions) -> Suite:
    """Return a suite with the versions of its cases that run, and the base commit's rules for the whole suite."""
    cases = tuple(version for case in ours.cases for version in versions.of(case.id))
    rules = ("iterations", "retrieval_tools", "metrics", "aggregate", "evaluation")
    if theirs is None:
        return replace(ours, cases=cases)
    of_base = {name: getattr(theirs, name) for name in rules}
    return replace(ours, cases=cases, secrets=ours.secrets | theirs.secrets, **of_base)
