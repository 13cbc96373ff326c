"""``agenteval run --dry-run``: what a run would cost at most, without a call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agenteval.compare.policy import ComparePolicy, ConfirmationLimits
from agenteval.compare.regression.capability import most_calls, most_calls_without_control
from agenteval.core.text.escape import terminal
from agenteval.report.view.view import count
from agenteval.results.model import Results
from agenteval.run.explain import cost_of_a_call
from agenteval.run.resolve.run import resolve_run
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.settings import Settings
from agenteval.run.staged import staged
from agenteval.run.validate import checked


def dry_run(settings: Settings, runs: int = 1) -> list[str]:
    """Check what a run would read and start, and return its cost; no agent, tool or model is called.

    Args:
        settings: the settings of each run; nothing is written.
        runs: the number of runs.

    Returns:
        Lines about the files, their warnings, the run, and what a suspected regression would cost.

    Raises:
        ConfigError: the run would not start.
    """
    spec = staged(resolve_run(settings), settings if runs == 1 else replace(settings, is_whole=True))
    return [*checked(spec), *(terminal(spec.redact(line)) for line in _costs(spec, runs))]


def _costs(spec: RunSpec, runs: int) -> Iterator[str]:
    earlier = spec.baseline.results if spec.baseline is not None else None
    iterations = [item.iterations for item in spec.cases if item.case.id not in spec.compare.recorded]
    calls, unneeded = sum(iterations), sum(item.unneeded for item in spec.cases)
    left = f"; {unneeded:,} of {calls:,} are not needed" if unneeded else ""
    several = "" if runs == 1 else f"{runs} runs of "
    yield f"run: {several}{_asked(spec)}, {_calls(runs * (calls - unneeded), earlier)}{left}"
    if earlier is None and runs == 1:
        yield "suspicion: nothing runs again, because no baseline is named"
        return
    why_nothing = _why_nothing(spec.compare) if calls else "recorded answers, which never vary"
    if why_nothing:
        yield f"suspicion: nothing runs again, because of {why_nothing}"
        return
    most = most_calls if spec.compare.confirms_beside_base else most_calls_without_control
    means, single = most(iterations, spec.compare.settings)
    costs = f"{_calls(means, earlier)} for means, {_calls(single, earlier)} for single cases"
    yield f"suspicion: at most {costs}{_limited(spec.compare.max_confirmation, calls)}"


def _asked(spec: RunSpec) -> str:
    """Return what one run evaluates."""
    if spec.traces is not None:
        return f"the recorded traces of {count(len(spec.traces.paths), 'path')}"
    recorded = sum(item.case.id in spec.compare.recorded for item in spec.cases)
    cases = count(len(spec.cases), "case")
    return f"{cases} ({recorded} with recorded answers)" if recorded else cases


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
