"""What the gate compares, and by which settings: the values of cases by metric and pass, constants, and policies.

A pass is one iteration of every case in a separate session; a run is several passes. Higher values are better: scores
of 0..1, or the negative logarithm of an amount. ``None`` is a lost iteration, which says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from typing import Literal

from agenteval.core.records import dataclass, field, replace
from agenteval.core.text import did_you_mean

#: Case → its value in each pass. Cases of a run may have different numbers of passes.
Values = Mapping[str, Sequence[float | None]]
#: Metric → values.
Run = Mapping[str, Values]
#: Metric → case → its value in one pass.
Pass = Mapping[str, Mapping[str, float | None]]
#: The metric that says whether an iteration was answered at all: 1, or 0 where it was lost.
ANSWERED = "answered"
# A mean of turns that equals a threshold can be lower by so much.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Constants:
    """The constants of the gate; ``benchmarks/gate`` simulates them, and users cannot change them.

    Attributes:
        window: newest base runs that may raise a suspicion.
        suspect: largest p of a suspicious first run, for one metric.
        agree: the same for the first and the second run together.
        looks: pairs of passes side by side after which is decided.
        limits: largest p of a proof at each look. Their sum bounds the false alarms, whatever other days were like.
        go_on: what is less clear than this between looks is cleared.
        least: smallest drop of a mean that is worth a red.
        fall: smallest rise of a case's share of failures that is suspicious.
        again: passes of a suspicious case in the second run.
        fill: calls of a side in a pair of passes; smaller suites are repeated, at most ``most_repeats`` times.
        most_repeats: see ``fill``.
        losses: how many more iterations may be lost, as a share.
        alone: largest p of a suspicion about a mean that is unproven without runs side by side.
        alone_always: the same for a case that never passes, however often it is asked.
        tries: how often a suspicious case is asked again at most without a base to run.
        outage: share of lost iterations of the base from which on nothing can be cleared.
    """

    window: int = 10
    suspect: float = 0.10
    agree: float = 0.05
    looks: tuple[int, ...] = (4, 8, 16)
    limits: tuple[float, ...] = (0.002, 0.006, 0.017)
    go_on: float = 0.35
    least: float = 0.01
    fall: float = 1 / 3
    again: int = 3
    many: int = 20
    fill: int = 50
    most_repeats: int = 4
    losses: float = 0.02
    alone: float = 0.01
    alone_case: float = 0.001
    alone_always: float = 0.02
    tries: int = 8
    outage: float = 0.50


@dataclass(frozen=True)
class GateMetric:
    """How the values of a metric are judged.

    Attributes:
        threshold: a case fails in a pass below it; ``None``: only the mean counts.
        slack: how much worse is allowed: 0 for scores, the logarithm of a ratio for amounts.
        by_case: thresholds of single cases, which differ from the usual one.
        is_accepted: whether a lower mean was accepted; its cases count all the same.
    """

    threshold: float | None = None
    slack: float = 0.0
    by_case: Mapping[str, float] = field(default_factory=dict)
    is_accepted: bool = False

    def fails(self, case: str, value: float | None) -> bool:
        """Return whether a value is below the threshold of its case; a lost one is not."""
        threshold = self.by_case.get(case, self.threshold)
        return value is not None and threshold is not None and value < threshold - _ROUNDING

    def failures(self, case: str, row: Iterable[float | None]) -> int:
        """Return how many values of a case are below its threshold."""
        return sum(self.fails(case, value) for value in row)

    @property
    def turned(self) -> GateMetric:
        """The metric of turned values: what passed before fails now."""
        threshold = None if self.threshold is None else _turned(self.threshold)
        return GateMetric(threshold, self.slack, {case: _turned(value) for case, value in self.by_case.items()})


def _turned(threshold: float) -> float:
    # A score that equals the threshold passes, so it must fail when it is turned.
    return 1 - threshold + 3 * _ROUNDING


def turned(values: Values) -> dict[str, list[float | None]]:
    """Return scores turned over, so that an improvement looks like a regression; amounts change their sign."""
    return {case: [None if value is None else 1 - value for value in row] for case, row in values.items()}


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value."""
    return math.fsum(values) / len(values)


def known(row: Iterable[float | None]) -> list[float]:
    """Return the values that were not lost."""
    return [value for value in row if value is not None]


def length(values: Values) -> int:
    """Return the number of passes."""
    return max(map(len, values.values()), default=0)


def joined(runs: Sequence[Values]) -> dict[str, list[float | None]]:
    """Return the passes of several runs in a row; a case that a run did not ask has no values there."""
    cases = dict.fromkeys(case for values in runs for case in values)
    found: dict[str, list[float | None]] = {case: [] for case in cases}
    for values in runs:
        number = length(values)
        for case, row in found.items():
            given = values.get(case, ())
            row.extend(given)
            row.extend([None] * (number - len(given)))
    return found


def case_means(values: Values) -> dict[str, float]:
    """Return the mean of each case that has a value."""
    return {case: mean(given) for case, row in values.items() if (given := known(row))}


def pass_means(values: Values, middle: Mapping[str, float]) -> list[float]:
    """Return the mean of each pass that was answered, of values minus the middle of their case.

    Without the middle it would matter which cases a pass lost.
    """
    number = length(values)
    passes: list[list[float]] = [[] for _ in range(number)]
    for case, row in values.items():
        if case in middle:
            for index, value in enumerate(row):
                if value is not None:
                    passes[index].append(value - middle[case])
    return [mean(found) for found in passes if found]


def with_answered(run: Run) -> dict[str, Values]:
    """Return a run with the metric ``answered``: 1, or 0 where any metric of an iteration was lost."""
    rows: dict[str, list[float | None]] = {}
    for name, values in run.items():
        if name == ANSWERED:
            continue
        for case, row in values.items():
            seen = rows.setdefault(case, [])
            seen.extend([1.0] * (len(row) - len(seen)))
            for index, value in enumerate(row):
                if value is None:
                    seen[index] = 0.0
    return {**run, ANSWERED: rows}


def has_losses(run: Run) -> bool:
    """Return whether any iteration was lost."""
    return any(value is None for values in run.values() for row in values.values() for value in row)


def cases_of(run: Run, metrics: Collection[str] | None = None) -> list[str]:
    """Return the cases of a run, or those of some of its metrics, in order."""
    names = run if metrics is None else [name for name in run if name in metrics]
    return list(dict.fromkeys(case for name in names for case in run[name]))


#: A resource that the gate compares as a metric: seconds, US dollars or tokens of a case.
Resource = Literal["latency", "cost", "tokens"]
#: Whether the first run of a change may stop as soon as nothing looks low, or is always ``whole``.
First = Literal["early", "whole"]
#: Id of a case → its id and name in the base commit, where these differ: a change renames no case into a pattern.
BaseNames = Mapping[str, tuple[str, str]]
#: By how much a resource may rise, as a share, unless the configuration names another share.
TOLERANCE = 0.10


@dataclass(frozen=True)
class Quarantine:
    """A case that runs and is shown, but does not count until a date."""

    case: str
    until: date
    reason: str = ""

    def holds(self, case_id: str, name: str, today: date) -> bool:
        """Return whether the entry applies to a case today."""
        return today <= self.until and self.names(case_id, name)

    def names(self, case_id: str, name: str) -> bool:
        """Return whether an entry names a case."""
        return fnmatchcase(name, self.case) or fnmatchcase(case_id, self.case)


@dataclass(frozen=True)
class ComparePolicy:
    """The settings of a comparison.

    Attributes:
        gating: metric id → whether the metric can fail the gate; other metrics do, with a threshold or without,
            unless their suite only reports them.
        resources: resources that can fail the gate → by how much each may rise, as a share.
        no_worse_than: the drop of a mean, 0..1, that has to be excluded; ``None``: no drop has to be proven.
        pairs: most pairs of passes side by side.
        can_run: whether anything can run again; without that the files alone decide.
        recorded: ids of cases with recorded answers, which no pass can ask again.
        accepted_means: ids of the metrics whose lower mean was accepted; their cases count all the same.
        quarantine: cases that do not count.
        base_names: by which the quarantine knows renamed cases.
        asked_by: who asked that an improvement of a change is proven too: a login, or ``--prove``; empty for nobody.
    """

    gating: Mapping[str, bool] = field(default_factory=dict)
    resources: Mapping[Resource, float] = field(default_factory=dict)
    no_worse_than: float | None = None
    pairs: int = Constants().looks[-1]
    first: First = "early"
    can_run: bool = True
    recorded: frozenset[str] = frozenset()
    accepted_means: frozenset[str] = frozenset()
    quarantine: tuple[Quarantine, ...] = ()
    base_names: BaseNames = field(default_factory=dict)
    asked_by: str = ""

    def quarantined(self, case_id: str, name: str, today: date) -> bool:
        """Return whether a case is quarantined today."""
        known = self.base_names.get(case_id, (case_id, name))
        return any(entry.holds(*known, today) for entry in self.quarantine)

    @property
    def rules(self) -> Constants:
        """The constants of the gate, with the looks that the number of pairs allows."""
        rules = Constants()
        number = sum(look <= self.pairs for look in rules.looks)
        return replace(rules, looks=rules.looks[:number], limits=rules.limits[:number])

    def without_runs(self) -> ComparePolicy:
        """Return the policy for results of which nothing can run again: they alone decide."""
        return replace(self, can_run=False)


def quarantine_warnings(
    quarantine: Iterable[Quarantine], cases: Collection[tuple[str, str]], today: date
) -> tuple[str, ...]:
    """Return warnings for entries that have ended and for entries that match no case."""
    warnings = []
    for entry in quarantine:
        if today > entry.until:
            warnings.append(f"the quarantine of {entry.case!r} ended on {entry.until}; its cases count again")
        elif not any(entry.names(*case) for case in cases):
            guess = did_you_mean(entry.case, sorted(name for case in cases for name in case))
            warnings.append(f"the quarantine of {entry.case!r} matches no case{guess}")
    return tuple(warnings)
