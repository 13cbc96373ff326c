"""The drawings of the HTML report that no other report has: trend lines and intervals, as inline SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agenteval.core.text.escape import html
from agenteval.report.html.svg import WIDTH, drawing, label

_LEFT, _RIGHT, _TOP, _HEIGHT = 84, 12, 10, 110
_SMALL_WIDTH, _SMALL_HEIGHT = 180, 20
_LEAST_SPAN = 0.05


@dataclass(frozen=True)
class Line:
    """One measure over runs.

    Attributes:
        values: of each run, the oldest first; ``None`` where it is not known.
        names: of the runs, as a tip shows them.
        write: how a value is written.
        top: the end of the axis, if it is fixed; it starts at 0.
    """

    title: str
    values: tuple[float | None, ...]
    names: tuple[str, ...]
    write: Callable[[float], str]
    top: float | None = None


@dataclass(frozen=True)
class Interval:
    """A difference and the range that it lies in, on an axis from ``-reach`` to ``reach``."""

    title: str
    value: float
    low: float
    high: float
    reach: float


def line_svg(chart: Line) -> str:
    """A line with a dot for each run; it is broken where a value is missing."""
    top = chart.top or max((value for value in chart.values if value is not None), default=0.0) or 1.0
    right = WIDTH - _RIGHT
    step = (right - _LEFT) / max(1, len(chart.values) - 1)
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = _TOP + _HEIGHT * (1 - share)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
        parts.append(label(_LEFT - 8, y + 4, chart.write(top * share), "end"))
    dots = [
        (_LEFT + place * step, _TOP + _HEIGHT * (1 - min(1.0, max(0.0, value / top))), name, value)
        if value is not None
        else None
        for place, (value, name) in enumerate(zip(chart.values, chart.names, strict=True))
    ]
    for stretch in _stretches(dots):
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _, _ in stretch)
        parts.append(f'<path class="line" d="M{path}"/>')
        parts += (
            f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5">'
            f"<title>{html(name)}: {html(chart.write(value))}</title></circle>"
            for x, y, name, value in stretch
        )
    return drawing(chart.title, _TOP * 2 + _HEIGHT, parts)


def interval_svg(chart: Interval) -> str:
    """A small drawing for a cell of a table: nothing in the middle, worse to the left, better to the right."""
    middle = _SMALL_HEIGHT / 2

    def place(value: float) -> float:
        return 2 + (_SMALL_WIDTH - 4) * (min(1.0, max(-1.0, value / chart.reach)) + 1) / 2

    low, value, high = map(place, (chart.low, chart.value, chart.high))
    ends = f"M{low:.1f} {middle - 4}v8M{high:.1f} {middle - 4}v8"
    size = f"0 0 {_SMALL_WIDTH} {_SMALL_HEIGHT}"
    return (
        f'<svg class="small" viewBox="{size}" role="img" aria-label="{html(chart.title)}">'
        f'<path class="grid" d="M{place(0):.1f} 0v{_SMALL_HEIGHT}"/>'
        f'<path class="whisker" d="M{low:.1f} {middle}H{high:.1f}{ends}"/>'
        f'<circle class="dot" cx="{value:.1f}" cy="{middle}" r="4"/></svg>'
    )


def reach(values: Sequence[float]) -> float:
    """The axis that all these differences fit on."""
    return max([_LEAST_SPAN, *map(abs, values)])


_Dot = tuple[float, float, str, float]


def _stretches(dots: Sequence[_Dot | None]) -> Iterator[list[_Dot]]:
    stretch: list[_Dot] = []
    for dot in (*dots, None):
        if dot is not None:
            stretch.append(dot)
        elif stretch:
            yield stretch
            stretch = []
