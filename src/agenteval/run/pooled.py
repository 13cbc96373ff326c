"""Several runs of the same suites, one after the other, whose scores end up in one pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.results.partial import why_no_baseline
from agenteval.results.store import RESULTS_FILE
from agenteval.run.context import RunContext
from agenteval.run.outcome import RunOutcome
from agenteval.run.pipeline import run
from agenteval.run.settings import Settings


def run_pooled(
    settings: Settings, out: Path, runs: int, tell: Callable[[str], None], context: RunContext | None = None
) -> RunOutcome:
    """Run suites several times. Each run has the one before it as its baseline, so that the last has the pool of all.

    A run that cannot be a baseline, or that is proven worse than its baseline, is the last one.

    Args:
        settings: the settings of every run; the baseline is that of the first run.
        out: the directory of the reports, which are those of the last run at the end.
        runs: the number of runs, from 1.
        tell: receives a line before each run but the first, and if the runs end early.
        context: additions of the environment.

    Returns:
        The outcome of the last run.

    Raises:
        ConfigError: the settings select only a part of the cases or resume a run, or as ``run`` raises it.
        InfrastructureError: as ``run`` raises it.
    """
    if runs > 1:
        _refuse_parts(settings)
        settings = replace(settings, is_whole=True)
    outcome = run(replace(settings, out=out), context)
    again = replace(settings, out=out, baseline=out / RESULTS_FILE)
    for number in range(2, runs + 1):
        why = _why_last(outcome)
        if why:
            tell(f"run {number - 1} of {runs} is the last: {why}")
            return outcome
        tell(f"run {number} of {runs}")
        outcome = run(again, context)
    return outcome


def _refuse_parts(settings: Settings) -> None:
    named = {
        "a shard": settings.shard is not None,
        "selected cases": bool(settings.filter or settings.tags or settings.cases or settings.failed_in),
        "a resumed run": settings.resume,
    }
    problems = [
        Problem(
            f"several runs make a baseline of whole runs, so they cannot be of {what}; use one run",
            path="runs",
            kind=Kind.OPTION,
        )
        for what, is_given in named.items()
        if is_given
    ]
    if problems:
        raise ConfigError(problems)


def _why_last(outcome: RunOutcome) -> str:
    """Return why no run may follow; empty if one may."""
    if outcome.is_cancelled:
        return "it was interrupted"
    comparison = outcome.results.comparison
    if comparison is not None and comparison.verdict == "regressed":
        return "it is worse than its baseline"
    return why_no_baseline(outcome.results)
