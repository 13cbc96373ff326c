"""The tool calls of a trace: the model's requests joined with their executions."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.agents.replay.otel.messages import SaidCall
from agenteval.agents.replay.otel.span import AgentSpan
from agenteval.results.case import ToolCall


def tool_calls_of(
    executed: Sequence[AgentSpan], asking: Sequence[AgentSpan], results: Mapping[str, Any]
) -> tuple[ToolCall, ...]:
    """Return every tool call once, in order of time.

    A call is joined with its execution by call id, or by the tool's name if either has no id.
    Arguments and results are those of the execution, else those in the messages.

    Args:
        executed: spans of tools in order of start.
        asking: spans with messages that request tools, in order of start.
        results: the results sent to models by call id.
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
    """The calls that models requested; each is taken at most once."""

    def __init__(self, spans: Sequence[AgentSpan]) -> None:
        # A tool can run as soon as a model has requested it.
        self._calls = [(span.end_ns, call) for span in spans for call in span.said.calls]
        self._taken: set[int] = set()
        self._by_id: dict[str, int] = {}
        self._by_name: defaultdict[str, deque[int]] = defaultdict(deque)
        for index, (_, call) in enumerate(self._calls):
            if call.id in self._by_id:
                # Two spans contain the same answer.
                self._taken.add(index)
                continue
            if call.id:
                self._by_id[call.id] = index
            self._by_name[call.name].append(index)

    def take(self, call_id: str, name: str) -> SaidCall | None:
        """Take the call with an id; if the id is unknown, the first matching call by name."""
        if call_id in self._by_id:
            return self._take(self._by_id[call_id])
        waiting = self._by_name[name]
        while waiting and waiting[0] in self._taken:
            waiting.popleft()
        may_be_meant = waiting and not (call_id and self._calls[waiting[0]][1].id)
        return self._take(waiting.popleft()) if may_be_meant else None

    def rest(self) -> list[tuple[int, SaidCall]]:
        """Return the calls that were not taken, with their times in nanoseconds."""
        return [item for index, item in enumerate(self._calls) if index not in self._taken]

    def _take(self, index: int) -> SaidCall | None:
        if index in self._taken:
            return None
        self._taken.add(index)
        return self._calls[index][1]
