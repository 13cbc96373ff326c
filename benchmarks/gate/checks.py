"""Whether simulated figures are as expected.

Hundreds of figures are compared, so some deviate by two standard errors without any reason. A single figure is missed
at 3.5 standard errors, which one of 2,000 correct figures exceeds. A table whose figures must be equal on average is
also missed if the mean of all deviations exceeds two standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist

from benchmarks.gate.cells import Row, Rule, Table
from benchmarks.gate.tally import Figure, Tally

from agenteval.core.statistics import fisher_p

MOST_FALSE_ALARMS = 0.025
_LIMIT_ERRORS, _CELL_ERRORS, _MEAN_ERRORS = 2.0, 3.5, 2.0
# Expected shares and costs are rounded.
_ROUNDED_SHARE, _ROUNDED = 0.0005, 0.005


def misses(table: Table, tallies: Mapping[str, tuple[int, Tally]]) -> Iterator[str]:
    """Yield the figures of a table that are missed, as text.

    Args:
        table: the table.
        tallies: name of a row → its replications and figures; other rows were not simulated.
    """
    for measure, rule in table.checks.items():
        deviations = []
        for row in table.rows:
            made, tally = tallies.get(row.name, (0, Tally()))
            figure = tally[measure]
            if not figure.count or (rule != "limit" and measure not in row.expected):
                continue
            if why := _limit_miss(figure) if rule == "limit" else _miss(row, made, measure, rule, figure):
                yield f"{table.key}, {row.name}: {measure} {figure.mean:.3f}, {why}"
            if rule == "equal on average":
                deviations.append(_deviation(row, made, measure, figure))
        total, error = sum(part for part, _ in deviations), math.hypot(*(part for _, part in deviations))
        if len(deviations) > 1 and abs(total) > _MEAN_ERRORS * error:
            count = len(deviations)
            yield f"{table.key}: {measure} deviates by {total / count:+.3f} on average, ± {error / count:.3f}"


def _limit_miss(figure: Figure) -> str:
    """Return why a share of false alarms is missed; empty if it is not."""
    limit = MOST_FALSE_ALARMS + _LIMIT_ERRORS * _share_error(MOST_FALSE_ALARMS, figure.count)
    return f"allowed are {MOST_FALSE_ALARMS:.1%}" if figure.mean > limit else ""


def _miss(row: Row, made: int, measure: str, rule: Rule, figure: Figure) -> str:
    """Return why a figure is missed; empty if it is not."""
    deviation, error = _deviation(row, made, measure, figure)
    if rule != "cost" and figure.is_share:
        is_missed = _is_unlikely(row, made, measure, figure)
    else:
        is_missed = (deviation if rule == "cost" else abs(deviation)) > _CELL_ERRORS * error + _ROUNDED
    return f"expected is {row.expected[measure]:.3f} ± {error:.3f}" if is_missed else ""


def _deviation(row: Row, made: int, measure: str, figure: Figure) -> tuple[float, float]:
    """Return the deviation from the expected figure, and its standard error with the chance in both figures."""
    expected = row.expected[measure]
    theirs = row.replications * figure.count / made
    variance = figure.variance
    if figure.is_share:
        # One success and one failure more, so that 0 % and 100 % have an error too.
        share = (figure.total + expected * theirs + 1) / (figure.count + theirs + 2)
        variance = share * (1 - share)
    return figure.mean - expected, math.sqrt(variance * (1 / figure.count + 1 / theirs))


def _is_unlikely(row: Row, made: int, measure: str, figure: Figure) -> bool:
    """Return whether two shares differ by more than the allowed number of standard errors, by Fisher's exact test.

    Normal errors are too small for a few rare events.
    """
    expected = row.expected[measure]
    nearest = min(max(figure.mean, expected - _ROUNDED_SHARE), expected + _ROUNDED_SHARE)
    theirs = round(row.replications * figure.count / made)
    known, seen = round(nearest * theirs), round(figure.total)
    more = fisher_p(known, theirs, seen, figure.count)
    fewer = fisher_p(theirs - known, theirs, figure.count - seen, figure.count)
    return min(more, fewer) < NormalDist().cdf(-_CELL_ERRORS)


def _share_error(share: float, count: int) -> float:
    return math.sqrt(share * (1 - share) / count)
