"""Whether simulated figures are as expected.

Hundreds of figures are compared, so some deviate by two standard errors without any reason. A single figure is missed
at 3.5 standard errors, which one of 2,000 correct figures exceeds. A table whose figures must be equal on average is
also missed if the mean of all deviations exceeds two standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from benchmarks.gate.cells import Row, Table
from benchmarks.gate.tally import Figure, Tally

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
    rows = [(row, *tallies[row.name]) for row in table.rows if row.name in tallies]
    for measure, rule in table.checks.items():
        deviations = []
        for row, made, tally in rows:
            figure = tally[measure]
            if not figure.count:
                continue
            where = f"{table.key}, {row.name}: {measure}"
            if rule == "limit":
                if figure.mean > MOST_FALSE_ALARMS + _LIMIT_ERRORS * _share_error(MOST_FALSE_ALARMS, figure.count):
                    yield f"{where} {figure.mean:.1%}, allowed are {MOST_FALSE_ALARMS:.1%}"
            elif measure in row.expected:
                deviation, error = _deviation(row, made, measure, figure)
                deviations.append((deviation, error))
                rounded = _ROUNDED_SHARE if figure.is_share else _ROUNDED
                excess = deviation if rule == "cost" else abs(deviation)
                if excess > _CELL_ERRORS * error + rounded:
                    yield f"{where} {figure.mean:.3f}, expected is {row.expected[measure]:.3f} ± {error:.3f}"
        if rule == "equal on average" and len(deviations) > 1:
            total, error = sum(part for part, _ in deviations), math.hypot(*(part for _, part in deviations))
            if abs(total) > _MEAN_ERRORS * error:
                count = len(deviations)
                yield f"{table.key}: {measure} deviates by {total / count:+.3f} on average, ± {error / count:.3f}"


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


def _share_error(share: float, count: int) -> float:
    return math.sqrt(share * (1 - share) / count)
