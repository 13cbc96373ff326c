"""The result of a request to prove an improvement of a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval.compare.compared import Compared
from agenteval.compare.phrases import first, signed_points, without_markup
from agenteval.compare.policy import ComparePolicy
from agenteval.compare.words import headline
from agenteval.results.comparison import ProofRequest

if TYPE_CHECKING:
    from agenteval.compare.regression.model import Decision
    from agenteval.compare.statistical import Decided

_NEEDED = "that needs runs side by side with the base commit ('confirm: against-base')"
_FINAL = "nothing can run again here, and earlier runs prove none"


def not_provable(policy: ComparePolicy) -> ProofRequest | None:
    """Return the answer to a request where no improvement can be proven; ``None`` without one."""
    if not policy.asked_by:
        return None
    return _answered(policy.asked_by, "unproven", _FINAL if policy.is_final else _NEEDED)


def proof_request(policy: ComparePolicy, decided: Decided, compared: Compared) -> ProofRequest | None:
    """Return what a decision says about a request; ``None`` without one."""
    by, decision, rise = policy.asked_by, decided.decision, decided.rise
    if not by or rise is None or not policy.confirms_beside_base:
        return not_provable(policy)
    if decision.verdict == "improved":
        what = f"{headline(decision, compared)}, proven side by side with {compared.base}"
        return ProofRequest(by=by, verdict="improved", reason=f"{what} on request of {by}")
    if decision.verdict != "unchanged":
        return _answered(by, "unchanged", f"none was looked for, because the change is {decision.verdict}")
    if rise.missing is not None:
        return _answered(by, "unproven", f"it could not be finished: {without_markup(rise.missing.why)}")
    if not rise.cost.calls:
        return _answered(by, "unchanged", "the first run does not look better, so nothing ran for it")
    return _answered(by, "unchanged", f"further runs do not prove one{_figures(rise, compared)}")


def _answered(by: str, verdict: str, text: str) -> ProofRequest:
    return ProofRequest.model_validate(
        {"by": by, "verdict": verdict, "reason": f"{by} asked for the proof of an improvement: {text}"}
    )


def _figures(rise: Decision, compared: Compared) -> str:
    """Return by how much the means differ side by side; empty if no whole runs were made."""
    told = [
        f"{finding.metric} {signed_points(finding.current - finding.control)} side by side with {compared.base}"
        for finding in rise.metrics
        if finding.runs
    ]
    return f" ({', '.join(first(told, 'metric'))})" if told else ""
