"""Renders users' templates of comment and summary in a separate process with a time limit.

The sandbox keeps a template from code and files. The process limits its time and memory. It runs this module, reads a
pickled order from standard input, and writes JSON to standard output: ``text``, or ``place`` and ``problem``.
"""

from __future__ import annotations

import difflib
import json
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from jinja2 import Environment, TemplateError, TemplateNotFound, TemplateSyntaxError, UndefinedError, meta, nodes
from pydantic import BaseModel

from agenteval.core.escape import one_line
from agenteval.core.files import open_regular
from agenteval.core.records import dataclass, fields, is_dataclass, replace
from agenteval.report.facts import Report
from agenteval.report.parts import Detail, ReportTooLargeError, UserTemplateError, template_directory
from agenteval.report.templates import MARKDOWN, USER_TEMPLATE, make_environment

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")

_ELEMENT = re.compile(r"<(/?)(details|table|sub|summary|blockquote|div|pre)\b", re.IGNORECASE)


def unclosed(text: str) -> str:
    """Return the Markdown or HTML that a text leaves open, in words; empty without any.

    The check covers code fences as CommonMark defines them, HTML comments, and elements that may span paragraphs.
    """
    fence = ""
    outside: list[str] = []
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line[found.end() :].strip():
                fence = ""
        elif found:
            fence = found[1]
        else:
            outside.append(line)
    if fence:
        return f"a code fence ({fence})"
    rest = "\n".join(outside)
    if rest.count("<!--") != rest.count("-->"):
        return "an HTML comment (<!--)"
    open_elements: list[str] = []
    for end, name in _ELEMENT.findall(rest):
        if not end:
            open_elements.append(name.lower())
        elif not open_elements or open_elements.pop() != name.lower():
            return f"an element, or one is closed too often or in another order (</{name}>)"
    return f"an element (<{open_elements[-1]}>)" if open_elements else ""


#: Seconds for all levels of detail together.
TIME_LIMIT_S = 20.0

#: Maximum number of characters of a template's text, whatever the limit of the report.
LARGEST = 5_000_000

#: Bytes of memory.
MEMORY = 2 << 30

_WORKER = "agenteval.report.user_template"


@dataclass(frozen=True)
class Order:
    """The template to render and its data; without data, the template is only checked."""

    template: Path
    report: Report | None
    detail: Detail | None
    largest: int
    memory: int
    texts: Mapping[str, str] | None = None


def render_user_template(
    template: Path,
    report: Report,
    fitted: Callable[[Callable[[Detail], str]], str],
    *,
    time_limit_s: float = TIME_LIMIT_S,
) -> str:
    """Render a user's template with as much detail as fits.

    Args:
        fitted: renders with the most detail that fits.
        time_limit_s: limit for all levels of detail together, in seconds.

    Raises:
        UserTemplateError: the template cannot be read, is invalid, takes too long, or its text cannot be published.
    """
    texts = report.source.presentation.template_texts
    if texts is None:
        _check(template)
    end = time.monotonic() + time_limit_s
    # All cases of a large run would take long to send.
    data = replace(report, source=None)  # type: ignore[arg-type]

    def rendered(detail: Detail) -> str:
        order = Order(template, data, detail, LARGEST, MEMORY, texts)
        return _asked(order, max(0.0, end - time.monotonic()), time_limit_s)

    try:
        text = fitted(rendered)
    except ReportTooLargeError as error:
        message = str(error).replace("the report does", "its text does", 1)
        raise UserTemplateError(template, f"{message}; use `detail` to show less") from None
    # A short comment contains only the first two paragraphs, so they must be complete.
    head = "\n\n".join(text.strip().split("\n\n")[:2])
    if opened := unclosed(text):
        raise UserTemplateError(template, f"leaves open {opened}; close it")
    if opened := unclosed(head):
        raise UserTemplateError(template, f"its first two paragraphs leave open {opened}; close it within them")
    return text


def wrong_template(template: Path, texts: Mapping[str, str] | None) -> UserTemplateError | None:
    """Return the first mistake in a user's template that does not depend on a run; ``None`` without one."""
    try:
        _check(template)
        _asked(Order(template, None, None, LARGEST, MEMORY, texts), TIME_LIMIT_S, TIME_LIMIT_S)
    except UserTemplateError as error:
        return error
    return None


def _check(template: Path) -> None:
    """Check that the template may be read; its process knows no boundary, and reads only files beside it."""
    try:
        open_regular(template, limit=LARGEST).close()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserTemplateError(template, f"cannot be read: {error.strerror}") from None


def _asked(order: Order, seconds: float, allowed: float) -> str:
    reply = _reply(order, seconds, allowed)
    if "text" in reply:
        return reply["text"]
    raise UserTemplateError(reply["place"], reply["problem"])


def _reply(order: Order, seconds: float, allowed: float) -> dict[str, str]:
    command = [sys.executable, "-I", "-m", _WORKER]
    # The process gets no environment variables of agenteval, because a template needs no tokens.
    environment = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        done = subprocess.run(
            command,
            input=pickle.dumps(order),
            capture_output=True,
            timeout=seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"takes more than {allowed:g} seconds; shorten its loops over cases"
        raise UserTemplateError(order.template, message) from None
    except OSError as error:
        raise UserTemplateError(order.template, f"cannot be rendered: {error}") from None
    try:
        reply: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        raise UserTemplateError(order.template, _broken(done)) from None
    return reply


def _broken(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    # The system can also kill a process that uses too much memory.
    if done.returncode < 0 or last == "MemoryError":
        return "takes more memory than it may; look for a loop over too many cases"
    return f"its process ended with status {done.returncode}: {one_line(last, 200)}"


_NAMES = ("report", "detail")
_ATTRIBUTE = re.compile(
    r"(?:'(?P<type>[\w.]+) object' has no attribute|^) ?'(?P<name>\w+)'(?P<unknown> is undefined)?"
)


class _TooMuchError(Exception):
    pass


def main() -> None:
    """Render one order and write the reply."""
    # The process that started this one has written it.
    order: Order = pickle.loads(sys.stdin.buffer.read())  # noqa: S301
    _limit_memory(order.memory)
    sys.stdout.buffer.write(json.dumps(reply(order)).encode())


def reply(order: Order) -> dict[str, str]:
    """Render one order to ``text``, or to ``place`` and ``problem``."""
    try:
        return {"text": _rendered(order)}
    except Exception as error:  # noqa: BLE001 - any exception of a template is a problem of the template
        return {"place": _place(error, order.template), "problem": _described(error, order)}


def _rendered(order: Order) -> str:
    environment = make_environment(MARKDOWN, template_directory(), order.template, order.texts)
    template = environment.get_template(USER_TEMPLATE)
    if order.report is None:
        _check_names(environment)
        return ""
    parts: list[str] = []
    room = order.largest
    for part in template.generate(report=order.report, detail=order.detail):
        room -= len(part)
        if room < 0:
            raise _TooMuchError(f"writes more than {order.largest:,} characters; use `detail` to show less")
        parts.append(part)
    return "".join(parts)


def _check_names(environment: Environment) -> None:
    source, file, _ = environment.loader.get_source(environment, USER_TEMPLATE)  # type: ignore[union-attr]
    tree = environment.parse(source, USER_TEMPLATE, file)
    unknown = meta.find_undeclared_variables(tree) - {*_NAMES, *environment.globals}
    for node in tree.find_all((nodes.Name, nodes.Getattr)):
        message = ""
        if isinstance(node, nodes.Name) and node.name in unknown:
            message = _no_such(node.name, _NAMES)
        elif isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
            kind = {"report": Report, "detail": Detail}.get(node.node.name)
            if kind is not None and node.attr not in (known := _public(kind)):
                message = _no_such(node.attr, known, kind.__name__)
        if message:
            raise TemplateSyntaxError(message, node.lineno, USER_TEMPLATE, file)
    for name in filter(None, meta.find_referenced_templates(tree)):
        environment.get_template(name)


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _place(error: Exception, template: Path) -> str:
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
    return _no_such(name, names, (found["type"] or "").rpartition(".")[2])


def _no_such(name: str, names: Sequence[str], owner: str = "") -> str:
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; there is: {', '.join(names)}" if names else ""
    return f"{f'{owner} has' if owner else 'there is'} no {name!r}{hint}"


def _attributes(type_name: str, order: Order) -> tuple[str, ...]:
    for kind in _kinds(order):
        if f"{kind.__module__}.{kind.__qualname__}" == type_name:
            return _public(kind)
    return ()


def _public(kind: Any) -> tuple[str, ...]:
    own = [item.name for item in fields(kind)] if is_dataclass(kind) else list(kind.model_fields)
    own += [key for key, value in vars(kind).items() if isinstance(value, property)]
    return tuple(name for name in own if not name.startswith("_"))


def _kinds(order: Order) -> Iterator[Any]:
    from agenteval.gate import failures
    from agenteval.report import cases, causes, charts, facts, heading, metrics, parts, setup, steps, stories
    from agenteval.results import model, verdict

    yield type(order.detail)
    ours = (facts, heading, causes, metrics, setup, parts, cases, steps, stories, charts)
    modules = (*ours, failures, verdict, model)
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and (is_dataclass(value) or issubclass(value, BaseModel)):
                yield value


if __name__ == "__main__":
    main()
