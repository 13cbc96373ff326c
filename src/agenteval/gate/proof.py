"""Passes of both sides, side by side: the only thing that proves a change.

Everything here is a generator that asks for passes, one at a time, and is sent their values. So the program,
its tests and the simulation run the same lines.
"""

from __future__ import annotations

import math
import random
from collections.abc import Generator, Mapping, Sequence
from typing import Literal

from agenteval.core.records import dataclass, field
from agenteval.core.statistics import fisher_p, student_t_quantile
from agenteval.gate.statistics import interval, p_by_pass
from agenteval.gate.suspicion import spread_of_pass
from agenteval.gate.values import (
    ANSWERED,
    Constants,
    GateMetric,
    Pass,
    Values,
    case_means,
    joined,
    known,
    mean,
    pass_means,
    with_answered,
)

Side = Literal["pr", "base"]
Stage = Literal["first", "second", "beside", "alone", "memory"]
State = Literal["clear", "suspicious", "cleared", "proven", "unproven"]
#: Who can supply what is missing: the author of the change, or the operator of judge, budget and base.
MendedBy = Literal["change", "outside"]

# Who goes first in four pairs. A fixed alternation would fall in step with replicas or quotas of the same period.
_ORDER = (False, False, True, True)
_MOST_PAIRS = 500
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class Ask:
    """A request for one pass; one for means needs the cases of a whole suite."""

    side: Side
    cases: tuple[str, ...]
    stage: Stage
    for_means: bool = False


class CannotRunError(Exception):
    """A pass cannot be made. It is thrown into the generator that asked for it.

    Args:
        why: what is missing, as the end of a sentence.
        mended_by: ``change``, or ``outside``: a key, a budget, time.
        side: the side that can never run; ``None`` if only this pass cannot be made.
    """

    def __init__(
        self, why: str, mended_by: Literal["change", "outside"] = "outside", side: Side | None = None
    ) -> None:
        super().__init__(why)
        self.why, self.mended_by, self.side = why.rstrip("."), mended_by, side


@dataclass(frozen=True)
class GateSuspicion:
    """A metric, or a case in one metric, that may be worse.

    Attributes:
        case: ``None`` for the mean.
        stage: the last one in which it looked lower.
    """

    metric: str
    case: str | None
    p: float
    stage: Stage = "first"


@dataclass(frozen=True)
class Test:
    """One test of the passes side by side.

    Attributes:
        case: ``None`` for the mean.
        difference: mean of the change − mean of the base; for a case, of the shares that pass.
        low: lower end of the interval that belongs to ``limit``; ``None`` for a case.
        here: the mean of each pass of the change, or the values of the case.
        failed: failures of the case here; ``None`` for a mean.
    """

    metric: str
    case: str | None
    difference: float
    p: float
    limit: float
    here: tuple[float, ...]
    there: tuple[float, ...]
    low: float | None = None
    high: float | None = None
    failed: int | None = None
    base_failed: int | None = None
    proven: bool = False


@dataclass
class GateOutcome:
    """The gate's decision on a run, with everything it rests on.

    Attributes:
        state: ``clear``, ``cleared``, ``proven``, ``unproven``, or ``suspicious`` if nothing could run.
        why: what is missing for a proof; empty unless the state is ``unproven``.
        tests: the last test of each of them side by side, or of what an earlier attempt proved.
        family: number of suspicions when they began, by which their limits are divided.
        calls: iterations that were asked for, both sides.
        thin: whether too little was answered to test a suspicion.
        metrics: the metrics that were compared; losses add one.
        second: passes of the second run.
        pr: passes of the change side by side.
    """

    state: State = "clear"
    why: str = ""
    mended_by: MendedBy = "outside"
    suspicions: list[GateSuspicion] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    pairs: int = 0
    family: int = 0
    stage: Stage = "first"
    calls: int = 0
    thin: bool = False
    metrics: Mapping[str, GateMetric] = field(default_factory=dict)
    second: dict[str, Values] = field(default_factory=dict)
    pr: dict[str, Values] = field(default_factory=dict)
    base: dict[str, Values] = field(default_factory=dict)

    @property
    def proofs(self) -> list[Test]:
        """The tests that prove a change."""
        return [test for test in self.tests if test.proven]


Asking = Generator[Ask, Pass, None]


def one_pass(out: GateOutcome, seen: dict[str, Values], ask: Ask) -> Asking:
    """Ask for a pass, and add it to those of its side; cases that it leaves out have no value."""
    out.calls += len(ask.cases)
    new = yield ask
    columns = {name: {case: [value] for case, value in column.items()} for name, column in new.items()}
    for name, column in with_answered(columns).items():
        seen[name] = joined([seen.get(name, {}), column])


def side_by_side(
    out: GateOutcome,
    suspicions: Sequence[GateSuspicion],
    asked: Mapping[str, Sequence[str]],
    rules: Constants,
    seed: int | str | None = None,
) -> Asking:
    """Test suspicions by pairs of passes, one of each side; stop at the first proof.

    Args:
        out: the outcome so far; its ``family`` is set. It gets the passes and the last test of each suspicion.
        asked: metric → the cases that a mean needs.
    """
    out.pr, out.base, out.pairs, out.stage = {}, {}, 0, "beside"
    coin = random.Random(seed)  # noqa: S311 - nobody gains by guessing who goes first
    order: list[bool] = []
    left = list(suspicions)
    # Of several tests of the same thing only the last one is told.
    tests: dict[tuple[str, str | None], Test] = {}
    is_whole = any(item.case is None for item in left)
    repeats = min(rules.most_repeats, max(1, rules.fill // max(len(_cases(left, asked)), 1))) if is_whole else 1
    for look, limit in zip(rules.looks, rules.limits, strict=True):
        if not left:
            break
        cases = _cases(left, asked)
        for number in range(out.pairs * repeats, look * repeats):
            if number % len(_ORDER) == 0:
                order = coin.sample(_ORDER, len(_ORDER))
            yield from _pair(out, cases, base_first=order[number % len(_ORDER)], for_means=is_whole)
        out.pairs = look
        unclear = []
        for item in left:
            test = _tested(out, item, limit / out.family, rules)
            tests[item.metric, item.case] = test
            out.thin |= _is_thin(out, item)
            if not test.proven and test.p <= rules.go_on:
                unclear.append(item)
        out.tests = [*(test for test in out.tests if (test.metric, test.case) not in tests), *tests.values()]
        if any(test.proven for test in tests.values()):
            return
        left = unclear


def _pair(
    out: GateOutcome, cases: tuple[str, ...], *, base_first: bool, stage: Stage = "beside", for_means: bool = False
) -> Asking:
    sides: tuple[Side, Side] = ("base", "pr") if base_first else ("pr", "base")
    for side in sides:
        yield from one_pass(out, out.pr if side == "pr" else out.base, Ask(side, cases, stage, for_means))


def _cases(suspicions: Sequence[GateSuspicion], asked: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for item in suspicions:
        found.update(dict.fromkeys(asked[item.metric] if item.case is None else [item.case]))
    return tuple(found)


def _tested(out: GateOutcome, item: GateSuspicion, limit: float, rules: Constants) -> Test:
    metric = out.metrics[item.metric]
    if item.case is not None:
        return case_test(out, item.metric, item.case, metric, limit)
    return mean_test(out, item.metric, metric, limit, rules)


def mean_test(out: GateOutcome, name: str, metric: GateMetric, limit: float, rules: Constants) -> Test:
    """Return the t test of the passes of both sides: one number a pass."""
    here, there = passes_of(out, name)
    p = p_by_pass(here, there, metric.slack)
    if not here or not there:
        return Test(name, None, 0.0, 1.0, limit, tuple(here), tuple(there))
    difference = mean(here) - mean(there)
    low = high = None
    if len(here) + len(there) > 2:
        low, high = interval(here, there, limit)
    is_proven = p <= limit and difference <= -max(rules.least, metric.slack)
    return Test(name, None, difference, p, limit, tuple(here), tuple(there), low, high, proven=is_proven)


def passes_of(out: GateOutcome, name: str) -> tuple[list[float], list[float]]:
    """Return the mean of each pass of both sides, free of which cases it lost, on the level of all values."""
    pr, base = out.pr.get(name, {}), out.base.get(name, {})
    middle = case_means(joined([pr, base]))
    level = mean(list(middle.values())) if middle else 0.0
    here, there = ([value + level for value in pass_means(values, middle)] for values in (pr, base))
    return here, there


def case_test(out: GateOutcome, name: str, case: str, metric: GateMetric, limit: float) -> Test:
    """Return Fisher's test of the failures of one case on both sides."""
    here, there = (known(side.get(name, {}).get(case, ())) for side in (out.pr, out.base))
    failed, base_failed = (metric.failures(case, row) for row in (here, there))
    p = fisher_p(base_failed, len(there), failed, len(here))
    shares = failed / len(here) - base_failed / len(there) if here and there else 0.0
    return Test(
        name,
        case,
        -shares,
        p,
        limit,
        tuple(here),
        tuple(there),
        failed=failed,
        base_failed=base_failed,
        proven=p <= limit,
    )


def _is_thin(out: GateOutcome, item: GateSuspicion) -> bool:
    if item.case is None:
        return min(map(len, passes_of(out, item.metric))) < 2
    here, there = (known(side.get(item.metric, {}).get(item.case, ())) for side in (out.pr, out.base))
    metric = out.metrics[item.metric]
    is_broken_here = not there and metric.failures(item.case, here) == len(here)
    return is_broken_here or (not here and not metric.failures(item.case, there))


def base_is_out(out: GateOutcome, rules: Constants) -> bool:
    """Return whether most of the base's iterations are lost: at least ten of them, or all."""
    names = [name for name in out.base if name != ANSWERED]
    lost = asked = 0
    for case, row in out.base.get(ANSWERED, {}).items():
        for index, value in enumerate(row):
            if value is not None:
                asked += 1
                values = [out.base[name][case][index] for name in names if case in out.base[name]]
                lost += all(found is None for found in values)
    return asked > 0 and lost / asked > rules.outage and (lost >= 10 or lost == asked)


def still_there(
    proofs: Sequence[Test], metrics: Mapping[str, GateMetric], asked: Mapping[str, Sequence[str]], rules: Constants
) -> Generator[Ask, Pass, GateOutcome]:
    """Ask for all pairs at once after a red: it stays red unless less than half of what was proven is left.

    Args:
        proofs: what the earlier attempt proved; only ``metric``, ``case`` and ``difference`` count.
        asked: metric → the cases that its mean needs.

    Returns:
        An outcome with the state ``proven`` if any of it is still there, else ``clear``: the usual gate decides.
    """
    out = GateOutcome(metrics=metrics, stage="memory", family=1)
    suspicions = [GateSuspicion(proof.metric, proof.case, proof.p, "memory") for proof in proofs]
    cases = _cases(suspicions, asked)
    for _ in range(rules.looks[-1]):
        yield from _pair(out, cases, base_first=False, stage="memory")
    out.pairs = rules.looks[-1]
    for proof, item in zip(proofs, suspicions, strict=True):
        test = _tested(out, item, rules.limits[-1], rules)
        # With nothing answered on a side, nothing shows that it is gone.
        is_there = not test.here or not test.there or test.difference <= proof.difference / 2
        out.tests.append(Test(**{**vars(test), "proven": is_there}))
    if out.proofs:
        out.state, out.suspicions = "proven", suspicions
    return out


def no_worse(
    metrics: Mapping[str, GateMetric],
    margin: float,
    pairs: int,
    cases: Sequence[str],
    rules: Constants,
    *,
    seed: int | str | None = None,
) -> Generator[Ask, Pass, GateOutcome]:
    """Ask for planned pairs, and look once: whether a drop of ``margin`` or more is excluded with 95 %.

    Args:
        margin: the drop of a mean, 0..1.

    Returns:
        An outcome with the state ``cleared`` if it is excluded for every metric; the tests have intervals of 95 %.
    """
    out = GateOutcome(metrics=metrics, family=len(metrics), stage="beside")
    order: list[bool] = []
    coin = random.Random(seed)  # noqa: S311
    for number in range(pairs):
        if number % len(_ORDER) == 0:
            order = coin.sample(_ORDER, len(_ORDER))
        yield from _pair(out, tuple(cases), base_first=order[number % len(_ORDER)])
    out.pairs = pairs
    for name, metric in metrics.items():
        test = mean_test(out, name, metric, rules.limits[-1] / len(metrics), rules)
        if min(len(test.here), len(test.there)) >= 2:
            low, high = interval(test.here, test.there, 0.05)
            test = Test(**{**vars(test), "low": low, "high": high})
        out.tests.append(test)
    if out.proofs:
        out.state = "proven"
        return out
    open_ = [test for test in out.tests if test.low is None or test.low <= -margin]
    out.state = "unproven" if open_ else "cleared"
    out.suspicions = [GateSuspicion(test.metric, None, test.p, "beside") for test in open_]
    if open_:
        largest = max((-test.low for test in open_ if test.low is not None), default=None)
        found = "too little was answered" if largest is None else f"drops of up to {largest:.2g} are possible"
        missing = f"a drop of {margin:.2g} is not excluded: {found} after {pairs} pairs of passes"
        out.why = f"{missing}; more cases or iterations, or a larger drop in gate.require, would decide it"
    return out


def pairs_needed(baseline: Sequence[Values], margin: float, chance: float = 0.8) -> int | None:
    """Return the pairs with which an agent that is as good is shown to be not worse than ``margin``.

    Args:
        baseline: values of earlier runs, which tell how much a pass varies.
        margin: the allowed drop of the mean.

    Returns:
        ``None`` if nothing is known about the spread.
    """
    spread = spread_of_pass(baseline)
    if spread is None:
        return None
    pairs = 4
    while pairs < _MOST_PAIRS:
        freedom = 2 * pairs - 2
        reach = -student_t_quantile(0.05, freedom) - student_t_quantile(1 - chance, freedom)
        if reach <= margin / math.sqrt(max(spread * spread, _NO_SPREAD) * 2 / pairs):
            break
        pairs += 1
    return pairs
