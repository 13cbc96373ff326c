"""Renders users' templates of comment and summary in a separate process with a time limit.

The sandbox keeps a template from code and files. The process limits its time and memory.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agenteval.core.escape import one_line
from agenteval.core.files import open_regular
from agenteval.core.records import dataclass, replace
from agenteval.report.facts import Report
from agenteval.report.limits import Detail, ReportTooLargeError, UserTemplateError

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

_WORKER = "agenteval.report.user_template_worker"


@dataclass(frozen=True)
class Order:
    """The template to render and its data."""

    template: Path
    report: Report
    detail: Detail
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
    """Return what the worker replies in a separate process."""
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
    """Return why the process gave no reply."""
    lines = done.stderr.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    # The system can also kill a process that uses too much memory.
    if done.returncode < 0 or last == "MemoryError":
        return "takes more memory than it may; look for a loop over too many cases"
    return f"its process ended with status {done.returncode}: {one_line(last, 200)}"
