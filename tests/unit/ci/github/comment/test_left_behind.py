"""Sections of jobs that a workflow run does not have any more."""

from __future__ import annotations

import pytest

from agenteval.github.comment import without_left_behind
from agenteval.github.comment_sections import Comment, Origin, Revision, Section, marker
from agenteval.github.workflow_runs import RunJobs, WorkflowJob

BEFORE, NOW = Revision(7, 1, 1), Revision(8, 1, 1)


def job(name: str, is_done: bool) -> WorkflowJob:
    return WorkflowJob(id=1, name=name, status="completed" if is_done else "in_progress")


def section(
    job: str, revision: Revision = BEFORE, *, step: str = "s", workflow: str = "ci", key: str = ""
) -> Section:
    name = key or f"{workflow}-{job}-{step}"
    return Section(name, f"head of {name}", revision=revision, origin=Origin.of(workflow, job, step))


OWN = section("own", NOW)
DONE, AT_WORK = True, False


@pytest.mark.parametrize(
    ("other", "jobs", "stays"),
    [
        # The workflow of the run has no such job.
        (section("gone"), {}, False),
        (section("gone"), {"lint": AT_WORK, "gate": AT_WORK}, False),
        # It has, and the job ended before it could publish, or is still at work.
        (section("broken"), {"broken": DONE}, True),
        (section("later"), {"later": AT_WORK}, True),
        # Another workflow, a newer run, this run.
        (section("gone", workflow="nightly"), {}, True),
        (section("gone", Revision(9, 1, 1)), {}, True),
        (section("gone", NOW), {}, True),
        # Another step of the own job may be yet to come; the same step had another leg.
        (section("own", step="second"), {}, True),
        (section("own", key="other-leg"), {}, False),
        # Texts of earlier versions do not say who wrote them.
        (Section("unknown", "head", revision=BEFORE), {}, True),
    ],
)
def test_what_stays(other: Section, jobs: dict[str, bool], stays: bool) -> None:
    run = RunJobs("own", tuple(job(name, is_done) for name, is_done in jobs.items()))

    left = without_left_behind(Comment(marker(), (OWN, other)), OWN, run).section(other.key)

    assert left is not None
    assert left == (other if stays else Section(other.key, "", revision=Revision(8)))


def test_nothing_goes_while_a_job_with_a_section_is_at_work() -> None:
    comment = Comment(marker(), (OWN, section("gone"), section("later")))
    jobs = RunJobs("own", (job("later", is_done=False),))

    assert without_left_behind(comment, OWN, jobs) == comment
    written = comment.merged([section("later", NOW)])
    assert without_left_behind(written, OWN, jobs) == written.merged([section("gone").emptied(8)])


def test_a_step_that_a_job_has_no_more_goes_with_the_job_that_published() -> None:
    comment = Comment(marker(), (OWN, section("other", NOW), section("other", step="removed")))

    left = without_left_behind(comment, OWN, RunJobs("own", (job("other", is_done=True),)))

    assert [item.key for item in left.sections if not item.is_empty] == [section("other").key, OWN.key]


def test_a_record_of_a_gone_job_shows_nothing_and_gives_way_to_a_new_text() -> None:
    record = section("back").emptied(8)
    assert Comment(marker(), (record,)).render().splitlines()[1:] == [
        "<!-- agenteval:section key=ci-back-s rev=8.0.0 -->",
        "<!-- agenteval:end key=ci-back-s -->",
    ]
    assert Comment(marker(), (record,)).merged([section("back")]).sections == (record,)
    assert Comment(marker(), (record,)).merged([section("back", NOW)]).sections == (section("back", NOW),)


def test_without_a_known_origin_nothing_goes() -> None:
    own = Section("own", "head", revision=NOW)
    comment = Comment(marker(), (own, section("gone")))

    assert without_left_behind(comment, own, RunJobs("own", ())) == comment
