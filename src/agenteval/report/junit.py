"""JUnit XML: one testsuite per suite, one testcase per case.

The output keeps to what both versions of Jenkins' ``junit-10.xsd`` and Surefire's time format allow: no properties,
file or line in a testcase, no ``disabled``, three decimals in a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from agenteval.report import escape, view
from agenteval.results.model import CaseResult, IterationResult, Results, Score, SuiteResult, TurnResult

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from junit_xml import TestCase

_LONGEST_MESSAGE = 1_000
_LONGEST_TEXT = 10_000
_INDENT = "    "
_TIMESTAMP = len("2026-11-21T10:00:00")
_COUNTS = ("tests", "failures", "errors")


def render(results: Results) -> str:
    """The run as a JUnit document that declares UTF-8; write it with that encoding."""
    # Imported here: a program start that renders nothing does not pay for it.
    from xml.etree import ElementTree

    # Readers of JUnit expect a time without a zone: cut to seconds, as the run writes it in UTC.
    timestamp = _line(results.run.started_at[:_TIMESTAMP])
    suites = [_suite(suite, timestamp) for suite in results.suites]
    root = ElementTree.Element("testsuites", {"name": "agenteval"})
    for key in _COUNTS:
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    root.set("time", _time(sum(float(suite.get("time", "0")) for suite in suites)))
    root.extend(suites)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(suite: SuiteResult, timestamp: str) -> Element:
    from junit_xml import TestSuite

    path = _line(suite.path)
    cases = [_case(case, path) for case in suite.cases]
    element: Element = TestSuite(_line(suite.name), cases, timestamp=timestamp).build_xml_doc()
    element.attrib.pop("disabled", None)
    element.set("time", _time(sum(map(view.seconds, suite.cases))))
    for testcase, case in zip(element.iter("testcase"), suite.cases, strict=True):
        testcase.set("time", _time(view.seconds(case)))
    return element


def _case(case: CaseResult, path: str) -> TestCase:
    from junit_xml import TestCase

    testcase = TestCase(_line(case.name), classname=path)
    if case.status == "passed":
        return testcase
    message = _line(view.why(case)) or case.status
    if case.status == "skipped":
        testcase.add_skipped_info(message)
    elif case.status == "failed":
        testcase.add_failure_info(message, _text(case), _type(case))
    else:
        testcase.add_error_info(message, _text(case), _type(case))
    return testcase


def _type(case: CaseResult) -> str:
    """What said no: the first metric's id, or ``agent``."""
    found = view.facts(case)
    return _line(found[0].id) if found else case.status


def _text(case: CaseResult) -> str:
    return escape.xml("\n".join(_case_lines(case)))


def _case_lines(case: CaseResult) -> Iterator[str]:
    total = len(case.iterations)
    for iteration in case.iterations:
        heading = f"iteration {iteration.index + 1} of {total}: {iteration.status}" if total > 1 else ""
        yield from _below(heading, _iteration_lines(iteration))


def _iteration_lines(iteration: IterationResult) -> Iterator[str]:
    total = len(iteration.turns)
    for turn in iteration.turns:
        heading = f"turn {turn.index + 1} of {total}" if total > 1 else ""
        yield from _below(heading, _turn_lines(turn))


def _turn_lines(turn: TurnResult) -> Iterator[str]:
    if turn.error:
        yield from _labelled("error", turn.error)
    yield from map(_score_line, turn.scores)
    yield from _labelled("input", turn.input)
    if turn.ground_truth is not None:
        yield from _labelled("expected", turn.ground_truth)
    if turn.response is not None:
        yield from _labelled("response", turn.response)


def _score_line(score: Score) -> str:
    verdict = {True: " passed", False: " failed", None: ""}[score.passed]
    reason = view.score_reason(score)
    line = f"{score.id} {view.score_values(score)}{verdict}{': ' if reason else ''}{reason}"
    return escape.one_line(line, _LONGEST_MESSAGE)


def _labelled(label: str, text: str) -> Iterator[str]:
    """The text behind its label. Further lines are indented: no answer can pass for a line of ours."""
    lines = text[:_LONGEST_TEXT].splitlines() or [""]
    if len(text) > _LONGEST_TEXT:
        lines.append(f"… ({len(text) - _LONGEST_TEXT:,} more characters)")
    if len(lines) == 1:
        yield f"{label}: {lines[0]}"
    else:
        yield from _below(f"{label}:", lines)


def _below(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """The lines, indented below a heading if there is one."""
    if not heading:
        yield from lines
        return
    yield heading
    yield from (_INDENT + line for line in lines)


def _line(text: str) -> str:
    return escape.xml(escape.one_line(text, _LONGEST_MESSAGE))


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"
