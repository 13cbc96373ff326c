"""Cases in full: the first of each cause, with the conversations of both runs; and the metrics of every case."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

from agenteval.core.escape import one_line, visible
from agenteval.core.records import dataclass
from agenteval.report import words
from agenteval.report.cases import KINDS, CaseMetricRow, case_metrics, distinct_iterations
from agenteval.report.causes import CaseChange, Cause
from agenteval.report.parts import Excerpt
from agenteval.results.case import CaseResult, IterationResult, ToolCall, TurnResult
from agenteval.results.comparison import AnswerChange, ComparedCase
from agenteval.results.masking import shortened_note
from agenteval.results.model import Results

# Cases with the same cause that are shown in full.
MOST_ALIKE = 3
_MOST_CASES = 2_000
_MOST_LIKE = 5
_MOST_METRICS = 6
_SEEN = 0.005
_LABELS = {"response": "answer", "input": "question", "ground_truth": "expected answer"}


@dataclass(frozen=True)
class Story:
    """A case in full, with its comparison.

    Attributes:
        found: its entry in its cause.
        compared: ``None`` without a baseline.
        link: address of its line; empty if unknown.
        like: names and addresses of the next cases with the same cause; ``others`` counts all of them.
    """

    found: CaseChange
    case: CaseResult
    compared: ComparedCase | None
    link: str
    others: int = 0
    like: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.found.name

    @property
    def icon(self) -> str:
        """The icon of its kind."""
        return KINDS[self.found.kind].icon

    @property
    def where(self) -> str:
        """Its place: ``path:line``."""
        return f"{self.found.path}:{self.found.line}" if self.found.line else self.found.path

    @property
    def has_both(self) -> bool:
        """Whether the answers of both runs are known."""
        return self.compared is not None and bool(self.compared.answers)

    @property
    def tells(self) -> bool:
        """Whether it shows more than its row: an error alone does not, nor a case that passed."""
        if self.found.kind == "fell":
            return self.has_both
        iteration = self.case.telling_iteration
        return iteration is not None and (self.found.kind != "error" or len(iteration.turns) > 1)

    @property
    def scores(self) -> str:
        """``f1_score 0.98 → 0.47; helpful 0.90 → 0.20``."""
        moved = [
            f"{metric.id} {' → '.join(words.distinct(metric.before, metric.after))}"
            for metric in (self.compared.metrics if self.compared else ())
            if metric.before is not None and metric.after is not None and abs(metric.before - metric.after) > _SEEN
        ]
        more = f"; and {len(moved) - _MOST_METRICS:,} more" if len(moved) > _MOST_METRICS else ""
        return f"{'; '.join(moved[:_MOST_METRICS])}{more}"

    @property
    def iterations(self) -> tuple[tuple[IterationResult, str], ...]:
        """Its iterations; those that are alike are one, with which they are in words."""
        return tuple(distinct_iterations(self.case))

    @property
    def note(self) -> str:
        """How many of its iterations failed."""
        iterations = self.iterations
        return iterations[0][1] if len(iterations) == 1 else words.iterations_note(self.case)

    @property
    def shortened(self) -> tuple[str, ...]:
        """Size and hash of each value of which the results contain only the beginning."""
        return tuple(
            f"{_LABELS.get(name, name)}: {shortened_note(whole)}"
            for iteration, _ in self.iterations
            for turn in iteration.turns
            for name, whole in turn.shortened.items()
        )

    def timeline(self, limit: int, iteration: IterationResult | None = None) -> list[DiffLine]:
        """Return an iteration, else the telling one: ``▸`` questions, ``⚙`` tool calls, the answers of both runs."""
        telling = self.case.telling_iteration
        shown = iteration or telling
        # The earlier answers belong to the iteration that represents the case.
        is_told = telling is not None and shown is not None and shown.index == telling.index
        wrong = self.found.wrong.turn if self.found.wrong else None
        return timeline(shown.turns if shown else [], self.compared if is_told else None, wrong, limit)


@dataclass(frozen=True)
class CaseRow:
    """A case with the result of each metric; or one that did not pass, and how many ``others`` are like it."""

    status: str
    name: str
    score: float | None
    metrics: tuple[CaseMetricRow, ...] = ()
    why: str = ""
    where: str = ""
    change: str = ""
    others: int = 0


def source_link(source: str, path: str, line: int | None) -> str:
    """Return the address of a line of a suite's file in the evaluated commit; empty if it is unknown."""
    pure = PurePosixPath(path)
    if not source or not pure.parts or pure.is_absolute() or ".." in pure.parts:
        return ""
    # Paths come from results files and may contain lone surrogates, which cannot be encoded.
    written = quote(pure.as_posix(), safe="/", errors="replace")
    return f"{source}{written}" + (f"#L{line}" if line and line > 0 else "")


def first_stories(results: Results, causes: Sequence[Cause], source: str) -> Mapping[str, Story]:
    """Return the first cases of each cause in full; of a mean that fell, also the first case that went wrong."""
    chosen: dict[str, tuple[Cause, CaseChange]] = {}
    for cause in causes:
        for found in (*cause.cases[:MOST_ALIKE], *_first_wrong(cause)):
            # Ids of results that somebody else wrote may stand twice.
            chosen.setdefault(found.id, (cause, found))
    if not chosen:
        return {}
    located = {case.id: case for _, case in results.cases() if case.id in chosen}
    compared = {case.id: case for case in results.comparison.cases} if results.comparison else {}
    return {
        id_: Story(
            found=found,
            case=located[id_],
            compared=compared.get(id_),
            link=source_link(source, found.path, found.line),
            others=len(cause.cases) - 1,
            like=tuple(
                (each.name, source_link(source, each.path, each.line)) for each in cause.cases[1 : 1 + _MOST_LIKE]
            ),
        )
        for id_, (cause, found) in chosen.items()
        if id_ in located
    }


def _first_wrong(cause: Cause) -> Iterator[CaseChange]:
    if cause.kind == "fell":
        yield from [found for found in cause.cases if found.wrong is not None][:1]


def case_rows(results: Results) -> Excerpt[CaseRow]:
    """Return the cases in suite order; if there are too many, passed cases are omitted first."""
    cases = [case for _, case in results.cases()]
    if len(cases) > _MOST_CASES:
        cases.sort(key=lambda case: case.status == "passed")
    rows = (
        CaseRow(
            case.status, case.name, case.score, case_metrics(case), "" if case.status == "passed" else words.why(case)
        )
        for case in cases[:_MOST_CASES]
    )
    # Of a large run, not all cases are in memory.
    return Excerpt(tuple(rows), results.summary.cases)


# The conversation of a case with the tool calls and answers of both runs.

Side = Literal["both", "before", "now"]
_LONGEST = 240


def written_call(call: ToolCall) -> str:
    """Return ``cancel_order(order: 4711)``, with the error of a call that failed."""
    error = f" failed: {call.error}" if call.error else ""
    return one_line(f"{call.name}({_arguments(call.args)}){error}", _LONGEST)


def calls_of_both(before: Sequence[ToolCall], now: Sequence[ToolCall]) -> Iterator[tuple[str, Side]]:
    """Yield the calls of both sides in order, each with the side that made it."""
    # Imported here and below, because most runs have nothing to show in full.
    from difflib import SequenceMatcher

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
# Where a line of a traceback begins: tracebacks come as one line.
_OF_TRACEBACK = re.compile(r'\s+(?=File "[^"]+", line \d)|(?<=\S) (?=(?:\w+\.)*\w+(?:Error|Exception): [^:]*$)')
# An unchanged answer is shown with so many lines, and a change with so many on either side.
_LINES_OF_CONTEXT = 3
# Shorter answers are shown as a whole.
_SHORT_ANSWER = 8
# Sentences and lines, so that a change at the beginning leaves the rest of a long answer alone.
_UNIT = re.compile(r"(?<=[.!?])\s+|\n")


@dataclass(frozen=True)
class DiffLine:
    """A line of before (``-``), of now (``+``), of both, expected (``?``), or about what is left out (``@``)."""

    mark: Mark
    text: str

    def __str__(self) -> str:
        return f"@@ {self.text} @@" if self.mark == "@" else f"{self.mark} {self.text}".rstrip()


def timeline(
    turns: Sequence[TurnResult], compared: ComparedCase | None, first_wrong: int | None, limit: int
) -> list[DiffLine]:
    """Return a conversation: ``▸`` questions, ``⚙`` tool calls, and the answers of both runs."""
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
        error = _OF_TRACEBACK.sub("\n", turn.error) if "Traceback" in turn.error else turn.error
        yield from _all("+" if earlier else " ", f"(error) {_cut(error, limit)}")
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
    if earlier is None:
        yield from _all(" ", now)
    elif earlier.same:
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
    from difflib import SequenceMatcher

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
    if text is None:
        return "(no answer)"
    if not text.strip():
        return "(empty)"
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def _wrapped(text: str) -> list[str]:
    import textwrap

    lines = [part for line in visible(text).split("\n") for part in textwrap.wrap(line, _WIDTH) or [""]]
    return lines or [""]
