"""The cases of a run that is short enough to hold all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.results.model import CaseResult, RunUsage, Summary
from agenteval.results.rollup import summarise
from agenteval.run.cases.long_cases import LongCases
from agenteval.run.cases.store import Retries

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer
    from agenteval.run.plan import PlannedCase


class AllCases:
    """Every case, if not every text of it.

    Args:
        planned: the cases of the run.
        journal: where they are written.
        metered: ids of cases that a model of ours answered.

    Attributes:
        has_pool: the archive has no entry of the pool; it can be made of the cases.
        retries: how often agents had to be asked again.
    """

    has_pool = False

    def __init__(self, planned: Sequence[PlannedCase], journal: Path, metered: Collection[str] = ()) -> None:
        self._planned = planned
        self._metered = metered
        self._finished: dict[int, CaseResult] = {}
        self.archive = LongCases(journal)
        self.retries = Retries()

    def add(self, _suite: str, position: int, case: CaseResult, text: str, place: int) -> None:
        """A finished case; see `Collected`."""
        # What is said about a run as a whole may look at every text.
        whole = self._planned[position].suite.evaluation is not None
        self._add(position, case if whole else self.archive.keep(case, text, place))

    def add_unwritten(self, _suite: str, position: int, case: CaseResult) -> None:
        """A case that is not in the journal; see `Collected`."""
        self._add(position, case)

    def _add(self, position: int, case: CaseResult) -> None:
        self._finished[position] = case
        self.retries.add(case)

    def cases(self) -> dict[str, list[CaseResult]]:
        """All of them, by suite path, in the order of the plan."""
        cases: dict[str, list[CaseResult]] = {item.suite.path: [] for item in self._planned}
        for item, result in self._ordered():
            cases[item.suite.path].append(result)
        return cases

    def answers(self) -> dict[str, list[EvaluatedAnswer]]:
        """What analyses need, by path of each suite that has some."""
        found: dict[str, list[EvaluatedAnswer]] = {}
        for item, result in self._ordered():
            if item.suite.evaluation is not None:
                found.setdefault(item.suite.path, []).extend(_answers(item, result))
        return found

    def summary(self, asked: RunUsage) -> Summary:
        """The run in numbers, with what asking models took."""
        return summarise((result for _, result in self._ordered()), asked, self._metered)

    def _ordered(self) -> Iterator[tuple[PlannedCase, CaseResult]]:
        """The finished cases as the suites list them, whatever order they ended in."""
        for position, item in enumerate(self._planned):
            if position in self._finished:
                yield item, self._finished[position]


def _answers(item: PlannedCase, result: CaseResult) -> Iterator[EvaluatedAnswer]:
    # Imported here: few suites want to know anything of a run as a whole.
    from agenteval.results.analysis.answers import evaluated

    for iteration in result.iterations:
        yield evaluated(result, iteration, item.case.persona, {"success": iteration.status != "error"})
