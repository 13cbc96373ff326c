"""What a run would do, without a run: ``validate``, and ``run --dry-run``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agenteval.agents.registry import unavailable_agents
from agenteval.core.confine import under_rules
from agenteval.core.errors import ConfigError
from agenteval.core.escape import terminal
from agenteval.report.words import count
from agenteval.results.model import Results
from agenteval.run.config import Config, Settings
from agenteval.run.execute import check
from agenteval.run.resolve.spec import RunSpec, make_plan
from agenteval.run.resolve.written import templates_of
from agenteval.run.resolve_run import resolve_files
from agenteval.run.rules.accepted_file import read_accepted
from agenteval.run.setup import users_code
from agenteval.suite.agents import REPLAY
from agenteval.suite.model import AgentSpec, Suite


def validate(settings: Settings) -> list[str]:
    """Check what a run with these settings would read and start; no agent, tool or model is called.

    Args:
        settings: the settings of the run; nothing is written.

    Returns:
        Lines about the files and their warnings; a package that only the agent needs is one of the warnings.

    Raises:
        ConfigError: the run would not start; the error contains the problems that the run would report.
    """
    return checked(resolve_files(settings), may_lack=True)


def checked(spec: RunSpec, *, may_lack: bool = False) -> list[str]:
    """Return the lines of `validate` about a run.

    Args:
        may_lack: a package that only the agent needs may be missing on this machine.

    Raises:
        ConfigError: the run would not start.
    """
    read_accepted(spec.control.sources.here, spec.redact)
    with users_code(spec.setup, spec.redact):
        found = check(make_plan(spec))
        if found.lacking and not may_lack:
            raise ConfigError(found.lacking)
        lacking = (*map(str, found.lacking), *_unavailable(spec), *_wrong_templates(spec))
        warnings = dict.fromkeys((*found.notices, *spec.warnings, *lacking))
    lines = (
        *map(_configuration, spec.configs),
        *map(_suite, spec.suites),
        *(f"warning: {text}" for text in warnings),
    )
    return [terminal(spec.redact(line)) for line in lines]


def _configuration(config: Config) -> str:
    tools = f", {count(len(config.tools), 'tool')}" if config.tools else ""
    return f"{config.name}: ok, {count(len(config.agents), 'agent')}{tools}"


def _suite(suite: Suite) -> str:
    return f"{suite.path}: ok, {suite.format}, {count(len(suite.cases), 'case')}"


def _unavailable(spec: RunSpec) -> Iterator[str]:
    """Yield the problems of agents and tools that no case uses, so that they do not prevent the run."""
    used = {item.agent.where for item in spec.cases}
    for config in spec.configs:
        defined = [agent for agent in (*config.agents.values(), *config.tools.values()) if agent.where not in used]
        with under_rules(config.user_code):
            found = unavailable_agents(agent for agent in defined if not _has_traces(agent))
        yield from map(str, found)


def _wrong_templates(spec: RunSpec) -> Iterator[str]:
    look = spec.presentation
    for path in templates_of(look):
        # Imported here: few runs have templates.
        from agenteval.report.user_template import wrong_template

        if error := wrong_template(path, look.template_texts):
            yield str(error)


def _has_traces(agent: AgentSpec) -> bool:
    """Return whether an agent has recorded traces, which suites without inputs score."""
    from agenteval.agents.recorded_cases import read_traces
    from agenteval.agents.recording import Trace, is_otel

    path = Path(str(agent.target))
    if agent.kind != REPLAY or is_otel(path):
        return False
    try:
        return isinstance(next(read_traces(path)), Trace)
    except ConfigError:
        return False


# With so many pairs at most a drop is excluded.
_SIDES = 2


def dry_run(settings: Settings, runs: int = 1) -> list[str]:
    """Check what a run would read and start, and return its cost; no agent, tool or model is called.

    Args:
        settings: the settings of each run; nothing is written.

    Returns:
        Lines about the files, their warnings, the run, and what a suspicion would cost.

    Raises:
        ConfigError: the run would not start.
    """
    spec = resolve_files(settings)
    return [*checked(spec), *(terminal(spec.redact(line)) for line in _costs(spec, runs))]


def _costs(spec: RunSpec, runs: int) -> Iterator[str]:
    earlier = spec.baseline.results if spec.baseline is not None else None
    iterations = [item.iterations for item in spec.cases if item.case.id not in spec.compare.recorded]
    several = "" if runs == 1 else f"{runs} runs of "
    yield f"run: {several}{_asked(spec)}, {_calls(runs * sum(iterations), earlier)}"
    if earlier is None and runs == 1:
        yield "suspicion: nothing runs again, because no baseline is named"
        return
    if not iterations or not spec.compare.can_run:
        yield "suspicion: nothing runs again, because of recorded answers, which never vary"
        return
    rules = spec.compare.rules
    number = len(iterations)
    repeats = min(rules.most_repeats, max(1, rules.fill // number))
    most = sum(iterations) + _SIDES * rules.looks[-1] * repeats * number
    least = rules.again + _SIDES * rules.looks[min(1, len(rules.looks) - 1)]
    yield f"suspicion: {_calls(least, earlier)} for a broken case, at most {_calls(most, earlier)} for a mean"
    if earlier is not None and spec.compare.no_worse_than is not None:
        yield _planned(spec, earlier, number)


def _planned(spec: RunSpec, earlier: Results, number: int) -> str:
    """Return what proves that the agent is not worse than the configuration allows."""
    # Imported here: few runs ask for it.
    from agenteval.gate.comparer import planned_pairs
    from agenteval.gate.evidence import Sides

    margin = spec.compare.no_worse_than or 0.0
    pairs = planned_pairs(Sides(earlier, earlier, spec.compare), margin)
    calls = _calls(_SIDES * pairs * number, earlier)
    planned = f"{count(number, 'case')} × {count(pairs, 'iteration')} on each side"
    return f"require: {planned} prove not worse by {margin:g}, with a probability of 80 % if nothing is: {calls}"


def _asked(spec: RunSpec) -> str:
    if spec.traces is not None:
        return f"the recorded traces of {count(len(spec.traces.paths), 'path')}"
    recorded = sum(item.case.id in spec.compare.recorded for item in spec.cases)
    cases = count(len(spec.cases), "case")
    return f"{cases} ({recorded} with recorded answers)" if recorded else cases


def _calls(number: int, earlier: Results | None) -> str:
    """Return a number of calls, and their cost as far as the baseline knows it."""
    cost = cost_of_a_call(earlier) if earlier is not None else None
    text = f"{number:,} call" if number == 1 else f"{number:,} calls"
    return text if cost is None else f"{text} (${number * cost:,.2f})"


def cost_of_a_call(results: Results) -> float | None:
    """Return what one iteration of a case has cost in US dollars, judges included; ``None`` if unknown.

    The usage of a run contains what ran again.
    """
    comparison = results.comparison
    again = comparison.cost.calls if comparison is not None and comparison.cost is not None else 0
    calls = sum(len(case.iterations) for _, case in results.cases()) + again
    cost = results.summary.usage.cost_usd
    return cost / calls if cost > 0 and calls else None
