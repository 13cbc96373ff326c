"""Reads an earlier summary.json, of agenteval or FluxLoop, and compares a run with it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.core.files.reading import read_regular
from agenteval.core.paths import display_path
from agenteval.results.analysis.moments import Moments
from agenteval.results.analysis.summary import Summary
from agenteval.results.importers.values import finite
from agenteval.suite.evaluation import Aggregate

_LARGEST_FILE = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EarlierMetric:
    """A metric of an earlier run; ``moments`` is set if the summary has enough figures for tests."""

    average: float
    moments: Moments | None


@dataclass(frozen=True, slots=True)
class Baseline:
    """The figures of an earlier summary.

    Attributes:
        path: the file, as the suite names it.
        judged: answers that passed or failed.
        scores: moments of the final scores, if the summary has enough figures for tests.
    """

    path: str
    pass_rate: float | None
    average_score: float | None
    total: int | None
    passed: int | None
    judged: int | None
    threshold: float | None
    scores: Moments | None
    metrics: Mapping[str, EarlierMetric]


@dataclass(frozen=True, slots=True)
class Delta:
    """A figure of this run and of the baseline."""

    current: float
    baseline: float

    @property
    def change(self) -> float:
        """Difference: this run minus the baseline."""
        return self.current - self.baseline


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """What changed.

    Attributes:
        message: why nothing could be compared, or what limits the comparison.
        totals: ``pass_rate``, ``average_score``, ``total_traces``, ``passed_traces``, if both runs have them.
        metrics: metric id → its averages.
        baseline: ``None`` if it could not be read.
    """

    message: str | None
    totals: Mapping[str, Delta]
    metrics: Mapping[str, Delta]
    baseline: Baseline | None


def read_baseline(path: Path) -> Baseline | str:
    """Read a summary.json.

    Returns:
        The baseline, or a message that explains why the file cannot be used.
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


def compare_with(baseline: Baseline | str, summary: Summary, aggregate: Aggregate) -> BaselineComparison:
    """Compare a run with its baseline; without a usable baseline, only the message is set."""
    if isinstance(baseline, str):
        return BaselineComparison(baseline, {}, {}, None)
    totals = summary.totals
    pairs = {
        "pass_rate": (totals.pass_rate, baseline.pass_rate),
        "average_score": (totals.scores.average, baseline.average_score),
        "total_traces": (totals.answers, baseline.total),
        "passed_traces": (totals.passed, baseline.passed),
    }
    averages = {
        name: (stats.scores.average, before.average)
        for name, stats in summary.metrics.items()
        if (before := baseline.metrics.get(name))
    }
    return BaselineComparison(_caveat(baseline, aggregate), _deltas(pairs), _deltas(averages), baseline)


def _caveat(baseline: Baseline, aggregate: Aggregate) -> str | None:
    before = baseline.threshold
    if before is None or math.isclose(before, aggregate.threshold):
        return None
    return (
        f"the threshold was {before:g} in the baseline and is {aggregate.threshold:g} now: pass rates differ by that"
    )


def _deltas(pairs: Mapping[str, tuple[float | None, float | None]]) -> dict[str, Delta]:
    return {
        name: Delta(current, before)
        for name, (current, before) in pairs.items()
        if current is not None and before is not None
    }


def _baseline(content: Mapping[str, Any], shown: str) -> Baseline | None:
    metrics = {
        name: found for name, stats in _mapping(content, "evaluator_stats").items() if (found := _metric(stats))
    }
    pass_rate, average = _number(content, "pass_rate"), _number(content, "average_score")
    if pass_rate is None and average is None and not metrics:
        return None
    total = _count(content, "total_traces")
    judged = _count(content, "judged_traces")
    return Baseline(
        path=shown,
        pass_rate=pass_rate,
        average_score=average,
        total=total,
        passed=_count(content, "passed_traces"),
        judged=total if judged is None else judged,
        threshold=_number(content, "threshold"),
        scores=_moments(_mapping(content, "score_stats")),
        metrics=metrics,
    )


def _metric(stats: object) -> EarlierMetric | None:
    if not isinstance(stats, dict):
        return None
    average = _number(stats, "average")
    return None if average is None else EarlierMetric(average, _moments(stats))


def _moments(stats: Mapping[str, Any]) -> Moments | None:
    """Compute moments from average, deviation and count. FluxLoop writes no deviation."""
    average, deviation, count = _number(stats, "average"), _number(stats, "deviation"), _count(stats, "count")
    if average is None or deviation is None or not count:
        return None
    return Moments(count, average, deviation * deviation * (count - 1))


def _mapping(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}


def _number(content: Mapping[str, Any], key: str) -> float | None:
    return finite(content.get(key))


def _count(content: Mapping[str, Any], key: str) -> int | None:
    number = _number(content, key)
    return int(number) if number is not None and number >= 0 and number == int(number) else None
