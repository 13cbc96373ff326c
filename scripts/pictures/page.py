"""The first view of ``report.html``, as a picture: the head, the cases that need attention, and one of them.

The page is HTML, which needs a browser. This is a drawing of its layout with the words and figures of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from scripts.pictures.ink import LINE_HEIGHT, MONO_WIDTH, Canvas, Span, cells, lines_of

from agenteval.report import words
from agenteval.report.facts import Report, facts, notes_of
from agenteval.report.html import head_facts
from agenteval.results.case import CaseResult, SuiteResult, TurnResult
from agenteval.results.comparison import AnswerChange, ComparedCase
from agenteval.results.model import Results

_WIDTH, _LIST, _SIDE = 920.0, 270.0, 18.0
_SIZE, _SMALL, _CODE = 13.0, 12.0, 11.0
_TABS = ("Cases", "Metrics", "Cost and time", "Trend", "How it was run")
_ENDS = "…"


def page_picture(results: Results, theme: str, title: str) -> str:
    """Return the picture of the page of a compared run in which a case needs attention."""
    if results.gate is None:
        raise ValueError("the run has no gate")
    page = facts(results, results.gate, notes_of(results))
    compared = {case.id: case for case in results.comparison.cases} if results.comparison else {}
    rows = [
        _Row(suite, case, compared.get(case.id))
        for suite, case in results.cases()
        if case.status != "passed" or (case.id in compared and compared[case.id].change == "broke")
    ]
    canvas = Canvas(theme, _WIDTH)
    canvas.box(0.5, 0.5, _WIDTH - 1, 1, fill="page", line="border")
    top = _head(canvas, page)
    canvas.bar(0, top, _WIDTH, 1, "border")
    mark = len(canvas.parts)
    left = _list(canvas, rows, results.summary.cases, top + 14)
    right = _case(canvas, rows[0], page.base_name, top + 16)
    end = max(left, right) + 14
    canvas.parts.insert(mark, _panel(canvas, top + 1, end))
    canvas.bar(_LIST, top, 1, end - top, "border")
    canvas.parts[0] = canvas.parts[0].replace('height="1.0"', f'height="{end:.1f}"')
    return canvas.svg(title, round(end + 1))


@dataclass(frozen=True)
class _Row:
    suite: SuiteResult
    case: CaseResult
    compared: ComparedCase | None

    @property
    def broke(self) -> bool:
        return self.compared is not None and self.compared.change == "broke"

    @property
    def kind(self) -> str:
        return "broke" if self.broke else self.case.status

    @property
    def cause(self) -> str:
        facts = words.facts(self.case)
        told = [fact for fact in facts if fact.reason] or list(facts)
        return (told[0].reason or str(told[0])) if told else ""

    @property
    def passes(self) -> str:
        here = f"{_passed(self.case)}/{len(self.case.iterations)}"
        past = self.compared.history if self.compared else None
        return f"{round(past.pass_rate * past.iterations)}/{past.iterations} → {here}" if past else here


@dataclass(frozen=True)
class _Side:
    """The answer of one side; ``ink`` is its colour where the sides differ."""

    name: str
    answer: str
    ink: str = ""


def _passed(case: CaseResult) -> int:
    return [iteration.status for iteration in case.iterations].count("passed")


def _panel(canvas: Canvas, top: float, end: float) -> str:
    width, height = _WIDTH - _LIST - 1, end - top - 1
    colour = canvas.colour("head")
    return f'<rect x="{_LIST:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def _head(canvas: Canvas, page: Report) -> float:
    ink = {"passed": "good", "failed": "bad", "error": "bad"}.get(page.verdict, "warning")
    verdict = Span(page.verdict, ink, bold=True, size=15)
    canvas.box(_SIDE, 14, verdict.width + 18, 26, line=ink)
    canvas.line(_SIDE + 9, 27, [verdict])
    left = _SIDE + verdict.width + 30
    title = lines_of([Span(f"{page.heading.title}", bold=True, size=17)], _WIDTH - left - _SIDE)
    top = _paragraph(canvas, title, left, 14)
    facts: list[Span] = []
    for label, value in filter(itemgetter(1), head_facts(page)):
        # A fact is not broken into two lines.
        words = value.replace(" ", "\u00a0")
        facts += [
            Span("    ", size=_SIZE),
            Span(f"{label}\u00a0", "quiet", size=_SIZE),
            Span(words, bold=True, size=_SIZE),
        ]
    top = _paragraph(canvas, lines_of(facts, _WIDTH - 2 * _SIDE), _SIDE, top + 6) + 10
    x = _SIDE
    for tab in _TABS:
        span = Span(tab, "quiet" if x > _SIDE else "text", bold=x == _SIDE, size=_SIZE)
        if x == _SIDE:
            canvas.box(x - 8, top, span.width + 16, 26, fill="code")
        canvas.line(x, top + 13, [span])
        x += span.width + 30
    return top + 34


def _list(canvas: Canvas, rows: Sequence[_Row], cases: int, top: float) -> float:
    x = _SIDE
    for text in (f"needs attention {len(rows)}", f"all {cases}"):
        span = Span(text, size=_SMALL)
        canvas.box(x, top, span.width + 16, 24, fill="chosen" if x == _SIDE else "page", line="border")
        canvas.line(x + 8, top + 12, [span])
        x += span.width + 26
    top += 36
    for number, row in enumerate(rows):
        canvas.line(
            _SIDE, top + 10, [Span("✗ ", "bad", bold=True, size=_SIZE), Span(row.kind, bold=True, size=_SIZE)]
        )
        words = lines_of([Span(row.cause, "quiet", size=_SMALL)], _LIST - 2 * _SIDE)
        top = _paragraph(canvas, words[:3], _SIDE, top + 20) + 4
        if number == 0:
            canvas.bar(1, top, _LIST - 1, 28, "chosen")
            canvas.bar(0, top, 3, 28, "link")
        passes = Span(row.passes, size=_SMALL)
        room = _LIST - 2 * _SIDE - passes.width - 8
        (name, *_) = lines_of([Span(row.case.name, size=_SIZE)], room)
        canvas.line(_SIDE, top + 14, name)
        canvas.line(_LIST - _SIDE - passes.width, top + 14, [passes])
        top += 40
    return top


def _case(canvas: Canvas, row: _Row, base: str, top: float) -> float:
    left, room = _LIST + 20, _WIDTH - _LIST - 40
    heading = [Span("✗ ", "bad", bold=True, size=16), Span(row.case.name, bold=True, size=16)]
    x = canvas.line(left, top + 10, heading)
    where = words.location(row.suite, row.case)
    canvas.line(
        x + 14, top + 11, [Span(row.kind, "bad", bold=True, size=_SIZE), Span(f"    {where}", "quiet", size=_SIZE)]
    )
    top = _squares(canvas, row, base, left, top + 30) + 10
    facts = [str(fact) for fact in words.facts(row.case)]
    lines = [line for fact in facts for line in lines_of([Span(fact, "bad", size=_SIZE)], room - 28)]
    canvas.box(left, top, room, len(lines) * _SIZE * LINE_HEIGHT + 16, fill="page", line="bad")
    top = _paragraph(canvas, lines, left + 14, top + 8) + 22
    iteration = row.case.telling_iteration
    if iteration is None:
        return top
    changes = {answer.turn: answer for answer in (row.compared.answers if row.compared else ())}
    turns = [(turn, _sides(turn, changes.get(turn.index), base)) for turn in iteration.turns]
    return _turns(canvas, turns, left, top)


def _squares(canvas: Canvas, row: _Row, base: str, left: float, top: float) -> float:
    past = row.compared.history if row.compared else None
    before = round(past.pass_rate * past.iterations) if past else 0
    x = left
    groups = [(base, [True] * before + [False] * ((past.iterations if past else 0) - before))]
    groups.append(("here", [iteration.status == "passed" for iteration in row.case.iterations]))
    for name, marks in groups:
        if not marks:
            continue
        x = canvas.line(x, top + 10, [Span(f"{name}  ", "quiet", size=_SIZE)]) + 4
        for good in marks:
            canvas.bar(x, top, 20, 20, "good" if good else "bad")
            canvas.line(x + 5, top + 10, [Span("✓" if good else "✗", "page", bold=True, size=_SIZE)])
            x += 24
        x += 16
    return top + 20


def _sides(turn: TurnResult, change: AnswerChange | None, base: str) -> list[_Side]:
    here = turn.response or turn.error or ""
    if change is None:
        return [_Side(f"{base} and here", here)]
    return [_Side(base, change.before or "", "added"), _Side("here", here, "removed")]


def _turns(canvas: Canvas, turns: Sequence[tuple[TurnResult, list[_Side]]], left: float, top: float) -> float:
    start, room = top, _WIDTH - left - 20 - 14
    for turn, sides in turns:
        heading = [Span(f"{turn.index + 1}  ", "quiet", size=_SIZE), Span(turn.input, bold=True, size=_SIZE)]
        top = _paragraph(canvas, lines_of(heading, room), left + 14, top) + 4
        top = _calls(canvas, turn, left + 14, top)
        top = _answers(canvas, sides, left + 14, top) + 12
    canvas.bar(left, start, 2, top - start - 12, "border")
    return top


def _calls(canvas: Canvas, turn: TurnResult, left: float, top: float) -> float:
    columns = int((_WIDTH - left - 20) / (_CODE * MONO_WIDTH))
    for call in turn.tool_calls:
        arguments = ", ".join(f"{name}: {value}" for name, value in (call.args or {}).items())
        text = _cut(f"⚙ {call.name}({arguments})", columns)
        canvas.line(left, top + 8, [Span(text, "quiet", mono=True, size=_CODE)])
        top += _CODE * LINE_HEIGHT
    return top + 2


def _cut(text: str, columns: int) -> str:
    text = " ".join(text.split())
    while cells(text) > columns:
        text = text[: -1 - len(_ENDS)] + _ENDS
    return text


def _answers(canvas: Canvas, sides: Sequence[_Side], left: float, top: float) -> float:
    width = (_WIDTH - left - 20 - 12 * (len(sides) - 1)) / len(sides)
    columns = [lines_of([Span(side.answer, side.ink or "text", size=_SIZE)], width - 20) for side in sides]
    height = max(map(len, columns)) * _SIZE * LINE_HEIGHT + 12
    for number, (side, lines) in enumerate(zip(sides, columns, strict=True)):
        x = left + number * (width + 12)
        canvas.line(x, top + 9, [Span(side.name, "quiet", size=_SMALL)])
        canvas.box(x, top + 20, width, height, fill=f"{side.ink}-line" if side.ink else "page", line="border")
        _paragraph(canvas, lines, x + 10, top + 26)
    return top + 20 + height


def _paragraph(canvas: Canvas, lines: Sequence[Sequence[Span]], left: float, top: float) -> float:
    for line in lines:
        height = max((span.size for span in line), default=_SIZE) * LINE_HEIGHT
        canvas.line(left, top + height / 2, line)
        top += height
    return top
