"""Annotations at the lines of the suite files: one for each cause, at its first case.

GitHub shows annotations as plain text. It rejects a check run with a character beyond U+FFFF (status 422, "invalid"
``annotations``), so such characters are replaced by their code points (``[U+1F600]``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Literal

from agenteval.core import escape
from agenteval.core.records import dataclass
from agenteval.report import words
from agenteval.report.cases import KINDS, Kind
from agenteval.report.causes import Cause
from agenteval.report.facts import Report, Story
from agenteval.results.case import TurnResult

#: GitHub accepts 255 characters.
MOST_TITLE = 255
#: A check run accepts 64 KB, a workflow command 4,096 characters. This limit fits into both.
MOST_MESSAGE = 2_000

Level = Literal["failure", "warning", "notice"]

_MOST = 1_000
_LINES = 2**31 - 1
# A headline, five facts and an answer are below MOST_MESSAGE together.
_HEADLINE = 250
_FACT = 250
_FACTS = 5
_ANSWER = 300
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
# Kinds of cases that are annotated. What is not held against the change is only a notice.
_LEVELS: Mapping[Kind, Level] = {
    "broke": "failure",
    "failed": "failure",
    "error": "failure",
    "fell": "warning",
    "suspicious": "warning",
    "cleared": "notice",
    "known": "notice",
    "quarantined": "notice",
    "accepted": "notice",
    "new": "notice",
}


@dataclass(frozen=True)
class Annotation:
    """A message at a line of a file.

    Attributes:
        path: relative to the root of the repository, with forward slashes.
        line: 1-based.
        level: ``warning`` for what is not proven, ``notice`` for what is not held against the change.
        title: plain text, one line; may be empty.
    """

    path: str
    line: int
    level: Level
    title: str
    message: str


@dataclass(frozen=True)
class Annotations:
    """The annotations of a run, and the number of omitted cases.

    Attributes:
        items: in the order of the causes: cases that broke first.
        hidden: number of causes beyond the limit.
        without_file: number of causes in suites that are not a file of the repository.
    """

    items: tuple[Annotation, ...]
    hidden: int = 0
    without_file: int = 0


def annotate(report: Report, *, most: int = _MOST) -> Annotations:
    """Return one annotation for each cause, at the line of its first case."""
    found = [cause for cause in report.causes if cause.kind in _LEVELS and cause.cases]
    placed = [cause for cause in found if _is_in_repository(cause.cases[0].path)]
    stories = [(cause, report.stories.get(cause.cases[0].id)) for cause in placed[:most]]
    items = tuple(_annotation(cause, story, report.base_name) for cause, story in stories if story is not None)
    return Annotations(items, max(0, len(placed) - most), len(found) - len(placed))


def _annotation(cause: Cause, story: Story, base: str) -> Annotation:
    line = story.found.line or 1
    others = f" and {story.others:,} like it" if story.others else ""
    told = _facts(story) if cause.kind != "new" else ()
    return Annotation(
        path=story.found.path,
        line=line if 1 <= line <= _LINES else 1,
        level=_LEVELS[cause.kind],
        title=f"{_plain(story.name, MOST_TITLE - len(others))}{others}",
        message="\n".join([_plain(_headline(cause, base), _HEADLINE), *told, *_answer(story, cause.kind)]),
    )


def _headline(cause: Cause, base: str) -> str:
    """Return ``Broke: 9/9 passed on main, 0/3 each here``."""
    kind = KINDS[cause.kind].words
    # The numbers of a mean that fell are its means.
    before, now = ("", "") if cause.metric is not None else (cause.before, cause.now)
    passed = [f"{before} passed on {base}"] if before else []
    now, each, _ = now.partition(" each")
    passed += [f"{now}{each} here" if passed else f"{now} passed{each}"] if now else []
    alike = ["all give the same answer"] if cause.by == "answer" else []
    said = ", ".join([*passed, *alike])
    return f"{kind[0].upper()}{kind[1:]}{f': {said}' if said else ''}"


def _facts(story: Story) -> Iterator[str]:
    # If a regression has no failed score, its scores dropped.
    found = words.facts(story.case) or (tuple(words.got_worse(story.compared)) if story.compared else ())
    for fact in found[:_FACTS]:
        yield _plain(str(fact), _FACT)
    if len(found) > _FACTS:
        yield f"… and {len(found) - _FACTS:,} more"


def _answer(story: Story, kind: Kind) -> Iterator[str]:
    """Yield the answer of the first turn that did not pass, else of the last turn."""
    iteration = story.case.telling_iteration
    turns = iteration.turns if iteration and kind != "new" else []
    shown = next(filter(_is_bad, turns), turns[-1] if turns else None)
    if shown is not None and (answer := _plain(shown.response or "", _ANSWER)):
        yield f"Answer: {answer}" if len(turns) == 1 else f"Answer in turn {shown.index + 1}: {answer}"


def _is_bad(turn: TurnResult) -> bool:
    return turn.error is not None or any(score.passed is False or score.status == "error" for score in turn.scores)


def _plain(text: str, limit: int) -> str:
    """Return one line of at most ``limit`` characters that GitHub accepts and no runner executes as a command."""
    known = _BEYOND.sub(lambda found: f"[U+{ord(found[0]):X}]", escape.one_line(text, limit))
    # This step is last, because the added brackets must not complete a command in untrusted text.
    line = escape.terminal(known)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _is_in_repository(path: str) -> bool:
    """Return whether the path can be a file in the repository, with a name that GitHub accepts."""
    pure = PurePosixPath(path)
    is_inside = bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts
    return is_inside and escape.terminal(path) == path and not _BEYOND.search(path)
