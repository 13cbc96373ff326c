"""The ``probe`` command, which sends one case to its agent and shows what is sent, received and understood."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.agents.base import Agent, RecordedAgent, RemarkingAgent, Reply
from agenteval.agents.registry import build_agent
from agenteval.core.confine import under_rules
from agenteval.core.errors import AgentError, ConfigError, Kind, Problem
from agenteval.core.escape import display_url, terminal
from agenteval.run.attachments import Attachments
from agenteval.run.config import Settings
from agenteval.run.conversation import Conversations, TurnRecord
from agenteval.run.plan import AgentSlot, Job, PlannedCase
from agenteval.run.resolve.spec import RunSpec, make_plan
from agenteval.run.resolve_run import resolve_files
from agenteval.run.setup import users_code
from agenteval.suite.model import Case, Suite, Turn

_MOST_SHOWN = 20_000
_NAME = "probe"


def probe(settings: Settings, question: str | None, show: Callable[[str], None]) -> int:
    """Send the first selected case to its agent, once and without scoring it.

    Args:
        settings: suites, configuration, agent and filter.
        question: the input to send instead of a case.
        show: receives the lines to print, without secrets and control sequences.

    Returns:
        The exit status: 0 if every turn was answered.

    Raises:
        ConfigError: a suite, the configuration or an option is invalid, or the agent cannot start.
    """
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
            job = Job(planned.suite, shared, planned.case, AgentSlot(agent, once), 1)
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
