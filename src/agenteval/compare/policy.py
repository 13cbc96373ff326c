"""The policy by which a run is compared with its baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Literal

from agenteval.compare.regression.settings import GateSettings
from agenteval.core.text import did_you_mean

#: What a suspected regression is proven against: ``against-base``: the base commit's agent, side by side; ``rerun``:
#: earlier runs of the base branch; ``off``: nothing runs again.
Confirm = Literal["against-base", "rerun", "off"]
PolicyName = Literal["statistics", "any-flip", "mean-drop", "threshold"]
#: What a proven slow decline of the base branch does: ``fail`` the run, open an ``issue``, or ``off``: no long look.
OnDecline = Literal["fail", "issue", "off"]
#: What follows if the control scored lower than the pool in two pull requests: ``warn``, or ``dispatch`` a new run of
#: the base branch.
OnLowControl = Literal["warn", "dispatch"]


#: Id of a case → its id and name in the base commit, where these differ: a change renames no case into a pattern.
BaseNames = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Quarantine:
    """A case that runs and is shown, but does not count until a date.

    Args:
        case: name or id of the case; ``*`` matches any text.
        until: the last day, in UTC.
    """

    case: str
    until: date
    reason: str = ""

    def holds(self, case_id: str, name: str, today: date) -> bool:
        """Return whether the entry applies to a case today."""
        return today <= self.until and self.names(case_id, name)

    def names(self, case_id: str, name: str) -> bool:
        """Return whether the entry names a case."""
        return fnmatchcase(name, self.case) or fnmatchcase(case_id, self.case)


@dataclass(frozen=True)
class ConfirmationLimits:
    """The largest cost of the runs that confirm suspected regressions; ``None`` is no limit.

    Attributes:
        runs: as many calls as so many runs of the suite have, both sides and single cases together.
        calls: iterations of cases, both sides together.
        cost_usd: cost of agents and judges in US dollars.
    """

    runs: int | None = None
    calls: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True)
class ComparePolicy:
    """The settings of a comparison.

    Attributes:
        name: ``statistics``, or a simple rule: ``any-flip`` (no case may change from passed to failed, and no mean
            may drop by more than ``settings.tolerance``), ``mean-drop`` (only the condition on means),
            ``threshold`` (only the share of passed cases counts).
        confirm: what a suspected regression is proven against.
        gating: metric id → whether the metric can fail the gate; other metrics gate if they have a threshold or a
            verdict.
        accepted_means: ids of the metrics whose lower mean was accepted; their cases count all the same.
        deterministic: whether the agent always gives the same answer to a question, so that one flip is proof.
        recorded: ids of cases with recorded answers; they are always deterministic.
        is_final: whether nothing can run again, so that a large drop is proven without it.
        quarantine: cases that do not count.
        base_names: by which the quarantine knows renamed cases.
        staged: whether a first run asks cases only once about which earlier runs leave little doubt.
        long_look: what a proven slow decline of the base branch does.
        on_low_control: what follows if the control scored lower than the pool in two pull requests.
        asked_by: who asked that an improvement of a change is proven too: a login, or ``--prove``; empty for nobody.
        min_pass_rate: required share of passed cases for ``threshold``.
        max_latency_increase: allowed relative increase of the mean latency; ``None`` only reports it.
        max_cost_increase: allowed relative increase of the cost; ``None`` only reports it.
    """

    name: PolicyName = "statistics"
    settings: GateSettings = field(default_factory=GateSettings)
    confirm: Confirm = "against-base"
    gating: Mapping[str, bool] = field(default_factory=dict)
    accepted_means: frozenset[str] = frozenset()
    deterministic: bool = False
    recorded: frozenset[str] = frozenset()
    is_final: bool = False
    quarantine: tuple[Quarantine, ...] = ()
    base_names: BaseNames = field(default_factory=dict)
    max_confirmation: ConfirmationLimits = field(default_factory=ConfirmationLimits)
    staged: bool = False
    long_look: OnDecline = "fail"
    on_low_control: OnLowControl = "warn"
    asked_by: str = ""
    min_pass_rate: float | None = None
    max_latency_increase: float | None = None
    max_cost_increase: float | None = None

    def quarantined(self, case_id: str, name: str, today: date) -> bool:
        """Return whether a case is quarantined today."""
        known = self.base_names.get(case_id, (case_id, name))
        return any(entry.holds(*known, today) for entry in self.quarantine)

    @property
    def confirms_beside_base(self) -> bool:
        """Whether confirmation runs the base commit's agent beside the current agent."""
        return self.name == "statistics" and self.confirm == "against-base"

    @property
    def is_asked_to_prove(self) -> bool:
        """Whether somebody asks for the proof of an improvement, and further runs can give it."""
        return bool(self.asked_by) and self.confirms_beside_base and not self.is_final

    @property
    def looks_back(self) -> bool:
        """Whether runs of the base branch are compared with early commits too."""
        return self.confirms_beside_base and self.long_look != "off"

    def without_confirmation(self) -> ComparePolicy:
        """Return the policy for results of which nothing can run again: they alone decide."""
        return replace(self, confirm="off", is_final=True)

    def is_deterministic(self, case_id: str) -> bool:
        """Return whether the agent always gives the same answer to a case."""
        return self.deterministic or case_id in self.recorded


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
