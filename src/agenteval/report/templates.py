"""Renders reports: one sandbox for all templates, built-in and user ones.

A :class:`Language` (Markdown, HTML) defines how values are escaped. A user's template is data, not code: it can read
the report, but cannot change it, call methods of its values, or read files outside of its folder. Values without a
filter are escaped too.

Compiled templates are stored beside the templates, as Python stores compiled modules, because compiling them takes
longer than the rest of a small run. Users' templates are compiled every time.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, StrictUndefined, Template, nodes
from jinja2.bccache import Bucket
from jinja2.exceptions import SecurityError, TemplateNotFound, TemplateSyntaxError
from jinja2.loaders import BaseLoader
from jinja2.runtime import LoopContext, Macro, TemplateReference
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import Markup

from agenteval.core import escape
from agenteval.core.files import read_regular
from agenteval.core.records import dataclass
from agenteval.report import words
from agenteval.report.parts import Excerpt, template_directory
from agenteval.report.stories import Story
from agenteval.results.case import Criterion, IterationResult, Score
from agenteval.results.verdict import criterion_texts

#: The name under which a user's template is loaded; no file can have it.
USER_TEMPLATE = "<own>"

LARGEST_TEMPLATE = 1_000_000
# Jinja's filters that choose, count and sort. Filters that make or change text are built in here.
_OF_JINJA = (
    *("abs", "batch", "d", "default", "dictsort", "first", "float", "groupby", "int", "items", "last", "length"),
    *("list", "map", "max", "min", "reject", "rejectattr", "reverse", "round", "select", "selectattr", "slice"),
    *("sort", "sum", "unique"),
)
_GLOBALS = ("range", "dict", "cycler", "joiner", "namespace")
# All other values in a report are data without methods, because some methods of pydantic read files or run code.
_WITH_METHODS = (str, int, float, list, tuple, dict, LoopContext, TemplateReference, Macro, Cycler, Joiner, Namespace)
_DATA = frozenset({str, int, float, bool, type(None)})
_PARTS_OF_TEXT = "escaped texts cannot be joined; write each value in separate braces"
_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Concat: f"`~` is not available: {_PARTS_OF_TEXT}",
    nodes.FilterBlock: "{% filter %} is not available; end each value in a filter instead",
    nodes.ScopedEvalContextModifier: "{% autoescape %} is not available; everything is escaped",
}


@dataclass(frozen=True, eq=False)
class Language:
    """The language of a set of templates.

    Attributes:
        folder: folder of the built-in templates, below the template directory.
        filters: filters that may end an expression, besides Jinja's filters that choose, count and sort.
        extendable: the built-in templates that a user's template may extend.
        shared: the built-in templates with the macros of these.
    """

    folder: str
    escape: Callable[[Any], Any]
    filters: Mapping[str, Callable[..., Any]]
    extendable: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


class CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates in ``__pycache__`` of their folder; if the folder is read-only, nothing is stored."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "__pycache__"
        super().__init__(str(self._folder), f"%s.cpython-{sys.version_info.major}{sys.version_info.minor}.jinja")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load the compiled template from the folder, if it can be read."""
        with contextlib.suppress(OSError, ValueError, EOFError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store the compiled template, unless Python stores no compiled modules either."""
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                self._folder.mkdir(exist_ok=True)
                super().dump_bytecode(bucket)


class _TemplateLoader(BaseLoader):
    def __init__(self, language: Language, folder: Path, user: Path | None, texts: Mapping[str, str] | None) -> None:
        self._language = language
        self._folder = folder
        self._user = user
        self._texts = texts

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Return the text of a template, and the name of its file for messages.

        Raises:
            TemplateNotFound: the file does not exist, or is outside of the folder.
            TemplateSyntaxError: the template uses a feature that user templates must not use.
        """
        is_built_in = self._user is None or template in (*self._language.extendable, *self._language.shared)
        path = self._folder / template if is_built_in else self._beside_user(self._user, template)
        try:
            # The built-in templates belong to the package, which need not be inside the boundary.
            source = path.read_text("utf-8") if is_built_in else self._text(path)
        except FileNotFoundError:
            ours = " and ".join(self._language.extendable)
            raise TemplateNotFound(template, f"there is no {path}; ours are {ours}") from None
        except (OSError, ValueError) as error:
            raise TemplateNotFound(template, f"{path} cannot be read: {error}") from None
        if not is_built_in:
            _check(environment.parse(source, template, str(path)), template, str(path))
        return source, str(path), lambda: True

    def _text(self, path: Path) -> str:
        if self._texts is None:
            return read_regular(path, limit=LARGEST_TEMPLATE).decode("utf-8")
        if str(path) not in self._texts:
            raise FileNotFoundError
        return self._texts[str(path)]

    @staticmethod
    def _beside_user(user: Path | None, name: str) -> Path:
        if user is None:
            raise TemplateNotFound(name)
        path = user if name == USER_TEMPLATE else user.parent / name
        # A link must not lead out of the folder either.
        if not path.resolve().is_relative_to(user.parent.resolve()):
            raise TemplateNotFound(name, f"{name} lies outside of the folder of {user}")
        return path


def _check(tree: nodes.Template, name: str, file: str) -> None:
    for node in tree.find_all(tuple(_REFUSED)):
        raise TemplateSyntaxError(_REFUSED[type(node)], node.lineno, name, file)
    for block in tree.find_all(nodes.AssignBlock):
        if block.filter is not None:
            raise TemplateSyntaxError("{% set %} with a filter is not available", block.lineno, name, file)


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "%", "*"})

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        # Fast path for the most frequent types, which have no attributes to protect.
        if type(value) in _DATA and not attr.startswith("_") and not isinstance(obj, Markup):
            return True
        if not super().is_safe_attribute(obj, attr, value) or isinstance(obj, Markup):
            return False
        return not callable(value) or isinstance(obj, _WITH_METHODS)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, Markup) or isinstance(right, Markup):
            raise SecurityError(f"`{operator}`: {_PARTS_OF_TEXT}")
        return super().call_binop(context, operator, left, right)


def make_environment(
    language: Language, directory: Path, user: Path | None = None, texts: Mapping[str, str] | None = None
) -> Environment:
    """Create an environment for the built-in templates, or for a user's, which is ``USER_TEMPLATE`` in it."""
    folder = directory / language.folder
    environment = _Sandbox(
        loader=_TemplateLoader(language, folder, user, texts),
        # The text of macros and blocks counts as escaped in every language, because all of its parts are escaped.
        autoescape=True,
        finalize=language.escape,
        bytecode_cache=CompiledTemplates(folder) if user is None else None,
        # An unknown name is an error, and a tag alone on a line leaves no line.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters = {**{name: environment.filters[name] for name in _OF_JINJA}, **language.filters}
    environment.globals = {name: environment.globals[name] for name in _GLOBALS}
    return environment


def built_in_template(language: Language, name: str) -> Template:
    """Return a built-in template, compiled at most once in a process."""
    return _built_in_environment(language).get_template(name)


@functools.cache
def _built_in_environment(language: Language) -> Environment:
    return make_environment(language, template_directory())


# Maximum length of a value without a filter.
_LONGEST = 10_000
_ICONS = {"passed": "✅", "failed": "❌", "error": "💥", "skipped": "⚪"}
_VERDICTS = {"passed": "✅", "failed": "❌", "unproven": "⚪", "error": "💥", True: "✅", False: "❌", None: "⚪"}
_STATES = {"good": "✅", "bad": "❌", "neutral": "⚪"}


def shown(value: object) -> Markup:
    """Return a value as one line of Markdown; the result of a filter stays unchanged."""
    return value if isinstance(value, Markup) else Markup(escape.markdown_inline(_text(value), _LONGEST))  # noqa: S704


def _text(value: object) -> str:
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


_WRITTEN: Mapping[str, Callable[..., str]] = {
    "inline": lambda value, limit=None: escape.markdown_inline(_text(value), limit),
    "lines": lambda value, limit=None: escape.markdown_lines(_text(value), limit),
    "block": lambda value, limit=None: escape.markdown_block(_text(value), limit),
    "diff": lambda lines: escape.markdown_block("\n".join(map(str, lines)), language="diff"),
    "commands": lambda lines: escape.markdown_block("\n".join(map(_text, lines)), language="sh"),
    "data": _data,
    "address": lambda value: escape.address(_text(value)),
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
    total = values.total if isinstance(values, Excerpt) else len(values)
    items: Sequence[Any] = values.items if isinstance(values, Excerpt) else values
    if len(items) > most:
        items = sorted(items, key=lambda item: getattr(item, "status", "") == "passed")[:most]
    return Excerpt(tuple(items), total)


def _timeline(story: Story, limit: int, iteration: IterationResult | None = None) -> list[str]:
    return [str(line) for line in story.timeline(limit, iteration)]


#: Filters that choose what is shown, before those that write it.
CHOOSING: Mapping[str, Callable[..., Any]] = MappingProxyType({"limit": _limit, "timeline": _timeline})

MARKDOWN = Language(
    folder="markdown",
    escape=shown,
    filters={**CHOOSING, **PLAIN_FILTERS, **FILTERS},
    extendable=("comment.md.j2", "summary.md.j2"),
    shared=("parts.md.j2",),
)
