"""What a run would do, without a run: ``validate``, ``run --dry-run``, and ``probe``, which sends one case."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agenteval.agents.base import Agent, RecordedAgent, RemarkingAgent, Reply
from agenteval.agents.registry import build_agent, unavailable_agents
from agenteval.core.confine import under_rules
from agenteval.core.errors import AgentError, ConfigError, Kind, Problem
from agenteval.core.escape import display_url, terminal
from agenteval.core.records import replace
from agenteval.report.words import count
from agenteval.results.model import Results
from agenteval.run.config import Config, Settings
from agenteval.run.conversation import Attachments, Conversations, TurnRecord
from agenteval.run.execute import check
from agenteval.run.plan import Job, PlannedCase
from agenteval.run.resolve.configurations import templates_of
from agenteval.run.resolve.control import without_control
from agenteval.run.resolve.spec import RunSpec, make_plan
from agenteval.run.resolve_run import resolve_files
from agenteval.run.rules.accepted_file import read_accepted
from agenteval.run.setup import users_code
from agenteval.suite.agents import REPLAY
from agenteval.suite.model import AgentSpec, Case, Suite, Turn


def validate(settings: Settings) -> list[str]:
    """Check what a run with these settings would read and start; no agent, tool or model is called."""
    return checked(resolve_files(settings), may_lack=True)


def checked(spec: RunSpec, *, may_lack: bool = False) -> list[str]:
    """Return the lines of `validate` about a run."""
    read_accepted(spec.control.sources.here, spec.redact)
    with users_code(spec.setup, spec.redact):
        notices, lacking = check(make_plan(spec))
        if lacking and not may_lack:
            raise ConfigError(lacking)
        further = (*map(str, lacking), *_unavailable(spec), *_wrong_templates(spec))
        alone = without_control(spec.cases, spec.control.agents)
        warnings = dict.fromkeys((*notices, *spec.warnings, *alone, *further))
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
    """Check what a run would read and start, and return its cost; no agent, tool or model is called."""
    spec = resolve_files(settings)
    return [*checked(spec), *(terminal(spec.redact(line)) for line in _costs(spec, runs))]


def _costs(spec: RunSpec, runs: int) -> Iterator[str]:
    earlier = spec.baseline.results if spec.baseline is not None else None
    iterations = [item.iterations for item in spec.cases if item.case.id not in spec.compare.recorded]
    several = "" if runs == 1 else f"{runs} runs of "
    yield f"run: {several}{_asked(spec)}, {_calls(runs * sum(iterations), earlier)}"
    if spec.shard is not None:
        yield "suspicion: nothing runs again in a shard; after the merge, agenteval prove does it"
        return
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


_MOST_SHOWN = 20_000
_NAME = "probe"


def probe(settings: Settings, question: str | None, show: Callable[[str], None]) -> int:
    """Send the first selected case to its agent, once and without scoring it."""
    if question is not None:
        settings = replace(settings, suites=(_suite_of(question),))
    spec = resolve_files(replace(settings, iterations=1))
    if not spec.cases:
        raise ConfigError(
            Problem(
                "the suite scores recorded traces and has no case to send; give a text with --input",
                kind=Kind.CASE_SELECTION,
            )
        )
    with users_code(spec.setup, spec.redact):
        return asyncio.run(_Probe(spec, show).run())


def _suite_of(question: str) -> Suite:
    case = Case(id=f"{_NAME}::{_NAME}", name=_NAME, turns=(Turn(input=question),))
    return Suite(path=_NAME, name=_NAME, format=_NAME, cases=(case,), root=str(Path.cwd()))


class _Probe:
    def __init__(self, spec: RunSpec, show: Callable[[str], None]) -> None:
        self._spec = spec
        self._plan = make_plan(spec)
        self._show = show
        self._shown: set[str] = set()

    async def run(self) -> int:
        planned = self._spec.cases[0]
        try:
            with under_rules(self._plan.suites[planned.suite.path].rules):
                return await self._send(planned)
        finally:
            await self._plan.resources.close()

    async def _send(self, planned: PlannedCase) -> int:
        agent = build_agent(planned.agent, 1, self._plan.resources.gateway, self._section)
        target = planned.agent.target
        shown = display_url(target) if isinstance(target, str) else " ".join(target)
        self._show_lines(f"agent: {planned.agent.kind} {shown} ({planned.agent.where})")
        self._show_lines(f"case: {planned.case.name} ({planned.suite.path})")
        try:
            await agent.start()
            if isinstance(agent, RecordedAgent):
                agent.expect([planned.case])
            exchanges = await self._exchanges(planned, agent)
        finally:
            await agent.close()
        for exchange in exchanges:
            self._understood(exchange)
        replies = [exchange.answer.reply for exchange in exchanges if exchange.answer.reply is not None]
        self._remark(agent, replies)
        return 0 if len(replies) == len(exchanges) else AgentError.exit_status

    async def _exchanges(self, planned: PlannedCase, agent: Agent) -> list[TurnRecord]:
        # A retry would hide the failure that the user looks for.
        once = replace(planned.agent, retries=0)
        async with Attachments() as attachments:
            shared = self._plan.suites[planned.suite.path]
            job = Job(replace(planned, agent=once), shared, agent)
            return await Conversations(once, attachments).converse(job, 0)

    def _understood(self, exchange: TurnRecord) -> None:
        if "request" not in self._shown:
            self._section("request", lambda: _json(exchange.request.to_json()))
        reply = exchange.answer.reply
        if reply is None:
            self._section("error", lambda: exchange.answer.error or "")
        else:
            self._section(f"understood of turn {exchange.request.turn}", lambda: "\n".join(_parts(reply)))

    def _remark(self, agent: Agent, replies: list[Reply]) -> None:
        if not isinstance(agent, RemarkingAgent):
            return
        remarks = agent.remarks()
        self._section("remarks", lambda: "\n".join(remarks.texts))
        mapping = remarks.mapping_of_calls
        if mapping and not any(reply.tool_calls for reply in replies):
            self._section("tool calls", lambda: f"the reply contains tool calls; this finds them: {mapping}")

    def _section(self, title: str, text: Callable[[], str]) -> None:
        content = self._spec.redact(text())
        if not content:
            return
        self._shown.add(title)
        cut = f"\n… ({len(content):,} characters)" if len(content) > _MOST_SHOWN else ""
        self._show("")
        self._show_lines(title)
        for line in f"{content[:_MOST_SHOWN]}{cut}".splitlines():
            self._show(terminal(f"  {line}"))

    def _show_lines(self, text: str) -> None:
        self._show(terminal(self._spec.redact(text)))


def _parts(reply: Reply) -> Iterator[str]:
    yield f"answer: {_json(reply.response)}"
    yield f"tool_calls: {len(reply.tool_calls)}"
    for call in reply.tool_calls:
        yield f"  {_json(call.model_dump(exclude_none=True), indent=None)}"
    yield f"retrieval_context: {len(reply.retrieval_context)}"
    for passage in reply.retrieval_context:
        yield f"  {_json(passage)}"
    usage = reply.usage.model_dump(exclude_none=True) if reply.usage is not None else None
    yield f"usage: {_json(usage, indent=None)}"
    if reply.metadata:
        yield f"metadata: {_json(reply.metadata, indent=None)}"


def _json(value: Any, indent: int | None = 2) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
