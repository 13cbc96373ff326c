"""What a decision says about a single case."""

from __future__ import annotations

from agenteval.compare.compared import Compared
from agenteval.compare.regression.model import CaseFinding, Decision, Failures


def case_proven(decision: Decision, finding: CaseFinding, compared: Compared) -> str:
    """Return how often a proven case fails or passes on both sides."""
    name, now, before = compared.case(finding.case_id), finding.current, finding.control
    if not now.of:
        now, before = finding.first, finding.pool
    is_rise = decision.verdict == "improved"
    verb = "passes" if is_rise else "fails"
    if is_rise:
        now, before = (Failures(item.of - item.failed, item.of) for item in (now, before))
    if compared.is_final or not finding.current.of:
        return f"{name} {verb} {_of(now)} iterations, {_of(before)} in earlier runs"
    if not finding.control.of:
        return f"{name} {verb} {_of(now)} re-runs, {_of(finding.pool)} iterations in earlier runs"
    repeats = "; both repeat exactly" if decision.repeats else ""
    return f"{name} {verb} {_of(now)} re-runs, {_of(before)} on {compared.base} beside it{repeats}"


def case_cleared(finding: CaseFinding, compared: Compared) -> str:
    """Return why a case that looked worse is not proven worse."""
    name, now, before = compared.case(finding.case_id), finding.current, finding.control
    if compared.is_final and now.of:
        return f"{name} fails {_of(now)} iterations, {_of(before)} in earlier runs, which proves nothing"
    if not now.of:
        return f"{name} passed less often than before, which was not checked"
    if before.of:
        return f"{name} failed in the first run, and fails {_of(now)} re-runs, {_of(before)} on {compared.base}"
    if now.failed:
        return f"{name} failed in the first run, and fails {_of(now)} re-runs, as it did before"
    return f"{name} failed in the first run, not when repeated"


def _of(failures: Failures) -> str:
    return f"{failures.failed} of {failures.of}"
