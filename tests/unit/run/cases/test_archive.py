"""Reading cases back from the journal of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit import runs

from agenteval.core.errors import InfrastructureError
from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.store import Passed
from agenteval.run.case_store import JournalArchive
from agenteval.run.journal import Journal


def suite(path: str) -> SuiteResult:
    return SuiteResult(path=path, name=path, format="holodeck", fingerprint="f", cases=[])


def archive_of(journal: Journal) -> JournalArchive:
    return JournalArchive(journal, "run-1", lambda: iter(()))


def record(archive: JournalArchive, journal: Journal, place: tuple[str, int], item: CaseResult, text: str) -> None:
    name, position = place
    archive.add(name, position, item, journal.add(name, text), text)


def test_the_line_that_counts_is_the_one_that_was_named_last(tmp_path: Path) -> None:
    written = Journal(tmp_path / "journal.jsonl")
    archive = archive_of(written)
    first, again = runs.case("a"), runs.case("a", response="again")
    with written as journal:
        journal.begin("run-1", {})
        journal.add("agent.yaml", first.model_dump_json())
        record(archive, journal, ("agent.yaml", 7), again, again.model_dump_json())
        journal.add_iteration("agent.yaml", "agent.yaml::b", again.iterations[0].model_dump_json())
    assert list(archive.cases(suite("agent.yaml"))) == [again]
    assert list(archive.texts(suite("agent.yaml"))) == [again.model_dump_json()]
    assert list(archive.cases(suite("other.yaml"))) == []
    assert archive.seconds(suite("other.yaml")) == 0.0


def test_a_lone_surrogate_does_not_keep_a_case_from_being_read(tmp_path: Path) -> None:
    written = Journal(tmp_path / "journal.jsonl")
    archive = archive_of(written)
    passed, failed = runs.case("a"), runs.case("b", "failed")
    with written as journal:
        journal.begin("run-1", {})
        for position, item in enumerate((passed, failed)):
            text = item.model_dump_json().replace('"name":"', '"name":"\ud800')
            record(archive, journal, ("agent.yaml", position), item, text)
    assert [item.name for item in archive.cases(suite("agent.yaml"))] == ["\ud800a", "\ud800b"]
    first, second = archive.findings(suite("agent.yaml"))
    assert first == Passed("\ud800a", 0.0)
    assert isinstance(second, tuple)


def test_a_run_that_never_began_has_no_cases(tmp_path: Path) -> None:
    archive = archive_of(Journal(tmp_path / "journal.jsonl"))
    assert list(archive.cases(suite("agent.yaml"))) == []
    assert (archive.seconds(suite("agent.yaml")), archive.counts(suite("agent.yaml")).total()) == (0.0, 0)


def test_a_missing_journal_is_an_error(tmp_path: Path) -> None:
    archive = archive_of(Journal(tmp_path / "journal.jsonl"))
    archive.add("agent.yaml", 0, runs.case("a"), 10, "{}")
    with pytest.raises(InfrastructureError, match=r"cannot read .*journal\.jsonl: the run wrote no journal"):
        list(archive.cases(suite("agent.yaml")))


def test_another_file_at_the_path_is_never_read(tmp_path: Path) -> None:
    path, item = tmp_path / "journal.jsonl", runs.case("a")
    written = Journal(path)
    archive = archive_of(written)
    with written as journal:
        journal.begin("run-1", {})
        record(archive, journal, ("agent.yaml", 0), item, item.model_dump_json())
        path.rename(tmp_path / "moved")
        path.write_text("another\n", encoding="utf-8")
    assert list(archive.cases(suite("agent.yaml"))) == [item]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.replace(b'"failed"', b'"passed"'),
        lambda content: b"x" * len(content),
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"suite", b"other\n", 1),
        lambda _: b"",
    ],
)
def test_changed_lines_are_an_error(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    path, item = tmp_path / "journal.jsonl", runs.case("a", "failed")
    written = Journal(path)
    archive = archive_of(written)
    with written as journal:
        journal.begin("run-1", {})
        record(archive, journal, ("agent.yaml", 0), item, item.model_dump_json())
        path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InfrastructureError, match=r"journal\.jsonl was changed during the run"):
        list(archive.cases(suite("agent.yaml")))


def test_suites_with_overlapping_positions_keep_their_cases(tmp_path: Path) -> None:
    written = Journal(tmp_path / "journal.jsonl")
    archive = archive_of(written)
    with written as journal:
        journal.begin("run-1", {})
        for position in (4, 1, 0, 3):
            name, item = f"{position % 2}.yaml", runs.case(str(position))
            record(archive, journal, (name, position), item, item.model_dump_json())
    archive.add_unwritten("0.yaml", 2, runs.case("2"))
    assert [item.name for item in archive.cases(suite("0.yaml"))] == ["0", "2", "4"]
    assert [item.name for item in archive.cases(suite("1.yaml"))] == ["1", "3"]


def test_only_the_entry_of_the_run_is_read_from_its_scores(tmp_path: Path) -> None:
    own = {"a": PoolCase(fingerprint="f", scores={"numeric": [1.0]})}
    archive = JournalArchive(Journal(tmp_path / "journal.jsonl"), "run-1", lambda: iter([own]))
    entries = [PoolEntry(commit=None, run_id=f"run-{number}", created_at="", cases={}) for number in (1, 2)]
    assert [list(archive.pooled(entry)) for entry in entries] == [[own], [{}]]
