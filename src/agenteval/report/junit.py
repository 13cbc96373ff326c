"""Writes JUnit XML: one testsuite per suite, one testcase per case.

The output is valid for both versions of Jenkins' ``junit-10.xsd`` and Surefire's time format: no properties, file or
line in a testcase, no ``disabled``, three decimals in a time. Test reporters of GitHub still find the place of a
failure: the file is in its testsuite, the line is in the last line of its text, as in a stack trace. The result of
each metric is in the ``system-out`` of each case, and that of all cases in the properties of the testsuite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from agenteval.core import escape
from agenteval.report import words
from agenteval.report.cases import case_metrics
from agenteval.report.facts import Report
from agenteval.report.parts import ReportFile
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, Score, SuiteResult, TurnResult
from agenteval.results.masking import shortened_note
from agenteval.results.store import Archive, Passed, agent_seconds

if TYPE_CHECKING:
    from junit_xml import TestCase

#: In a suite with more cases, passed cases have no ``system-out``: they are not read in full.
MOST_WITH_METRICS = 2_000
_LONGEST_MESSAGE = 1_000
_LONGEST_TEXT = 10_000
_INDENT = "    "
_TIMESTAMP = len("2026-11-21T10:00:00")
_COUNTS = ("tests", "failures", "errors")
_STEP = "  "


def report_files(report: Report) -> Iterator[ReportFile]:
    """Yield ``junit.xml``."""
    yield ReportFile("junit.xml", render(report))


def render(report: Report) -> Iterator[str]:
    """Render the run as a JUnit document in UTF-8, piece by piece."""
    results, archive, unfinished = report.results, report.source.archive, report.about.unfinished
    # JUnit times have no time zone, so the time in UTC is cut after the seconds.
    timestamp = _line(report.run.started_at[:_TIMESTAMP])
    seconds = [archive.seconds(suite) for suite in results.suites]
    heads = [
        _suite_head(suite, archive.counts(suite), _time(taken), timestamp)
        for suite, taken in zip(results.suites, seconds, strict=True)
    ]
    if heads and unfinished:
        # Reporters look at testcases only, so one of them tells of all cases that did not run.
        heads[-1] |= {key: str(int(heads[-1][key]) + 1) for key in ("tests", "errors")}
    properties = list(_properties(report, len(results.suites) == 1))
    root = {key: str(sum(int(head[key]) for head in heads)) for key in _COUNTS}
    root["time"] = _time(sum(seconds))
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    yield _open_tag("testsuites", {"name": "agenteval", **root}, "")
    for suite, head in zip(results.suites, heads, strict=True):
        yield _open_tag("testsuite", head, _STEP)
        yield from properties
        yield from _testcases(_findings(suite, archive, int(head["tests"])), _line(suite.path))
        if suite is results.suites[-1] and unfinished:
            yield f"{_STEP * 2}{_unfinished(unfinished, _line(suite.path))}\n"
        yield f"{_STEP}</testsuite>\n"
    yield "</testsuites>\n"


def _findings(suite: SuiteResult, archive: Archive, cases: int) -> Iterable[tuple[CaseResult, float] | Passed]:
    if cases > MOST_WITH_METRICS:
        return archive.findings(suite)
    return ((case, agent_seconds(case)) for case in archive.cases(suite))


def _suite_head(suite: SuiteResult, counts: Counter[CaseStatus], time: str, timestamp: str) -> dict[str, str]:
    return {
        "errors": str(counts["error"]),
        "failures": str(counts["failed"]),
        "file": _line(suite.path),
        "name": _line(suite.name),
        "skipped": str(counts["skipped"]),
        "tests": str(counts.total()),
        "time": time,
        "timestamp": timestamp,
    }


def _properties(report: Report, with_metrics: bool) -> Iterator[str]:
    found = [
        ("verdict", f"{report.verdict}: {report.heading.title}"),
        *_coverage(report),
        *(_metrics(report) if with_metrics else ()),
    ]
    yield f"{_STEP * 2}<properties>\n"
    for name, value in found:
        yield f'{_STEP * 3}<property name="{_attribute(_line(name))}" value="{_attribute(_line(value))}" />\n'
    yield f"{_STEP * 2}</properties>\n"


def _coverage(report: Report) -> Iterator[tuple[str, str]]:
    covered = report.run.coverage
    counts = [covered.counts_note] if covered is not None and covered.counts_note else []
    if notes := "; ".join([*counts, *report.about.notes]):
        yield "coverage", notes


def _metrics(report: Report) -> Iterator[tuple[str, str]]:
    for row in report.scores:
        passed = "" if row.pass_rate is None else f", {words.percent(row.pass_rate)} passed"
        both = f"; {report.base_name} {words.number(row.baseline)} → here {words.number(row.current)}"
        mean = f"mean {words.number(row.mean)} of {words.count(row.n, 'score')}"
        yield f"metric.{row.id}", f"{mean}{passed}{both if row.compared else ''}"


def _open_tag(name: str, attributes: Mapping[str, str], indent: str) -> str:
    written = " ".join(f'{key}="{_attribute(value)}"' for key, value in attributes.items())
    return f"{indent}<{name} {written}>\n"


def _testcases(findings: Iterable[tuple[CaseResult, float] | Passed], path: str) -> Iterator[str]:
    classname = f' classname="{_attribute(path)}"' if path else ""
    for found in findings:
        if isinstance(found, Passed):
            yield _passed(found.name, classname, _time(found.seconds), "")
            continue
        case, seconds = found
        if case.status == "passed":
            yield _passed(case.name, classname, _time(seconds), _metric_lines(case))
        else:
            yield f"{_STEP * 2}{_element(_not_passed(case, path), _time(seconds))}\n"


def _passed(name: str, classname: str, time: str, metrics: str) -> str:
    start = f'{_STEP * 2}<testcase name="{_attribute(_line(name))}"{classname} time="{time}"'
    if not metrics:
        return f"{start} />\n"
    return f"{start}>\n{_STEP * 3}<system-out>{_content(metrics)}</system-out>\n{_STEP * 2}</testcase>\n"


def _metric_lines(case: CaseResult) -> str:
    lines = [_line(f"{metric.mark} {metric}") for metric in case_metrics(case)]
    tools = dict.fromkeys(call.name for turn in case.turns for call in turn.tool_calls)
    return "\n".join([*lines, *([_line(f"tools called: {', '.join(tools)}")] if tools else [])])


def _content(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attribute(line: str) -> str:
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _unfinished(amount: int, path: str) -> str:
    # Imported here, so that commands without reports do not import it.
    from junit_xml import TestCase

    testcase = TestCase("the run was interrupted", classname=path)
    testcase.add_error_info(f"{words.count(amount, 'case')} did not run", error_type="interrupted")
    return _element(testcase, _time(0))


def _element(testcase: TestCase, time: str) -> str:
    from xml.etree import ElementTree

    from junit_xml import TestSuite

    (element,) = TestSuite("", [testcase]).build_xml_doc()
    element.set("time", time)
    ElementTree.indent(element, level=2)
    element.tail = ""
    return ElementTree.tostring(element, encoding="unicode")


def _not_passed(case: CaseResult, path: str) -> TestCase:
    from junit_xml import TestCase

    testcase = TestCase(_line(case.name), classname=path, stdout=_metric_lines(case) or None)
    message = _line(words.why(case)) or case.status
    if case.status == "skipped":
        testcase.add_skipped_info(message)
    elif case.status == "failed":
        testcase.add_failure_info(message, _text(case, path), _type(case))
    else:
        testcase.add_error_info(message, _text(case, path), _type(case))
    return testcase


def _type(case: CaseResult) -> str:
    found = words.facts(case)
    return _line(found[0].id) if found else case.status


def _text(case: CaseResult, path: str) -> str:
    # Test reporters read the last place in a text, so no answer may follow it.
    place = [f"at {path}:{case.line}"] if case.line else []
    return escape.xml("\n".join([*_case_lines(case), *place]))


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
    for name, whole in turn.shortened.items():
        yield f"{name}: {shortened_note(whole)}"


def _score_line(score: Score) -> str:
    verdict = {True: " passed", False: " failed", None: ""}[score.passed]
    reason = words.score_reason(score)
    line = f"{score.id} {words.score_values(score)}{verdict}{': ' if reason else ''}{reason}"
    return escape.one_line(line, _LONGEST_MESSAGE)


def _labelled(label: str, text: str) -> Iterator[str]:
    """Yield the text after its label. Further lines are indented, so that no answer can imitate built-in lines."""
    lines = text[:_LONGEST_TEXT].splitlines() or [""]
    if len(text) > _LONGEST_TEXT:
        lines.append(f"… ({len(text) - _LONGEST_TEXT:,} more characters)")
    if len(lines) == 1:
        yield f"{label}: {lines[0]}"
    else:
        yield from _below(f"{label}:", lines)


def _below(heading: str, lines: Iterable[str]) -> Iterator[str]:
    if not heading:
        yield from lines
        return
    yield heading
    yield from (_INDENT + line for line in lines)


def _line(text: str) -> str:
    return escape.xml(escape.one_line(text, _LONGEST_MESSAGE))


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"
