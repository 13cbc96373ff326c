"""The Jinja environment of comment and summary: a sandbox in which every value is escaped.

A user's template is data, not code: it sees the report, changes nothing, calls no method of what it is given, and
reads no file outside of its own folder. Whatever it prints without one of our filters is escaped all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, nodes
from jinja2.exceptions import SecurityError, TemplateNotFound, TemplateSyntaxError
from jinja2.loaders import BaseLoader
from jinja2.runtime import LoopContext, Macro, TemplateReference
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import Markup

from agenteval.report.markdown.filters import FILTERS, PLAIN_FILTERS, shown
from agenteval.report.templating import OPTIONS, CompiledTemplates

BUILT_IN = ("comment.md.j2", "summary.md.j2")
#: The name under which the user's own template is loaded; no file can be called so.
OWN = "<own>"

_LARGEST = 1_000_000
# Jinja's own filters that choose, count and sort. Those that make or change text are ours.
_OF_JINJA = (
    *("abs", "batch", "d", "default", "dictsort", "first", "float", "groupby", "int", "items", "last", "length"),
    *("list", "map", "max", "min", "reject", "rejectattr", "reverse", "round", "select", "selectattr", "slice"),
    *("sort", "sum", "unique"),
)
_GLOBALS = ("range", "dict", "cycler", "joiner", "namespace")
# Everything else in a report is data, and data has no methods here: some of pydantic's read files or run code.
_WITH_METHODS = (str, int, float, list, tuple, dict, LoopContext, TemplateReference, Macro, Cycler, Joiner, Namespace)
_DATA = frozenset({str, int, float, bool, type(None)})
_PARTS_OF_TEXT = "text that is escaped already cannot be put together; write each value in braces of its own"
_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Concat: f"`~` is not available: {_PARTS_OF_TEXT}",
    nodes.FilterBlock: "{% filter %} is not available; end each value in a filter instead",
    nodes.ScopedEvalContextModifier: "{% autoescape %} is not available; everything is escaped",
}


class Templates(BaseLoader):
    """Our templates, and the files beside the user's own.

    Args:
        built_in: where ours lie.
        own: the user's template; ``{% extends "comment.md.j2" %}`` in it means ours, whatever it is called itself.
    """

    def __init__(self, built_in: Path, own: Path | None = None) -> None:
        self._built_in = built_in
        self._own = own

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """The text of a template, and how its file is called in messages.

        Raises:
            TemplateNotFound: there is no such file, or it lies elsewhere.
            TemplateSyntaxError: it uses what no template may.
        """
        path = self._built_in / template if template in BUILT_IN else self._beside_own(template)
        try:
            is_too_large = path.stat().st_size > _LARGEST
            source = "" if is_too_large else path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise TemplateNotFound(template, f"there is no {path}; ours are {' and '.join(BUILT_IN)}") from None
        except (OSError, ValueError) as error:
            raise TemplateNotFound(template, f"{path} cannot be read: {error}") from None
        if is_too_large:
            raise TemplateNotFound(template, f"{path} has more than {_LARGEST:,} bytes")
        if template not in BUILT_IN:
            _check(environment.parse(source, template, str(path)), template, str(path))
        return source, str(path), lambda: True

    def _beside_own(self, name: str) -> Path:
        if self._own is None:
            raise TemplateNotFound(name)
        path = self._own if name == OWN else self._own.parent / name
        # A link must not lead out of the folder either.
        folder = self._own.parent.resolve()
        if not path.resolve().is_relative_to(folder):
            raise TemplateNotFound(name, f"{name} lies outside of the folder of {self._own}")
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
        # Most of what a template reads: behind it there is nothing more to get at.
        if type(value) in _DATA and not attr.startswith("_") and not isinstance(obj, Markup):
            return True
        if not super().is_safe_attribute(obj, attr, value) or isinstance(obj, Markup):
            return False
        return not callable(value) or isinstance(obj, _WITH_METHODS)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, Markup) or isinstance(right, Markup):
            raise SecurityError(f"`{operator}`: {_PARTS_OF_TEXT}")
        return super().call_binop(context, operator, left, right)


def make_environment(built_in: Path, own: Path | None = None) -> Environment:
    """An environment for our templates, and one of the user's own.

    Args:
        built_in: the directory of our templates.
        own: the user's template; it is called ``OWN``.
    """
    environment = _Sandbox(
        loader=Templates(built_in, own),
        # Not for HTML: with it, what macros and blocks return counts as escaped, because all of its parts were.
        autoescape=True,
        finalize=shown,
        bytecode_cache=CompiledTemplates(built_in) if own is None else None,
        **OPTIONS,
    )
    environment.filters = {
        **{name: environment.filters[name] for name in _OF_JINJA},
        **PLAIN_FILTERS,
        **FILTERS,
    }
    environment.globals = {name: environment.globals[name] for name in _GLOBALS}
    return environment
