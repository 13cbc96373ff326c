"""Tool calls in one line, and which of them only one side made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

from agenteval.core.text.escape import one_line
from agenteval.results.case import ToolCall

Side = Literal["both", "before", "now"]
_LONGEST = 240


def written_call(call: ToolCall) -> str:
    """Return ``cancel_order(order: 4711)``, with the error of a call that failed."""
    error = f" failed: {call.error}" if call.error else ""
    return one_line(f"{call.name}({_arguments(call.args)}){error}", _LONGEST)


def calls_of_both(before: Sequence[ToolCall], now: Sequence[ToolCall]) -> Iterator[tuple[str, Side]]:
    """Yield the calls of both sides in order, each with the side that made it."""
    old, new = [written_call(call) for call in before], [written_call(call) for call in now]
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from ((text, "both") for text in old[a:b])
            continue
        yield from ((text, "before") for text in old[a:b])
        yield from ((text, "now") for text in new[c:d])


def _arguments(args: Any) -> str:
    if args is None:
        return ""
    if isinstance(args, dict):
        return ", ".join(f"{name}: {_value(value)}" for name, value in args.items())
    return _value(args)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
