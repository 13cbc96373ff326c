"""Makes the versions of cases and suites that run: those of the base commit, on the agent of the change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agenteval.compare.integrity.pairs import Pairs
from agenteval.suite.model import Case, MetricConfig, Suite

_EDITED = "(edited)"


@dataclass(frozen=True)
class Versions:
    """The versions of cases that run.

    Attributes:
        pairs: the cases of the change with their versions in the base commit.
        accepted: ids of the edited cases whose new version decides alone, because somebody accepted it.
        taken: ids of all cases of the change.
    """

    pairs: Pairs
    accepted: Collection[str]
    taken: Collection[str]
    _known: dict[str, Sequence[Case]] = field(default_factory=dict, repr=False)

    def of(self, case: Case) -> Sequence[Case]:
        """Return the version that decides, and the version of the change, with its own id, if it edited the case."""
        if case.id not in self._known:
            self._known[case.id] = tuple(self._of(case))
        return self._known[case.id]

    def _of(self, case: Case) -> Iterator[Case]:
        theirs = self.pairs.base.get(case.id)
        if theirs is None or case.id in self.accepted:
            yield case
            return
        is_edited = case.id in self.pairs.edited
        same = replace(theirs, id=case.id, name=case.name, line=case.line, target=case.target)
        yield same if is_edited else _with_new_metrics(same, case)
        if is_edited:
            yield replace(case, id=self._free(case.id), name=f"{case.name} {_EDITED}")

    def _free(self, case_id: str) -> str:
        found = edited_id(case_id)
        while found in self.taken:
            found = f"{found} {_EDITED}"
        return found


def edited_id(case_id: str) -> str:
    """Return the id of the version of the change, which runs beside the one of the base commit."""
    return f"{case_id} {_EDITED}"


def _with_new_metrics(case: Case, ours: Case) -> Case:
    """Return a case with the metrics that the change adds to it; they are only reported until they are merged."""
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


def suite_of_base(ours: Suite, base: Mapping[str, Suite], pairs: Pairs) -> Suite | None:
    """Return the base commit's version of a suite: with the same path, or with cases that are in this one now."""
    if ours.path in base:
        return base[ours.path]
    path_of = {case.id: suite.path for suite in base.values() for case in suite.cases}
    moved = (path_of[pairs.base[case.id].id] for case in ours.cases if case.id in pairs.base)
    return next((base[path] for path in moved), None)


def suite_version(ours: Suite, theirs: Suite | None, versions: Versions) -> Suite:
    """Return a suite with the versions of its cases that run, and the base commit's rules for the whole suite."""
    cases = tuple(version for case in ours.cases for version in versions.of(case))
    if theirs is None:
        return replace(ours, cases=cases)
    return replace(
        ours,
        cases=cases,
        iterations=theirs.iterations,
        retrieval_tools=theirs.retrieval_tools,
        metrics=theirs.metrics,
        aggregate=theirs.aggregate,
        evaluation=theirs.evaluation,
        secrets=ours.secrets | theirs.secrets,
    )
