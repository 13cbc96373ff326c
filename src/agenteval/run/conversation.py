"""Conducts a conversation with an agent, and tries a turn again that failed for a passing reason."""

from __future__ import annotations

import asyncio
import math
import random
import re
import secrets
import time
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self, TypeVar

from agenteval.agents.base import Reply, Request, Session
from agenteval.core.confine import confinement, under_rules
from agenteval.core.errors import (
    AgentError,
    AgentEvalError,
    AgentNotAskedError,
    SameFailure,
    ToolRaisedError,
    TransientAgentError,
)
from agenteval.core.files import also_inside
from agenteval.core.llm.gateway import files_directory
from agenteval.core.records import dataclass, replace
from agenteval.core.runtime import in_thread
from agenteval.core.shared_files import seal
from agenteval.results.case import NotAsked, ToolCall
from agenteval.results.rollup import without_attempts
from agenteval.run.plan import Job
from agenteval.run.progress import Progress, Retry, Step
from agenteval.suite.agents import REPLAY
from agenteval.suite.model import AgentSpec, FileRef, Turn

if TYPE_CHECKING:
    from agenteval.agents.recorded_cases import RecordedAnswer
    from agenteval.run.downloads import Downloader


ResultT = TypeVar("ResultT")

_NO_TEXT = "(no text could be read from this file)"


class AttachmentError(AgentEvalError):
    """A file of a turn cannot be downloaded or read; the message names the file and the reason."""


class Attachments:
    """The files of a run; a context manager inside the run's event loop.

    Args:
        kept: directory of downloads for later runs; by default in the user's cache directory.
    """

    def __init__(self, kept: Path | None = None) -> None:
        self._kept = kept
        self._cleanup = ExitStack()
        self._downloader: Downloader | None = None
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}
        # Conversion runs Python code and holds the interpreter lock, so parallel conversions are not faster.
        self._reading = asyncio.Semaphore(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._cleanup.close()

    async def get(self, files: Sequence[FileRef]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the paths of the files of a turn, and their texts."""
        found = await asyncio.gather(*(self._one(file) for file in files))
        return tuple(str(path) for path, _ in found), tuple(text for _, text in found)

    async def _one(self, file: FileRef) -> tuple[Path, str]:
        try:
            path = await self._located(file)
            part = (path, file.kind, file.pages, file.sheet, file.range)
            text = await self._once(part, lambda: self._read(file, path))
        except AgentEvalError as error:
            raise AttachmentError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - an unexpected file must fail a case, not the run
            raise AttachmentError(f"{file.name}: {type(error).__name__}: {error}") from None
        return path, _block(file, text)

    async def _located(self, file: FileRef) -> Path:
        if file.url is None:
            return Path(file.path or "")
        if self._downloader is None:
            self._downloader = self._new_downloader()
        get = partial(self._downloader.get, file.url, file.kind, file.download_s, keep=file.cache)
        return await self._once((file.url, file.cache), lambda: in_thread(get))

    def _new_downloader(self) -> Downloader:
        # Imported here: most suites have no URLs, and the HTTP library is slow to import.
        from agenteval.run.downloads import Downloader

        temporary = TemporaryDirectory(prefix="agenteval-", ignore_cleanup_errors=True)
        folder = Path(self._cleanup.enter_context(temporary))
        if confinement().owner is not None:
            # The agent reads the files as another user.
            folder.chmod(0o755)
        kept = self._kept or files_directory()
        for inside in (kept, folder):
            self._cleanup.enter_context(also_inside(inside))
        return Downloader(kept, folder, seal())

    async def _read(self, file: FileRef, path: Path) -> str:
        # Imported here: few suites have files.
        from agenteval.run.attachments import load_libraries, read_file

        async with self._reading:
            # The first import takes seconds, which must not count towards the file's limit.
            await in_thread(partial(load_libraries, file.kind))
            try:
                async with asyncio.timeout(file.convert_s):
                    return await in_thread(partial(read_file, file, path))
            except TimeoutError:
                raise AttachmentError(f"{file.name}: reading it took longer than {file.convert_s:g} s") from None

    async def _once(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        task: asyncio.Task[ResultT] | None = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(make())
        return await asyncio.shield(task)


def _block(file: FileRef, text: str) -> str:
    about = [f"Description: {file.description}"] if file.description else []
    return "\n".join([f"File: {file.name}", *about, text.strip() or _NO_TEXT])


# Seconds before the first retry; it doubles with each retry, plus jitter of up to a half.
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 60.0
# After this many consecutive failures over all turns, the agent is considered unavailable: turns are not retried.
_MOST_FAILURES = 20
_MOST_FAILURES_OF_EACH = 4


@dataclass(frozen=True)
class Answer:
    """A reply, or the reason for its absence.

    Attributes:
        not_asked: the limit of the run that is the reason.
        unavailable: whether the agent or a file of the turn could not be reached, or was overloaded.
        is_failure: whether the agent failed, and was not only too slow.
    """

    reply: Reply | None = None
    error: str | None = None
    not_asked: NotAsked | None = None
    unavailable: bool = False
    elapsed_ms: float = 0.0
    retries: int = 0
    is_failure: bool = False


def _now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(frozen=True)
class CaseDeadline:
    """The time limit of one iteration of a case, if it has one."""

    limit_s: float = math.inf
    end: float = math.inf

    def left_s(self) -> float:
        """The remaining time in seconds; negative after the deadline."""
        return self.end - _now()


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


@dataclass(frozen=True)
class TurnRecord:
    """One turn: the request and the answer.

    Attributes:
        trace: the record of the trace that contains the answer, if the agent was not called.
    """

    request: Request
    answer: Answer
    passages: tuple[str, ...] = ()
    trace: Mapping[str, Any] | None = None


def recorded_exchange(job: Job, recorded: RecordedAnswer) -> TurnRecord:
    """Return the exchange of a recorded trace."""
    request = Request(
        input=job.item.case.turns[0].input,
        case=job.item.case.name,
        case_id=job.item.case.id,
        turn=0,
        iteration=recorded.iteration,
        session=job.item.case.id,
    )
    return TurnRecord(request, Answer(recorded.reply), recorded.reply.retrieval_context, recorded.record)


class Conversations:
    """Conducts all conversations with one agent."""

    def __init__(
        self,
        spec: AgentSpec,
        attachments: Attachments,
        concurrency: int = 1,
        *,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._spec = spec
        self._attachments = attachments
        self._seed = seed
        self._progress = progress or Progress()
        self._most_failures = max(_MOST_FAILURES, _MOST_FAILURES_OF_EACH * concurrency)
        self._failures = 0
        self._alike = SameFailure()
        self._given_up: Answer | None = None

    async def converse(self, job: Job, iteration: int) -> list[TurnRecord]:
        """Send all turns of a case in a new session."""
        # It tells nothing: a first run and a pass side by side look alike to the agent.
        name = secrets.token_hex(16)
        retrieval = Retrieval(job.item.suite.retrieval_tools)
        case_s = job.plan.case_s
        clock = CaseDeadline() if case_s is None else CaseDeadline(case_s, _now() + case_s)
        history: list[Mapping[str, str]] = []
        exchanges: list[TurnRecord] = []
        unanswered = 0
        # An agent may start a process at any time.
        with under_rules(job.plan.rules):
            session = job.agent.session()
            try:
                for number, turn in enumerate(job.item.case.turns):
                    request = _request(job, iteration, number, name, tuple(history))
                    if unanswered < _BROKEN_TURNS:
                        try:
                            if turn.files:
                                paths, texts = await self._attachments.get(turn.files)
                                request = replace(request, files=paths, file_texts=texts)
                            answer = await self.ask(
                                session, request, clock, exception_is_answer=turn.exception_is_answer
                            )
                        except AttachmentError as failure:
                            answer = Answer(error=str(failure), unavailable=True)
                    else:
                        answer = Answer(error=f"not asked: {_BROKEN_TURNS} turns in a row had no answer")
                    history.append({"role": "user", "content": turn.input})
                    if answer.reply is None:
                        unanswered += 1
                    else:
                        unanswered = 0
                        history.append({"role": "assistant", "content": answer.reply.response})
                    passages = retrieval.passages(turn, answer.reply) if answer.reply else ()
                    exchanges.append(TurnRecord(request, answer, passages))
            finally:
                await session.end()
        return exchanges

    async def ask(
        self, session: Session, request: Request, clock: CaseDeadline, *, exception_is_answer: bool
    ) -> Answer:
        """Return the agent's answer to one turn, or the error, after retries of transient failures.

        Args:
            clock: the remaining time of the case, including waits before retries.
            exception_is_answer: whether an exception of a tool under test counts as its answer.
        """
        if self._given_up is not None:
            return self._given_up
        step = Step(request.case, f"turn {request.turn + 1}" if request.turn else "")
        self._progress.began(step)
        answer: Answer | None = None
        retries = 0
        try:
            while answer is None:
                try:
                    answer = await self._attempt(session, request, clock, exception_is_answer=exception_is_answer)
                    self._failures = 0
                except TransientAgentError as failure:
                    self._failures += 1
                    reason, wait_s = str(failure), self._wait_s(request, retries, failure)
                    if not self._is_worth_it(retries) or wait_s >= clock.left_s():
                        attempts = f" (after {retries + 1} attempts)" if retries else ""
                        answer = Answer(error=f"{failure}{attempts}", unavailable=True, is_failure=True)
                    else:
                        retries += 1
                        retry = Retry(reason, retries + 1, self._spec.retry_limit + 1, wait_s)
                        self._progress.retrying(step, retry)
                        await asyncio.sleep(wait_s)
        finally:
            self._progress.ended(step)
        if retries:
            answer = replace(answer, retries=retries)
        if self._spec.kind != REPLAY and answer.not_asked is None:
            self._alike.add(without_attempts(answer.error) if answer.is_failure and answer.error else None)
            if self._alike.is_final and self._given_up is None:
                self._given_up = Answer(error=self._alike.error, unavailable=answer.unavailable, is_failure=True)
        return answer

    async def _attempt(
        self, session: Session, request: Request, clock: CaseDeadline, *, exception_is_answer: bool
    ) -> Answer:
        left_s = clock.left_s()
        if left_s <= 0:
            return Answer(error=f"not asked: the {clock.limit_s:g} s of the case are used up")
        started = time.perf_counter()
        try:
            async with self._limit(left_s):
                reply = await session.send(request)
        except TimeoutError:
            of_case = left_s < self._spec.limit_s
            limit = f"the {clock.limit_s:g} s of the case" if of_case else f"{self._spec.limit_s:g} s"
            return Answer(error=f"no answer within {limit}")
        except TransientAgentError:
            raise
        except ToolRaisedError as failure:
            if not exception_is_answer:
                return Answer(error=str(failure))
            reply = Reply(response=f"raised {failure}", raised=str(failure))
        except AgentNotAskedError as failure:
            return Answer(error=str(failure), not_asked=NotAsked(cause="budget", limit=failure.limit))
        except AgentError as failure:
            return Answer(error=str(failure), is_failure=True)
        except Exception as failure:  # noqa: BLE001 - a defect in one agent kind must not end the run
            return Answer(error=f"{type(failure).__name__}: {failure}")
        return Answer(reply=reply, elapsed_ms=(time.perf_counter() - started) * 1000)

    def _limit(self, left_s: float) -> AbstractAsyncContextManager[object]:
        return nullcontext() if self._spec.kind == REPLAY else asyncio.timeout(min(self._spec.limit_s, left_s))

    def _is_worth_it(self, retries: int) -> bool:
        return retries < self._spec.retry_limit and self._failures < self._most_failures

    def _wait_s(self, request: Request, retries: int, failure: TransientAgentError) -> float:
        if failure.retry_after_s is not None:
            return min(failure.retry_after_s, _LONGEST_WAIT_S)
        # A separate generator per retry, so that the jitter does not depend on the order of failures.
        place = f"{request.case_id}#{request.iteration}:{request.turn}:{retries}"
        own = None if self._seed is None else f"{self._seed}:{place}"
        spread = 1 + random.Random(own).random() / 2  # noqa: S311 - no secret depends on it
        wait_s: float = _FIRST_WAIT_S * 2**retries * spread
        return min(wait_s, _LONGEST_WAIT_S)


def _request(job: Job, iteration: int, number: int, session: str, history: tuple[Mapping[str, str], ...]) -> Request:
    case, turn = job.item.case, job.item.case.turns[number]
    return Request(
        input=turn.input,
        case=case.name,
        case_id=case.id,
        turn=number,
        iteration=iteration,
        session=session,
        history=history,
        config=job.item.agent.config,
        context=turn.context,
        expects_json=turn.expects_json,
    )
