from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.report import samples
from tests.unit.results.analysis.answers import AGGREGATE, many

from agenteval.core.errors import InfrastructureError
from agenteval.report.earlier import remove_rendered, remove_reports, results_identity
from agenteval.report.evaluation import suite_files
from agenteval.report.registry import ANALYSIS_FILES
from agenteval.report.report import Report
from agenteval.report.write import write_reports
from agenteval.results.analysis.evaluate import evaluate
from agenteval.results.analysis.result import AnalysedSuite
from agenteval.results.store import RESULTS_FILE
from agenteval.suite.evaluation import Evaluation, EvaluationReport


def analysed() -> AnalysedSuite:
    report, answers = EvaluationReport(), many()
    return AnalysedSuite("suite", "suite", answers, evaluate(answers, Evaluation(report=report), AGGREGATE), report)


def everything_in(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("suites", [0, 1, 2])
def test_everything_that_a_run_writes_is_removed_and_nothing_else(tmp_path: Path, suites: int) -> None:
    sample = samples.regressed()
    others = {"journal.jsonl", "notes.md", "evaluation/report.md", ".results.json", "evaluation/own/summary.json"}
    for name in others - {"evaluation/report.md"} if suites == 1 else others:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("the user's", encoding="utf-8")
    own = everything_in(tmp_path)
    analyses = [replace(analysed(), path=f"suite-{number}") for number in range(suites)]
    write_reports(Report(sample.gate, analyses=tuple(analyses)), sample.results, tmp_path / RESULTS_FILE)
    # What a process leaves that is killed while it writes.
    (tmp_path / f".report.html.{'0a' * 8}").write_text("<p>half", encoding="utf-8")
    assert len(everything_in(tmp_path) - own) == 8 + 4 * suites
    remove_reports(tmp_path)
    assert everything_in(tmp_path) == own


def test_results_and_analyses_survive_what_is_rendered(tmp_path: Path) -> None:
    sample = samples.regressed()
    write_reports(Report(sample.gate, analyses=(analysed(),)), sample.results, tmp_path / RESULTS_FILE)
    remove_rendered(tmp_path)
    assert everything_in(tmp_path) == {RESULTS_FILE, *(f"evaluation/{name}" for name in ANALYSIS_FILES)}


def test_every_analysis_has_the_files_that_tell_it_from_a_users_folder() -> None:
    asked = analysed()
    assert asked.report is not None
    for markdown in (True, False):
        for html in (True, False):
            suite = replace(asked, report=replace(asked.report, markdown=markdown, html=html))
            names = [file.name for file in suite_files(suite, datetime.now(UTC))]
            assert names[:2] == list(ANALYSIS_FILES[:2])
            assert set(names) <= set(ANALYSIS_FILES)


def test_links_are_not_followed(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    for name in (RESULTS_FILE, "badge.json", *ANALYSIS_FILES):
        (theirs / name).write_text("{}", encoding="utf-8")
    (ours / "evaluation").symlink_to(theirs)
    (ours / "summary.md").write_text("old", encoding="utf-8")
    (ours / "badge.json").symlink_to(theirs / "badge.json")
    before = everything_in(theirs)
    remove_rendered(ours)
    assert everything_in(ours) == {"badge.json"}
    with pytest.raises(InfrastructureError, match=r"badge\.json: it is a link, not a regular file; remove it"):
        remove_reports(ours)
    assert everything_in(theirs) == before


def test_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    remove_rendered(tmp_path / "gone")
    assert results_identity(tmp_path / "gone") is None
    assert not (tmp_path / "gone").exists()
