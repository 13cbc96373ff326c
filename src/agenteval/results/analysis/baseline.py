"""Compares a run with an earlier summary.json: differences, confidence intervals and tests."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.core.files import read_regular
from agenteval.core.statistics import holm
from agenteval.core.text import display_path
from agenteval.results.analysis.moments import Moments, share_p, t_interval, welch_p, wilson
from agenteval.results.importers.base import finite

_LARGEST_FILE = 100 * 1024 * 1024
_TOTALS = ("pass_rate", "average_score", "total_traces", "passed_traces")


def read_baseline(path: Path) -> dict[str, Any] | str:
    """Read a summary.json.

    Returns:
        Its figures, unknown ones as ``None``; or a message that explains why the file cannot be used.
    """
    shown = display_path(path)
    try:
        content = json.loads(read_regular(path, limit=_LARGEST_FILE).decode("utf-8-sig"))
    except FileNotFoundError:
        return f"there is no baseline at {shown}"
    except OSError as error:
        return f"the baseline {shown} cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return f"the baseline {shown} is not valid JSON"
    baseline = _baseline(content, shown) if isinstance(content, dict) else None
    if baseline is None:
        return (
            f"the baseline {shown} is not a summary: it has neither pass_rate nor average_score nor evaluator_stats"
        )
    return baseline


def _baseline(content: Mapping[str, Any], shown: str) -> dict[str, Any] | None:
    metrics = {name: _stats(stats) for name, stats in _mapping(content, "evaluator_stats").items()}
    metrics = {name: stats for name, stats in metrics.items() if stats["average"] is not None}
    rates = {name: finite(content.get(name)) for name in ("pass_rate", "average_score", "threshold")}
    if rates["pass_rate"] is None and rates["average_score"] is None and not metrics:
        return None
    counts = {name: _count(content.get(name)) for name in ("total_traces", "passed_traces", "judged_traces")}
    if counts["judged_traces"] is None:
        counts["judged_traces"] = counts["total_traces"]
    scores = _stats(content.get("score_stats"))
    return {**rates, **counts, "score_stats": scores, "evaluator_stats": metrics, "baseline_path": shown}


def _stats(stats: object) -> dict[str, Any]:
    found = stats if isinstance(stats, dict) else {}
    average, deviation = (finite(found.get(name)) for name in ("average", "deviation"))
    return {"average": average, "deviation": deviation, "count": _count(found.get("count"))}


def _mapping(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    number = finite(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def compare_with(baseline: Mapping[str, Any] | str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what changed, for summary.json; without a usable baseline only the message."""
    if isinstance(baseline, str):
        return {"message": baseline}
    before, now = baseline["threshold"], content["threshold"]
    found: dict[str, Any] = {}
    if before is not None and not math.isclose(before, now):
        found["message"] = (
            f"the threshold was {before:g} in the baseline and is {now:g} now: pass rates differ by that"
        )
    found |= _deltas({name: (content[name], baseline[name]) for name in _TOTALS})
    earlier = baseline["evaluator_stats"]
    metrics = {
        name: (stats["average"], earlier[name]["average"])
        for name, stats in content["evaluator_stats"].items()
        if name in earlier
    }
    if averages := _deltas(metrics):
        found["evaluator_averages"] = averages
    return {**found, "baseline_path": baseline["baseline_path"]}


def _deltas(pairs: Mapping[str, tuple[float | None, float | None]]) -> dict[str, dict[str, float]]:
    return {
        name: {"current": current, "baseline": before, "delta": current - before}
        for name, (current, before) in pairs.items()
        if current is not None and before is not None
    }


def infer(
    content: Mapping[str, Any],
    personas: Mapping[str, Mapping[str, Any]],
    baseline: Mapping[str, Any] | str | None,
    confidence: float,
    significance: float,
) -> dict[str, Any]:
    """Return intervals at ``confidence`` and tests at ``significance``, for summary.json.

    Answers count as independent of each other. The tests are corrected by Holm's method for all tests of the run.

    Args:
        personas: the personas to test, each against all others; a single persona is not tested.
        baseline: the run to compare with; figures that its summary lacks are not tested.
        significance: error rate of all tests together.
    """
    tests = list(_between_personas(personas))
    if baseline and not isinstance(baseline, str):
        tests += _against_baseline(content, baseline)
    rejected = holm([test["p"] for test in tests], significance, len(tests))
    return {
        "confidence": confidence,
        "significance": significance,
        "intervals": {
            "pass_rate": wilson(content["passed_traces"], content["judged_traces"], confidence),
            "average_score": t_interval(Moments.of_stats(content["score_stats"]), confidence),
            "evaluators": {
                name: t_interval(Moments.of_stats(stats), confidence)
                for name, stats in content["evaluator_stats"].items()
            },
        },
        "tests": [{**test, "significant": stands} for test, stands in zip(tests, rejected, strict=True)],
    }


class _Group(NamedTuple):
    passed: int = 0
    judged: int = 0
    scores: Moments = Moments()

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> _Group:
        passed, judged = content["passed_traces"], content["judged_traces"]
        if passed is None or judged is None or passed > judged:
            passed = judged = 0
        return cls(passed, judged, Moments.of_stats(content["score_stats"]))

    def joined(self, other: _Group) -> _Group:
        return _Group(self.passed + other.passed, self.judged + other.judged, self.scores + other.scores)


def _between_personas(personas: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    names, groups = list(personas), [_Group.of(content) for content in personas.values()]
    if len(groups) < 2:
        return
    # Sums from both ends give the sum of all others without a subtraction, which would lose digits.
    before = list(itertools.accumulate(groups[:-1], _Group.joined, initial=_Group()))
    after = list(itertools.accumulate(reversed(groups[1:]), _Group.joined, initial=_Group()))[::-1]
    # A against B is the same test as B against A; a second test would only reduce the power.
    against, tested = ("the other personas", len(names)) if len(names) > 2 else (names[1], 1)
    for place in range(tested):
        yield from _tests(names[place], groups[place], against, before[place].joined(after[place]))


def _against_baseline(content: Mapping[str, Any], baseline: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from _tests("this run", _Group.of(content), "the baseline", _Group.of(baseline))
    for name, stats in content["evaluator_stats"].items():
        if earlier := baseline["evaluator_stats"].get(name):
            now, before = Moments.of_stats(stats), Moments.of_stats(earlier)
            yield from _test_means("this run", now, "the baseline", before, name)


def _tests(subject: str, group: _Group, against: str, others: _Group) -> Iterator[dict[str, Any]]:
    if group.judged and others.judged:
        difference = group.passed / group.judged - others.passed / others.judged
        p = share_p(group.passed, group.judged, others.passed, others.judged)
        yield _test(subject, against, "pass_rate", difference, p)
    yield from _test_means(subject, group.scores, against, others.scores, "final_score")


def _test_means(
    subject: str, values: Moments, against: str, others: Moments, measure: str
) -> Iterator[dict[str, Any]]:
    p = welch_p(values, others)
    if p is not None:
        yield _test(subject, against, measure, values.mean - others.mean, p)


def _test(subject: str, against: str, measure: str, difference: float, p: float) -> dict[str, Any]:
    return {"subject": subject, "against": against, "measure": measure, "difference": difference, "p": p}
