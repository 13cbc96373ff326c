"""Jobs that write to one comment at the same time, on a GitHub and a clock of the test's own."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.github.client import GithubError
from agenteval.github.comment_sections import Comment, Revision, Section, marker, section_key
from agenteval.github.comment_update import CommentOutcome, GoneError, Pacing, Posted, UnansweredError, parse, publish

MARK = marker()


class Clock:
    """Time that passes only in :meth:`sleep`; of several threads exactly one runs, the one that is due first."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Event]] = []
        self._count = 0

    def sleep(self, seconds: float) -> None:
        awake = self._at(self.now + seconds)
        self._next()
        awake.wait()

    def run(self, jobs: list[tuple[float, Callable[[], None]]]) -> None:
        """Runs each job from its own start time until all have ended."""
        threads = [Thread(target=self._job, args=(self._at(start), job), daemon=True) for start, job in jobs]
        for thread in threads:
            thread.start()
        self._next()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()

    def _job(self, awake: Event, job: Callable[[], None]) -> None:
        awake.wait()
        try:
            job()
        finally:
            self._next()

    def _at(self, time: float) -> Event:
        awake = Event()
        self._count += 1
        heapq.heappush(self._due, (time, self._count, awake))
        return awake

    def _next(self) -> None:
        if self._due:
            time, _, awake = heapq.heappop(self._due)
            self.now = max(self.now, time)
            awake.set()


@dataclass
class Server:
    """GitHub's side. Every request takes time before and after it has its effect."""

    clock: Clock
    chance: random.Random
    slowest_s: float = 0.3
    lost: int = 0
    lag_s: float = 0.0
    comments: dict[int, str] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    _ids: int = 100
    _hidden_until: dict[int, float] = field(default_factory=dict)

    @contextmanager
    def request(self) -> Iterator[None]:
        self.clock.sleep(self.chance.uniform(0, self.slowest_s))
        yield
        self.clock.sleep(self.chance.uniform(0, self.slowest_s))

    def new(self, text: str) -> Posted:
        self._ids += 1
        self.comments[self._ids] = text
        self._hidden_until[self._ids] = self.clock.now + self.chance.uniform(0, self.lag_s)
        return self.posted(self._ids)

    def posted(self, id_: int) -> Posted:
        return Posted(id_, f"https://github.test/{id_}", self.comments[id_])

    def visible(self) -> list[Posted]:
        return [self.posted(id_) for id_ in sorted(self.comments) if self._hidden_until.get(id_, 0) <= self.clock.now]

    def loses(self, write: Callable[[], Posted]) -> Posted:
        """Does the write, unless it or its answer is one of those that get lost."""
        if self.lost and self.chance.random() < 0.3:
            self.lost -= 1
            if self.chance.random() < 0.5:
                write()
            raise UnansweredError(ConnectionError("lost"))
        return write()


@dataclass
class Talk:
    """One job's view of it."""

    server: Server
    mine: set[int] = field(default_factory=set)

    def own(self) -> list[Posted]:
        with self.server.request():
            seen = {posted.id: posted for posted in self.server.visible()}
            seen |= {id_: self.server.posted(id_) for id_ in self.mine & self.server.comments.keys()}
        return [seen[id_] for id_ in sorted(seen)]

    def look(self, comment: Posted) -> Posted:
        with self.server.request():
            if comment.id not in self.server.comments:
                raise GoneError
            found = self.server.posted(comment.id)
        return found  # noqa: RET504 - the answer takes its time

    def post(self, text: str) -> Posted:
        with self.server.request():
            self.server.writes.append("post")
            stored = self.server.loses(lambda: self.server.new(text))
            self.mine.add(stored.id)
        return stored

    def edit(self, comment: Posted, text: str) -> Posted:
        def change() -> Posted:
            self.server.comments[comment.id] = text
            return self.server.posted(comment.id)

        with self.server.request():
            self.server.writes.append("edit")
            if comment.id not in self.server.comments:
                raise GoneError
            stored = self.server.loses(change)
        return stored  # noqa: RET504 - the answer takes its time

    def remove(self, comment: Posted) -> None:
        with self.server.request():
            self.server.comments.pop(comment.id, None)
            self.mine.discard(comment.id)


def section(job: int, run: int = 1, text: str = "") -> Section:
    return Section(section_key("ci", f"job{job}"), f"head {job}", text or f"detail {job}", Revision(run, 1, job))


def pacing(server: Server) -> Pacing:
    return Pacing(sleep=server.clock.sleep, clock=lambda: server.clock.now, chance=server.chance.random)


def publish_all(
    server: Server, sections: list[Section], within_s: float = 3.0, *, create: bool = True
) -> list[CommentOutcome]:
    """Publishes each section as a separate job that starts at a random time."""
    outcomes: dict[int, CommentOutcome] = {}

    def job(at: int) -> None:
        outcomes[at] = publish(Talk(server), MARK, lambda _: sections[at], create=create, pacing=pacing(server))

    starts = [server.chance.uniform(0, within_s) for _ in sections]
    server.clock.run([(start, lambda at=at: job(at)) for at, start in enumerate(starts)])  # type: ignore[misc]
    return [outcomes[at] for at in range(len(sections))]


def remaining(server: Server) -> Comment:
    [text] = server.comments.values()
    comment = parse(text)
    assert comment is not None
    return comment


@given(
    seed=st.integers(0, 2**32),
    jobs=st.integers(2, 8),
    within_s=st.sampled_from([0.0, 0.5, 3.0]),
    before=st.sampled_from(["nothing", "a comment", "an old comment", "two comments"]),
    trouble=st.tuples(st.integers(0, 2), st.sampled_from([0.0, 1.0])),
)
def test_jobs_that_race_end_with_one_comment_that_has_all_sections(
    seed: int, jobs: int, within_s: float, before: str, trouble: tuple[int, float]
) -> None:
    lost, lag_s = trouble
    server = Server(Clock(), random.Random(seed), lost=lost)
    earlier = section(50, run=0)
    if before == "an old comment":
        server.new(f"{MARK}\n### agenteval: passed")
    elif before != "nothing":
        server.new(Comment(MARK, (earlier, section(0, run=0))).render())
    if before == "two comments":
        server.new(Comment(MARK, (section(1, run=0),)).render())
    server.lag_s = lag_s
    sections = [section(job) for job in range(jobs)]

    outcomes = publish_all(server, sections, within_s)

    kept = [earlier] if before in {"a comment", "two comments"} else []
    assert remaining(server) == Comment(MARK, (*sections, *kept))
    assert {outcome.action for outcome in outcomes} <= {"created", "updated"}
    assert {outcome.url for outcome in outcomes} == {server.posted(*server.comments).url}


@given(seed=st.integers(0, 2**32), order=st.permutations(range(1, 5)))
@settings(max_examples=30, deadline=None)
def test_the_newest_run_of_a_job_wins_in_whatever_order_they_finish(seed: int, order: list[int]) -> None:
    server = Server(Clock(), random.Random(seed))
    runs = [section(0, run=run, text=f"run {run}") for run in order]

    outcomes = publish_all(server, [*runs, section(1)])

    assert remaining(server) == Comment(MARK, (section(0, run=4, text="run 4"), section(1)))
    assert outcomes[order.index(4)].action in {"created", "updated"}


def test_a_comment_that_is_deleted_meanwhile_is_not_made_again_unless_one_may_be_created() -> None:
    server = Server(Clock(), random.Random(1))
    server.new(Comment(MARK, (section(0, run=0),)).render())
    outcomes: list[CommentOutcome] = []

    def job() -> None:
        quick = replace(pacing(server), settle_s=0.0)
        outcomes.append(publish(Talk(server), MARK, lambda _: section(0), create=False, pacing=quick))

    def somebody() -> None:
        server.comments.clear()

    server.clock.run([(0.0, job), (0.4, somebody)])

    assert outcomes == [CommentOutcome("", "absent")]
    assert server.comments == {}


def test_three_writes_without_an_answer_are_a_failure() -> None:
    server = Server(Clock(), random.Random(1), lost=100)
    server.chance.random = lambda: 0.0  # type: ignore[method-assign]
    caught: list[BaseException] = []

    class Deaf(Talk):
        def post(self, text: str) -> Posted:
            server.writes.append("post")
            raise UnansweredError(ConnectionError("lost"))

    def job() -> None:
        with pytest.raises(ConnectionError, match="lost") as error:
            publish(Deaf(server), MARK, lambda _: section(0), create=True, pacing=pacing(server))
        caught.append(error.value)

    server.clock.run([(0.0, job)])

    assert len(caught) == 1
    assert server.writes == ["post"] * 3


def test_somebody_who_overwrites_for_ever_is_given_up_on() -> None:
    server = Server(Clock(), random.Random(1))
    server.new(MARK)
    ended: list[float] = []

    def overwrites() -> None:
        while not ended:
            server.clock.sleep(0.5)
            server.comments = dict.fromkeys(server.comments, MARK)

    def job() -> None:
        with pytest.raises(GithubError, match="other jobs kept overwriting"):
            publish(Talk(server), MARK, lambda _: section(0), create=True, pacing=pacing(server))
        ended.append(server.clock.now)

    server.clock.run([(0.0, job), (0.0, overwrites)])

    assert len(server.writes) <= 10
    assert ended[0] < 60


# Fills a comment to its limit.
@pytest.mark.slow
def test_a_section_without_space_shows_a_note() -> None:
    server = Server(Clock(), random.Random(1))
    crowd = [Section(section_key("ci", f"{job}"), "x" * 200, revision=Revision(5, 1, job)) for job in range(400)]
    late = Section(section_key("ci", "late"), "x" * 200, revision=Revision(4, 1, 100))
    server.new(Comment(MARK, tuple(crowd)).render())
    caught: list[str] = []

    def job() -> None:
        with pytest.raises(GithubError) as error:
            publish(Talk(server), MARK, lambda _: late, create=True, pacing=pacing(server))
        caught.append(str(error.value))

    server.clock.run([(0.0, job)])

    assert "does not fit" in caught[0]
