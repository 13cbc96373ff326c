"""Cases that are read back from the journal of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit import runs

from agenteval.core.errors import InfrastructureError
from agenteval.results.archive import Passed
from agenteval.results.model import PoolCase, PoolEntry, SuiteResult
from agenteval.run.cases.archive import JournalArchive
from agenteval.run.journal.journal import Journal


def suite(path: str) -> SuiteResult:
    return SuiteResult(path=path, name=path, format="holodeck", fingerprint="f", cases=[])


def archive_of(journal: Path) -> JournalArchive:
    return JournalArchive(journal, "run-1", lambda: iter(()))


def test_the_line_that_counts_is_the_one_that_was_named_last(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    archive = archive_of(path)
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
    archive = archive_of(path)
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
    archive = archive_of(tmp_path / "journal.jsonl")
    assert list(archive.cases(suite("agent.yaml"))) == []
    assert (archive.seconds(suite("agent.yaml")), archive.counts(suite("agent.yaml")).total()) == (0.0, 0)


def test_a_journal_that_is_gone_is_told(tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "journal.jsonl")
    archive.add("agent.yaml", 0, runs.case("a"), 10)
    with pytest.raises(InfrastructureError, match=r"cannot read .*journal\.jsonl: No such file or directory"):
        list(archive.cases(suite("agent.yaml")))


def test_suites_whose_positions_overlap_keep_their_own_cases(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    archive = archive_of(path)
    with Journal(path) as journal:
        journal.begin("run-1", {})
        for position in (4, 1, 0, 3):
            name, item = f"{position % 2}.yaml", runs.case(str(position))
            archive.add(name, position, item, journal.add(name, item.model_dump_json()))
    archive.add_unwritten("0.yaml", 2, runs.case("2"))
    assert [item.name for item in archive.cases(suite("0.yaml"))] == ["0", "2", "4"]
    assert [item.name for item in archive.cases(suite("1.yaml"))] == ["1", "3"]


def test_only_the_runs_own_entry_is_read_from_its_scores(tmp_path: Path) -> None:
    own = {"a": PoolCase(fingerprint="f", scores={"numeric": [1.0]})}
    archive = JournalArchive(tmp_path / "journal.jsonl", "run-1", lambda: iter([own]))
    entries = [PoolEntry(commit=None, run_id=f"run-{number}", created_at="", cases={}) for number in (1, 2)]
    assert [list(archive.pooled(entry)) for entry in entries] == [[own], [{}]]
