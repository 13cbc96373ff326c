"""Compares what a run of a FluxLoop evaluation wrote with the scores that its traces must have."""

from __future__ import annotations

import html
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.end_to_end.exact_statistics import deviation, mean, percentile
from tests.end_to_end.fluxloop_known import Plan, Row, judged
from tests.support import Ended


@dataclass(frozen=True)
class Done:
    """A finished run: how it ended, and what it wrote."""

    ended: Ended
    out: Path

    @property
    def results(self) -> Any:
        return json.loads((self.out / "results.json").read_text(encoding="utf-8"))

    @property
    def suite(self) -> Any:
        (suite,) = self.results["suites"]
        return suite

    @property
    def summary(self) -> Any:
        return json.loads((self.out / "evaluation" / "summary.json").read_text(encoding="utf-8"))

    @property
    def lines(self) -> list[Any]:
        text = (self.out / "evaluation" / "per_trace.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    @property
    def report(self) -> str:
        return (self.out / "evaluation" / "report.md").read_text(encoding="utf-8")


def near(value: Fraction | float) -> Any:
    return pytest.approx(float(value), abs=1e-12, rel=1e-12)


def present(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def is_written_as(cell: str, value: Fraction | int) -> bool:
    """Whether a number of a report, with its unit, is the value to as many decimals as it has."""
    found = re.fullmatch(r"([+−]?[\d,]+(?:\.(\d+))?)( ms| s| %| points)?", cell.replace("±", ""))
    if not found:
        return False
    scales = {" %": Fraction(100), " points": Fraction(100), " s": Fraction(1, 1000)}
    step = Fraction(1, 10 ** len(found[2] or ""))
    scaled = Fraction(value) * scales.get(found[3], Fraction(1))
    return abs(Fraction(found[1].replace(",", "").replace("−", "-")) - scaled) <= step * Fraction("0.5000001")


def are_written_as(cells: Sequence[str], values: Sequence[Fraction | int]) -> bool:
    return len(cells) == len(values) and all(map(is_written_as, cells, values))


def table(report: str, title: str) -> dict[str, list[str]]:
    """First cell → the other ones, of the first table below a heading."""
    below = re.split(rf"^##+ {re.escape(title)}$", report, flags=re.MULTILINE)[1]
    rows = [line.strip("|").split("|") for line in re.findall(r"^\|.*\|$", below.split("\n#")[0], re.MULTILINE)]
    plain = [[html.unescape(cell.strip()) for cell in row] for row in rows[2:]]
    return {row[0]: row[1:] for row in plain}


def figure(report: str, label: str) -> tuple[str, str]:
    """A leading number and what stands in brackets behind it."""
    found = re.search(rf"^- <b>{re.escape(label)}</b>: (.*?)(?: \((.*)\))?$", report, re.MULTILINE)
    assert found, label
    return found[1], found[2]


def finals_of(rows: Sequence[Row]) -> list[Fraction]:
    return present([row.final for row in rows])


def by_persona(rows: Sequence[Row]) -> Mapping[str, Sequence[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.trace.persona or "default"].append(row)
    return groups


def is_name_of(name: str, row: Row) -> bool:
    """Return whether a case has the name of a question, with its persona and perhaps a number."""
    persona = row.trace.persona
    asked = f"{row.trace.question} [{persona}]" if persona else row.trace.question
    return re.fullmatch(rf"{re.escape(asked)}( \(\d+\))?", name) is not None


def check_cases(done: Done, plan: Plan, rows: Sequence[Row]) -> None:
    suite, summary = done.suite, done.results["summary"]
    cases = suite["cases"]
    assert suite["threshold"] == near(plan.threshold)
    assert len({case["id"] for case in cases}) == len(rows)
    assert len({case["cluster"] for case in cases}) == len({(row.trace.persona, row.trace.question) for row in rows})
    assert len({case["name"] for case in cases}) == len(rows)
    for case, row in zip(cases, rows, strict=True):
        persona = row.trace.persona
        assert is_name_of(case["name"], row)
        assert case["tags"] == ([f"persona:{persona}"] if persona else [])
        assert case["status"] == row.status
        assert case["score"] == (None if row.final is None else near(row.final))
        ((turn,),) = (iteration["turns"] for iteration in case["iterations"])
        assert turn["latency_ms"] == row.trace.duration_ms
        assert {score["id"]: score["score"] for score in turn["scores"]} == {
            **{name: near(score) for name, score in row.scores.items()},
            **dict.fromkeys(row.absent),
        }
    counts = Counter(row.status for row in rows)
    passed, errors, skipped = counts["passed"], counts["error"], counts["skipped"]
    assert (summary["cases"], summary["passed"], summary["failed"]) == (len(rows), passed, counts["failed"])
    assert (summary["errors"], summary["skipped"]) == (errors, skipped)
    assert (summary["pass_rate"], summary["score"]) == (
        near(Fraction(passed, len(rows) - skipped)),
        near(mean(finals_of(rows))),
    )
    for name in plan.weights:
        scores = [row.scores[name] for row in rows if name in row.scores]
        assert (summary["metrics"][name]["n"], summary["metrics"][name]["mean"]) == (len(scores), near(mean(scores)))


def check_lines(done: Done, rows: Sequence[Row]) -> None:
    for line, row in zip(done.lines, rows, strict=True):
        trace = row.trace
        assert (line["trace_id"], line["iteration"], line["persona"]) == (
            trace.trace_id,
            trace.iteration,
            trace.persona,
        )
        assert (line["success"], line["pass"]) == (row.was_successful, row.passed), trace
        assert (line["duration_ms"], line.get("total_tokens")) == (trace.duration_ms, trace.tokens)
        assert line["scores"] == {name: near(score) for name, score in row.scores.items()}
        assert line["final_score"] == (None if row.final is None else near(row.final))
        assert set(line.get("absent", {})) == row.absent


def check_summary(done: Done, plan: Plan, rows: Sequence[Row]) -> None:
    summary = done.summary
    finals = finals_of(rows)
    passed = sum(row.passed is True for row in rows)
    assert (summary["total_traces"], summary["judged_traces"], summary["passed_traces"]) == (
        len(rows),
        len(finals),
        passed,
    )
    assert summary["successful_traces"] == sum(row.was_successful for row in rows)
    assert (summary["pass_rate"], summary["average_score"]) == (
        near(Fraction(passed, len(finals))),
        near(mean(finals)),
    )
    assert summary["score_stats"]["deviation"] == pytest.approx(deviation(finals))
    assert (summary["threshold"], summary["aggregate_method"]) == (near(plan.threshold), "weighted_sum")
    assert summary["evaluators"] == list(plan.weights)
    for name, stats in summary["evaluator_stats"].items():
        scores = [row.scores[name] for row in rows if name in row.scores]
        assert stats == {
            "average": near(mean(scores)),
            "min": near(min(scores)),
            "max": near(max(scores)),
            "count": len(scores),
            "deviation": pytest.approx(deviation(scores)),
            "reached": sum(score >= plan.threshold for score in scores),
            "absent": len(rows) - len(scores),
        }
    times = present([row.trace.duration_ms for row in rows])
    assert summary["duration_stats"] == {
        "average": near(mean(times)),
        "deviation": pytest.approx(deviation(times)),
        "count": len(times),
        "max": max(times),
        "timed_traces": len(times),
        "untimed_traces": sum(row.was_successful and row.trace.duration_ms is None for row in rows),
        **{f"p{part}": near(percentile(times, Fraction(part, 100))) for part in (50, 90, 95, 99)},
    }
    groups = by_persona(rows)
    assert list(summary["persona_breakdown"]) == sorted(groups)
    for name, group in groups.items():
        assert summary["persona_breakdown"][name] == {
            "count": len(group),
            "average_score": near(mean(finals_of(group))),
            "pass_rate": near(Fraction(sum(row.passed is True for row in group), len(judged(group)))),
            "average_duration_ms": near(mean(present([row.trace.duration_ms for row in group]))),
            "failed_traces": sum(row.passed is False for row in group),
        }


def check_report(done: Done, plan: Plan, rows: Sequence[Row]) -> None:
    report = done.report
    passed, count = sum(row.passed is True for row in rows), len(rows)
    finals = finals_of(rows)
    rate, note = figure(report, "Pass rate")
    assert is_written_as(rate, Fraction(passed, len(finals)))
    assert note.startswith(f"{passed} of {len(finals)}")
    assert is_written_as(figure(report, "Mean score")[0], mean(finals))
    times = present([row.trace.duration_ms for row in rows])
    assert is_written_as(figure(report, "Mean time")[0], mean(times))
    assert is_written_as(figure(report, "95 % are faster than")[0], percentile(times, Fraction(95, 100)))
    unsuccessful = sum(not row.was_successful for row in rows)
    rate, note = figure(report, "Without success")
    assert (is_written_as(rate, Fraction(unsuccessful, count)), note) == (True, f"{unsuccessful} of {count}")
    metrics = table(report, "Metrics")
    assert list(metrics) == list(plan.weights)
    for name, cells in metrics.items():
        scores = [row.scores[name] for row in rows if name in row.scores]
        reached = Fraction(sum(score >= plan.threshold for score in scores), len(scores))
        values = (mean(scores), min(scores), max(scores), reached, len(scores), count - len(scores))
        assert are_written_as(cells, values), (cells, values)
    personas = table(report, "Personas")
    groups = by_persona(rows)
    assert personas.keys() == groups.keys()
    for name, cells in personas.items():
        group = groups[name]
        numbers = (
            Fraction(sum(row.passed is True for row in group), len(judged(group))),
            mean(finals_of(group)),
            mean(present([row.trace.duration_ms for row in group])),
            len(group),
            sum(row.passed is False for row in group),
        )
        assert are_written_as(cells, numbers), (cells, numbers)


def check_junit(done: Done, plan: Plan, rows: Sequence[Row]) -> None:
    root = ElementTree.parse(done.out / "junit.xml").getroot()
    (suite,) = root.findall("testsuite")
    counts = Counter(row.status for row in rows)
    for element in (root, suite):
        assert {key: int(element.attrib[key]) for key in ("tests", "failures", "errors")} == {
            "tests": len(rows),
            "failures": counts["failed"],
            "errors": counts["error"],
        }
    assert float(suite.attrib["time"]) == pytest.approx(
        sum(present([row.trace.duration_ms for row in rows])) / 1000, abs=1e-3
    )
    for element, row in zip(suite.findall("testcase"), rows, strict=True):
        assert is_name_of(element.attrib["name"], row)
        assert float(element.attrib["time"]) == pytest.approx((row.trace.duration_ms or 0) / 1000, abs=1e-3)
        assert (element.find("failure") is None) == (row.passed is not False)
        written = dict(re.findall(r"^(\w+) ([\d.]+|skipped|error)\b", element.findtext("failure", ""), re.MULTILINE))
        for name in plan.weights if row.passed is False else ():
            if name in row.absent:
                assert written[name] in {"skipped", "error"}
            else:
                assert is_written_as(written[name], row.scores[name])


def check_everything(done: Done, plan: Plan, rows: Sequence[Row]) -> None:
    check_cases(done, plan, rows)
    check_lines(done, rows)
    check_summary(done, plan, rows)
    check_report(done, plan, rows)
    check_junit(done, plan, rows)
