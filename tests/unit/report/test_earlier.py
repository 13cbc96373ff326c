from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.report import samples
from tests.unit.results.analysis.answers import AGGREGATE, many

from agenteval.core.errors import InfrastructureError
from agenteval.report.facts import facts
from agenteval.report.report import remove_rendered, remove_reports, results_identity, write_reports
from agenteval.results.analysis.evaluate import AnalysedSuite, evaluate
from agenteval.results.store import RESULTS_FILE
from agenteval.suite.evaluation import Evaluation, EvaluationReport


def analysed() -> AnalysedSuite:
    report, answers = EvaluationReport(), many()
    return AnalysedSuite("suite", "suite", answers, evaluate(answers, Evaluation(report=report), AGGREGATE), report)


def everything_in(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if not path.is_dir()}


def test_everything_that_a_run_writes_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """Analyses stay: FluxLoop's recordings have the same names."""
    sample = samples.regressed()
    for name in ("journal.jsonl", "notes.md", ".results.json", "evaluation/jan/per_trace.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("the user's", encoding="utf-8")
    own = everything_in(tmp_path)
    write_reports(facts(sample.results, sample.gate, analyses=(analysed(),)), tmp_path / RESULTS_FILE)
    analysis = {name for name in everything_in(tmp_path) - own if name.startswith("evaluation/")}
    # What a process leaves that is killed while it writes.
    (tmp_path / f".report.html.{'0a' * 8}").write_text("<p>half", encoding="utf-8")
    assert len(everything_in(tmp_path) - own - analysis) == 9
    remove_rendered(tmp_path)
    assert everything_in(tmp_path) == own | analysis | {RESULTS_FILE}
    remove_reports(tmp_path)
    assert everything_in(tmp_path) == own | analysis


def test_links_are_not_followed(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    for name in (RESULTS_FILE, "badge.json"):
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
