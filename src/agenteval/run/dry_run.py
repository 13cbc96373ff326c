"""``agenteval run --dry-run``: what a run would cost at most, without a call."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.compare.policy import ComparePolicy, ConfirmationLimits
from agenteval.compare.regression.capability import most_calls, most_calls_without_control
from agenteval.core.text.escape import terminal
from agenteval.report.view.view import count
from agenteval.results.model import Results
from agenteval.run.explain import cost_of_a_call
from agenteval.run.resolve.run import resolve_run
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.settings import Settings
from agenteval.run.validate import checked


def dry_run(settings: Settings) -> list[str]:
    """Check what a run would read and start, and return its cost; no agent, tool or model is called.

    Args:
        settings: the settings of the run; nothing is written.

    Returns:
        Lines about the files, their warnings, the run, and what a suspected regression would cost.

    Raises:
        ConfigError: the run would not start.
    """
    spec = resolve_run(settings)
    return [*checked(spec), *(terminal(spec.redact(line)) for line in _costs(spec))]


def _costs(spec: RunSpec) -> Iterator[str]:
    iterations = [item.iterations for item in spec.cases]
    calls = sum(iterations)
    earlier = spec.baseline.results if spec.baseline is not None else None
    yield f"run: {count(len(iterations), 'case')}, {_calls(calls, earlier)}"
    if earlier is None:
        yield "suspicion: nothing runs again, because no baseline is named"
        return
    why_nothing = _why_nothing(spec.compare)
    if why_nothing:
        yield f"suspicion: nothing runs again, because of {why_nothing}"
        return
    most = most_calls if spec.compare.confirms_beside_base else most_calls_without_control
    means, single = most(iterations, spec.compare.settings)
    costs = f"{_calls(means, earlier)} for means, {_calls(single, earlier)} for single cases"
    yield f"suspicion: at most {costs}{_limited(spec.compare.max_confirmation, calls)}"


def _why_nothing(policy: ComparePolicy) -> str:
    if policy.name != "statistics":
        return f"`policy: {policy.name}`"
    return "`confirm: off`" if policy.confirm == "off" else ""


def _calls(number: int, earlier: Results | None) -> str:
    """Return a number of calls, and their cost as far as the baseline knows it."""
    cost = cost_of_a_call(earlier) if earlier is not None else None
    text = f"{number:,} call" if number == 1 else f"{number:,} calls"
    return text if cost is None else f"{text} (${number * cost:,.2f})"


def _limited(limits: ConfirmationLimits, run_calls: int) -> str:
    """Return what ``max_confirmation`` allows; empty without a limit."""
    calls = [
        number
        for number in (limits.calls, None if limits.runs is None else limits.runs * run_calls)
        if number is not None
    ]
    allowed = [f"{min(calls):,} calls"] if calls else []
    allowed += [f"${limits.cost_usd:,.2f}"] if limits.cost_usd is not None else []
    return f"; `max_confirmation` allows {' and '.join(allowed)}" if allowed else ""
