"""The state of one decision: the scores so far, what was asked for, and what was found."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from agenteval.compare.regression.case_test import Candidate, find_candidates
from agenteval.compare.regression.labels import LabelTest, Seed, compare_runs
from agenteval.compare.regression.losses import is_lost, is_mostly_lost, lost_share, may_hide_failures
from agenteval.compare.regression.model import (
    Answer,
    Cost,
    Evidence,
    Failures,
    Look,
    Request,
    Side,
    Stage,
    Unavailable,
)
from agenteval.compare.regression.runs import Integers, Layout, Numbers, Run, join, layout_of
from agenteval.compare.regression.settings import GateSettings

T = TypeVar("T")
#: A part of the gate that may ask for runs, and returns a result.
Asking = Generator[Request, Answer | Unavailable, T]

# Each test draws its own labels, so that its result does not depend on the tests before it.
SCREEN_EPOCH, SCREEN_NEWEST, SECOND_EPOCH, SECOND_NEWEST, HEAD_TO_HEAD, CALM = 1, 2, 3, 4, 10, 20


NO_RERUNS = Failures(0, 0)
SIDES: tuple[Side, ...] = ("current", "control")


class NotRunError(Exception):
    """A request was answered by `Unavailable`."""

    def __init__(self, unavailable: Unavailable, stage: Stage) -> None:
        super().__init__(unavailable.why)
        self.unavailable = unavailable
        self.stage: Stage = stage


@dataclass
class CaseRecord:
    """What was found about a candidate so far."""

    candidate: Candidate
    current: Failures = NO_RERUNS
    control: Failures = NO_RERUNS
    q: float | None = None
    limit: float | None = None
    is_proven: bool = False


@dataclass
class MeanTest:
    """The last test of the means.

    Args:
        own: runs of the agent under test, losses missing.
        other: the runs that they were compared with, losses missing.
        p: per metric; ``None`` if no test was made.
        limit: the limit of ``p``.
        seed: of the labels of a head-to-head.
    """

    stage: Stage
    own: list[Run]
    other: list[Run]
    p: Numbers | None
    limit: float | None
    seed: Seed | None = None


@dataclass
class Trial:
    """Everything that a decision is made from; `ask` is the only way to more scores.

    Args:
        evidence: the scores before anything is run again.
        pool: earlier runs, losses missing, oldest first.
    """

    evidence: Evidence
    settings: GateSettings
    layout: Layout
    first: Run
    pool: list[Run]
    plan: Mapping[str, int]
    losing: bool = False
    calls: int = 0
    stage: Stage = "screen"
    confirming: dict[Side, list[Run]] = field(default_factory=lambda: {"current": [], "control": []})
    reruns: dict[Side, list[Run]] = field(default_factory=lambda: {"current": [], "control": []})
    second: Run | None = None
    watched: list[int] = field(default_factory=list)
    by_newest: bool = False
    is_low_again: bool | None = None
    means: set[int] = field(default_factory=set)
    cases: dict[tuple[int, int], CaseRecord] = field(default_factory=dict)
    exact: set[tuple[int, int]] = field(default_factory=set)
    awaiting_control: set[tuple[int, int]] = field(default_factory=set)
    changed: tuple[int, ...] = ()
    repeats: bool = False
    looks: list[Look] = field(default_factory=list)
    control_p: float | None = None
    test: MeanTest | None = None
    bounds: dict[int, float] = field(default_factory=dict)
    carried_means: dict[int, float] = field(default_factory=dict)
    carried_cases: dict[tuple[int, int], float] = field(default_factory=dict)
    missing: Unavailable | None = None

    @property
    def is_red(self) -> bool:
        """Whether anything is proven."""
        return bool(self.means or any(record.is_proven for record in self.cases.values()))

    @property
    def unit_of(self) -> Integers:
        """Number of the independent unit of each case."""
        return self.layout.unit_of

    @property
    def run_calls(self) -> int:
        """Iterations of one run of the suite."""
        return sum(self.plan.values())

    @property
    def cost(self) -> Cost:
        """The cost of the runs that were made."""
        return Cost(runs=round(self.calls / max(self.run_calls, 1), 9), calls=self.calls)

    def counting(self, metrics: Iterable[int]) -> set[int]:
        """Return those of some metrics whose mean counts."""
        return {metric for metric in metrics if self.evidence.metrics[metric].mean_counts}

    def view(self, run: Run) -> Run:
        """Return a run as it counts: a lost iteration has failed once losses may hide failures."""
        return run.filled(self.layout.worst) if self.losing else run

    def seed(self, test: int) -> Seed:
        """Return the seed of a test."""
        return (self.evidence.seed % 2**64, test)

    def compare(self, own: Iterable[Run], other: Iterable[Run], test: int) -> LabelTest:
        """Test whether some runs are lower than others."""
        return compare_runs(list(own), list(other), self.unit_of, self.seed(test), self.settings)

    def against_pool(self, own: list[Run], pool: list[Run], test: int) -> Numbers:
        """Return the p of one or two runs against earlier ones, over as many iterations of a case as all have."""
        runs = [*own, *pool]
        limits = [_common_length([run.asked[metric] for run in runs]) for metric in range(len(self.layout.metrics))]
        cut = [run.first_iterations(limits) for run in runs]
        return self.compare(cut[: len(own)], cut[len(own) :], test).p

    def candidates(self) -> list[Candidate]:
        """Return the suspected cases of the first run."""
        return find_candidates(self.view(self.first), self.pool, self.layout, self.settings)

    def ask(
        self, stage: Stage, sides: tuple[Side, ...], iterations: Mapping[str, int], *, is_whole: bool
    ) -> Asking[dict[Side, Run]]:
        """Ask for runs.

        Raises:
            NotRunError: they cannot be made, or the control lost most of the cases.
        """
        wanted = {case: count for case, count in iterations.items() if count > 0}
        answer = yield Request(stage=stage, sides=sides, iterations=wanted, is_whole=is_whole)
        if isinstance(answer, Unavailable):
            raise NotRunError(answer, stage)
        total = sum(wanted.values()) * len(sides)
        self.calls += total
        made: dict[Side, Run] = {}
        for side in sides:
            run = self._read(answer.get(side, {}), wanted)
            made[side] = run
            self.confirming[side].append(run)
        if "current" in made:
            newest = self.pool[-1] if self.pool else None
            self.losing = self.losing or may_hide_failures(made["current"], newest, self.settings)
        # Further rounds of re-runs can make up for what a few cases lost.
        if stage != "cases" and "control" in made and is_mostly_lost(made["control"]):
            why = f"the control lost {lost_share([made['control']]):.0%} of its iterations"
            raise NotRunError(Unavailable("runs", why), stage)
        return made

    def _read(self, scores: Mapping[str, Mapping[str, tuple[float | None, ...]]], wanted: Mapping[str, int]) -> Run:
        run = self.layout.read(scores, wanted)
        # A metric that the case does not have in the first run was not asked for, so it is not lost.
        lost = tuple(lost & (asked > 0)[:, None] for lost, asked in zip(run.lost, self.first.asked, strict=True))
        return Run(run.scores, lost)

    def rerun_counts(self, side: Side, metric: int, case: int) -> Failures:
        """Return the failures of a case's re-runs so far, as they count."""
        return self._counts([self.view(run) for run in self.reruns[side]], metric, case)

    def scored_rerun_counts(self, side: Side, metric: int, case: int) -> Failures:
        """Return the failures of a case's re-runs so far, without lost ones."""
        return self._counts(self.reruns[side], metric, case)

    def _counts(self, runs: list[Run], metric: int, case: int) -> Failures:
        if not runs:
            return NO_RERUNS
        failed, of = self.layout.failures(join(runs), metric)
        return Failures(int(failed[case]), int(of[case]))


def _common_length(asked: list[Integers]) -> Integers:
    """Return the smallest number of iterations of each case over the runs that contain it."""
    lengths = np.stack(asked)
    return np.asarray(np.where(lengths > 0, lengths, np.iinfo(np.int64).max).min(axis=0), dtype=np.int64)


def start(evidence: Evidence, settings: GateSettings, *, mirrored: bool) -> Trial:
    """Return the state before anything is asked for."""
    layout = layout_of(evidence, mirrored=mirrored)
    plan = {case: count for case, count in sorted(evidence.iterations.items()) if count > 0}
    first = layout.read(evidence.first)
    for row, case in enumerate(layout.case_ids):
        longest = max((int(asked[row]) for asked in first.asked), default=0)
        if case not in evidence.iterations and longest:
            plan[case] = longest
    # A run that lost everything is no run to compare with.
    pool = [run for run in map(layout.read, evidence.pool) if not is_lost(run)]
    return Trial(
        evidence=evidence,
        settings=settings,
        layout=layout,
        first=first,
        pool=pool[-settings.window :] if settings.window else [],
        plan=dict(sorted(plan.items())),
    )
