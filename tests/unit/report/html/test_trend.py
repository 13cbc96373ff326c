from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.report import samples
from tests.unit.runs import case, results

from agenteval.report.charts import _ticks, svg, trend, trend_json, trend_part
from agenteval.report.facts import facts
from agenteval.report.junit import render as junit
from agenteval.report.overview import report_files as badge_files
from agenteval.report.parts import ScoreLines
from agenteval.results.case import CaseResult, CaseStatus
from agenteval.results.history import EarlierRun, read_history
from agenteval.results.model import Coverage, Judging, MetricSummary, NotJudged, Results, RunShard
from agenteval.results.store import IN_MEMORY, results_json
from agenteval.results.verdict import Gate

GOOD = samples.gate_of("passed", "passed")


def steady(count: int, **others: Sequence[float]) -> list[CaseResult]:
    """So many cases that always pass, but for those whose scores are given."""
    names = [f"c{number:02}" for number in range(count)]
    scores = {name: others.get(name, (1.0,) * 3) for name in names}
    return [
        case(name, "passed" if sum(row) >= 1.5 else "failed", [{"numeric": score} for score in row])
        for name, row in scores.items()
    ]


def past(count: int, cases: Sequence[CaseResult]) -> Results:
    """The last of some runs of the base branch that all went alike, with all of them in its baseline."""
    runs = [results(*cases, run_id=f"base-{day}") for day in range(1, count + 1)]
    entries = [
        entry.model_copy(update={"created_at": f"2026-01-{day:02}T00:00:00.000Z"})
        for day, run in enumerate(runs, start=1)
        for entry in run.baseline_runs
    ]
    return runs[-1].model_copy(update={"baseline_runs": entries})


def _run(name: str, moment: str, results: Results | None = None) -> Results:
    base = results or samples.green().results
    return base.model_copy(update={"run": base.run.model_copy(update={"id": name, "started_at": moment})})


def _write(path: Path, results: Results) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(results_json(results, IN_MEMORY)), encoding="utf-8")


# Reading a history.


def test_files_at_any_depth_are_read_the_oldest_first(tmp_path: Path) -> None:
    _write(tmp_path / "b" / "c" / "results.json", _run("second", "2026-11-02"))
    _write(tmp_path / "results.json", _run("third", "2026-11-03"))
    _write(tmp_path / "a" / "results-1.json", _run("first", "2026-11-01"))
    _write(tmp_path / "a" / "copy-of-results.json", _run("first", "2026-11-01"))
    (tmp_path / "trend.json").write_text("[]")
    history = read_history(tmp_path)
    assert [earlier.run.id for earlier in history.runs] == ["first", "second", "third"]
    assert history.warnings == ()


def test_unreadable_files_become_warnings(tmp_path: Path) -> None:
    _write(tmp_path / "good" / "results.json", _run("good", "2026"))
    broken = {
        "binary": b"\xff\xfe\x00",
        "cut": b'{"schema_version": 1, "run": {',
        "foreign": b'{"results": []}',
        "list": b"[]",
        "newer": b'{"schema_version": 99, "suites": []}',
        "partial": b'{"schema_version": 1, "run": {"id": 1}, "suites": []}',
        "deep": b"[" * 100_000,
    }
    for name, content in broken.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_bytes(content)
    (tmp_path / "results.json").mkdir()
    history = read_history(tmp_path)
    assert [earlier.run.id for earlier in history.runs] == ["good"]
    reasons = [text.removeprefix("history: ").replace("/results.json is left out", "") for text in history.warnings]
    foreign = "not a results file of agenteval"
    assert reasons == [
        "binary: not valid JSON",
        "cut: not valid JSON",
        "deep: nested too deeply",
        f"foreign: {foreign} (it has no schema_version)",
        f"list: {foreign} (it has no schema_version)",
        "2 more files are left out",
    ]
    newer, partial = (read_history(tmp_path / name).warnings for name in ("newer", "partial"))
    assert newer[0].startswith("history: results.json is left out: written by a newer agenteval (schema_version 99,")
    assert partial == ("history: results.json is left out: run.id: Input should be a valid string",)
    (tmp_path / "none").mkdir()
    assert read_history(tmp_path / "none").warnings == (f"history: no results file in {tmp_path / 'none'}",)


# The numbers.


def _earlier(results: Results) -> EarlierRun:
    return EarlierRun(schema_version=1, run=results.run, summary=results.summary)


def test_a_run_counts_once_however_it_is_known() -> None:
    now = past(3, steady(4, c00=(0.0, 0.0, 0.0)))
    earlier = [_earlier(_run("base-1", "2026-01-01", now)), _earlier(now), _earlier(_run("older", "2025-12-31", now))]
    points = trend(now, earlier)
    assert [(point.run_id, point.source) for point in points] == [
        ("older", "history"), ("base-1", "history"), ("base-2", "baseline"), ("base-3", "run"),
    ]  # fmt: skip


def test_trend_json_has_every_run_and_no_number_that_json_does_not_have() -> None:
    base = samples.green().results
    summary = base.summary.model_copy(update={"score": math.nan, "pass_rate": math.inf})
    points = trend(base, [_earlier(_run("odd", "2020", base.model_copy(update={"summary": summary})))])
    runs = json.loads(trend_json(points), parse_constant=lambda _: pytest.fail("not JSON"))["runs"]
    assert [(run["run_id"], run["score"], run["pass_rate"]) for run in runs] == [
        ("odd", None, None),
        ("run-2", 1.0, 1.0),
    ]


def test_lines_and_table_say_the_same() -> None:
    base = samples.green().results
    points = trend(base, [_earlier(_run("before", "2026-11-20T08:00:00Z"))])
    shown = trend_part(points)
    (drawing,) = shown.charts
    assert isinstance(drawing, ScoreLines)
    assert drawing.lines == (("numeric", (1.0, 1.0), False),)
    (values,) = shown.tables
    titles = [title for title, _ in values.columns]
    assert titles == ["Run", "Commit", "From", "Cases", "numeric", "pass rate", "cost", "duration"]
    assert values.rows[0][3:] == ("3", "1.00", "100 %", "$0.0123", "3.2 s")
    assert [row[2] for row in values.rows] == ["history", "this run"]


def test_a_metric_that_is_worse_stands_out_and_one_that_is_gone_is_in_the_table_only() -> None:
    now = past(1, [case("a", "passed", [{"numeric": 0.5, "bleu": 0.5}])])
    gone = {"rouge": MetricSummary(n=1, mean=0.5, pass_rate=None)}
    before = _run(
        "before", "2025", now.model_copy(update={"summary": now.summary.model_copy(update={"metrics": gone})})
    )
    shown = trend_part(trend(now, [_earlier(before)]), ["bleu"])
    (drawing,) = shown.charts
    assert isinstance(drawing, ScoreLines)
    assert [(name, is_worse) for name, _, is_worse in drawing.lines] == [
        ("mean score", False), ("numeric", False), ("bleu", True),
    ]  # fmt: skip
    assert ("rouge", True) in shown.tables[0].columns


# Drawings.

_VALUES = st.lists(st.none() | st.floats(0, 1), min_size=2, max_size=30)


@given(_VALUES, st.floats(0, 1), st.booleans())
def test_a_line_has_a_dot_for_each_value_inside_its_frame(
    earlier: list[float | None], now: float, is_worse: bool
) -> None:
    values = (*earlier, now)
    names = tuple(f"run {place}<" for place in range(len(values)))
    drawing = svg(ScoreLines("<&>", names, (("f1<", values, is_worse), ("bleu", (*earlier[::-1], now), False))))
    dots = re.findall(r'<circle class="dot[ a-z]*" cx="([\d.]+)" cy="([\d.]+)" r="\d"><title>f1', drawing)
    assert len(dots) == sum(value is not None for value in values)
    assert all(0 <= float(x) <= 300 and 11.9 <= float(y) <= 212.1 for x, y in dots)
    # This run stands apart from the others, and the labels of lines do not cover each other.
    places = [float(x) for x, _ in dots]
    assert places == sorted(places)
    (one, other) = (float(y) for y in re.findall(r'<text[^>]* y="([\d.]+)" text-anchor="start">(?:f1|bleu)', drawing))
    assert abs(one - other) >= 13.9
    assert drawing.count("dot now worse") == is_worse
    assert "<&>" not in drawing
    assert "f1<" not in drawing


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_axis_is_around_its_values(values: list[float]) -> None:
    axis = _ticks(values)
    assert 3 <= len(axis) <= 6
    assert axis[0] <= min(values) + 1e-9
    assert max(values) - 1e-9 <= axis[-1]
    # No tick beyond what is needed.
    step = axis[1] - axis[0]
    assert len(axis) == 3 or (axis[1] > min(values) - step / 1e6 and axis[-2] < max(values) + step / 1e6)


# Files.


def _badge(results: Results, gate: Gate = GOOD) -> Any:
    (file,) = badge_files(facts(results, gate))
    return json.loads(str(file.text))


@pytest.mark.parametrize(
    ("coverage", "more", "message"),
    [
        ({"selected": 2, "finished": 2, "filter": "refund"}, {}, "100 % passed, 2 of 10 cases"),
        ({"selected": 10, "finished": 9, "ended_by": "time"}, {"complete": False}, "interrupted, 9 of 10 cases"),
        (
            {"selected": 10, "finished": 5},
            {"shard": RunShard(index=1, count=2, cases=["a"])},
            "shard 1 of 2, 5 of 10 cases",
        ),
        ({"selected": 10, "finished": 10}, {"judging": 6}, "100 % passed, judged 6 of 8 cases"),
    ],
)
def test_badge_and_junit_of_a_part_say_of_how_many(
    coverage: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    judged = more.get("judging")
    results = samples.green().results
    summary = results.summary
    if judged is not None:
        left_out = NotJudged(cause="limit", limit="limit of 6 calls", cases=2)
        summary = summary.model_copy(update={"judging": Judging(cases=8, judged=judged, not_judged=[left_out])})
    fields = {key: value for key, value in more.items() if key != "judging"}
    run = results.run.model_copy(update={"coverage": Coverage(cases=10, **coverage), **fields})
    results = results.model_copy(update={"run": run, "summary": summary})
    assert _badge(results)["message"] == message
    properties = ElementTree.fromstring("".join(junit(facts(results, GOOD)))).findall("testsuite/properties/property")
    (shown,) = (item.attrib["value"] for item in properties if item.attrib["name"] == "coverage")
    assert all(part in shown for part in message.split(", ")[1:])


@pytest.mark.parametrize(
    ("statuses", "undecided", "message", "colour"),
    [
        ("pss", 0, "1 of 3 passed", "orange"),
        ("ppppp", 4, "1 of 5 passed, 4 unchecked", "orange"),
        ("p" * 19 + "e", 0, "19 of 20 passed", "green"),
        ("pf", 0, "50 % passed", "yellow"),
    ],
)
def test_a_badge_tells_how_many_cases_were_checked(statuses: str, undecided: int, message: str, colour: str) -> None:
    names: dict[str, CaseStatus] = {"p": "passed", "f": "failed", "s": "skipped", "e": "error"}
    cases = [samples.case(f"c{number}", status=names[letter]) for number, letter in enumerate(statuses)]
    results = samples.results(samples.suite(*cases))
    suite = results.suites[0].model_copy(update={"undecided": undecided})
    results = results.model_copy(update={"suites": [suite]})
    badge = _badge(results)
    assert (badge["message"], badge["color"]) == (message, colour)
    assert _badge(results, samples.gate_of("failed", "failed"))["color"] == "red"
