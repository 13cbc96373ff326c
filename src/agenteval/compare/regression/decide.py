"""The gate's decision: what it asks for, in which order, and when it stops.

Earlier runs only raise a suspicion. The proof comes from both agents side by side, in runs that are made after it.
"""

from __future__ import annotations

from collections.abc import Generator

from agenteval.compare.regression.burden import refute
from agenteval.compare.regression.case_proof import prove_cases
from agenteval.compare.regression.case_test import Candidate
from agenteval.compare.regression.earlier_runs import decide_by_earlier_runs
from agenteval.compare.regression.losses import may_hide_failures
from agenteval.compare.regression.mean_proof import prove_means, screen_means
from agenteval.compare.regression.model import Answer, Burden, Decision, Evidence, Request, Unavailable
from agenteval.compare.regression.no_worse import exclude_drops
from agenteval.compare.regression.repeating import decide_repeating, seems_to_repeat
from agenteval.compare.regression.settings import GateSettings
from agenteval.compare.regression.trial import Asking, NotRunError, Trial, start
from agenteval.compare.regression.verdict import conclude


def decide(
    evidence: Evidence, settings: GateSettings, burden: Burden | None = None
) -> Generator[Request, Answer | Unavailable, Decision]:
    """Decide whether the agent under test became worse.

    The caller makes the requested runs and sends their scores, or `Unavailable`.

    Args:
        evidence: the scores before anything is run again.
        burden: what an earlier attempt was proven to have lost.
    """
    return (yield from _decide(start(evidence, settings, mirrored=False), burden))


def decide_rise(evidence: Evidence, settings: GateSettings) -> Generator[Request, Answer | Unavailable, Decision]:
    """Decide whether the agent under test became better: `decide` with 1 − score, a case failing where it passes.

    The verdict is ``improved`` if a rise is proven. All findings are of the scores as they are; ``p`` is of a rise.
    Earlier runs never prove a rise.
    """
    return (yield from _decide(start(evidence, settings, mirrored=True), None))


def _decide(trial: Trial, burden: Burden | None) -> Asking[Decision]:
    try:
        if not trial.pool:
            made = yield from trial.ask("screen", ("control",), trial.plan, is_whole=True)
            trial.pool = [made["control"]]
        trial.losing = losses_matter(trial)
        is_decided = seems_to_repeat(trial) and (yield from decide_repeating(trial))
        # A first run in which nothing varies does not refute a burden, unless the agent is declared to repeat.
        if burden is not None and not trial.is_red and not (is_decided and trial.evidence.repeats):
            yield from refute(trial, burden)
            trial.repeats = trial.repeats and not trial.is_red
        if is_decided:
            return conclude(trial)
    except NotRunError as refusal:
        trial.stage = refusal.stage
        return conclude(trial, refusal.unavailable)
    if trial.is_red:
        return conclude(trial)
    screen_means(trial)
    candidates = trial.candidates()
    try:
        yield from _prove(trial, candidates)
    except NotRunError as refusal:
        return (yield from _decide_without(trial, candidates, refusal))
    try:
        if not trial.is_red:
            yield from exclude_drops(trial)
    except NotRunError as refusal:
        return conclude(trial, refusal.unavailable)
    return conclude(trial)


def losses_matter(trial: Trial) -> bool:
    """Return whether lost iterations may hide failures, and would raise a suspicion if they were failures."""
    if not may_hide_failures(trial.first, trial.pool[-1] if trial.pool else None, trial.settings):
        return False
    if trial.layout.mirrored:
        return True
    trial.losing = True
    screen_means(trial)
    return bool(trial.watched or trial.candidates())


def _prove(trial: Trial, candidates: list[Candidate]) -> Asking[None]:
    """Confirm the suspicions, the cheaper ones first. What is red already needs no further proof."""
    most = 2 * trial.settings.case_rounds[-1] * len({candidate.case for candidate in candidates})
    means_first = most > 2 * trial.run_calls
    if means_first and trial.watched:
        yield from prove_means(trial)
    if candidates and not trial.is_red:
        yield from prove_cases(trial, candidates)
    if not means_first and trial.watched and not trial.is_red:
        yield from prove_means(trial)


def _decide_without(trial: Trial, candidates: list[Candidate], refusal: NotRunError) -> Asking[Decision]:
    if trial.is_red:
        trial.missing = refusal.unavailable
        return conclude(trial)
    if refusal.unavailable.what == "control" and not trial.layout.mirrored:
        try:
            if (yield from decide_by_earlier_runs(trial, candidates)):
                trial.missing = refusal.unavailable
                return conclude(trial)
        except NotRunError as later:
            refusal = later
    trial.stage = refusal.stage
    return conclude(trial, refusal.unavailable)
