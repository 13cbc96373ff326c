"""Prints the result of a run: what needs eyes, the verdict, and the next commands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TextIO

from agenteval.report.terminal.case_lines import case_lines
from agenteval.report.terminal.cause_lines import Causes
from agenteval.report.terminal.closing_lines import closing_lines
from agenteval.report.terminal.detail import Detail
from agenteval.report.terminal.lines import BLANK, Line, line, write
from agenteval.report.terminal.metric_lines import metric_lines, statistics_lines
from agenteval.report.view.causes import causes_of
from agenteval.report.view.heading import one_cause_is_likely
from agenteval.report.view.view import GateView
from agenteval.results.model import Results

_MOST_CAUSES = 10
_MOST_CAUSES_VERBOSE = 200
_UNLIMITED = 100_000
_NARROWEST = 40


_PLAIN = Detail()


def print_results(
    results: Results,
    gate: GateView,
    stream: TextIO,
    colour: bool,
    detail: Detail = _PLAIN,
    *,
    width: int | None = None,
) -> None:
    """Print the result; the last lines are the verdict and the next commands.

    Args:
        colour: whether the stream is a terminal with colours; rich is loaded only in this case.
        detail: how much is printed.
        width: characters in a line; default: the terminal's width. Without a terminal, lines are not wrapped, so that
            programs find whole messages.
    """
    columns = max(_NARROWEST, width or _width_of(stream))
    write(_lines(results, gate, detail, columns), stream, colour, columns)


def _width_of(stream: TextIO) -> int:
    is_known = stream.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if is_known else _UNLIMITED


def _lines(results: Results, gate: GateView, detail: Detail, columns: int) -> Iterator[Line]:
    causes = causes_of(results)
    if detail.verbosity >= 1:
        yield from case_lines(results, detail.archive)
        yield from metric_lines(results)
    if detail.verbosity >= 2:
        yield from statistics_lines(results)
    most = _MOST_CAUSES_VERBOSE if detail.verbosity else _MOST_CAUSES
    yield from Causes(results, causes, most, detail.explained).lines(columns)
    if one_cause_is_likely(causes):
        text = "One cause for all of them is likely: a model, key or service that answers differently."
        yield line((text, "yellow"))
        yield BLANK
    yield from closing_lines(results, gate, causes, detail.commands, columns)
