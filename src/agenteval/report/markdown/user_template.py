"""Renders users' templates of comment and summary in a process that is stopped when it takes too long.

The sandbox keeps a template from code and files; the process limits its time and memory.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agenteval.core.text.escape import one_line
from agenteval.report.markdown.page import Page
from agenteval.report.markdown.source import Source
from agenteval.report.size_limits import Detail, ReportTooLargeError, fit
from agenteval.report.template_files import UserTemplateError

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")

_ELEMENT = re.compile(r"<(/?)(details|table|sub|summary|blockquote|div|pre)\b", re.IGNORECASE)


def unclosed(text: str) -> str:
    """Return what Markdown leaves open, in words; empty if nothing is.

    Looks at code fences as CommonMark defines them, at HTML comments, and at the elements that may span paragraphs.
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

#: Characters that a template may make, whatever there is room for.
LARGEST = 5_000_000

#: Bytes of memory.
MEMORY = 2 << 30

_WORKER = "agenteval.report.markdown.user_template_worker"


@dataclass(frozen=True, slots=True)
class Order:
    """What the process has to render."""

    template: Path
    page: Page
    detail: Detail
    largest: int
    memory: int


def render_user_template(
    template: Path,
    source: Source,
    size: Callable[[str], int],
    limit: int,
    levels: tuple[Detail, ...],
    *,
    time_limit_s: float = TIME_LIMIT_S,
) -> str:
    """Render a user's template with as much detail as fits.

    Args:
        template: the file.
        source: the report.
        size: how the text is measured.
        limit: the largest size.
        levels: of detail, the most first.
        time_limit_s: for all of them together.

    Raises:
        UserTemplateError: it cannot be read, is wrong, takes too long, or its text cannot be published.
    """
    end = time.monotonic() + time_limit_s

    def rendered(detail: Detail) -> str:
        order = Order(template, source.page(detail), detail, LARGEST, MEMORY)
        return _asked(order, max(0.0, end - time.monotonic()), time_limit_s)

    try:
        text = fit(rendered, size, limit, levels)
    except ReportTooLargeError:
        message = f"its text does not fit into {limit:,} even with the least detail; use `detail` to show less"
        raise UserTemplateError(template, message) from None
    # The part of a comment that stays when there is no room for more must be complete, too.
    head = "\n\n".join(text.strip().split("\n\n")[:2])
    if opened := unclosed(text):
        raise UserTemplateError(template, f"leaves open {opened}; close it")
    if opened := unclosed(head):
        raise UserTemplateError(template, f"its first two paragraphs leave open {opened}; close it within them")
    return text


def _asked(order: Order, seconds: float, allowed: float) -> str:
    command = [sys.executable, "-I", "-m", _WORKER]
    # Nothing of our environment: a template needs no tokens.
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
        message = f"takes more than {allowed:g} seconds; look for a loop over too many cases"
        raise UserTemplateError(order.template, message) from None
    except OSError as error:
        raise UserTemplateError(order.template, f"cannot be rendered: {error}") from None
    try:
        reply = json.loads(done.stdout)
    except ValueError:
        raise UserTemplateError(order.template, _broken(done)) from None
    if "text" in reply:
        return str(reply["text"])
    raise UserTemplateError(reply["place"], reply["problem"])


def _broken(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return why the process gave no reply."""
    lines = done.stderr.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    # A process that takes too much memory may be killed from outside as well.
    if done.returncode < 0 or last == "MemoryError":
        return "takes more memory than it may; look for a loop over too many cases"
    return f"its process ended with status {done.returncode}: {one_line(last, 200)}"
