"""What needs eyes: every case once, grouped by cause, with the first wrong turn of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from agenteval.core import text as texts
from agenteval.report import words
from agenteval.report.cases import KINDS, Kind
from agenteval.report.causes import CaseChange, Cause, is_about, largest_cause, others
from agenteval.report.facts import Report
from agenteval.report.stories import Story, reply_lines
from agenteval.report.terminal_lines import BLANK, LONGEST_NAME, SIGNS, Line, Part, Style, line, shown
from agenteval.results.case import CaseResult, TurnResult
from agenteval.results.comparison import ComparedCase

_LONGEST_QUESTION = 150
_LONGEST_ANSWER = 240
_LONGEST_TEXT = 4_000
_INDENT = 4


_STYLES: Mapping[str, Style] = {"-": "red", "+": "green"}


def turn_lines(turn: TurnResult, compared: ComparedCase | None, *, several: bool) -> Iterator[Line]:
    """Yield a question, and the calls and answers of both sides as the comment shows them."""
    number = f"{turn.index + 1} " if several else ""
    yield line((f"{number}▸ {shown(turn.input, _LONGEST_QUESTION)}", "dim"), indent=_INDENT, hang=_INDENT + 2)
    earlier = next((found for found in compared.answers if found.turn == turn.index), None) if compared else None
    found = [(item.mark, item.text.strip()) for item in reply_lines(turn, earlier, _LONGEST_TEXT)]
    # A terminal wraps lines itself; calls that both sides made tell nothing.
    signs = {"@": " ", " ": "+"} if earlier is None else {"@": " "}
    for (mark, is_call), items in groupby(found, lambda item: (item[0], item[1].startswith("⚙"))):
        parts, style = [text for _, text in items], _STYLES.get(mark, "dim")
        for text in parts if is_call else [" ".join(parts)]:
            if not (is_call and mark == " "):
                sign = signs.get(mark, mark)
                told = (f"{sign} ", style), (shown(text, _LONGEST_ANSWER), style)
                yield line(*told, indent=_INDENT, hang=_INDENT + 2)


_MOST_NAMES = 10
_WIDEST_RULE = 100


def cause_lines(report: Report, most: int, explained: Sequence[str], columns: int) -> Iterator[Line]:
    """Yield the lines of all kinds that need eyes, with at most so many causes of each."""
    for kind, found in groupby(report.causes, lambda cause: cause.kind):
        if kind not in SIGNS:
            continue
        causes, style = tuple(found), SIGNS[kind][1]
        yield from _heading(_title(kind, causes), style, columns)
        for cause in causes[:most]:
            yield from _fallen(report, cause) if kind == "fell" else _cause(report, cause, explained, columns)
            yield BLANK
        if more := others(causes[most:]):
            yield line((f"… and {more}", "dim"))
            yield BLANK


def _cause(report: Report, cause: Cause, explained: Sequence[str], columns: int) -> Iterator[Line]:
    sign, style = SIGNS[cause.kind]
    names: list[Part] = [(f"{sign} ", style), (_names(cause.cases), "bold")]
    tries = _tries(report, cause, style)
    taken = sum(texts.width(text) for text, _ in (*names, *tries)) + 2
    if tries and taken <= columns:
        yield line(*names, "  ", *tries)
    else:
        yield line(*names)
        if tries:
            yield line(*tries, indent=2)
    if any(is_about(cause, error) for error in explained):
        failed = _failed_tries(cause)
        yield line((f"for the reason above{f' ({failed})' if failed else ''}", "dim"), indent=2)
        return
    story = report.stories.get(cause.example.id) if cause.example else None
    yield line(*_what(cause, story), indent=2, hang=4)
    if story is not None and cause.kind != "error":
        yield from _wrong_turn(story)


def _tries(report: Report, cause: Cause, style: Style) -> list[Part]:
    tells = any(found.now is not None and found.now.of > 1 for found in cause.cases)
    if cause.kind == "error" or not cause.now or (not tells and not cause.before):
        return []
    here: Part = (f"here {cause.now}", style)
    return [(f"{shown(report.base_name)} {cause.before}", "dim"), (" → ", ""), here] if cause.before else [here]


def _fallen(report: Report, cause: Cause) -> Iterator[Line]:
    sign, style = SIGNS[cause.kind]
    yield line((f"{sign} ", style), (shown(cause.words), "bold"))
    if cause.cases:
        yield line(_names(cause.cases), indent=2, hang=4)
    if cause.alike:
        yield line(shown(cause.answer), indent=2, hang=4)
    story = next(
        (report.stories[found.id] for found in cause.cases if found.wrong and found.id in report.stories), None
    )
    if story is not None:
        yield line(f"{shown(story.name, LONGEST_NAME)}: {shown(str(story.found.wrong))}", indent=2, hang=4)
        yield from _wrong_turn(story)


def _wrong_turn(story: Story) -> Iterator[Line]:
    turns, wrong = _turns(story.case), story.found.wrong
    place = (wrong.turn or 1) - 1 if wrong else 0
    for turn in turns:
        if turn.index == place:
            yield from turn_lines(turn, story.compared, several=len(turns) > 1)


def _heading(title: str, style: Style, columns: int) -> Iterator[Line]:
    rule = min(columns, _WIDEST_RULE) - texts.width(title) - 1
    yield line((title, style), (f" {'─' * rule}" if rule > 0 else "", "dim"))


def _title(kind: Kind, causes: Sequence[Cause]) -> str:
    cases = words.count(sum(len(cause.cases) for cause in causes), "case")
    amount = words.count(len(causes), "metric") if kind == "fell" else f"{cases}{_together(causes)}"
    return f"{KINDS[kind].words}: {amount}"


def _together(causes: Sequence[Cause]) -> str:
    largest = largest_cause(causes)
    if largest is None:
        return ""
    what = "with the same answer" if largest.by == "answer" else "for the same reason"
    return f", all {what}" if len(causes) == 1 else f", {len(largest.cases):,} {what}"


def _names(found: Sequence[CaseChange]) -> str:
    names = ", ".join(shown(case.name, LONGEST_NAME) for case in found[:_MOST_NAMES])
    more = len(found) - _MOST_NAMES
    return f"{names} and {more:,} more" if more > 0 else names


def _what(cause: Cause, story: Story | None) -> Iterator[Part]:
    wrong = cause.example.wrong if cause.example else None
    where = f"turn {cause.turn}, " if cause.turn else ""
    if wrong is None or cause.by == "answer" or wrong.is_error:
        tries = _failed_tries(cause) if cause.kind == "error" else ""
        yield (f"{where.removesuffix(', ')}{': ' if where else ''}{shown(cause.words)}", "")
        yield (f" ({tries})" if tries else "", "dim")
        return
    values = _values(wrong.metric, story, wrong.turn) if story else ""
    # Without a reason, the words are the values already.
    reason = "" if wrong.words.startswith(f"{wrong.metric} ") else shown(wrong.words)
    yield (f"{where}{shown(wrong.metric, LONGEST_NAME)} {values}{': ' if reason else ''}{reason}", "")


def _failed_tries(cause: Cause) -> str:
    known = {found.now for found in cause.cases if found.now is not None}
    if len(known) != 1 or (now := known.pop()).of <= 1:
        return ""
    return f"{now.of - now.passed:,} of {now.of:,} tries{' each' if len(cause.cases) > 1 else ''}"


def _values(metric: str, story: Story, turn: int | None) -> str:
    for change in story.compared.metrics if story.compared else ():
        if change.id == metric and change.before is not None and change.after is not None:
            return " → ".join(words.distinct(change.before, change.after))
    scores = (
        score
        for each in _turns(story.case)
        for score in each.scores
        if score.id == metric and (turn is None or each.index + 1 == turn)
    )
    found = next(scores, None)
    return words.score_values(found) if found else ""


def _turns(case: CaseResult) -> Sequence[TurnResult]:
    iteration = case.telling_iteration
    return iteration.turns if iteration else ()
