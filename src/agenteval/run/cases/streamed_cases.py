"""The cases of a run that is too long to hold all of them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.results.model import CaseResult, RunUsage, Summary
from agenteval.results.rollup import Tally
from agenteval.run.cases.archive import JournalArchive
from agenteval.run.cases.long_cases import held
from agenteval.run.cases.retention import Keeping, Rest
from agenteval.run.cases.store import Retries

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer
    from agenteval.run.cases.run_pool import RunPool


class StreamedCases:
    """As much of the cases as reports show; the journal has them in full.

    Args:
        journal: where they are written.
        rest: what to hold of a case that no report lists.
        pool: told of every case, where the run has an entry in its pool.
        metered: ids of cases that a model of ours answered.

    Attributes:
        retries: how often agents had to be asked again.
    """

    def __init__(self, journal: Path, rest: Rest, pool: RunPool | None = None, metered: Collection[str] = ()) -> None:
        self.archive = JournalArchive(journal, pool)
        self.retries = Retries()
        self._keeping = Keeping(rest)
        self._pool = pool
        self._tally = Tally(metered)
        # By the metrics that scored a case: the first one with just these.
        self._first_with: dict[tuple[str, ...], int] = {}

    def add(self, suite: str, position: int, case: CaseResult, text: str, place: int) -> None:
        """A finished case; see `Collected`."""
        self.archive.add(suite, position, case, place)
        self._count(position, case)
        self._keeping.add(position, held(case, text))

    def add_unwritten(self, suite: str, position: int, case: CaseResult) -> None:
        """A case that is not in the journal; see `Collected`."""
        self.archive.add_unwritten(suite, position, case)
        self._count(position, case)
        self._keeping.add(position, case)

    @property
    def has_pool(self) -> bool:
        """Whether the archive has the run's own entry of the pool."""
        return self._pool is not None

    def cases(self) -> dict[str, list[CaseResult]]:
        """What is held, by suite path, in the order of the positions."""
        return {suite: self._keeping.cases(self.archive.positions(suite)) for suite in self.archive.suites}

    def answers(self) -> dict[str, list[EvaluatedAnswer]]:
        """Nothing: analyses need all cases."""
        return {}

    def summary(self, asked: RunUsage) -> Summary:
        """The run in numbers, with what asking models took; metrics as they first come in the order of the run."""
        summary = self._tally.summary(asked)
        ordered = sorted(self._first_with, key=self._first_with.__getitem__)
        names = dict.fromkeys(name for names in ordered for name in names)
        return summary.model_copy(update={"metrics": {name: summary.metrics[name] for name in names}})

    def _count(self, position: int, case: CaseResult) -> None:
        self._tally.add(case)
        self.retries.add(case)
        if self._pool is not None:
            self._pool.add(position, case)
        scores = (score for iteration in case.iterations for turn in iteration.turns for score in turn.scores)
        metrics = tuple(dict.fromkeys([score.id for score in scores if score.score is not None]))
        self._first_with[metrics] = min(position, self._first_with.get(metrics, position))
