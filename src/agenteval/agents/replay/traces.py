"""Recordings in OpenTelemetry traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from agenteval.agents.base import Reply
from agenteval.agents.replay.otel.answer import OtelAnswer
from agenteval.agents.replay.otel.read import read_answers
from agenteval.agents.replay.otel.span import CASE_ATTRIBUTES
from agenteval.agents.replay.otel.traces import NO_CONTENT
from agenteval.agents.replay.recording import RecordedCase, RecordedQuestion, RecordedTurn
from agenteval.agents.replay.trace import BadLine
from agenteval.core.errors import ConfigError, Kind, Problem

# The number of bad lines that an error lists individually.
_NAMED = 20

_Conversation = Sequence[OtelAnswer]


class RecordedTraces:
    """Conversations by the case that they name, or by their first question.

    Traces with the same conversation id are its turns, in order of time; any other trace is a conversation.

    Args:
        file: the file they were read from.
        answers: in order of time.
    """

    is_run: ClassVar[bool] = True

    def __init__(self, file: Path, answers: Iterable[OtelAnswer]) -> None:
        self._file = file
        self._by_case: defaultdict[str, list[_Conversation]] = defaultdict(list)
        self._by_input: defaultdict[str, list[_Conversation]] = defaultdict(list)
        self._count = 0
        for conversation in _conversations(answers):
            self._count += len(conversation)
            case = next((answer.case for answer in conversation if answer.case), None)
            first = conversation[0].input
            if case is not None:
                self._by_case[case].append(conversation)
            elif first is not None:
                self._by_input[first.strip()].append(conversation)

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """Return the conversations of a case as its iterations, in order of time."""
        return {number: _turns(found) for number, found in enumerate(self._conversations(asked))}

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:
        """Report the number of traces that do not belong to any case."""
        used = {id(found): len(found) for case in asked for found in self._conversations(case)}
        left = self._count - sum(used.values())
        if not left:
            return ()
        belong, their = ("belongs", "its") if left == 1 else ("belong", "their")
        hint = f"; let the agent name it in the attribute {CASE_ATTRIBUTES[0]}" if left == self._count else ""
        return (
            f"{self._file.name}: {left} of {self._count} traces {belong} to no case of this run: "
            f"none has {their} input or name{hint}",
        )

    def _conversations(self, asked: RecordedQuestion) -> Sequence[_Conversation]:
        named = [found for key in dict.fromkeys((asked.name, asked.case_id)) for found in self._by_case.get(key, ())]
        if named:
            return sorted(named, key=lambda conversation: conversation[0].start_ns)
        same_start = self._by_input.get(asked.inputs[0].strip(), []) if asked.inputs else []
        # Several cases may have the same first question.
        return [found for found in same_start if _asks(found, asked.inputs)] or same_start


def read_recorded_traces(file: Path) -> RecordedTraces:
    """Read the answers in a file of traces.

    Raises:
        ConfigError: it cannot be read, has no trace of an agent, or has bad lines; the message lists them.
    """
    problems: list[Problem] = []
    more = 0

    def answers() -> Iterator[OtelAnswer]:
        nonlocal more
        for item in read_answers(file):
            if not isinstance(item, BadLine):
                yield item
            elif len(problems) < _NAMED:
                problems.append(Problem(item.message, file=str(file), line=item.line, kind=Kind.FILE))
            else:
                more += 1

    recording = RecordedTraces(file, answers())
    if problems:
        rest = [Problem(f"{more} more lines are not valid", file=str(file), kind=Kind.FILE)] if more else []
        raise ConfigError([*problems, *rest])
    return recording


def _conversations(answers: Iterable[OtelAnswer]) -> Iterable[_Conversation]:
    conversations: dict[str, list[OtelAnswer]] = {}
    for answer in answers:
        # No trace id equals a conversation id with this prefix.
        key = f"conversation:{answer.conversation}" if answer.conversation else answer.trace_id
        conversations.setdefault(key, []).append(answer)
    return conversations.values()


def _asks(conversation: _Conversation, inputs: Sequence[str]) -> bool:
    pairs = zip(conversation, inputs, strict=False)
    return all(answer.input is None or answer.input.strip() == text.strip() for answer, text in pairs)


def _turns(conversation: _Conversation) -> dict[int, RecordedTurn]:
    # A trace that names its case is used without comparing questions, because agents may rephrase them.
    named = any(answer.case for answer in conversation)
    return {
        number: RecordedTurn(_answer(answer), None if named else answer.input)
        for number, answer in enumerate(conversation)
    }


def _answer(answer: OtelAnswer) -> Reply | str:
    if answer.error is not None:
        return answer.error
    if answer.response is None:
        return f"trace {answer.trace_id}: {NO_CONTENT}"
    return Reply(
        response=answer.response, tool_calls=answer.tool_calls, usage=answer.usage, latency_ms=answer.latency_ms
    )
