"""Which passages count as retrieved for a turn."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from agenteval.agents.base import Reply
from agenteval.results.model import ToolCall
from agenteval.suite.model import Turn

# How HoloDeck's backends name the tools that search a vector store.
_SEARCH_TOOL = re.compile(r"(vectorstore|hierarchical_document)-.+|mcp__holodeck_tools__.+_search")


class Retrieval:
    """The passages of one session; a later turn without any of its own still has the earlier ones.

    Args:
        tools: names of the tools that retrieve, as the suite says; search tools by HoloDeck's naming
            count always.
    """

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = tools
        self._session: list[str] = []

    def passages(self, turn: Turn, reply: Reply) -> tuple[str, ...]:
        """What counts for a turn: the suite's own passages, else the reply's, else those of its tools."""
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
    """A text is one passage, a list one per item; anything else is no passage."""
    if isinstance(result, str):
        return [result] if result else []
    return [str(item) for item in result if item] if isinstance(result, list) else []
