"""The table of jobs also has those that wait, were skipped, or ended without a result."""

from __future__ import annotations

import pytest

from agenteval.github.comment import with_absent
from agenteval.github.comment_sections import Comment, Origin, Revision, Section, marker
from agenteval.github.comment_update import parse
from agenteval.github.workflow_runs import RunJobs, WorkflowJob
from agenteval.results.verdict import Verdict

BEFORE, NOW = Revision(7, 1, 1), Revision(8, 1, 1)
LOG = "https://github.com/acme/widgets/actions/runs/8/job/2"
DONE, AT_WORK = True, False


def section(job: str, revision: Revision = NOW, verdict: Verdict = "passed") -> Section:
    row = f"| ✅ | <b>{job}</b> | 3 of 3 | – |  |  |  |"
    head = f"### ✅ {job}: nothing broke or fell\n\nnumbers"
    return Section(
        f"ci-{job.replace(' ', '')}".replace("(", "-").replace(")", ""),
        head,
        revision=revision,
        verdict=verdict,
        origin=Origin.of("ci", job, "s"),
        row=row,
    )


OWN = section("evaluate (support)")


def job(name: str, is_done: bool, conclusion: str | None = None, page: str | None = None) -> WorkflowJob:
    status = "completed" if is_done else "in_progress"
    return WorkflowJob(id=1, name=name, status=status, conclusion=conclusion, html_url=page)


def lines_of(*others: WorkflowJob, sections: tuple[Section, ...] = (OWN,), waiting: bool = True) -> list[str]:
    jobs = RunJobs("evaluate (support)", others)
    comment = with_absent(Comment(marker(), sections), OWN, jobs, waiting=waiting)
    text = comment.render()
    assert parse(text) == comment
    return text.splitlines()


def rows_of(*others: WorkflowJob, sections: tuple[Section, ...] = (OWN,), waiting: bool = True) -> list[str]:
    lines = lines_of(*others, sections=sections, waiting=waiting)
    table = lines.index("|:-:|:--|--:|:--|--:|--:|:--|") if "|:-:|:--|--:|:--|--:|--:|:--|" in lines else len(lines)
    return [line for line in lines[table + 1 : table + 9] if line.startswith("| ")]


def test_a_leg_of_the_matrix_waits() -> None:
    lines = lines_of(job("evaluate (search)", AT_WORK, None, LOG), job("lint", AT_WORK))
    assert lines[1] == "### ⏳ 1 of 2 agents have a result: nothing broke or fell so far"
    assert lines[5:7] == [
        OWN.row,
        f'| ⏳ | <b>evaluate (search)</b> | | no result yet | | | <a href="{LOG}">log</a> |',
    ]


def test_a_leg_that_broke_off_is_no_green_comment() -> None:
    lines = lines_of(job("evaluate (search)", DONE, "failure", LOG))
    assert lines[1] == "### ❌ 1 of 2 agents did not pass: evaluate (search)"
    assert lines[6].startswith("| 🔌 | <b>evaluate (search)</b> | | ended without a result |")


def test_a_skipped_job_has_a_row_and_does_not_count() -> None:
    lines = lines_of(job("evaluate (onboarding)", DONE, "skipped", LOG))
    assert lines[1] == "### ✅ 1 agent: nothing broke or fell"
    assert lines[6] == "| ⚪ | <b>evaluate (onboarding)</b> | | skipped, not run | | |  |"


@pytest.mark.parametrize(
    "other",
    [
        job("lint", AT_WORK),
        job("deploy", DONE, "skipped"),
        # It needed no comment, or its end is unknown.
        job("evaluate (search)", DONE, "success"),
        job("evaluate (search)", DONE),
    ],
)
def test_other_jobs_have_none(other: WorkflowJob) -> None:
    assert lines_of(other) == Comment(marker(), (OWN,)).render().splitlines()


def test_nobody_waits_for_jobs_that_may_stay_silent() -> None:
    assert rows_of(job("evaluate (search)", AT_WORK), waiting=False) == []
    assert len(rows_of(job("evaluate (search)", DONE, "cancelled"), waiting=False)) == 2


def test_a_result_of_an_earlier_run_is_marked() -> None:
    earlier = section("search", BEFORE)
    rows = rows_of(job("search", DONE, "skipped"), sections=(OWN, earlier))
    assert rows[1] == (
        "| ⚪ | <b>search</b> | 3 of 3 | – <sub>skipped, not run; this is an earlier result</sub> |  |  |  |"
    )
    written = rows_of(job("search", AT_WORK), sections=(OWN, section("search")))
    assert written[1] == section("search").row


def test_names_are_shown_literally() -> None:
    name = "evaluate (<img src=x>|@ada)"
    (row,) = [row for row in rows_of(job(name, AT_WORK)) if "no result yet" in row]
    assert "<img" not in row
    assert row.count("|") == 8


def test_a_long_list_ends() -> None:
    jobs = [job(f"evaluate ({number})", AT_WORK) for number in range(300)]
    comment = with_absent(Comment(marker(), (OWN,)), OWN, RunJobs("evaluate (support)", tuple(jobs)), waiting=True)
    assert len(comment.absent) == 50
