"""Asks an agent all turns of a case in one session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agenteval.agents.base import Request, Session
from agenteval.run.attachments import AttachmentError, Attachments
from agenteval.run.attempts import Answer, Attempts, CaseClock
from agenteval.run.job import Job
from agenteval.run.retrieval import Retrieval
from agenteval.suite.model import Turn

# After so many turns in a row without an answer the session is given up.
_BROKEN_TURNS = 2
_NO_LIMIT = CaseClock()


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: the request as it was sent, what came of it, and the passages that the answer rests on."""

    request: Request
    answer: Answer
    passages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conversing:
    """What conversations with one agent share.

    Attributes:
        attachments: gets the files of turns ready.
        attempts: asks the agent.
        case_s: limit for one iteration of a case, in seconds.
    """

    attachments: Attachments
    attempts: Attempts
    case_s: float | None = None

    async def converse(self, job: Job, iteration: int) -> list[Exchange]:
        """All turns of a case, in a session of their own."""
        session = job.agent.agent.session()
        try:
            return await self._turns(job, iteration, session)
        finally:
            await session.end()

    async def _turns(self, job: Job, iteration: int, session: Session) -> list[Exchange]:
        retrieval = Retrieval(job.suite.retrieval_tools)
        clock = _NO_LIMIT if self.case_s is None else CaseClock.start(self.case_s)
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

    async def _ask(self, session: Session, request: Request, turn: Turn, clock: CaseClock) -> tuple[Request, Answer]:
        """The request as it was sent, with the turn's files, and what came of it."""
        if not turn.files:
            return request, await self.attempts.ask(session, request, clock, refusals=turn.refusals)
        try:
            attached = await self.attachments.get(turn.files)
        except AttachmentError as failure:
            return request, Answer(error=str(failure))
        request = replace(request, files=attached.paths, file_texts=attached.texts)
        return request, await self.attempts.ask(session, request, clock, refusals=turn.refusals)


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
    )
