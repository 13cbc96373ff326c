"""Differences of both runs: the conversation of a case with the tool calls and answers of both."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

from agenteval.core.escape import one_line, visible
from agenteval.core.records import dataclass
from agenteval.results.case import CaseResult, ToolCall, TurnResult
from agenteval.results.comparison import AnswerChange, ComparedCase

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


Mark = Literal[" ", "-", "+", "?", "@"]

_MARKS: Mapping[Side, Mark] = {"both": " ", "before": "-", "now": "+"}
_WIDTH = 88
_INDENT = "    "
_MOST_TURNS = 10
_MOST_CALLS = 12
_LONGEST_EXPECTED = 300
# An unchanged answer is shown with so many lines, and a change with so many on either side.
_LINES_OF_CONTEXT = 3
# Shorter answers are shown as a whole.
_SHORT_ANSWER = 8
# Sentences and lines, so that a change at the beginning leaves the rest of a long answer alone.
_UNIT = re.compile(r"(?<=[.!?])\s+|\n")


@dataclass(frozen=True)
class DiffLine:
    """One line.

    Attributes:
        mark: ``-`` only before, ``+`` only now, a blank for both, ``?`` what was expected, ``@`` left out.
    """

    mark: Mark
    text: str

    def __str__(self) -> str:
        return f"@@ {self.text} @@" if self.mark == "@" else f"{self.mark} {self.text}".rstrip()


def timeline(case: CaseResult, compared: ComparedCase | None, first_wrong: int | None, limit: int) -> list[DiffLine]:
    """Return the conversation of a case: ``▸`` questions, ``⚙`` tool calls, and the answers of both runs.

    Args:
        compared: its comparison; without one, only this run is shown.
        first_wrong: the turn that went wrong first, 1-based; it is among the shown turns.
    """
    iteration = case.telling_iteration
    turns = iteration.turns if iteration else []
    earlier = {answer.turn: answer for answer in compared.answers} if compared else {}
    start = max(0, min((first_wrong or 1) - 2, len(turns) - _MOST_TURNS)) if len(turns) > _MOST_TURNS else 0
    shown = turns[start : start + _MOST_TURNS]
    lines: list[DiffLine] = []
    if start:
        lines.append(DiffLine("@", _left_out(start, "earlier turn")))
    for turn in shown:
        start_of_turn = f"{turn.index + 1} ▸ " if len(turns) > 1 else "▸ "
        question = _wrapped(_cut(turn.input, limit))[:_LINES_OF_CONTEXT]
        firsts = [start_of_turn, *[" " * len(start_of_turn)] * (len(question) - 1)]
        lines += [DiffLine(" ", f"{first}{line}") for first, line in zip(firsts, question, strict=True)]
        lines += reply_lines(turn, earlier.get(turn.index), limit)
    if rest := len(turns) - start - len(shown):
        lines.append(DiffLine("@", _left_out(rest, "later turn")))
    return lines


def _left_out(amount: int, noun: str) -> str:
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def reply_lines(turn: TurnResult, earlier: AnswerChange | None, limit: int) -> Iterator[DiffLine]:
    """Yield the tool calls and the answers of both runs to a question, and what was expected."""
    yield from _calls(earlier.calls_before if earlier else turn.tool_calls, turn.tool_calls)
    if turn.error:
        if earlier and earlier.before is not None:
            yield from _all("-", _cut(earlier.before, limit))
        yield from _all("+" if earlier else " ", f"(error) {_cut(turn.error, limit)}")
        return
    yield from _answers(turn, earlier, limit)
    if _needs_expected(turn, earlier):
        yield from _all("?", f"expected: {one_line(turn.ground_truth or '', _LONGEST_EXPECTED)}")


def _needs_expected(turn: TurnResult, earlier: AnswerChange | None) -> bool:
    failed = any(score.passed is False for score in turn.scores)
    known = earlier.before if earlier else None
    return failed and turn.ground_truth is not None and turn.ground_truth.strip() != (known or "").strip()


def _answers(turn: TurnResult, earlier: AnswerChange | None, limit: int) -> Iterator[DiffLine]:
    now = _cut(turn.response, limit)
    if earlier is None or earlier.same:
        lines = _wrapped(now)
        yield from _lines(" ", lines[:_LINES_OF_CONTEXT])
        if rest := len(lines) - _LINES_OF_CONTEXT:
            yield from _skipped(lines[-rest:]) if rest > 0 else ()
    else:
        yield from _difference(_cut(earlier.before, limit), now)


def _difference(before: str, now: str) -> Iterator[DiffLine]:
    if max(len(_wrapped(before)), len(_wrapped(now))) <= _SHORT_ANSWER:
        yield from _all("-", before)
        yield from _all("+", now)
        return
    old, new = _units(before), _units(now)
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield from _lines("-", [line for unit in old[a:b] for line in _wrapped(unit)])
            yield from _lines("+", [line for unit in new[c:d] for line in _wrapped(unit)])
            continue
        first = _LINES_OF_CONTEXT if a else 0
        last = _LINES_OF_CONTEXT if b < len(old) else 0
        lines = [line for unit in old[a:b] for line in _wrapped(unit)]
        if len(lines) <= first + last + 1:
            yield from _lines(" ", lines)
            continue
        yield from _lines(" ", lines[:first])
        yield from _skipped(lines[first : len(lines) - last])
        yield from _lines(" ", lines[len(lines) - last :])


def _skipped(lines: Sequence[str]) -> Iterator[DiffLine]:
    words = sum(len(line.split()) for line in lines)
    yield DiffLine("@", f"… {words:,} {'word' if words == 1 else 'words'} the same")


def _units(text: str) -> list[str]:
    return [unit for unit in _UNIT.split(visible(text)) if unit.strip()]


def _calls(before: Sequence[ToolCall], now: Sequence[ToolCall]) -> Iterator[DiffLine]:
    lines = [DiffLine(_MARKS[side], f"{_INDENT}⚙ {text}") for text, side in calls_of_both(before, now)]
    yield from lines[:_MOST_CALLS]
    if rest := len(lines[_MOST_CALLS:]):
        yield DiffLine("@", f"{_left_out(rest, 'more line')} of tool calls")


def _all(mark: Mark, text: str) -> Iterator[DiffLine]:
    return _lines(mark, _wrapped(text))


def _lines(mark: Mark, lines: Sequence[str]) -> Iterator[DiffLine]:
    for line in lines:
        yield DiffLine(mark, f"{_INDENT}{line}")


def _cut(text: str | None, limit: int) -> str:
    """Return at most ``limit`` characters of a text, or a note about an empty answer."""
    if text is None:
        return "(no answer)"
    if not text.strip():
        return "(empty)"
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def _wrapped(text: str) -> list[str]:
    lines = [part for line in visible(text).split("\n") for part in textwrap.wrap(line, _WIDTH) or [""]]
    return lines or [""]
