"""Writes one section to a comment that other jobs write to at the same time.

GitHub has no conditional write: an edit replaces the current text. So every job reads just before it writes,
remembers the newest text of every section, reads again after its write, and writes again if a known text is missing.
The set of known texts only grows, and the newer text of a section wins, so all jobs end with the same comment. The
time between a read and the effect of the next write must be shorter than the wait before reading again.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, Protocol, get_args

from agenteval.core.records import dataclass
from agenteval.github.client import GithubError
from agenteval.github.comment_sections import Comment, Origin, Revision, Section, unix_lines
from agenteval.results.verdict import Verdict

_MARKER = re.compile(
    r"<!--\s*agenteval:(?P<kind>[a-z]+)"
    r"(?:\s+(?:key|id)=(?P<name>[A-Za-z0-9._-]{1,100}))?"
    r"(?:\s+rev=(?P<run>[0-9]{1,20})\.(?P<attempt>[0-9]{1,20})\.(?P<stamp>[0-9]{1,20}))?"
    r"(?:\s+of=(?P<workflow>[0-9a-f]{8})\.(?P<job>[0-9a-f]{8})\.(?P<step>[0-9a-f]{8}))?"
    r"(?:\s+verdict=(?P<verdict>[a-z]{1,20}))?\s*-->"
)
_LINE = re.compile(r"<!--\s*agenteval:(?P<kind>row|heading)\s(?P<text>.*)\s-->")
_VERDICTS: dict[str | None, Verdict] = {word: word for word in get_args(Verdict)}
#: Inner markers of a section, and the part after each of them.
_PARTS = {"running": "head", "more": "detail", "less": "note"}


def parse(body: str) -> Comment | None:
    """Parse a comment; return ``None`` if the text does not begin with agenteval's marker.

    Accepts edited comments: any line ends, lost end markers (a section then ends at the next marker), and text
    outside of sections, which is dropped.
    """
    first, *rest = unix_lines(body).lstrip().split("\n")
    found = _MARKER.fullmatch(first.strip())
    if not found or found["kind"] != "comment" or not found["name"]:
        return None
    return Comment(f"<!-- agenteval:comment id={found['name']} -->", tuple(_sections(rest)))


def _sections(lines: Iterable[str]) -> Iterator[Section]:
    reading: _OpenSection | None = None
    for line in lines:
        found = _MARKER.fullmatch(line.strip())
        if found is None:
            if reading:
                reading.read(line)
        elif found["kind"] in {"section", "end", "fold"}:
            if reading:
                yield reading.section()
            reading = _OpenSection(found) if found["kind"] == "section" and found["name"] else None
        elif reading and found["kind"] in _PARTS:
            reading.enter(_PARTS[found["kind"]])
    if reading:
        yield reading.section()


class _OpenSection:
    """A section without end marker so far."""

    def __init__(self, found: re.Match[str]) -> None:
        self.key: str = found["name"]
        self.revision = Revision(*(int(found[part] or 0) for part in ("run", "attempt", "stamp")))
        self.verdict = _VERDICTS.get(found["verdict"])
        self.origin = Origin(found["workflow"], found["job"], found["step"]) if found["workflow"] else None
        self.texts: dict[str, list[str]] = {"head": []}
        self.part = "head"
        self.row = ""

    def read(self, line: str) -> None:
        hidden = _LINE.fullmatch(line.strip())
        if hidden and hidden["kind"] == "row":
            self.row = hidden["text"]
        else:
            self.texts[self.part].append(hidden["text"] if hidden else line)

    def enter(self, part: str) -> None:
        if part == "head" and self.part == "head" and "notice" not in self.texts:
            # The text before was the notice.
            self.texts = {"notice": self.texts["head"], "head": []}
        self.texts.setdefault(part, [])
        self.part = part

    def section(self) -> Section:
        text = {part: "\n".join(lines) for part, lines in self.texts.items()}
        detail = None if "note" in text else text.get("detail", "")
        notice = text.get("notice", "")
        return Section(self.key, text["head"], detail, self.revision, notice, self.verdict, self.origin, self.row)


Tidy = Callable[[Comment, Section], Comment]
Action = Literal["created", "updated", "unchanged", "absent", "superseded"]

# Seconds to wait after a write without response, before checking for its effect.
_UNANSWERED_S = (1.0, 4.0)


@dataclass(frozen=True)
class CommentOutcome:
    """Address of the comment, and the action taken.

    Attributes:
        url: address of the comment; empty without one.
        action: ``absent``: no comment exists, and none should be created. ``superseded``: a newer run has written
            the section, and its text stays.
    """

    url: str
    action: Action


@dataclass(frozen=True)
class Posted:
    """A comment as GitHub stored it."""

    id: int
    url: str
    body: str


class GoneError(Exception):
    """The comment was deleted in the meantime."""


class UnansweredError(Exception):
    """A write has no response, so its effect must be checked.

    Args:
        cause: the exception.
        wait_s: seconds that GitHub asks to wait.
    """

    def __init__(self, cause: Exception, wait_s: float = 0.0) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.wait_s = wait_s


class CommentThread(Protocol):
    """The author's comments with one marker on one pull request. No method retries a write."""

    def own(self) -> list[Posted]:
        """Return all comments, lowest id first."""

    def look(self, comment: Posted) -> Posted:
        """Return a current comment; raise :class:`GoneError`."""

    def post(self, text: str) -> Posted:
        """Create a comment; raise :class:`UnansweredError`."""

    def edit(self, comment: Posted, text: str) -> Posted:
        """Replace a comment's text; raise :class:`UnansweredError` or :class:`GoneError`."""

    def remove(self, comment: Posted) -> None:
        """Delete a comment, if it still exists."""


@dataclass(frozen=True)
class Pacing:
    """Waiting times and rounds for other jobs.

    Args:
        settle_s: seconds between a write and its check.
        jitter_s: limit of additional random seconds, so that jobs do not run in step; doubled each time.
        limit_s: seconds after which nothing is written; waits that GitHub asks for do not count.
        sleep: waits for some seconds.
        clock: returns the elapsed seconds.
        chance: returns a random number from 0 to 1.
    """

    settle_s: float = 1.5
    jitter_s: float = 0.75
    rounds: int = 10
    limit_s: float = 45.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random

    def pause_s(self, turn: int) -> float:
        """Return the seconds to wait after write number ``turn``, from 0."""
        return self.settle_s + float(self.jitter_s * 2 ** min(turn, 3) * self.chance())


def as_it_is(comment: Comment, _own: Section) -> Comment:
    """Return the comment unchanged."""
    return comment


def publish(
    conversation: CommentThread,
    mark: str,
    compose: Callable[[Comment], Section | None],
    *,
    create: bool,
    pacing: Pacing,
    tidy: Tidy = as_it_is,
) -> CommentOutcome:
    """Write a section to the comment, merge several comments into one, and wait until the result is stable.

    Args:
        compose: creates the section from the current comment; ``None`` to write nothing.

    Raises:
        Exception: GitHub refused, or three writes in a row failed.
    """
    own = conversation.own()
    before = _united(mark, own)
    section = compose(before)
    if section is None or not (own or create):
        return CommentOutcome(own[0].url if own else "", "absent")
    return _Publication(conversation, before, section, create, tidy).run(own, pacing)


class _Publication:
    """State of one job while it writes its section."""

    def __init__(
        self, conversation: CommentThread, before: Comment, section: Section, create: bool, tidy: Tidy
    ) -> None:
        self._conversation = conversation
        self._section = section
        self._create = create
        # The current text comes second, so another text with the same revision stays.
        self._known = tidy(Comment(before.mark, (section,)).merged(before.sections), section)
        self._tidy = tidy
        self._created: int | None = None
        self._posted_blindly = False
        self._wrote = False
        self._unanswered = 0

    def run(self, own: list[Posted], pacing: Pacing) -> CommentOutcome:
        until = pacing.clock() + pacing.limit_s
        for turn in range(pacing.rounds):
            if self._has_settled(own):
                return self._outcome(own[0])
            if not (own or self._create):
                return CommentOutcome("", "absent")
            if pacing.clock() > until:
                break
            asked_s = self._try_to_write(own)
            until += asked_s
            pacing.sleep(max(asked_s, pacing.pause_s(turn)))
            own = self._conversation.own()
            self._find_what_was_posted_blindly(own)
            self._learn(own)
        if self._has_settled(own):
            return self._outcome(own[0])
        raise GithubError("other jobs kept overwriting the comment")

    def _has_settled(self, own: Sequence[Posted]) -> bool:
        """Return whether there is one comment, with all known sections as far as they fit."""
        return len(own) == 1 and parse(own[0].body) == parse(self._text())

    def _try_to_write(self, own: Sequence[Posted]) -> float:
        """Write the known sections; return the seconds to wait before reading again, 0 for the default."""
        try:
            if own:
                self._edit(*own)
            else:
                self._post()
        except GoneError:
            return 0.0
        except UnansweredError as error:
            self._unanswered += 1
            if self._unanswered > len(_UNANSWERED_S):
                raise error.cause from None
            return max(error.wait_s, _UNANSWERED_S[self._unanswered - 1])
        self._unanswered = 0
        return 0.0

    def _post(self) -> None:
        self._wrote = self._posted_blindly = True
        stored = self._conversation.post(self._text())
        self._posted_blindly = False
        self._created = stored.id
        self._learn([stored])

    def _find_what_was_posted_blindly(self, own: Sequence[Posted]) -> None:
        if self._posted_blindly:
            with_ours = (posted.id for posted in own if _united("", [posted]).section(self._section.key))
            self._created = next(with_ours, None)
            self._posted_blindly = self._created is None

    def _edit(self, keep: Posted, *duplicates: Posted) -> None:
        now = self._conversation.look(keep)
        self._learn([now])
        text = self._text()
        if parse(now.body) != parse(text):
            self._wrote = True
            # Compare later texts with the form that GitHub stored.
            self._learn([self._conversation.edit(now, text)])
        for duplicate in duplicates:
            self._conversation.remove(duplicate)

    def _learn(self, comments: Sequence[Posted]) -> None:
        self._known = self._tidy(self._known.merged(_united(self._known.mark, comments).sections), self._section)

    def _text(self) -> str:
        return self._known.render(own=self._section.key)

    def _outcome(self, comment: Posted) -> CommentOutcome:
        stands = _united("", [comment]).section(self._section.key)
        if stands is None:
            raise GithubError(
                "too many jobs write to this comment, so this one does not fit; give some jobs another comment-id"
            )
        if stands.revision > self._section.revision:
            return CommentOutcome(comment.url, "superseded")
        if self._created == comment.id:
            return CommentOutcome(comment.url, "created")
        return CommentOutcome(comment.url, "updated" if self._wrote else "unchanged")


def _united(mark: str, comments: Sequence[Posted]) -> Comment:
    """Return the sections of several comments; of two equal revisions, the one in the first comment."""
    read = [comment for posted in reversed(comments) if (comment := parse(posted.body))]
    return Comment(mark, tuple(section for comment in read for section in comment.sections))
