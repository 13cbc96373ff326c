"""Markdown of templates: escaping of values, and filters for texts and numbers.

Every filter returns a :class:`markupsafe.Markup`, so that its text is not escaped again.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from agenteval.core import escape
from agenteval.report import words
from agenteval.report.facts import Story
from agenteval.report.parts import Excerpt
from agenteval.report.templates import Language
from agenteval.results.case import Criterion, Score
from agenteval.results.verdict import criterion_texts

# Maximum length of a value without a filter.
_LONGEST = 10_000
_ICONS = {"passed": "✅", "failed": "❌", "error": "💥", "skipped": "⚪"}
_VERDICTS = {"passed": "✅", "failed": "❌", "unproven": "⚪", "error": "💥", True: "✅", False: "❌", None: "⚪"}
_STATES = {"good": "✅", "bad": "❌", "neutral": "⚪"}


def shown(value: object) -> Markup:
    """Return a value as one line of Markdown; the result of a filter stays unchanged."""
    return value if isinstance(value, Markup) else Markup(escape.markdown_inline(_text(value), _LONGEST))  # noqa: S704


def _text(value: object) -> str:
    """Return the text of a value; empty for unknown values."""
    return "" if value is None else str(value)


def _safe(function: Callable[..., str]) -> Callable[..., Markup]:
    @functools.wraps(function)
    def filtered(value: Any, *arguments: Any) -> Markup:
        # Text that is escaped twice is safe, but shows entities.
        return value if isinstance(value, Markup) else Markup(function(value, *arguments))  # noqa: S704

    return filtered


def _data(value: object, limit: int | None = None) -> str:
    return escape.markdown_inline(json.dumps(value, ensure_ascii=False, default=str), limit)


def _count(amount: int, noun: str, plural: str | None = None) -> str:
    return escape.markdown_inline(words.count(amount, noun, plural))


def _mark(score: Score) -> str:
    return "💥" if score.status == "error" else _VERDICTS[score.passed]


def _met(criterion: Criterion) -> str:
    return _VERDICTS[criterion.met]


def _join(values: Iterable[object], separator: str = "") -> str:
    # Blanks at the ends of a separator stay.
    start, end = separator[: len(separator) - len(separator.lstrip())], separator[len(separator.rstrip()) :]
    between = f"{start}{shown(separator)}{end}" if separator.strip() else separator
    return between.join(map(shown, values))


def _plain(function: Callable[..., str]) -> Callable[..., str]:
    """Make a filter for text that is escaped later; it rejects text that is escaped already."""

    @functools.wraps(function)
    def filtered(value: object, *arguments: Any) -> str:
        if isinstance(value, Markup) or any(isinstance(argument, Markup) for argument in arguments):
            raise ValueError("inline, lines, block and the like come last: nothing may change their text")
        return function(_text(value), *arguments)

    return filtered


def _truncate(text: str, length: int = 80) -> str:
    return text if len(text) <= length else f"{text[:length].rstrip()}…"


_NO_ANCHOR = re.compile("[^a-z0-9-]")
_WRITTEN: Mapping[str, Callable[..., str]] = {
    "inline": lambda value, limit=None: escape.markdown_inline(_text(value), limit),
    "lines": lambda value, limit=None: escape.markdown_lines(_text(value), limit),
    "block": lambda value, limit=None: escape.markdown_block(_text(value), limit),
    "diff": lambda lines: escape.markdown_block("\n".join(map(str, lines)), language="diff"),
    "commands": lambda lines: escape.markdown_block("\n".join(map(_text, lines)), language="sh"),
    "data": _data,
    "address": lambda value: escape.address(_text(value)),
    "anchor": lambda value: _NO_ANCHOR.sub("", _text(value)),
    "number": words.number,
    "signed": words.signed,
    "percent": words.percent,
    "count": _count,
    "commit": words.short_commit,
    "integer": lambda value: f"{value:,d}",
    "money": lambda dollars: escape.markdown_inline(words.money(dollars)),
    "from_cache": lambda usage: escape.markdown_inline(words.from_cache(usage)),
    "duration": words.duration,
    "values": lambda score: escape.markdown_inline(words.score_values(score)),
    "icon": lambda verdict: _VERDICTS[verdict],
    "status_icon": lambda status: _ICONS.get(status, "⚪"),
    "state_icon": lambda state: _STATES[state],
    "mark": _mark,
    "met": _met,
    "criterion_value": lambda criterion: escape.markdown_inline(criterion_texts(criterion)[0]),
    "criterion_limit": lambda criterion: escape.markdown_inline(criterion_texts(criterion)[1]),
    "join": _join,
}
_CHANGED: Mapping[str, Callable[..., str]] = {
    "upper": str.upper,
    "lower": str.lower,
    "title": str.title,
    "capitalize": str.capitalize,
    "trim": str.strip,
    "replace": str.replace,
    "truncate": _truncate,
}

#: Filters that an expression ends with.
FILTERS: Mapping[str, Callable[..., Markup]] = MappingProxyType(
    {name: _safe(function) for name, function in _WRITTEN.items()}
)
#: Filters before those: they change text, which is escaped later.
PLAIN_FILTERS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {name: _plain(function) for name, function in _CHANGED.items()}
)


def _limit(values: Excerpt[Any] | Sequence[Any], most: int) -> Excerpt[Any]:
    """Return the first values, and how many there are; passed cases are the first that are left out."""
    total = values.total if isinstance(values, Excerpt) else len(values)
    items: Sequence[Any] = values.items if isinstance(values, Excerpt) else values
    if len(items) > most:
        items = sorted(items, key=lambda item: getattr(item, "status", "") == "passed")[:most]
    return Excerpt(tuple(items), total)


def _timeline(story: Story, limit: int) -> list[str]:
    return [str(line) for line in story.timeline(limit)]


#: Filters that choose what is shown, before those that write it.
CHOOSING: Mapping[str, Callable[..., Any]] = MappingProxyType({"limit": _limit, "timeline": _timeline})

MARKDOWN = Language(
    folder="markdown",
    escape=shown,
    filters={**CHOOSING, **PLAIN_FILTERS, **FILTERS},
    extendable=("comment.md.j2", "summary.md.j2"),
    shared=("parts.md.j2",),
)
