"""Causes as rows, with the timeline of one iteration."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

from agenteval.core.escape import one_line, visible
from agenteval.core.records import dataclass
from agenteval.report.view import view
from agenteval.report.view.cases import KINDS, Kind
from agenteval.report.view.causes import CaseChange, Cause
from agenteval.report.view.parts import Excerpt
from agenteval.results.case import CaseResult, SuiteResult, ToolCall, TurnResult
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
        lines += _turn(turn, earlier.get(turn.index), limit, is_one_of_several=len(turns) > 1)
    if rest := len(turns) - start - len(shown):
        lines.append(DiffLine("@", _left_out(rest, "later turn")))
    return lines


def _left_out(amount: int, noun: str) -> str:
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def _turn(
    turn: TurnResult, earlier: AnswerChange | None, limit: int, *, is_one_of_several: bool
) -> Iterator[DiffLine]:
    start = f"{turn.index + 1} ▸ " if is_one_of_several else "▸ "
    for number, line in enumerate(_wrapped(_cut(turn.input, limit))[:_LINES_OF_CONTEXT]):
        yield DiffLine(" ", f"{start if number == 0 else ' ' * len(start)}{line}")
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


Link = Callable[[str, int | None], str]

#: Rows of the visible table.
MOST_ROWS = 8
_NAMES = 2
_ALIKE = 5
_LONGEST_WORDS = 150
_METRICS = 6
_SEEN = 0.005


@dataclass(frozen=True)
class CauseRow:
    """One cause in one line.

    Attributes:
        before: passed tries of the other side: ``18/18``; empty if unknown.
        now: the same of this side; ``gone`` for removed cases.
    """

    icon: str
    names: tuple[str, ...]
    more: int
    attention: bool
    before: str
    now: str
    words: str


@dataclass(frozen=True)
class Like:
    """A case with the same cause, and the address of its line."""

    name: str
    link: str


@dataclass(frozen=True)
class Example:
    """The first case of a cause with both runs.

    Attributes:
        others: number of further cases with the same cause; ``like`` are the first of them.
        scores: ``f1_score 0.98 → 0.47; helpful 0.90 → 0.20``.
        where: ``path:line``; ``link`` is its address.
        has_both: whether the answers of both runs are known.
    """

    name: str
    others: int
    lines: tuple[DiffLine, ...]
    scores: str
    where: str
    link: str
    like: tuple[Like, ...]
    has_both: bool


def others(causes: Sequence[Cause]) -> str:
    """Return the number of causes that are not listed, with the number of their cases."""
    amount = sum(len(cause.cases) for cause in causes)
    # A metric that fell together with another one has no cases.
    cases = f"{view.count(amount, 'more case')} with " if amount else ""
    # Cases that do not tell their cause are one cause here.
    least = "" if all(cause.is_common for cause in causes) else "at least "
    return f"{cases}{least}{view.count(len(causes), 'other cause')}" if causes else ""


def cause_row(cause: Cause) -> CauseRow:
    """Return a cause in one line."""
    names = tuple(found.name for found in cause.cases[:_NAMES])
    before, now, words = str(cause.before or ""), str(cause.now or ""), cause.text
    if cause.metric is not None:
        metric, moved = cause.metric, "fell" if cause.metric.allowed is None else "rose"
        before, now = view.distinct(metric.baseline, metric.current)
        if moved == "rose":
            before, now = (view.resource(metric.id, side) for side in (metric.baseline, metric.current))
        same = f"; {cause.answer}" if cause.alike else ""
        names, words = (f"mean of {metric.id}",), f"{moved} over {view.count(metric.n, 'case')} together{same}"
    if cause.kind in {"removed", "gone"}:
        now = "gone"
        words = "removed from the suite by this change: still wanted?" if cause.kind == "removed" else cause.words
    more = 0 if cause.metric is not None else len(cause.cases) - len(names)
    return CauseRow(cause.icon, names, more, cause.attention, before, now, one_line(words, _LONGEST_WORDS))


def aside_row(cause: Cause) -> CauseRow:
    """Return a cause that is not held against the change in one line, which begins with its kind."""
    row = cause_row(cause)
    kind = KINDS[cause.kind].words
    first = "in the first run, " if cause.kind == "cleared" else ""
    words = kind if cause.by == "kind" else one_line(f"{kind}: {first}{cause.text}", _LONGEST_WORDS)
    return CauseRow(row.icon, row.names, row.more, row.attention, row.before, row.now, words)


def aside_title(causes: Iterable[Cause]) -> str:
    """Return ``1 not proven worse · 2 known failures · 4 new``: what is not held against the change."""
    amounts = Counter(cause.kind for cause in causes if not cause.attention for _ in cause.cases)
    known = "known failure" if amounts["known"] == 1 else "known failures"
    words = {kind: known if kind == "known" else KINDS[kind].words for kind in KINDS}
    return " · ".join(f"{amounts[kind]:,} {words[kind]}" for kind in KINDS if amounts[kind])


@dataclass(frozen=True)
class BothRuns:
    """The cases of a run by id, with their comparisons."""

    located: Mapping[str, tuple[SuiteResult, CaseResult]]
    compared: Mapping[str, ComparedCase]
    link: Link

    def examples(self, causes: Iterable[Cause], *, most: int, max_text: int) -> Excerpt[Example]:
        """Return the first case of each cause with both runs; removed cases have none."""
        shown = [cause for cause in causes if cause.cases and self._can_show(cause.kind, cause.cases[0])]
        return Excerpt(tuple(self._example(cause, cause.cases[0], max_text) for cause in shown[:most]), len(shown))

    def _can_show(self, kind: Kind, found: CaseChange) -> bool:
        """Return whether a case shows more than its row: an error alone does not, nor a case that passed."""
        if found.id not in self.located:
            return False
        pair = self.compared.get(found.id)
        if kind == "fell":
            return pair is not None and bool(pair.answers)
        iteration = self.located[found.id][1].telling_iteration
        return iteration is not None and (kind != "error" or len(iteration.turns) > 1)

    def _example(self, cause: Cause, found: CaseChange, max_text: int) -> Example:
        suite, case = self.located[found.id]
        pair = self.compared.get(found.id)
        turn = found.wrong.turn if found.wrong else None
        return Example(
            name=found.name,
            others=len(cause.cases) - 1,
            lines=tuple(timeline(case, pair, turn, max_text)),
            scores=_scores(pair),
            where=view.location(suite, case),
            link=self.link(suite.path, case.line),
            like=tuple(Like(other.name, self.link(other.path, other.line)) for other in cause.cases[1 : 1 + _ALIKE]),
            has_both=pair is not None and bool(pair.answers),
        )


def _scores(compared: ComparedCase | None) -> str:
    moved = [
        f"{metric.id} {' → '.join(view.distinct(metric.before, metric.after))}"
        for metric in (compared.metrics if compared else ())
        if metric.before is not None and metric.after is not None and abs(metric.before - metric.after) > _SEEN
    ]
    more = f"; and {len(moved) - _METRICS:,} more" if len(moved) > _METRICS else ""
    return f"{'; '.join(moved[:_METRICS])}{more}"
