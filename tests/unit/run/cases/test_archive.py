"""Cases that are read back from the journal of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit import runs

from agenteval.core.errors import InfrastructureError
from agenteval.results.archive import Passed
from agenteval.results.model import SuiteResult
from agenteval.run.cases.archive import JournalArchive
from agenteval.run.journal.journal import Journal


def suite(path: str) -> SuiteResult:
    return SuiteResult(path=path, name=path, format="holodeck", fingerprint="f", cases=[])


def test_the_line_that_counts_is_the_one_that_was_named_last(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    archive = JournalArchive(path)
    first, again = runs.case("a"), runs.case("a", response="again")
    with Journal(path) as journal:
        journal.begin("run-1", {})
        journal.add("agent.yaml", first.model_dump_json())
        archive.add("agent.yaml", 7, again, journal.add("agent.yaml", again.model_dump_json()))
        journal.add_iteration("agent.yaml", "agent.yaml::b", again.iterations[0].model_dump_json())
    assert list(archive.cases(suite("agent.yaml"))) == [again]
    assert list(archive.texts(suite("agent.yaml"))) == [again.model_dump_json()]
    assert list(archive.cases(suite("other.yaml"))) == []
    assert archive.seconds(suite("other.yaml")) == 0.0


def test_a_lone_surrogate_does_not_keep_a_case_from_being_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    archive = JournalArchive(path)
    passed, failed = runs.case("a"), runs.case("b", "failed")
    with Journal(path) as journal:
        journal.begin("run-1", {})
        for position, item in enumerate((passed, failed)):
            text = item.model_dump_json().replace('"name":"', '"name":"\ud800')
            archive.add("agent.yaml", position, item, journal.add("agent.yaml", text))
    assert [item.name for item in archive.cases(suite("agent.yaml"))] == ["\ud800a", "\ud800b"]
    first, second = archive.findings(suite("agent.yaml"))
    assert first == Passed("\ud800a", 0.0)
    assert isinstance(second, tuple)


def test_a_run_that_never_began_has_no_cases(tmp_path: Path) -> None:
    archive = JournalArchive(tmp_path / "journal.jsonl")
    assert list(archive.cases(suite("agent.yaml"))) == []
    assert (archive.seconds(suite("agent.yaml")), archive.counts(suite("agent.yaml")).total()) == (0.0, 0)


def test_a_journal_that_is_gone_is_told(tmp_path: Path) -> None:
    archive = JournalArchive(tmp_path / "journal.jsonl")
    archive.add("agent.yaml", 0, runs.case("a"), 10)
    with pytest.raises(InfrastructureError, match=r"cannot read .*journal\.jsonl: No such file or directory"):
        list(archive.cases(suite("agent.yaml")))
