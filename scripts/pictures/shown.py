"""The pictures of a real run: the comment, the terminal and the page, in light and dark, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from scripts.pictures import numbers
from scripts.pictures.markdown import comment_picture
from scripts.pictures.page import page_picture
from scripts.pictures.run import COLUMNS, ShownRun
from scripts.pictures.terminal import terminal_picture

_COMMAND = "agenteval run --baseline agenteval-report/before"


def _comment(run: ShownRun, theme: str) -> str:
    return comment_picture(run.comment, theme, "The comment of agenteval on a pull request", opened=1)


def _terminal(run: ShownRun, theme: str) -> str:
    title = "What agenteval prints on a terminal"
    return terminal_picture(run.terminal, theme, title, command=_COMMAND, columns=COLUMNS)


def _page(run: ShownRun, theme: str) -> str:
    return page_picture(run.results, theme, "The report of a run as a page")


PICTURES: Mapping[str, Callable[[ShownRun], str]] = {
    **{
        f"{name}-{theme}": partial(draw, theme=theme)
        for name, draw in (("comment", _comment), ("terminal", _terminal), ("report", _page))
        for theme in ("light", "dark")
    },
    "numbers-scores": lambda run: numbers.scores(run.results),
    "numbers-passes": lambda run: numbers.passes(run.results),
}
