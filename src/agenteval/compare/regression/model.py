"""What the gate decides on, what it asks for, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# Scores of one run: case id → metric id → score of each iteration, 0..1, higher is better; `None` if it was lost.
Scores = Mapping[str, Mapping[str, tuple[float | None, ...]]]

#: The agent under test, or the agent of the base commit.
Side = Literal["current", "control"]

#: What a request is for, and what a decision rests on. ``earlier-runs``: the control cannot run, they decide.
Stage = Literal["screen", "second", "head-to-head", "cases", "repeats", "memory", "earlier-runs", "long-look"]


@dataclass(frozen=True, kw_only=True)
class GatingMetric:
    """One metric that can fail the gate.

    Attributes:
        thresholds: case id → the score from which an iteration passes; a missing case has no pass or fail.
        step: smallest possible difference of two scores; 1 for pass or fail.
        mean_counts: whether a lower mean fails the gate; single cases count in any case.
    """

    id: str
    thresholds: Mapping[str, float]
    step: float = 1.0
    mean_counts: bool = True


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The scores that exist before anything is run again.

    Attributes:
        metrics: the metrics that can fail the gate; the others are not in the scores.
        first: the first run of the agent under test.
        pool: earlier runs of the base branch since its last proven change, oldest first; only cases and metrics that
            ask the same as in ``first``.
        clusters: case id → name of its cluster; cases of a cluster vary together.
        repeats: whether the agent is declared to repeat its answers, as recorded answers do.
        iterations: iterations of each case in one run of the suite, by case id.
        is_staged: whether the first run asked settled cases only once.
        proves_nothing: whether the runs may only raise suspicions even if nothing else can prove anything, because it
            is unknown whether they are of the same questions and rules.
    """

    metrics: tuple[GatingMetric, ...]
    first: Scores
    pool: tuple[Scores, ...]
    clusters: Mapping[str, str] = field(default_factory=dict)
    repeats: bool = False
    iterations: Mapping[str, int]
    is_staged: bool = False
    proves_nothing: bool = False
    seed: int


@dataclass(frozen=True, kw_only=True)
class Burden:
    """What an earlier attempt of the same pull request was proven to have lost; it must now be refuted.

    Attributes:
        means: metric id → proven drop of its mean, above 0.
        cases: (metric id, case id) → proven fall of the case's pass rate, above 0.
    """

    means: Mapping[str, float] = field(default_factory=dict)
    cases: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Runs that the gate needs before it can decide.

    Each side runs in a new session. With two sides, the cases alternate: P C, C P, P C …
    """

    stage: Stage
    sides: tuple[Side, ...]
    iterations: Mapping[str, int]
    is_whole: bool


#: The scores of each requested side.
Answer = Mapping[Side, Scores]


@dataclass(frozen=True)
class Unavailable:
    """The answer to a request that cannot be fulfilled.

    Attributes:
        what: ``control``: the agent of the base commit cannot run; ``runs``: no run can be made, or a run broke;
            ``limit``: a limit of cost or time was reached.
    """

    what: Literal["control", "runs", "limit"]
    why: str


@dataclass(frozen=True, kw_only=True)
class Look:
    """One test of the head-to-head.

    Attributes:
        limit: the p at or below which the drop is proven.
        difference: mean of the runs of the agent under test − mean of the control's.
        calm: whether the control's runs do not look lower than the pool.
    """

    runs: int
    metric: str
    p: float
    limit: float
    difference: float
    calm: bool


@dataclass(frozen=True)
class Failures:
    """How many of some iterations failed."""

    failed: int
    of: int

    @property
    def share(self) -> float:
        """The share that failed; 0 of none."""
        return self.failed / self.of if self.of else 0.0


@dataclass(frozen=True)
class FinerBound:
    """What more iterations would exclude: from ``iterations`` per case on, drops of more than ``bound``."""

    iterations: int
    bound: float


@dataclass(frozen=True, kw_only=True)
class MovedCase:
    """A case that moved as a proven mean did.

    Attributes:
        current: its mean in the runs of the agent under test.
        control: its mean in what they were compared with.
        current_failures: of these iterations; ``None`` if the metric has no pass or fail in this case.
    """

    case_id: str
    current: float
    control: float
    current_failures: Failures | None = None
    control_failures: Failures | None = None


@dataclass(frozen=True, kw_only=True)
class MetricFinding:
    """What was found about the mean of one metric.

    Attributes:
        units: number of independent units: clusters, and cases without a cluster.
        stage: where it was decided: ``screen`` if the first run raised no suspicion, or none that was checked.
        newest: mean of the newest run of the pool; ``None`` without a pool.
        current: mean of the runs of the agent under test in the deciding comparison.
        control: mean of what they were compared with: the control's runs, or else the pool.
        runs: runs of each side in the head-to-head; 0 if it was not made.
        p: of the deciding comparison, adjusted for the number of metrics; ``None`` if no test of side by side or
            earlier runs decided. A suspicion is no decision, so its p is not told.
        limit: the limit of ``p``.
        interval: of ``current`` − ``control`` in a head-to-head, from the same test at ``limit``: its upper end is
            below 0 exactly if ``p`` is at most ``limit``.
        bound: the largest drop that the first run does not exclude, one-sided 95 %, at least 0; ``None`` if unknown,
            and if another run decided.
        finer: what more iterations would exclude; ``None`` if the bound is below the tolerance or unknown, or if more
            iterations would hardly help.
        detectable_drop: drop of the mean that is found with a probability of 80 %; ``None`` if unknown.
        proven: whether a drop of at least ``min_effect`` is proven.
        moved: if it is proven, the cases that are lower, those with the largest share of the drop first.
    """

    metric: str
    cases: int
    units: int
    stage: Stage = "screen"
    baseline: float
    newest: float | None = None
    first: float
    current: float
    control: float
    runs: int = 0
    p: float | None = None
    limit: float | None = None
    interval: tuple[float, float] | None = None
    bound: float | None = None
    finer: FinerBound | None = None
    detectable_drop: float | None = None
    suspicious: bool = False
    proven: bool = False
    moved: tuple[MovedCase, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CaseFinding:
    """What was found about one case that looked worse in one metric.

    Attributes:
        current: failures in the re-runs of the agent under test.
        control: failures in the re-runs of the control beside it.
        q: probability of such a difference without a change; ``None`` if no test was made.
        limit: the limit of ``q``.
        proven: whether the case is proven to fail more often. Cases that repeat exactly are proven without ``q``.
    """

    metric: str
    case_id: str
    pool: Failures
    first: Failures
    current: Failures = Failures(0, 0)
    control: Failures = Failures(0, 0)
    q: float | None = None
    limit: float | None = None
    proven: bool = False

    @property
    def fall(self) -> float:
        """How far the pass rate of the re-runs is below the control's; 0 without re-runs."""
        if not self.current.of or not self.control.of:
            return 0.0
        return self.current.share - self.control.share


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What was run again, both sides together.

    Attributes:
        runs: the same as a multiple of one run of the suite, which has the iterations of the first run.
    """

    runs: float = 0.0
    calls: int = 0


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The verdict, and what it rests on.

    Attributes:
        verdict: ``regressed``, ``unproven`` or ``unchanged``; of a rise ``improved``, ``unproven`` or ``unchanged``.
        cases: every case that looked worse; the proven ones first.
        looks: the tests of the head-to-head, in order.
        control_p: p that the control's runs are lower than the pool; ``None`` without a head-to-head.
        repeats: whether nothing varies in the pool and the first run.
        changed: ids of the cases whose scores changed, if nothing varies.
        losses: whether lost iterations counted as failures, because they might hide some.
        lost: shares of lost iterations: of the agent under test, and of the control or else the newest pool run.
        missing: why something that was due could not be made; ``None`` if nothing is missing.
        carried: whether the verdict repeats an earlier attempt's burden.
    """

    verdict: Literal["regressed", "unproven", "improved", "unchanged"]
    stage: Stage
    metrics: tuple[MetricFinding, ...]
    cases: tuple[CaseFinding, ...] = ()
    looks: tuple[Look, ...] = ()
    control_p: float | None = None
    repeats: bool = False
    changed: tuple[str, ...] = ()
    losses: bool = False
    lost: tuple[float, float] = (0.0, 0.0)
    missing: Unavailable | None = None
    carried: bool = False
    cost: Cost = Cost()
