"""What is written into the sticky comment, on a GitHub that is a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pytest

from agenteval.github import pygithub
from agenteval.github.client import GitHubClient
from agenteval.github.comment import mark_running, publish_section
from agenteval.github.comment_sections import Comment, Revision, Section, marker
from agenteval.github.comment_update import CommentOutcome, GoneError, Pacing, Posted, parse

PACING = Pacing(settle_s=0.0, jitter_s=0.0, sleep=lambda _: None)
CLIENT = GitHubClient("ghp_token", "http://127.0.0.1:9")
OLD = Section("job", "### Passed", "detail", Revision(1, 1, 5))


@dataclass
class Memory:
    """Comments by their ids, in place of the conversation on GitHub."""

    bodies: dict[int, str] = field(default_factory=dict)
    stores: Callable[[str], str] = str
    writes: int = 0

    def __call__(self, *_: Any) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def own(self) -> list[Posted]:
        return [self._posted(id_) for id_ in sorted(self.bodies)]

    def look(self, comment: Posted) -> Posted:
        if comment.id not in self.bodies:
            raise GoneError
        return self._posted(comment.id)

    def post(self, text: str) -> Posted:
        return self._store(len(self.bodies) + 1, text)

    def edit(self, comment: Posted, text: str) -> Posted:
        return self._store(comment.id, text)

    def remove(self, comment: Posted) -> None:
        del self.bodies[comment.id]

    def sections(self) -> tuple[Section, ...]:
        [body] = self.bodies.values()
        comment = parse(body)
        assert comment is not None
        return comment.sections

    def _store(self, id_: int, text: str) -> Posted:
        self.writes += 1
        self.bodies[id_] = self.stores(text)
        return self._posted(id_)

    def _posted(self, id_: int) -> Posted:
        return Posted(id_, f"https://github.test/{id_}", self.bodies[id_])


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Memory:
    memory = Memory()
    monkeypatch.setattr(pygithub, "Thread", memory)
    monkeypatch.setattr("time.time", lambda: 9.0)
    return memory


def publish(section: Section) -> CommentOutcome:
    return publish_section(CLIENT, "acme/widgets", 7, "", section, pacing=PACING)


def run(notice: str, run_id: int, attempt: int = 1) -> CommentOutcome:
    section = Section("job", notice, revision=Revision(run_id, attempt))
    return mark_running(CLIENT, "acme/widgets", 7, "", section, pacing=PACING)


@pytest.mark.parametrize("stamp", [0, 8_999, 9_000, 9_001])
def test_a_later_text_of_one_attempt_is_newer_despite_the_clock(github: Memory, stamp: int) -> None:
    before = Section("job", "one", revision=Revision(3, 2, stamp))
    github.bodies[1] = Comment(marker(), (before,)).render()

    assert publish(Section("job", "two", revision=Revision(3, 2))).action == "updated"
    [section] = github.sections()
    assert section.head == "two"
    assert section.revision > before.revision


def test_the_same_text_of_another_run_is_written_as_it_is_newer(github: Memory) -> None:
    github.bodies[1] = Comment(marker(), (OLD,)).render()

    assert publish(Section("job", OLD.head, "detail", Revision(2, 1))).action == "updated"
    assert github.sections()[0].revision == Revision(2, 1, 9_000)


def test_a_notice_is_above_the_result_of_an_earlier_run(github: Memory) -> None:
    github.bodies[1] = Comment(marker(), (OLD, Section("other", "other"))).render()

    assert run("running", 2).action == "updated"

    running = Section("job", OLD.head, OLD.detail, Revision(2, 1, 9_000), "running")
    assert github.sections() == (running, Section("other", "other"))
    body = github.bodies[1]
    assert body.index("running\n") < body.index("### Passed") < body.index("detail\n")


def test_a_notice_is_replaced_by_the_next_and_by_the_result(github: Memory) -> None:
    github.bodies[1] = Comment(marker(), (OLD,)).render()

    run("running", 2)
    assert run("running", 2).action == "unchanged"
    run("broke off", 2)
    assert [section.notice for section in github.sections()] == ["broke off"]
    publish(Section("job", "### Failed", revision=Revision(2, 1)))
    assert [(section.notice, section.head) for section in github.sections()] == [("", "### Failed")]


def test_a_notice_never_comes_above_the_result_of_the_same_attempt(github: Memory) -> None:
    github.bodies[1] = Comment(marker(), (OLD,)).render()

    assert run("broke off", 1).action == "unchanged"
    assert run("running", 1, attempt=2).action == "updated"


@pytest.mark.parametrize("before", [None, Comment(marker()), Comment(marker(), (Section("other", "other"),))])
def test_without_an_earlier_result_there_is_no_notice(github: Memory, before: Comment | None) -> None:
    if before:
        github.bodies[1] = before.render()

    assert run("running", 2).action == "absent"
    assert github.writes == 0


def test_an_older_run_changes_nothing(github: Memory) -> None:
    github.bodies[1] = Comment(marker(), (Section("job", "newer", revision=Revision(2, 1, 1)),)).render()

    assert publish(Section("job", "older", revision=Revision(1, 9))).action == "superseded"
    assert run("running", 1).action == "superseded"
    assert github.writes == 0


def test_duplicates_go_even_when_there_is_nothing_to_write(github: Memory) -> None:
    first, second = (Section("other", text, revision=Revision(4)) for text in ("first", "second"))
    github.bodies[1] = Comment(marker(), (first, replace(OLD, revision=Revision(1, 1, 9_000)))).render()
    github.bodies[2] = Comment(marker(), (second,)).render()

    assert publish(OLD).action == "unchanged"
    assert github.writes == 0
    # Nothing says which of the two is newer.
    assert [section.head for section in github.sections()] == [OLD.head, "first"]


def test_jobs_wait_longer_each_time_and_never_in_step() -> None:
    least, most = Pacing(chance=lambda: 0.0), Pacing(chance=lambda: 1.0)

    assert [least.pause_s(turn) for turn in range(3)] == [1.5] * 3
    assert [most.pause_s(turn) for turn in range(6)] == [2.25, 3.0, 4.5, 7.5, 7.5, 7.5]


def test_text_that_github_stores_otherwise_is_written_once(github: Memory) -> None:
    github.stores = lambda text: text.replace("\0", "").replace("\n", "\r\n") + "\r\n"

    assert publish(Section("job", "a\0b", "c\0d", Revision(1, 1))).action == "created"
    assert publish(Section("job", "b\0a", "c\0d", Revision(2, 1))).action == "updated"
    assert github.writes == 2
    assert github.sections()[0].head == "ba"
