"""HTML of templates: escaping of values, and filters for numbers, states and charts.

Texts that filters return are escaped like all others; only ``trusted``, ``chart`` and ``interval`` return markup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from agenteval.core.text import escape
from agenteval.report.html.svg import interval_svg, svg
from agenteval.report.templating import Language
from agenteval.report.view import view
from agenteval.results.analysis.formatting import seconds

_STATES = {"passed": "good", "failed": "bad", "error": "bad"}


def escaped(value: Any) -> Any:
    """Return a text as HTML; markup and numbers stay as they are."""
    return Markup(escape.html(value)) if type(value) is str else value  # noqa: S704


def _trusted(text: str) -> Markup:
    return Markup(text)  # noqa: S704 - built-in markup, or text that core/text/escape.py has escaped


def _time(milliseconds: float | None) -> str:
    return view.NOTHING if milliseconds is None else seconds(milliseconds)


def _exact(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


#: The filters; ``trusted`` is only for the built-in style, script and policy, and for data that is escaped as JSON.
FILTERS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "short": escape.one_line,
        "integer": lambda value: f"{value:,}",
        "exact": _exact,
        "number": view.number,
        "percent": view.percent,
        "count": view.count,
        "money": view.money,
        "time": _time,
        "state": lambda status: _STATES.get(status, "neutral"),
        "chart": lambda chart: _trusted(svg(chart)),
        "interval": lambda interval: _trusted(interval_svg(interval)),
        "trusted": _trusted,
    }
)

HTML = Language(folder="html", escape=escaped, filters=FILTERS)
