"""By which rule a run is compared with its baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from typing import Literal

from agenteval.compare.statistics.parameters import GateParameters

PolicyName = Literal["statistics", "any-flip", "mean-drop", "threshold"]
DEFAULT_TOLERANCE = 0.05


@dataclass(frozen=True)
class Quarantine:
    """A case that is run and shown, but does not count, until a day.

    Args:
        case: its name or id; ``*`` stands for any text.
        until: the last day, in UTC.
        reason: for people.
    """

    case: str
    until: date
    reason: str = ""

    def holds(self, case_id: str, name: str, today: date) -> bool:
        """Whether it keeps a case out today."""
        return today <= self.until and self.names(case_id, name)

    def names(self, case_id: str, name: str) -> bool:
        """Whether it is about a case."""
        return fnmatchcase(name, self.case) or fnmatchcase(case_id, self.case)


@dataclass(frozen=True)
class ComparePolicy:
    """How a run is compared.

    Attributes:
        name: ``statistics``; or one of the simple rules: ``any-flip`` (no case may turn from passed to failed, no
            mean may fall by more than ``parameters.tolerance``), ``mean-drop`` (the second half of it alone),
            ``threshold`` (only the share of passed cases counts).
        parameters: of the statistics.
        gating: metric id → whether it can fail the gate; others can where they have a verdict of their own.
        deterministic: the agent answers the same question always the same, so that one flip is proof.
        recorded: ids of cases with recorded answers, for which that holds in any case.
        quarantine: cases that do not count.
        min_pass_rate: for ``threshold``.
        max_latency_increase: relative growth of the mean latency that may pass; ``None`` only reports it.
        max_cost_increase: the same for cost.
    """

    name: PolicyName = "statistics"
    parameters: GateParameters = field(default_factory=GateParameters)
    gating: Mapping[str, bool] = field(default_factory=dict)
    deterministic: bool = False
    recorded: frozenset[str] = frozenset()
    quarantine: tuple[Quarantine, ...] = ()
    min_pass_rate: float | None = None
    max_latency_increase: float | None = None
    max_cost_increase: float | None = None

    def quarantined(self, case_id: str, name: str, today: date) -> bool:
        """Whether a case does not count today."""
        return any(entry.holds(case_id, name, today) for entry in self.quarantine)

    @property
    def confirms_beside_base(self) -> bool:
        """Whether the base commit's agent runs beside the current one before anything is said about it."""
        return self.name == "statistics" and self.parameters.confirm in {"base", "both"}

    def is_deterministic(self, case_id: str) -> bool:
        """Whether a case always gets the same answer."""
        return self.deterministic or case_id in self.recorded


def quarantine_warnings(
    quarantine: Iterable[Quarantine], cases: Collection[tuple[str, str]], today: date
) -> tuple[str, ...]:
    """What to tidy up: entries that have ended, and entries that are about no case.

    Args:
        quarantine: the entries.
        cases: id and name of every case that there is.
        today: the day in UTC.
    """
    warnings = []
    for entry in quarantine:
        if today > entry.until:
            warnings.append(f"the quarantine of {entry.case!r} ended on {entry.until}; what it names counts again")
        elif not any(entry.names(*case) for case in cases):
            warnings.append(f"the quarantine of {entry.case!r} is about no case")
    return tuple(warnings)
