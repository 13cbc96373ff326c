"""The goals of agenteval's speed: a limit for each figure, the measured values, and whether they meet it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from benchmarks.speed.measure import Cost
from benchmarks.speed.programs import BARE, OURS, PROMPTFOO, PYDANTIC
from benchmarks.speed.workloads import ONE, VERSION, W1_HUGE, W1_LARGE, W1_SMALL, W2, W3, Workload

_START = (
    "half of it and more is start-up: pydantic, 146 modules of agenteval and their models. Data classes are written "
    "at their first object already. A second run of one case in the same process takes 0.02 s"
)
_PER_CASE = (
    "about 0.25 ms per case beside the start-up, in some thirty steps of which none takes more than 3 %: reading, "
    "fingerprints, scores, the search for secrets, the journal and the digests that protect it, counts for the "
    "summary and the gate, and four reports. Less needs fewer checks, or code for special cases"
)
_MEMORY = "a planned case takes 1.2 kB until the end: its texts, its names and four objects"
# Why limits are not pursued any more, by workload.
_GIVEN_UP = {ONE.key: _START, W1_SMALL.key: _START, W1_LARGE.key: _PER_CASE, W2.key: _PER_CASE, W3.key: _START}

# Medians by key of the workload and name of the program
Medians = Mapping[tuple[str, str], Cost]
_Figure = Callable[[Cost], float]


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit of a figure.

    Attributes:
        values: the measured values by kind of agent; empty for an incomplete comparison.
        why: why the limit is not pursued any more, if it is not.
    """

    text: str
    limit: float
    unit: str
    values: Mapping[str, float]
    why: str = ""

    @property
    def verdict(self) -> str:
        """``met``, ``missed``, or ``not measured``."""
        if not self.values:
            return "not measured"
        return "met" if all(value <= self.limit for value in self.values.values()) else "missed"


def goals(medians: Medians) -> list[Goal]:
    """Return all goals; each must hold for every measured kind of agent."""
    return list(_goals(medians))


def above_ideal(workload: Workload, cost: Cost) -> float:
    """Return the wall time (s) in excess of the agent's time."""
    return cost.wall_s - workload.ideal_s


def _goals(medians: Medians) -> Iterator[Goal]:
    def absolute(workload: Workload, text: str, limit: float, unit: str, figure: _Figure) -> Goal:
        values = _ours(medians, workload, figure)
        return Goal(f"{workload.title}: {text}", limit, unit, values, _GIVEN_UP.get(workload.key, ""))

    def share(workload: Workload, peer: str, limit: float) -> Goal:
        text = f"{workload.title}: CPU, as a share of {peer}"
        other = medians.get((workload.key, peer))
        values = _ours(medians, workload, lambda cost: cost.cpu_s / other.cpu_s) if other else {}
        return Goal(text, limit, "×", values)

    for workload, limit in ((VERSION, 0.1), (ONE, 0.25), (W1_SMALL, 0.5), (W1_LARGE, 1.0), (W2, 3.5)):
        yield absolute(workload, "CPU", limit, "s", lambda cost: cost.cpu_s)
    yield absolute(W3, "wall above the ideal", 0.3, "s", lambda cost: above_ideal(W3, cost))
    yield absolute(W3, "wall, as a ratio to the ideal", 1.15, "×", lambda cost: cost.wall_s / W3.ideal_s)
    yield absolute(W1_LARGE, "peak memory", 120, "MiB", lambda cost: cost.peak_mib)
    yield share(W1_LARGE, PROMPTFOO, 1 / 20)
    yield share(W1_LARGE, PYDANTIC, 1)
    yield share(W2, BARE, 0.4)
    memory = _growth(medians, lambda cost, _: cost.peak_mib)
    yield Goal(f"{W1_HUGE.title}: peak memory, as a ratio to 10,000", 2, "×", memory, _MEMORY)


def cpu_growth(medians: Medians) -> Mapping[str, float]:
    """Return the CPU time per case at 100,000 cases, as a ratio to 10,000, by kind of agent."""
    return _growth(medians, lambda cost, workload: cost.cpu_s / workload.cases)


def _growth(medians: Medians, figure: Callable[[Cost, Workload], float]) -> dict[str, float]:
    pairs = {name: (medians.get((W1_HUGE.key, name)), medians.get((W1_LARGE.key, name))) for name in OURS}
    return {
        name: figure(huge, W1_HUGE) / figure(large, W1_LARGE)
        for name, (huge, large) in pairs.items()
        if huge and large
    }


def _ours(medians: Medians, workload: Workload, figure: _Figure) -> dict[str, float]:
    return {name: figure(medians[workload.key, name]) for name in OURS if (workload.key, name) in medians}
