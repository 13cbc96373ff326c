"""What the gate can do with the runs in a results file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from agenteval.compare.baseline_runs import comparable_runs
from agenteval.compare.pairing import own_cases
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.pool import baseline_pool
from agenteval.compare.regression.capability import Power, power_of
from agenteval.compare.regression.model import Evidence, GatingMetric
from agenteval.core.errors import ConfigError, Problem
from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.model import Results
from agenteval.run.baseline import check_baseline
from agenteval.run.resolve.saved import resolve_saved
from agenteval.run.settings import Settings
from agenteval.suite.model import OVERALL


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
        raise ConfigError(Problem("no metric that can fail the gate has a score in this run", file=str(path)))
    return found


def explain(results: Results, policy: ComparePolicy, today: date, notes: Iterable[str] = ()) -> Explanation:
    """Return what the gate can do with the pool of a run, and the run itself.

    Args:
        results: the run.
        policy: the comparison policy.
        today: the UTC date that decides which quarantine entries have ended.
        notes: what the reader of the run left out.
    """
    settings = policy.settings
    pool = baseline_pool(results, "", settings.window)
    own = {
        case_id: {metric: tuple(scores) for metric, scores in case.scores.items()}
        for case_id, case in own_cases(results).items()
    }
    earlier = comparable_runs(results, own, pool)
    counting = {case.id: case for _, case in results.cases() if not policy.quarantined(case.id, case.name, today)}
    gating = _gating(results.cases(), policy.gating)
    evidence = Evidence(
        metrics=tuple(GatingMetric(id=name, thresholds=thresholds) for name, thresholds in gating.items()),
        first={},
        pool=tuple({case: scores for case, scores in run.items() if case in counting} for run in earlier.scores),
        clusters={case.id: case.cluster for case in counting.values() if case.cluster},
        repeats=policy.deterministic,
        iterations={case.id: len(case.iterations) for case in counting.values()},
        seed=0,
    )
    calls = sum(len(case.iterations) for _, case in results.cases())
    cost = results.summary.usage.cost_usd
    return Explanation(
        power=power_of(evidence, settings),
        cost_per_call=cost / calls if cost > 0 and calls else None,
        notes=(*notes, *earlier.notes, *_differences(policy)),
    )


def _differences(policy: ComparePolicy) -> list[str]:
    """Return for which of the policy's settings the figures do not hold."""
    notes = []
    if policy.name != "statistics":
        notes.append(f"the gate decides by `policy: {policy.name}`; these figures are those of `policy: statistics`")
    elif not policy.confirms_beside_base:
        notes.append("these figures hold for `confirm: against-base`, which this configuration does not choose")
    return notes


def _gating(
    cases: Iterable[tuple[SuiteResult, CaseResult]], chosen: Mapping[str, bool]
) -> dict[str, dict[str, float]]:
    """Return the metrics that can fail the gate, with the thresholds of their cases.

    A metric gates if it has a threshold or a verdict, or as the configuration says.
    """
    found: dict[str, dict[str, float]] = {}
    for suite, case in cases:
        if suite.threshold is not None:
            found.setdefault(OVERALL, {})[case.id] = suite.threshold
        for iteration in case.iterations:
            # A metric with a verdict has scores 0 and 1, and every turn has to pass.
            all_turns = 1 - 0.5 / max(len(iteration.turns), 1)
            for score in (score for turn in iteration.turns for score in turn.scores):
                thresholds = found.setdefault(score.id, {})
                if score.threshold is not None:
                    thresholds[case.id] = score.threshold
                elif score.passed is not None:
                    thresholds.setdefault(case.id, all_turns)
    deciding = {name for name, thresholds in found.items() if thresholds}
    return {name: thresholds for name, thresholds in found.items() if chosen.get(name, name in deciding)}
