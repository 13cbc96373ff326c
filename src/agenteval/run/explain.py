"""What the gate can do with the runs in a results file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from agenteval.compare.policy import ComparePolicy
from agenteval.compare.regression.capability import Power, power_of
from agenteval.compare.sides import Sides
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.results.model import Results
from agenteval.run.baseline import check_baseline
from agenteval.run.resolve.saved import resolve_saved
from agenteval.run.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What the gate can do with a pool.

    Attributes:
        power: the figures.
        cost_per_call: cost of one iteration of a case in US dollars, judges included; ``None`` if unknown.
        notes: what was left out, and settings for which the figures do not hold.
    """

    power: Power
    cost_per_call: float | None
    notes: tuple[str, ...]


def explain_file(path: Path, settings: Settings) -> Explanation:
    """Return what the gate can do with the pool of a results file, which contains the run itself.

    Raises:
        ConfigError: the file cannot be read, cannot be a baseline, or has no gating metric with a score; or a
            configuration is not valid.
    """
    from agenteval.results.importers.detect import read_run

    results, notes = read_run(path)
    check_baseline(results, path)
    policy = resolve_saved(results, settings, os.environ).compare
    found = explain(results, policy, datetime.now(UTC).date(), notes)
    if not (found.power.detectable and found.power.cases):
        raise ConfigError(
            Problem("no metric that can fail the gate has a score in this run", file=str(path), kind=Kind.RESULTS)
        )
    return found


def explain(results: Results, policy: ComparePolicy, today: date, notes: Iterable[str] = ()) -> Explanation:
    """Return what the gate can do with the pool of a run, and the run itself.

    Args:
        results: the run.
        policy: the comparison policy.
        today: the UTC date that decides which quarantine entries have ended.
        notes: what the reader of the run left out.
    """
    cases = [case for _, case in results.cases()]
    quarantined = frozenset(case.id for case in cases if policy.quarantined(case.id, case.name, today))
    # The run belongs to its own pool, so there is no run to compare with it.
    sides = Sides(results, results, policy, quarantined)
    return Explanation(
        power=power_of(replace(sides.evidence, first={}), policy.settings),
        cost_per_call=cost_of_a_call(results),
        notes=(*notes, *_worse(results), *sides.earlier.notes, *_differences(policy)),
    )


def cost_of_a_call(results: Results) -> float | None:
    """Return what one iteration of a case has cost in US dollars, judges included; ``None`` if unknown.

    The usage of a run contains what ran again.
    """
    comparison = results.comparison
    again = comparison.cost.calls if comparison is not None and comparison.cost is not None else 0
    calls = sum(len(case.iterations) for _, case in results.cases()) + again
    cost = results.summary.usage.cost_usd
    return cost / calls if cost > 0 and calls else None


def _worse(results: Results) -> list[str]:
    """Return a note about a run that the gate would not add to a pool."""
    if results.comparison is None or results.comparison.verdict != "regressed":
        return []
    return ["this run is proven worse than its baseline; the figures are those of the worse agent"]


def _differences(policy: ComparePolicy) -> list[str]:
    """Return for which of the policy's settings the figures do not hold."""
    notes = []
    if policy.name != "statistics":
        notes.append(f"the gate decides by `policy: {policy.name}`; these figures are those of `policy: statistics`")
    elif not policy.confirms_beside_base:
        notes.append("these figures hold for `confirm: against-base`, which this configuration does not choose")
    if policy.staged:
        notes.append("these figures hold for whole first runs; `staged` saves calls and finds a little less")
    return notes
