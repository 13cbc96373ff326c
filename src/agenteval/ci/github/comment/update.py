"""Brings one section into a comment that other jobs write to at the same time.

GitHub has no conditional write: an edit replaces whatever is there by then. So every job reads just before it
writes, remembers the newest it has seen of every section, looks again when its write has settled, and writes again
when anything it knows is missing. What all of them know only grows, and of two texts of a section the newer one
wins, so they end with the same comment. That holds as long as less time lies between a read and the effect of the
write after it than jobs take to look again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agenteval.ci.github.api.client import GithubError
from agenteval.ci.github.comment.parser import parse
from agenteval.ci.github.comment.sections import Comment, Section

Action = Literal["created", "updated", "unchanged", "absent", "superseded"]

# Seconds to wait after a write without an answer, before looking whether it arrived.
_UNANSWERED_S = (1.0, 4.0)


@dataclass(frozen=True, slots=True)
class CommentOutcome:
    """Where the comment is, and what had to be done to it.

    Attributes:
        url: address of the comment; empty when there is none.
        action: ``absent``: there is no comment to write to, and none was to be made. ``superseded``: a newer run
            had written the section already, and its text stays.
    """

    url: str
    action: Action


@dataclass(frozen=True, slots=True)
class Posted:
    """A comment as GitHub holds it."""

    id: int
    url: str
    body: str


class GoneError(Exception):
    """The comment was deleted meanwhile."""


class UnansweredError(Exception):
    """GitHub did not say that it wrote something; whether it did can only be seen by looking.

    Args:
        cause: what happened instead.
        wait_s: how long GitHub asks to wait.
    """

    def __init__(self, cause: Exception, wait_s: float = 0.0) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.wait_s = wait_s


class Conversation(Protocol):
    """Our own comments with one marker on one pull request. No method repeats a write by itself."""

    def own(self) -> list[Posted]:
        """All of them, lowest id first."""

    def look(self, comment: Posted) -> Posted:
        """One of them as it is now; raises :class:`GoneError`."""

    def post(self, text: str) -> Posted:
        """A new one as GitHub stored it; raises :class:`UnansweredError`."""

    def edit(self, comment: Posted, text: str) -> Posted:
        """The edited one as GitHub stored it; raises :class:`UnansweredError` and :class:`GoneError`."""

    def remove(self, comment: Posted) -> None:
        """Deletes one, if it still exists."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """How long to wait for other jobs, and how often.

    Args:
        settle_s: seconds between a write and the look at what became of it.
        jitter_s: at most so many seconds more, at random, so that jobs do not move in step; doubled each time.
        rounds: how often to write.
        limit_s: after so many seconds nothing more is written; waiting as GitHub asks does not count.
        sleep: waits for seconds.
        clock: says how many seconds have passed.
        chance: gives a number from 0 to 1.
    """

    settle_s: float = 1.5
    jitter_s: float = 0.75
    rounds: int = 10
    limit_s: float = 45.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random

    def pause_s(self, turn: int) -> float:
        """Seconds to wait after write number ``turn``, the first being 0."""
        return self.settle_s + float(self.jitter_s * 2 ** min(turn, 3) * self.chance())


def publish(
    conversation: Conversation,
    mark: str,
    compose: Callable[[Comment], Section | None],
    *,
    create: bool,
    pacing: Pacing,
) -> CommentOutcome:
    """Puts a section into the comment, makes one comment of several, and stays until that has settled.

    Args:
        conversation: the comments.
        mark: the marker of the comment.
        compose: makes the section from what is there; ``None`` to write nothing.
        create: whether to make a comment if there is none.
        pacing: how long to wait for other jobs.

    Raises:
        GithubError: other jobs kept overwriting the section.
        Exception: what made GitHub refuse, or three writes in a row fail.
    """
    own = conversation.own()
    before = _united(mark, own)
    section = compose(before)
    if section is None or not (own or create):
        return CommentOutcome(own[0].url if own else "", "absent")
    return _Publication(conversation, before, section, create).run(own, pacing)


class _Publication:
    """What one job knows while it writes its section."""

    def __init__(self, conversation: Conversation, before: Comment, section: Section, create: bool) -> None:
        self._conversation = conversation
        self._section = section
        self._create = create
        # What is there comes second: text that somebody else put there under the same revision stays.
        self._known = Comment(before.mark, (section,)).merged(before.sections)
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
        raise GithubError("other jobs kept overwriting the comment, and this job gave up")

    def _has_settled(self, own: Sequence[Posted]) -> bool:
        """Whether there is one comment and it says all that we know, as far as there is room."""
        return len(own) == 1 and parse(own[0].body) == parse(self._text())

    def _try_to_write(self, own: Sequence[Posted]) -> float:
        """Writes what we know; returns the seconds to wait before looking again, 0 for the usual time."""
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
            # GitHub's own form of what we wrote is what we compare with from now on.
            self._learn([self._conversation.edit(now, text)])
        for duplicate in duplicates:
            self._conversation.remove(duplicate)

    def _learn(self, comments: Sequence[Posted]) -> None:
        self._known = self._known.merged(_united(self._known.mark, comments).sections)

    def _text(self) -> str:
        return self._known.render(own=self._section.key)

    def _outcome(self, comment: Posted) -> CommentOutcome:
        stands = _united("", [comment]).section(self._section.key)
        if stands is None:
            raise GithubError(
                "so many jobs write to this comment that it has no room for this one; give some of them a comment "
                "of their own, by another comment-id"
            )
        if stands.revision > self._section.revision:
            return CommentOutcome(comment.url, "superseded")
        if self._created == comment.id:
            return CommentOutcome(comment.url, "created")
        return CommentOutcome(comment.url, "updated" if self._wrote else "unchanged")


def _united(mark: str, comments: Sequence[Posted]) -> Comment:
    """The sections of several comments; of two that are equally new, the one in the first comment."""
    read = [comment for posted in reversed(comments) if (comment := parse(posted.body))]
    return Comment(mark, tuple(section for comment in read for section in comment.sections))
