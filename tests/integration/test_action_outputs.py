"""The job summary is given what room there is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.report import samples

from agenteval.github.runner import LARGEST_SUMMARY, RunnerFiles
from agenteval.report.markdown import render_summary


@pytest.mark.parametrize("used", [0, 996_000])
def test_a_report_shrinks_to_the_room_that_others_left(tmp_path: Path, used: int) -> None:
    path = tmp_path / "summary"
    path.write_bytes(b"x" * used)
    # In an empty summary only letters of several bytes exceed the limit.
    answer = "Ответ такой-то длины. " if used < 2 else "An answer of some length. "
    sample = samples.many_regressions(2_000, answer * 40)
    files = RunnerFiles({"GITHUB_STEP_SUMMARY": str(path)})
    files.report(lambda room: render_summary(sample.report, limit=room))
    text = path.read_text(encoding="utf-8")
    assert used < len(text.encode()) <= LARGEST_SUMMARY
    added = text[used:].strip()
    assert added.startswith("### ❌ support: 2,000 of 2,000 cases broke")
    assert "Shortened to fit GitHub's size limit" in added
    assert added.count("<details") == added.count("</details>")


@pytest.mark.parametrize("used", [LARGEST_SUMMARY - 400, LARGEST_SUMMARY + 5])
def test_without_room_for_the_verdict_a_note_takes_its_place_or_nothing(tmp_path: Path, used: int) -> None:
    path = tmp_path / "summary"
    path.write_bytes(b"x" * used)
    sample = samples.many_regressions(50, "An answer of some length. " * 40)
    RunnerFiles({"GITHUB_STEP_SUMMARY": str(path)}).report(lambda room: render_summary(sample.report, limit=room))
    added = path.read_text(encoding="utf-8")[used:]
    assert added == "" if used > LARGEST_SUMMARY else "too large for the job summary" in added
    assert used >= LARGEST_SUMMARY or path.stat().st_size <= LARGEST_SUMMARY
