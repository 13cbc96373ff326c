"""Compares the analyses of the production example with what its traces must give."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from tests.end_to_end.exact_statistics import deviation, fences, fisher, mean, student, welch, wilson
from tests.end_to_end.fluxloop_checks import Done, by_persona, finals_of, is_written_as, near, present, table
from tests.end_to_end.fluxloop_known import COUNT, ITERATIONS, Plan, Row, judged


def check_criteria(done: Done, rows: Sequence[Row]) -> None:
    """Those of the production example."""
    times = present([row.trace.duration_ms for row in rows])
    successful = Fraction(sum(row.was_successful for row in rows), len(rows))
    wanted: dict[str, tuple[bool, Fraction, Fraction]] = {
        "all_traces_successful": (successful == 1, successful, Fraction(1)),
        "avg_response_time": (mean(times) <= 1500, mean(times) / 1000, Fraction("1.5")),
        "error_rate": (1 - successful <= Fraction("0.02"), 1 - successful, Fraction("0.02")),
    }
    for name in ("intent_recognition", "response_quality"):
        average = mean([row.scores[name] for row in rows if name in row.scores])
        wanted[f"quality.{name}"] = (average >= Fraction("0.8"), average, Fraction("0.8"))
    assert done.suite["criteria"] == [
        {"name": name, "met": met, "value": near(value), "threshold": near(limit)}
        for name, (met, value, limit) in wanted.items()
    ]
    found = done.summary["success_criteria_results"]
    flat = {**found["performance"], **{f"quality.{name}": check for name, check in found["quality"].items()}}
    assert {name: check["met"] for name, check in flat.items()} == {name: met for name, (met, *_) in wanted.items()}
    assert flat["error_rate"]["error_rate_percent"] == near(100 * (1 - successful))
    assert flat["avg_response_time"]["average_ms"] == near(mean(times))
    overall = all(met for met, *_ in wanted.values())
    assert (done.summary["overall_success"], found["overall_success"]) == (overall, overall)
    rows_of_report = re.findall(r"^\| (✅|❌) (met|not met) \| (.*?) \| (.*?) \| .*\|$", done.report, re.MULTILINE)
    for (icon, _, label, value), (name, (met, share, _)) in zip(rows_of_report, wanted.items(), strict=True):
        assert (icon, label) == ("✅" if met else "❌", name.replace("_", " ").replace(".", ": "))
        assert is_written_as(value, share * 1000 if value.endswith("s") else share)


def check_outliers(done: Done, rows: Sequence[Row]) -> None:
    found = done.summary["analysis"]["performance"]
    assert found["outlier_handling"] == "analyze_separately"
    measured: dict[str, dict[str, Fraction | int]] = {
        "duration_ms": {
            row.trace.trace_id: row.trace.duration_ms for row in rows if row.trace.duration_ms is not None
        },
        "final_score": {row.trace.trace_id: row.final for row in rows if row.final is not None},
    }
    for measure, values in measured.items():
        low, high = fences(list(values.values()))
        outside = {name: value for name, value in values.items() if not low <= value <= high}
        assert outside, measure
        listed = found["outliers"][measure]
        assert {item["trace_id"]: item["value"] for item in listed} == {
            name: near(value) for name, value in outside.items()
        }
        assert all(item["thresholds"] == {"lower": near(low), "upper": near(high)} for item in listed)
        excess = [max(float(low) - item["value"], item["value"] - float(high)) for item in listed]
        assert excess == sorted(excess, reverse=True)
        assert found["outlier_effect"][measure] == {
            "count": len(outside),
            "above": sum(value > high for value in outside.values()),
            "average_with": near(mean(list(values.values()))),
            "average_without": near(mean([value for value in values.values() if low <= value <= high])),
        }


def check_trends(done: Done, rows: Sequence[Row]) -> None:
    groups = [[row for row in rows if row.trace.iteration == iteration] for iteration in range(ITERATIONS)]
    scores = [mean(finals_of(group)) for group in groups]
    times = [mean(present([row.trace.duration_ms for row in group])) for group in groups]
    written = table(done.report, "From iteration to iteration")
    for name, label, means, tolerance in (
        ("final_score", "Score", scores, Fraction("0.01")),
        ("duration_ms", "Time", times, mean(times) / 100),
    ):
        slope = (means[-1] - means[0]) / (ITERATIONS - 1)
        direction = "stable" if abs(slope) <= tolerance else "increasing" if slope > 0 else "decreasing"
        assert done.summary["analysis"]["performance"]["trends"][name] == {
            "trend": direction,
            "slope": near(slope),
            "points": [[place, near(value)] for place, value in enumerate(means)],
        }
        trend, first, last, iterations = written[label]
        assert (trend.split()[0], iterations) == (direction, str(ITERATIONS))
        assert is_written_as(first, means[0])
        assert is_written_as(last, means[-1])


def check_failures(found: Mapping[str, Any], rows: Sequence[Row], threshold: Fraction) -> None:
    """A failure has to do with every evaluator that took points, and with the agent where it did not succeed."""
    causes: Counter[str] = Counter()
    for row in rows:
        if row.passed is False:
            lost = {name for name, score in row.scores.items() if score < threshold}
            about = {
                "runtime_error": not row.was_successful,
                "empty_output": "not_empty" in lost or ("response_quality" in lost and row.trace.is_blank),
                "token_usage": "token_budget" in lost,
                "intent_recognition": "intent_recognition" in lost,
                "general": "response_quality" in lost and not row.trace.is_blank,
            }
            causes.update(name for name, holds in about.items() if holds)
    assert found["count"] == sum(row.passed is False for row in rows)
    assert found["categorized"] == causes


def check_comparison(done: Done, plan: Plan, now: Sequence[Row], before: Sequence[Row]) -> None:
    def metric(rows: Sequence[Row], name: str) -> Fraction:
        return mean([row.scores[name] for row in rows if name in row.scores])

    pairs = {
        "pass_rate": tuple(
            Fraction(sum(row.passed is True for row in rows), len(judged(rows))) for rows in (now, before)
        ),
        "average_score": tuple(mean(finals_of(rows)) for rows in (now, before)),
        "total_traces": (Fraction(COUNT), Fraction(COUNT)),
        "passed_traces": tuple(Fraction(sum(row.passed is True for row in rows)) for rows in (now, before)),
    }
    metrics = {name: (metric(now, name), metric(before, name)) for name in plan.weights}

    def delta(current: Fraction, baseline: Fraction) -> Mapping[str, Any]:
        return {"current": near(current), "baseline": near(baseline), "delta": near(current - baseline)}

    assert done.summary["analysis"]["comparison"] == {
        **{name: delta(*pair) for name, pair in pairs.items()},
        "evaluator_averages": {name: delta(*pair) for name, pair in metrics.items()},
        "baseline_path": "experiments/baseline/evaluation/summary.json",
    }
    written = table(done.report, "Against the baseline")
    labels = {
        "Pass rate": "pass_rate",
        "Mean score": "average_score",
        "Answers": "total_traces",
        "Passed": "passed_traces",
    }
    assert list(written) == [*labels, *metrics]
    for label, (baseline, current, change) in written.items():
        values = pairs[labels[label]] if label in labels else metrics[label]
        assert is_written_as(current, values[0])
        assert is_written_as(baseline, values[1])
        assert is_written_as(change, values[0] - values[1])


def check_statistics(found: Mapping[str, Any], plan: Plan, now: Sequence[Row], before: Sequence[Row]) -> None:
    passed, passed_before = (sum(row.passed is True for row in rows) for rows in (now, before))
    count, count_before = len(judged(now)), len(judged(before))
    assert (found["significance"], found["confidence"]) == (0.05, 0.95)
    assert found["intervals"]["pass_rate"] == pytest.approx(wilson(passed, count, 0.95))
    groups = {"average_score": finals_of(now)}
    groups |= {name: [row.scores[name] for row in now if name in row.scores] for name in plan.weights}
    for name, (low, high) in {
        **found["intervals"]["evaluators"],
        "average_score": found["intervals"]["average_score"],
    }.items():
        values = groups[name]
        assert low + high == pytest.approx(float(2 * mean(values)))
        t = (high - low) / 2 / deviation(values) * math.sqrt(len(values))
        assert student(t, len(values) - 1) == pytest.approx(0.95)
    tests = {(test["subject"], test["against"], test["measure"]): test for test in found["tests"]}
    rate = tests["this run", "the baseline", "pass_rate"]
    assert rate["p"] == pytest.approx(fisher(passed, count, passed_before, count_before))
    finals = finals_of(now)
    assert tests["this run", "the baseline", "final_score"]["p"] == pytest.approx(welch(finals, finals_of(before)))
    for persona, group in by_persona(now).items():
        others = [row for row in now if row not in group]
        test = tests[persona, "the other personas", "final_score"]
        assert test["p"] == pytest.approx(welch(finals_of(group), finals_of(others)))
        test = tests[persona, "the other personas", "pass_rate"]
        counts = [(sum(row.passed is True for row in rows), len(judged(rows))) for rows in (group, others)]
        assert test["p"] == pytest.approx(fisher(*counts[0], *counts[1]))
    # Holm: the smallest p against 0.05 / m, the next one against 0.05 / (m - 1), until one does not hold.
    stands = True
    for place, test in enumerate(sorted(found["tests"], key=lambda item: item["p"])):
        stands = stands and test["p"] <= 0.05 / (len(tests) - place)
        assert test["significant"] == stands
