"""Renders one user template, in the process that :mod:`~agenteval.report.user_template` starts and stops.

Reads a pickled order from standard input, and writes JSON to standard output: ``text``, or ``place`` and ``problem``.
"""

from __future__ import annotations

import difflib
import json
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError, TemplateNotFound, TemplateSyntaxError, UndefinedError
from pydantic import BaseModel

from agenteval.core.records import fields, is_dataclass
from agenteval.report.filters import MARKDOWN
from agenteval.report.limits import template_directory
from agenteval.report.templates import USER_TEMPLATE, make_environment

if TYPE_CHECKING:
    from agenteval.report.user_template import Order

_NAMES = ("report", "detail")
_ATTRIBUTE = re.compile(
    r"(?:'(?P<type>[\w.]+) object' has no attribute|^) ?'(?P<name>\w+)'(?P<unknown> is undefined)?"
)


class _TooMuchError(Exception):
    """The text of the template exceeds the limit."""


def main() -> None:
    """Render one order and write the reply."""
    # The process that started this one has written it.
    order: Order = pickle.loads(sys.stdin.buffer.read())  # noqa: S301
    _limit_memory(order.memory)
    sys.stdout.buffer.write(json.dumps(reply(order)).encode())


def reply(order: Order) -> dict[str, str]:
    """Render one order.

    Returns:
        ``text``, or ``place`` and ``problem``.
    """
    try:
        return {"text": _rendered(order)}
    except Exception as error:  # noqa: BLE001 - any exception of a template is a problem of the template
        return {"place": _place(error, order.template), "problem": _described(error, order)}


def _rendered(order: Order) -> str:
    template = make_environment(MARKDOWN, template_directory(), order.template, order.texts).get_template(
        USER_TEMPLATE
    )
    parts: list[str] = []
    room = order.largest
    for part in template.generate(report=order.report, detail=order.detail):
        room -= len(part)
        if room < 0:
            raise _TooMuchError(f"writes more than {order.largest:,} characters; use `detail` to show less")
        parts.append(part)
    return "".join(parts)


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _place(error: Exception, template: Path) -> str:
    """Return ``file:line`` of the mistake, if it is known."""
    if isinstance(error, TemplateSyntaxError):
        return f"{error.filename or template}:{error.lineno}"
    ours = str(template_directory())
    places = [place for place in _frames(error.__traceback__) if Path(place[0]).suffix == template.suffix]
    # The line of the user's template, even if a built-in template failed because of it.
    found = next((place for place in reversed(places) if not place[0].startswith(ours)), None)
    return f"{found[0]}:{found[1]}" if found else str(template)


def _frames(traceback: TracebackType | None) -> Iterator[tuple[str, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next


def _described(error: Exception, order: Order) -> str:
    match error:
        case MemoryError():
            return "takes more memory than it may"
        case RecursionError():
            return "includes or calls itself without end"
        case UndefinedError():
            return _undefined(str(error), order)
        case TemplateNotFound():
            return error.message or f"there is no template {error.name}"
        case TemplateSyntaxError():
            return error.message or "is not a valid template"
        case TemplateError() | _TooMuchError():
            return str(error)
    return f"{type(error).__name__}: {error}"


def _undefined(message: str, order: Order) -> str:
    found = _ATTRIBUTE.search(message)
    if found is None:
        return message
    name = found["name"]
    names = _NAMES if found["unknown"] else _attributes(found["type"] or "", order)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; there is: {', '.join(names)}" if names else ""
    where = f"{found['type'].rpartition('.')[2]} has no " if found["type"] else "there is no "
    return f"{where}{name!r}{hint}"


def _attributes(type_name: str, order: Order) -> tuple[str, ...]:
    for kind in _kinds(order):
        if f"{kind.__module__}.{kind.__qualname__}" == type_name:
            own = [item.name for item in fields(kind)] if is_dataclass(kind) else list(kind.model_fields)
            own += [key for key, value in vars(kind).items() if isinstance(value, property)]
            return tuple(name for name in own if not name.startswith("_"))
    return ()


def _kinds(order: Order) -> Iterator[Any]:
    from agenteval.gate import failures
    from agenteval.report import cases, causes, facts, heading, metrics, parts, setup
    from agenteval.results import model, verdict

    yield type(order.detail)
    modules = (facts, heading, causes, metrics, setup, parts, cases, failures, verdict, model)
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and (is_dataclass(value) or issubclass(value, BaseModel)):
                yield value


if __name__ == "__main__":
    main()
