"""Every case with the result of each metric, for ``--verbose``."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.report.terminal.lines import BLANK, LONGEST_NAME, Line, Part, line, shown
from agenteval.report.view import view
from agenteval.report.view.iterations import distinct_iterations
from agenteval.results.archive import Archive
from agenteval.results.case import CaseResult, CaseStatus, Score, SuiteResult, TurnResult
from agenteval.results.model import Results

_MOST_CASES = 1_000
_SIGNS: dict[CaseStatus, Part] = {
    "passed": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "error": ("!", "bold magenta"),
    "skipped": ("-", "yellow"),
}
_MARKS: dict[bool | None, Part] = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}
_LONGEST_INPUT = 200


def case_lines(results: Results, archive: Archive) -> Iterator[Line]:
    """Yield the lines of all cases, in the order of the suites."""
    several = len(results.suites) > 1
    left = _MOST_CASES
    for suite in results.suites:
        for case in archive.cases(suite):
            if not left:
                yield line((f"… and {results.summary.cases - _MOST_CASES:,} more in results.json", "dim"))
                yield BLANK
                return
            left -= 1
            yield from _case(case, suite if several else None)
    yield BLANK


def _case(case: CaseResult, suite: SuiteResult | None) -> Iterator[Line]:
    sign, style = _SIGNS[case.status]
    where: Part = (f"  {shown(suite.path)}" if suite else "", "dim")
    note = view.iterations_note(case)
    yield line(
        (f"{sign} ", style), (shown(case.name, LONGEST_NAME), "bold"), where, (f"  {note}" if note else "", "dim")
    )
    for iteration, words in distinct_iterations(case):
        if words:
            yield line((words, "dim"), indent=2, hang=4)
        for turn in iteration.turns:
            yield from _turn(turn, several=len(iteration.turns) > 1)


def _turn(turn: TurnResult, *, several: bool) -> Iterator[Line]:
    label = f"Turn {turn.index + 1}: " if several else "Input: "
    yield line((label, "dim"), f'"{shown(turn.input, _LONGEST_INPUT)}"', indent=4, hang=6)
    if turn.error:
        yield line(("! ", "magenta"), f"agent error: {shown(turn.error)}", indent=4, hang=6)
    checks = [score for score in turn.scores if score.kind == "tools"]
    if turn.tool_calls or checks:
        names = ", ".join(shown(call.name, 100) for call in turn.tool_calls)
        mark: Part = ("", "")
        if checks and all(score.passed is not None for score in checks):
            sign, style = _MARKS[all(score.passed for score in checks)]
            mark = (f" {sign}", style)
        yield line(("Tools called: ", "dim"), f"[{names}]", mark, indent=4, hang=6)
    for score in turn.scores:
        yield _score(score)


def _score(score: Score) -> Line:
    """Return ``✓ faithfulness: 0.92 (threshold: 0.8)``, with the reason if the metric failed."""
    reason = view.score_reason(score)
    if score.status != "scored" or score.score is None:
        sign: Part = ("! ", "magenta") if score.status == "error" else ("- ", "yellow")
        return line(
            sign, f"{shown(score.id, 100)}: {score.status}{f': {shown(reason)}' if reason else ''}", indent=4, hang=8
        )
    mark, style = _MARKS[score.passed]
    value, _ = view.distinct(score.score, score.threshold)
    threshold = "—" if score.threshold is None else f"{score.threshold:g}"
    why: Part = (f"  {shown(reason)}" if reason and score.passed is not True else "", "dim")
    return line(
        (f"{mark} ", style), f"{shown(score.id, 100)}: {value} (threshold: {threshold})", why, indent=4, hang=8
    )
