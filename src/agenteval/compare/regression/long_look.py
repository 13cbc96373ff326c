"""The long look: the newest commit of the base branch side by side with an early one."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from agenteval.compare.regression.mean_proof import compare_side_by_side
from agenteval.compare.regression.model import Answer, Decision, Evidence, Request, Unavailable
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.regression.trial import NotRunError, start
from agenteval.compare.regression.verdict import conclude


def decide_long_look(
    evidence: Evidence, settings: GateSettings
) -> Generator[Request, Answer | Unavailable, Decision]:
    """Decide whether the newest commit is worse than the control, which is an early commit of the same epoch.

    Many long looks are made over time, so all limits are half of the strict ones. Runs that exist already do not
    count: they may be the reason for the long look.

    Args:
        evidence: the newest run and the pool; they only say which cases and metrics are compared.
    """
    halves = tuple(limit / 2 for limit in settings.strict)
    trial = start(evidence, replace(settings, strict=halves, calm=halves), mirrored=False)
    try:
        length = trial.settings.length(trial.run_calls)
        yield from compare_side_by_side(trial, [], length, {}, "long-look")
    except NotRunError as refusal:
        trial.stage = refusal.stage
        return conclude(trial, refusal.unavailable)
    return conclude(trial)
