"""What follows for a run if the base commit has no suites and rules, or they cannot be read."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from agenteval.compare.gate import DEFAULT_FAIL_ON
from agenteval.compare.integrity.integrity import Integrity
from agenteval.core.errors import AgentEvalError
from agenteval.core.text.escape import one_line
from agenteval.results.integrity import Difference
from agenteval.run.control_commit import ControlRule
from agenteval.run.integrity.applies import is_judged_by_base_alone
from agenteval.run.resolve.spec import GateSpec
from agenteval.run.settings import Settings

SpecT = TypeVar("SpecT", bound=GateSpec)

#: The difference of a change that brings the first suite.
NO_RULES = Difference(kind="rules", after="there are none", effect="absolute")


def without_base(
    spec: SpecT, why: AgentEvalError, rule: ControlRule, ref: str | None, settings: Settings, *, is_compared: bool
) -> SpecT:
    """Return the specification of a run whose base commit cannot be read: it is judged by its own rules.

    If the event proposes a change and names its base commit, the run is unproven: the change could have chosen these
    rules. Its own setting of what fails the job does not count.

    Args:
        spec: the specification, from the files of the change.
        why: why the base commit cannot be read, and the fix.
        rule: how the base commit follows from the event.
        ref: the branch or pull request of the run.
        settings: the caller's settings.
        is_compared: whether this run, or the merge of its shards, is compared with a baseline.
    """
    if not is_compared or not is_judged_by_base_alone(rule, ref):
        text = f"the suites and rules of the base commit cannot be read, so this run uses its own: {why}"
        return replace(spec, warnings=(*spec.warnings, spec.redact(text)))
    fail_on = DEFAULT_FAIL_ON if settings.fail_on is None else settings.fail_on
    reason = spec.redact(one_line(f"cannot be read: {why}"))
    unreadable = Difference(kind="rules", after=reason, effect="unproven")
    return replace(
        spec,
        gate=replace(spec.gate, fail_on=fail_on),
        # A template of the change could show another verdict.
        presentation=replace(spec.presentation, comment_template=None, summary_template=None),
        integrity=with_rules(spec.integrity, unreadable),
    )


def with_rules(integrity: Integrity, rules: Difference) -> Integrity:
    """Return what is known about the base commit, with a difference of the rules themselves; the first one counts."""
    if any(item.kind == "rules" for item in integrity.differences):
        return integrity
    return replace(integrity, differences=(*integrity.differences, rules))
