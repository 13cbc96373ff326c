"""Scores to compare, made by hand or by hypothesis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import strategies as st

from agenteval.compare.statistics.model import CaseRuns, MetricRuns, Scores
from agenteval.compare.statistics.run_table import RunTable, tabulate

BITS = st.sampled_from([0.0, 1.0])
TENTHS = st.integers(0, 10).map(lambda tenths: tenths / 10)


def run(text: str) -> Scores:
    """Iterations of a run: ``"110"`` passed twice."""
    return tuple(float(letter) for letter in text)


def case(
    case_id: str, current: str, *baseline: str, second: str = "", reruns: str = "", cluster: str | None = None
) -> CaseRuns:
    """A pass or fail case; every run as in `run`."""
    return CaseRuns(
        case_id=case_id,
        current=run(current),
        baseline=tuple(run(scores) for scores in baseline),
        second=run(second),
        reruns=run(reruns),
        cluster=cluster,
    )


def metric(*cases: CaseRuns, name: str = "exact", step: float = 1.0, gating: bool = True) -> MetricRuns:
    """A metric on these cases."""
    return MetricRuns(metric=name, cases=cases, seed=7, step=step, gating=gating)


def copies(count: int, current: str, *baseline: str, second: str = "", prefix: str = "case") -> list[CaseRuns]:
    """Cases that all had the same scores."""
    return [case(f"{prefix}-{number:03d}", current, *baseline, second=second) for number in range(count)]


def table_of(cases: Sequence[CaseRuns], current_runs: int = 1) -> RunTable:
    """The table of the first run, or of both."""
    found = tabulate(cases, lambda c: (c.current, c.second)[:current_runs], lambda c: c.baseline)
    assert found is not None
    return found


@st.composite
def metrics(
    draw: st.DrawFn,
    most_cases: int = 6,
    most_runs: int = 4,
    *,
    scores: st.SearchStrategy[float] = BITS,
    clusters: bool = False,
    losses: bool = False,
) -> MetricRuns:
    """Suites with a second run; the same number of iterations everywhere unless some are lost."""
    iterations, runs = draw(st.integers(1, 3)), draw(st.integers(1, most_runs))
    complete = st.lists(scores, min_size=iterations, max_size=iterations).map(tuple)
    present = st.one_of(complete, st.just(())) if losses else complete
    names = [f"case-{number}" for number in range(draw(st.integers(1, most_cases)))]
    clustered = st.sampled_from([None, "a", "b"]) if clusters else st.none()
    cases = [
        CaseRuns(
            case_id=name,
            current=draw(complete),
            second=draw(complete),
            baseline=tuple(draw(present) for _ in range(runs)),
            cluster=draw(clustered),
        )
        for name in names
    ]
    return MetricRuns(metric="exact", cases=tuple(cases), seed=7, step=1.0 if scores is BITS else 0.1)


def labelings_of(units: int, current_runs: int, baseline_runs: int) -> int:
    """How many ways there are to hand out the labels."""
    return int(math.comb(current_runs + baseline_runs, current_runs) ** units)
