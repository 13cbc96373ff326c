"""The scores of two runs as a table: cases by runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agenteval.compare.statistics.model import CaseRuns, Scores

Numbers = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Runs = tuple[Scores, ...]


@dataclass(frozen=True)
class RunTable:
    """Mean score of every case in every run.

    Args:
        current: cases by runs of the pull request, complete.
        baseline: cases by runs of the baseline; NaN if a run does not contain the case. No row and no column is all
            NaN.
        unit_of: the number of each case's independent unit, 0 .. units - 1, in the order of their ids.
        current_iterations: usual number of iterations of a case in one run of the pull request.
        baseline_iterations: usual number of iterations of a case in one baseline run.
    """

    current: Numbers
    baseline: Numbers
    unit_of: Integers
    current_iterations: int
    baseline_iterations: int

    @property
    def cases(self) -> int:
        """Number of cases."""
        return len(self.current)

    @cached_property
    def units(self) -> int:
        """Number of independent units: clusters, and cases without a cluster."""
        return int(self.unit_of.max()) + 1

    @cached_property
    def differences(self) -> Numbers:
        """The difference of each case, current minus baseline; negative is worse."""
        return self.current_means - self.baseline_means

    @cached_property
    def current_means(self) -> Numbers:
        """The mean of each case over the runs of the pull request."""
        return np.asarray(self.current.mean(axis=1), dtype=np.float64)

    @cached_property
    def baseline_means(self) -> Numbers:
        """The mean of each case over the baseline runs that contain it."""
        return np.asarray(np.nanmean(self.baseline, axis=1), dtype=np.float64)

    def per_unit(self, values: Numbers) -> Numbers:
        """Return the sums of a value per case over each unit."""
        return np.bincount(self.unit_of, values, self.units).astype(np.float64, copy=False)


def tabulate(
    cases: Sequence[CaseRuns], current: Callable[[CaseRuns], Runs], baseline: Callable[[CaseRuns], Runs]
) -> RunTable | None:
    """Return the table of the cases that have every current run and at least one baseline run.

    Args:
        cases: in the order of the rows.
        current: returns the runs of a case of the pull request.
        baseline: returns the baseline runs of a case, the same number for every case.

    Returns:
        ``None`` if no case is in both.
    """
    sides = [(case, current(case), baseline(case)) for case in cases]
    sides = [(case, ours, theirs) for case, ours, theirs in sides if all(ours) and any(theirs)]
    if not sides:
        return None
    before = np.array([[_mean(run) for run in theirs] for _, _, theirs in sides])
    return RunTable(
        current=np.array([[_mean(run) for run in ours] for _, ours, _ in sides]),
        baseline=before[:, ~np.isnan(before).all(axis=0)],
        unit_of=_units([case for case, _, _ in sides]),
        current_iterations=_usual_length(run for _, ours, _ in sides for run in ours),
        baseline_iterations=_usual_length(run for _, _, theirs in sides for run in theirs if run),
    )


def _mean(run: Scores) -> float:
    return sum(run) / len(run) if run else float("nan")


def _usual_length(runs: Iterable[Scores]) -> int:
    lengths = Counter(len(run) for run in runs)
    return max(lengths, key=lambda length: (lengths[length], length))


def _units(cases: Sequence[CaseRuns]) -> Integers:
    # A cluster may have the same name as the id of a case outside of it.
    keys = [("case", case.case_id) if case.cluster is None else ("cluster", case.cluster) for case in cases]
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)
