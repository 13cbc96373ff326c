"""Sends all turns of a case to an agent in one session."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agenteval.agents.base import Reply, Request, Session
from agenteval.core.process.confinement import under_rules
from agenteval.results.case import ToolCall
from agenteval.run.attachments.attachments import AttachmentError, Attachments
from agenteval.run.plan import Job
from agenteval.run.runner.attempts import Answer, CaseDeadline, Retrying
from agenteval.suite.model import Turn

if TYPE_CHECKING:
    from agenteval.agents.replay.cases import RecordedAnswer

# The names of vector store search tools in HoloDeck's backends.
_SEARCH_TOOL = re.compile(r"(vectorstore|hierarchical_document)-.+|mcp__holodeck_tools__.+_search")


class Retrieval:
    """The retrieved passages of one session; a later turn without new passages keeps the earlier ones.

    Args:
        tools: names of the suite's retrieval tools; search tools by HoloDeck's naming always count.
    """

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = tools
        self._session: list[str] = []

    def passages(self, turn: Turn, reply: Reply) -> tuple[str, ...]:
        """Return the passages of a turn: the suite's, else the reply's, else those of its tools."""
        found = reply.retrieval_context or tuple(self._from_tools(reply.tool_calls))
        self._session.extend(found)
        if turn.retrieval_context:
            return turn.retrieval_context
        return reply.retrieval_context or tuple(self._session)

    def _from_tools(self, calls: Iterable[ToolCall]) -> list[str]:
        return [
            passage
            for call in calls
            if call.error is None and (call.name in self._tools or _SEARCH_TOOL.fullmatch(call.name))
            for passage in _chunks(call.result)
        ]


def _chunks(result: Any) -> list[str]:
    """Return a result's passages: one for a text, one per item of a list; none for other values."""
    if isinstance(result, str):
        return [result] if result else []
    return [str(item) for item in result if item] if isinstance(result, list) else []


# After this many consecutive turns without an answer, the session ends.
_BROKEN_TURNS = 2

_NO_LIMIT = CaseDeadline()


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: the request and the answer.

    Attributes:
        request: the request as it was sent.
        answer: the reply, or the error.
        passages: the retrieved passages that the answer is based on.
        trace: the record of the trace that contains the answer, if the agent was not called.
    """

    request: Request
    answer: Answer
    passages: tuple[str, ...] = ()
    trace: Mapping[str, Any] | None = None


def recorded_exchange(job: Job, recorded: RecordedAnswer) -> Exchange:
    """Return the exchange of a recorded trace."""
    request = Request(
        input=job.case.turns[0].input,
        case=job.case.name,
        case_id=job.case.id,
        turn=0,
        iteration=recorded.iteration,
        session=job.case.id,
    )
    return Exchange(request, Answer(recorded.reply), recorded.reply.retrieval_context, recorded.record)


@dataclass(frozen=True)
class Conversing:
    """Resources that all conversations with one agent share.

    Attributes:
        attachments: prepares the files of turns.
        attempts: sends turns to the agent.
    """

    attachments: Attachments
    attempts: Retrying

    async def converse(self, job: Job, iteration: int) -> list[Exchange]:
        """Send all turns of a case in a new session."""
        # An agent may start a process at any time.
        with under_rules(job.plan.rules):
            session = job.agent.agent.session()
            try:
                return await self._turns(job, iteration, session)
            finally:
                await session.end()

    async def _turns(self, job: Job, iteration: int, session: Session) -> list[Exchange]:
        retrieval = Retrieval(job.suite.retrieval_tools)
        case_s = job.plan.case_s
        clock = _NO_LIMIT if case_s is None else CaseDeadline.start(case_s)
        history: list[Mapping[str, str]] = []
        exchanges: list[Exchange] = []
        unanswered = 0
        for number, turn in enumerate(job.case.turns):
            request = _request(job, iteration, number, tuple(history))
            if unanswered < _BROKEN_TURNS:
                request, answer = await self._ask(session, request, turn, clock)
            else:
                answer = Answer(error=f"not asked: {_BROKEN_TURNS} turns in a row had no answer")
            history.append({"role": "user", "content": turn.input})
            if answer.reply is None:
                unanswered += 1
            else:
                unanswered = 0
                history.append({"role": "assistant", "content": answer.reply.response})
            passages = retrieval.passages(turn, answer.reply) if answer.reply else ()
            exchanges.append(Exchange(request, answer, passages))
        return exchanges

    async def _ask(
        self, session: Session, request: Request, turn: Turn, clock: CaseDeadline
    ) -> tuple[Request, Answer]:
        """Send a request with the turn's files; return it with its result."""
        if not turn.files:
            return request, await self.attempts.ask(
                session, request, clock, exception_is_answer=turn.exception_is_answer
            )
        try:
            attached = await self.attachments.get(turn.files)
        except AttachmentError as failure:
            return request, Answer(error=str(failure), unavailable=True)
        request = replace(request, files=attached.paths, file_texts=attached.texts)
        return request, await self.attempts.ask(session, request, clock, exception_is_answer=turn.exception_is_answer)


def _request(job: Job, iteration: int, number: int, history: tuple[Mapping[str, str], ...]) -> Request:
    case, turn = job.case, job.case.turns[number]
    return Request(
        input=turn.input,
        case=case.name,
        case_id=case.id,
        turn=number,
        iteration=iteration,
        session=f"{case.id}#{iteration}",
        history=history,
        config=job.agent.spec.config,
        context=turn.context,
        expects_json=turn.expects_json,
    )
