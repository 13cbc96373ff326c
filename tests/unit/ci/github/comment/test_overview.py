"""Several jobs share a comment: a table of all of them, of which the worst is open."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.report import samples
from tests.unit.report.states import EVERY

from agenteval.github.comment_sections import Absent, Comment, Revision, Section, marker
from agenteval.github.comment_update import parse
from agenteval.github.publisher import PublishOptions, content_of

MARK = marker()
JOBS = {"support": "broke", "search": "rules", "billing": "all-green", "voice": "infrastructure"}


def section(job: str, state: str, notice: str = "") -> Section:
    scenario = EVERY[state]()
    sample = scenario.sample
    named = [suite.model_copy(update={"name": f"{job}-bot"}) for suite in sample.results.suites]
    results = sample.results.model_copy(update={"suites": named})
    report = replace(sample, results=results).presented(site=scenario.site)
    content = content_of(report, PublishOptions(), name=f"evaluate ({job})")
    head, detail = content.parts
    revision = Revision(1, 1, 1)
    return Section(f"ci-{job}-0000000a", head, detail, revision, notice, verdict=content.verdict, row=content.row)


def shared() -> Comment:
    sections = [section(job, state) for job, state in JOBS.items()]
    absent = (
        Absent("evaluate (faq)", "waiting", "https://github.com/acme/widgets/actions/runs/7001/job/9"),
        Absent("evaluate-onboarding", "skipped"),
    )
    return Comment(MARK, (*sections, section("translate", "all-green", "⏳ **running**")), absent)


def test_golden() -> None:
    samples.check_golden("comment-shared.md", shared().render())


def test_every_job_has_a_row_and_the_worst_is_open() -> None:
    lines = shared().render().splitlines()
    assert lines[1] == "### ❌ 2 of 6 agents did not pass: support-bot, voice-bot"
    rows = [line for line in lines[3:12] if line.startswith("| ") and "Agent" not in line]
    assert [row.split(" | ")[0] for row in rows] == ["| ❌", "| 🔌", "| ✅", "| ⚠️", "| ⏳", "| ⏳", "| ⚪"]
    assert rows[0] == (
        "| ❌ | <b>support-bot</b> <sub>evaluate (support)</sub> | 24 of 30 | <b>3</b>, 2 for the same reason | "
        "<span>$</span>0.0016 <b>+62 %</b> | 1.4 s <b>+57 %</b> | "
        '<a href="https://github.com/acme/widgets/actions/runs/7001#artifacts">report</a> |'
    )
    folds = [line for line in lines if line.startswith("<details") and "-bot: " in line]
    assert [line.startswith("<details open>") for line in folds] == [True, False, False, False, False]
    assert folds[0].endswith("<summary>❌ support-bot: 3 of 26 cases broke — 2 for the same reason</summary>")


def test_a_single_job_has_neither_a_table_nor_a_fold() -> None:
    one = Comment(MARK, (section("support", "all-green"),))
    text = one.render()
    assert "| Agent |" not in text
    assert "agenteval:heading" not in text
    assert text.splitlines()[3] == "### ✅ support-bot: 3 of 3 cases pass"
    assert parse(text) == one


def test_a_lost_end_ends_at_the_fold() -> None:
    text = shared().render()
    keys = [each.key for each in shared().sections]
    lost = text.replace(f"<!-- agenteval:end key={keys[0]} -->\n", "")
    assert parse(lost) == shared()


_LINES = st.text(alphabet="ab|<>-! `#\\", max_size=40)


@given(st.lists(st.tuples(_LINES, _LINES, _LINES), min_size=2, max_size=4))
def test_any_texts_are_read_as_they_were_written(texts: list[tuple[str, str, str]]) -> None:
    sections = tuple(
        Section(f"k{number}", f"### {head}\n\nmore", detail, verdict="failed", row=f"| {row} |")
        for number, (head, detail, row) in enumerate(texts)
    )
    comment = Comment(MARK, sections)
    assert parse(comment.render()) == comment


def test_the_rows_of_many_jobs_fit() -> None:
    sections = tuple(
        Section(f"job-{number}", f"### ✅ bot {number}: nothing broke or fell\n\n3 of 3 cases pass", "x" * 2_000,
                verdict="passed", row=f"| ✅ | <b>bot {number}</b> | 3 of 3 | – | | | |")
        for number in range(60)
    )  # fmt: skip
    text = Comment(MARK, sections).render()
    found = parse(text)
    assert found is not None
    assert len(found.sections) == 60
