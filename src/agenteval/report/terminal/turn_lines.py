"""One turn of a case with what changed in it: question, answers and tool calls."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.report.terminal.lines import Line, Part, Style, line, shown
from agenteval.report.view.calls import calls_of_both
from agenteval.report.view.text_diff import Pieces, difference
from agenteval.results.case import TurnResult
from agenteval.results.comparison import AnswerChange, ComparedCase

_LONGEST_QUESTION = 150
_LONGEST_ANSWER = 240
_INDENT = 4


def turn_lines(turn: TurnResult, compared: ComparedCase | None, *, several: bool) -> Iterator[Line]:
    """Yield a question and the answers of both sides; without a baseline, the expected answer.

    Args:
        turn: the turn in this run.
        compared: the case in both runs, if there are two.
        several: whether the case has several turns, so that they are numbered.
    """
    number = f"{turn.index + 1} " if several else ""
    yield line((f"{number}▸ {shown(turn.input, _LONGEST_QUESTION)}", "dim"), indent=_INDENT, hang=_INDENT + 2)
    answer = next((found for found in compared.answers if found.turn == turn.index), None) if compared else None
    if answer is not None and answer.before is not None:
        yield from _calls(answer, turn)
        yield from _both(answer)
        return
    if turn.ground_truth is not None:
        yield _answer("? ", "dim", ((f"expected: {shown(turn.ground_truth, _LONGEST_ANSWER)}", "dim"),))
    if turn.response is not None:
        yield _answer("+ ", "", ((_text(turn.response), ""),))


def _calls(answer: AnswerChange, turn: TurnResult) -> Iterator[Line]:
    """Yield the tool calls that only one side made; without those of the baseline, nothing is known of them."""
    if not answer.calls_before:
        return
    for text, side in calls_of_both(answer.calls_before, turn.tool_calls):
        if side == "before":
            yield _answer("- ", "red", ((f"⚙ {shown(text)}", "red"),))
        elif side == "now":
            yield _answer("+ ", "green", ((f"⚙ {shown(text)}", "green"),))


def _both(answer: AnswerChange) -> Iterator[Line]:
    if answer.same:
        yield _answer("  ", "dim", ((_text(answer.after), "dim"),))
        return
    before, after = answer.before or "", answer.after or ""
    pieces = difference(before, after, _LONGEST_ANSWER) if before and after else None
    if pieces is None:
        yield _answer("- ", "red", ((_text(answer.before), "red"),))
        yield _answer("+ ", "green", ((_text(answer.after), "green"),))
        return
    yield _answer("- ", "red", _marked(pieces[0], "red"))
    yield _answer("+ ", "green", _marked(pieces[1], "green"))


def _marked(pieces: Pieces, style: Style) -> Iterator[Part]:
    """Yield the pieces of an answer on one line, the changed ones in a colour."""
    for piece in pieces:
        text = shown(piece.text, len(piece.text))
        # ``shown`` removes the blanks at the ends.
        before, after = (" " if blank else "" for blank in (piece.text[:1].isspace(), piece.text[-1:].isspace()))
        if text:
            yield (f"{before}{text}{after}", style if piece.changed else "dim")
        elif before or after:
            yield (" ", "dim")


def _text(answer: str | None) -> str:
    if answer is None:
        return "(no answer)"
    return shown(answer, _LONGEST_ANSWER) or "(an empty answer)"


def _answer(sign: str, style: Style, parts: Iterator[Part] | tuple[Part, ...]) -> Line:
    return line((sign, style), *parts, indent=_INDENT, hang=_INDENT + 2)
