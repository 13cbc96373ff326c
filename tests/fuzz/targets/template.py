"""Users' templates of comment and summary, as the process that renders them does it; every error is described.

Loops over large ranges only cost time, which the process has a limit for: they are cut short here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.fuzz.interrupt import raised_after
from tests.fuzz.scratch import as_file
from tests.unit.report import samples

from agenteval.report.facts import Report
from agenteval.report.html import fill
from agenteval.report.parts import COMMENT_LEVELS
from agenteval.report.user_template import Order, _described, _place, _rendered, unclosed

_SECONDS = 0.5


class _TooLongError(Exception):
    """It would be stopped."""


@cache
def _report() -> Report:
    return samples.regressed().report


def target(data: bytes) -> None:
    path: Path = as_file(data, "template/own.md.j2")
    order = Order(path, _report(), COMMENT_LEVELS[0], 200_000, 2 << 30)
    try:
        with raised_after(_SECONDS, _TooLongError):
            text = _rendered(order)
    except _TooLongError:
        return
    except Exception as error:
        text = f"{_place(error, path)}: {_described(error, order)}"
    unclosed(text)
    html = data.decode("utf-8", "replace")
    fill(html, {"TITLE": "<t>", "DATE": "", "SUBTITLE": html[:100]}, {"analysis": {"text": html[:1000]}}, [])
