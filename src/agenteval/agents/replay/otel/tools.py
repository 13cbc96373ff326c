"""The tool calls of a trace: what a model asked for, joined with what was executed."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.agents.replay.otel.messages import SaidCall
from agenteval.agents.replay.otel.span import AgentSpan
from agenteval.results.model import ToolCall


def tool_calls_of(
    executed: Sequence[AgentSpan], asking: Sequence[AgentSpan], results: Mapping[str, Any]
) -> tuple[ToolCall, ...]:
    """Every tool call once, in the order of time.

    A call is joined with its execution by the id of the call; where either has none, by the name of the tool.
    Arguments and results are those of the execution, or else those in the messages.

    Args:
        executed: spans of tools, in the order of their starts.
        asking: spans with messages that ask for tools, in the order of their starts.
        results: what models were told of results, by the id of the call.
    """
    asked = _Asked(asking)
    timed: list[tuple[int, ToolCall]] = []
    for span in executed:
        if span.tool is None:
            continue
        call = asked.take(span.tool.call_id, span.tool.name)
        key = span.tool.call_id or (call.id if call else "")
        arguments, result = span.tool.arguments, span.tool.result
        made = ToolCall(
            name=span.tool.name,
            args=call.arguments if arguments is None and call else arguments,
            result=results.get(key) if result is None else result,
            error=span.error,
            duration_ms=span.duration_ms,
        )
        timed.append((span.start_ns, made))
    for time, call in asked.rest():
        timed.append((time, ToolCall(name=call.name, args=call.arguments, result=results.get(call.id))))
    return tuple(made for _, made in sorted(timed, key=lambda item: item[0]))


class _Asked:
    """The calls that models asked for, each handed out once."""

    def __init__(self, spans: Sequence[AgentSpan]) -> None:
        # As soon as a model has asked, a tool can run.
        self._calls = [(span.end_ns, call) for span in spans for call in span.said.calls]
        self._taken: set[int] = set()
        self._by_id: dict[str, int] = {}
        self._by_name: defaultdict[str, deque[int]] = defaultdict(deque)
        for index, (_, call) in enumerate(self._calls):
            if call.id in self._by_id:
                # The same answer, told by two spans.
                self._taken.add(index)
                continue
            if call.id:
                self._by_id[call.id] = index
            self._by_name[call.name].append(index)

    def take(self, call_id: str, name: str) -> SaidCall | None:
        """The call of an id; where that is not known, the first call of a name that may be meant."""
        if call_id in self._by_id:
            return self._take(self._by_id[call_id])
        waiting = self._by_name[name]
        while waiting and waiting[0] in self._taken:
            waiting.popleft()
        may_be_meant = waiting and not (call_id and self._calls[waiting[0]][1].id)
        return self._take(waiting.popleft()) if may_be_meant else None

    def rest(self) -> list[tuple[int, SaidCall]]:
        """The calls that nobody took, with their times in nanoseconds."""
        return [item for index, item in enumerate(self._calls) if index not in self._taken]

    def _take(self, index: int) -> SaidCall | None:
        if index in self._taken:
            return None
        self._taken.add(index)
        return self._calls[index][1]
