"""The pictures of `docs/reports.md`: the comment in each of its states, from the tests' golden files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from scripts.pictures.markdown import comment_picture

_GOLDEN = Path(__file__).parents[2] / "tests" / "data" / "golden"
#: The states: name of the picture → golden file, and what the picture shows.
STATES: Mapping[str, tuple[str, str]] = {
    "broke": ("comment-broke.md", "The comment on a pull request that broke cases"),
    "many": ("comment-200-broke.md", "The comment on a pull request that broke 200 cases for one reason"),
    "mean": ("comment-mean.md", "The comment on a pull request that lowered a mean"),
    "green": ("comment-all-green.md", "The comment on a pull request in which nothing broke or fell"),
    "first-run": ("comment-first.md", "The comment on a first run, without a baseline"),
    "maybe": ("comment-maybe.md", "The comment on cases that may be worse"),
    "rules": ("comment-rules.md", "The comment on a pull request that loosens the rules"),
    "several": ("comment-shared.md", "The comment that the jobs of several agents share"),
    "infrastructure": ("comment-infrastructure.md", "The comment on a run whose agent could not be reached"),
}


def _state(file: str, title: str, theme: str) -> str:
    return comment_picture((_GOLDEN / file).read_text(encoding="utf-8"), theme, title, opened=1)


PICTURES: Mapping[str, Callable[[], str]] = {
    f"gallery-{name}-{theme}": partial(_state, file, title, theme)
    for name, (file, title) in STATES.items()
    for theme in ("light", "dark")
}
