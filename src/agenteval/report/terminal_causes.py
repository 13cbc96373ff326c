"""What needs eyes: every case once, grouped by cause, with the first wrong turn of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby

from agenteval.core import text as texts
from agenteval.core.records import dataclass
from agenteval.report.terminal_lines import BLANK, LONGEST_NAME, Line, Part, Style, line, shown
from agenteval.report.view import view
from agenteval.report.view.case_details import Pieces, difference
from agenteval.report.view.cases import KINDS, Kind
from agenteval.report.view.cause_rows import calls_of_both, others
from agenteval.report.view.causes import CaseChange, Cause, Tries, is_about, largest_cause
from agenteval.report.view.comparison import base_name
from agenteval.results.case import CaseResult, TurnResult
from agenteval.results.comparison import AnswerChange, ComparedCase
from agenteval.results.model import Results

_LONGEST_QUESTION = 150
_LONGEST_ANSWER = 240
_INDENT = 4


def turn_lines(turn: TurnResult, compared: ComparedCase | None, *, several: bool) -> Iterator[Line]:
    """Yield a question and the answers of both sides; without a baseline, the expected answer."""
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


#: The kinds of causes with separate lines, with sign and style; the others are counted.
SIGNS: Mapping[Kind, tuple[str, Style]] = {
    "broke": ("✗", "bold red"),
    "failed": ("✗", "bold red"),
    "error": ("!", "bold magenta"),
    "fell": ("↓", "bold red"),
    "suspicious": ("?", "bold yellow"),
}
_MOST_NAMES = 10
_WIDEST_RULE = 100


@dataclass(frozen=True)
class Causes:
    """The causes of a run.

    Attributes:
        most: maximum number of causes of a kind; the cases of the others are counted.
        explained: errors of agents that a message above explains.
    """

    results: Results
    causes: Sequence[Cause]
    most: int
    explained: tuple[str, ...] = ()

    def lines(self, columns: int) -> Iterator[Line]:
        """Yield the lines of all kinds that need eyes."""
        for kind, found in groupby(self.causes, lambda cause: cause.kind):
            if kind in SIGNS:
                yield from self._kind(kind, tuple(found), columns)

    def _kind(self, kind: Kind, causes: Sequence[Cause], columns: int) -> Iterator[Line]:
        style = SIGNS[kind][1]
        yield from _heading(_title(kind, causes), style, columns)
        for cause in causes[: self.most]:
            yield from self._cause(cause, columns)
            yield BLANK
        if more := others(causes[self.most :]):
            yield line((f"… and {more}", "dim"))
            yield BLANK

    def _cause(self, cause: Cause, columns: int) -> Iterator[Line]:
        sign, style = SIGNS[cause.kind]
        if cause.kind == "fell":
            yield line((f"{sign} ", style), (shown(cause.words), "bold"))
            yield from self._fallen(cause)
            return
        names: list[Part] = [(f"{sign} ", style), (_names(cause.cases), "bold")]
        tries = self._tries(cause, style)
        if tries:
            taken = sum(texts.width(text) for text, _ in (*names, *tries)) + 2
            if taken <= columns:
                yield line(*names, "  ", *tries)
            else:
                yield line(*names)
                yield line(*tries, indent=2)
        else:
            yield line(*names)
        if any(is_about(cause, error) for error in self.explained):
            tries_failed = _failed_tries(cause.now)
            yield line((f"for the reason above{f' ({tries_failed})' if tries_failed else ''}", "dim"), indent=2)
            return
        example = cause.example
        case = self._cases.get(example.id) if example else None
        yield line(*_what(cause, case, self._compared.get(example.id) if example else None), indent=2, hang=4)
        turn = _wrong_turn(case, cause)
        if example is not None and case is not None and turn is not None and cause.kind != "error":
            several = len(_turns(case)) > 1
            yield from turn_lines(turn, self._compared.get(example.id), several=several)

    def _tries(self, cause: Cause, style: Style) -> list[Part]:
        now, before = cause.now, cause.before
        if cause.kind == "error" or now is None or (now.of <= 1 and before is None):
            return []
        here: Part = (f"here {now}", style)
        return [here] if before is None else [(f"{self._base} {before}", "dim"), (" → ", ""), here]

    def _fallen(self, cause: Cause) -> Iterator[Line]:
        """Yield the cases that moved as the mean did, and the first of them that failed; none of them is proven."""
        if cause.cases:
            yield line(_names(cause.cases), indent=2, hang=4)
        if cause.alike:
            yield line(shown(cause.answer), indent=2, hang=4)
        found = next((found for found in cause.cases if found.wrong is not None and found.id in self._cases), None)
        if found is None or found.wrong is None:
            return
        case, compared, turn = self._cases[found.id], self._compared.get(found.id), found.wrong.turn
        yield line(f"{shown(found.name, LONGEST_NAME)}: {shown(str(found.wrong))}", indent=2, hang=4)
        shown_turn = next((each for each in _turns(case) if each.index == (turn or 1) - 1), None)
        if shown_turn is not None:
            yield from turn_lines(shown_turn, compared, several=len(_turns(case)) > 1)

    @cached_property
    def _base(self) -> str:
        return shown(base_name(self.results.comparison))

    @cached_property
    def _cases(self) -> Mapping[str, CaseResult]:
        wanted = {cause.example.id for cause in self.causes if cause.example}
        wanted |= {found.id for cause in self.causes if cause.kind == "fell" for found in cause.cases}
        return {case.id: case for _, case in self.results.cases() if case.id in wanted}

    @cached_property
    def _compared(self) -> Mapping[str, ComparedCase]:
        comparison = self.results.comparison
        return {case.id: case for case in comparison.cases} if comparison else {}


def _heading(title: str, style: Style, columns: int) -> Iterator[Line]:
    rule = min(columns, _WIDEST_RULE) - texts.width(title) - 1
    yield line((title, style), (f" {'─' * rule}" if rule > 0 else "", "dim"))


def _title(kind: Kind, causes: Sequence[Cause]) -> str:
    cases = view.count(sum(len(cause.cases) for cause in causes), "case")
    amount = view.count(len(causes), "metric") if kind == "fell" else f"{cases}{_together(causes)}"
    return f"{KINDS[kind].words}: {amount}"


def _together(causes: Sequence[Cause]) -> str:
    """Return how many of the cases have one cause."""
    largest = largest_cause(causes)
    if largest is None:
        return ""
    what = "with the same answer" if largest.by == "answer" else "for the same reason"
    return f", all {what}" if len(causes) == 1 else f", {len(largest.cases):,} {what}"


def _names(found: Sequence[CaseChange]) -> str:
    names = ", ".join(shown(case.name, LONGEST_NAME) for case in found[:_MOST_NAMES])
    more = len(found) - _MOST_NAMES
    return f"{names} and {more:,} more" if more > 0 else names


def _what(cause: Cause, case: CaseResult | None, compared: ComparedCase | None) -> Iterator[Part]:
    """Yield what went wrong first: ``turn 1, tools 1.00 → 0.00: cancel_order was not called``."""
    wrong = cause.example.wrong if cause.example else None
    where = f"turn {cause.turn}, " if cause.turn else ""
    if wrong is None or cause.by == "answer" or wrong.is_error:
        tries = _failed_tries(cause.now) if cause.kind == "error" else ""
        yield (f"{where.removesuffix(', ')}{': ' if where else ''}{shown(cause.words)}", "")
        yield (f" ({tries})" if tries else "", "dim")
        return
    values = _values(wrong.metric, case, compared, wrong.turn)
    # Without a reason, the words are the values already.
    reason = "" if wrong.words.startswith(f"{wrong.metric} ") else shown(wrong.words)
    yield (f"{where}{shown(wrong.metric, LONGEST_NAME)} {values}{': ' if reason else ''}{reason}", "")


def _failed_tries(now: Tries | None) -> str:
    return f"{now.of - now.passed:,} of {now.of:,} tries" if now and now.of > 1 else ""


def _values(metric: str, case: CaseResult | None, compared: ComparedCase | None, turn: int | None) -> str:
    """Return the score on both sides, or else the score and its threshold."""
    for change in compared.metrics if compared else ():
        if change.id == metric and change.before is not None and change.after is not None:
            return " → ".join(view.distinct(change.before, change.after))
    scores = (
        score
        for each in (_turns(case) if case else ())
        for score in each.scores
        if score.id == metric and (turn is None or each.index + 1 == turn)
    )
    found = next(scores, None)
    return view.score_values(found) if found else ""


def _turns(case: CaseResult) -> Sequence[TurnResult]:
    iteration = view.shown_iteration(case)
    return iteration.turns if iteration else ()


def _wrong_turn(case: CaseResult | None, cause: Cause) -> TurnResult | None:
    turns = _turns(case) if case else ()
    wrong = cause.example.wrong if cause.example else None
    place = (wrong.turn or 1) - 1 if wrong else 0
    return next((turn for turn in turns if turn.index == place), None)
