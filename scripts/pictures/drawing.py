"""SVG elements for the pictures: readable in light and dark, at the width of a phone, and for screen readers."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

WIDTH = 440
_STYLE = """
svg { --page: #fff; --text: #1f2328; --quiet: #59636e; --line: #d1d9e0 }
svg { --same: #0969da; --bad: #cf222e; --good: #1a7f37 }
@media (prefers-color-scheme: dark) {
svg { --page: #0d1117; --text: #f0f6fc; --quiet: #9198a1; --line: #3d444d }
svg { --same: #4493f8; --bad: #f85149; --good: #3fb950 }
}
text { font: 15px system-ui, sans-serif; fill: var(--text) }
.page { fill: var(--page) } .quiet { fill: var(--quiet) } .strong { font-weight: 600 }
.line { stroke: var(--line); fill: none; stroke-width: 1.5 } .band { fill: var(--line); opacity: .5 }
.same { fill: var(--same); stroke: var(--same) }
.bad { fill: var(--bad); stroke: var(--bad) }
.good { fill: var(--good); stroke: var(--good) }
text.same, text.bad, text.good { stroke: none }
path.same, path.bad, path.good { fill: none; stroke-width: 2.5 }
"""


def picture(title: str, description: str, height: float, parts: Iterable[str]) -> str:
    """Return a whole picture.

    Args:
        title: what it shows, for screen readers.
        description: everything that it says, for screen readers.
        height: its height; the width is always the same.
        parts: the elements in it.
    """
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" role="img" '
            'aria-labelledby="title desc">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape(description)}</desc>',
            f"<style>{_STYLE}</style>",
            f'<rect class="page" width="{WIDTH}" height="{height:g}" rx="6"/>',
            *parts,
            "</svg>\n",
        ]
    )


def label(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """Return a text that begins, ends or is centred at a place."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def dot(x: float, y: float, kind: str) -> str:
    """Return a dot."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'


def path(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Return a line through points."""
    return f'<path class="{kind}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>'


def bar(x: float, y: float, width: float, height: float, kind: str) -> str:
    """Return a filled rectangle."""
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" stroke="none"/>'


def span(low: float, middle: float, high: float, y: float, kind: str) -> list[str]:
    """Return an interval with a dot in it."""
    ends = [path([(x, y - 6), (x, y + 6)], kind) for x in (low, high)]
    return [path([(low, y), (high, y)], kind), *ends, dot(middle, y, kind)]
