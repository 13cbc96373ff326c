"""The settings by which a run is compared with its baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from fnmatch import fnmatchcase
from typing import Literal

from agenteval.core.records import dataclass, field, replace
from agenteval.core.text import did_you_mean
from agenteval.gate.values import Constants

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
        gating: metric id → whether the metric can fail the gate; other metrics gate if they have a threshold or a
            verdict.
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
