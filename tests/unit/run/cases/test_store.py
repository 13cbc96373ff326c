"""Finished cases, and reading them back from the journal of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import run_plan, suite_plan
from tests.unit import runs

from agenteval.agents.registry import build_agent
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.results.case import SuiteResult
from agenteval.run.plan import Job, PlannedCase
from agenteval.run.store import CaseStore
from agenteval.suite.model import AgentSpec, Case, Suite, Turn


def suite(path: str) -> SuiteResult:
    return SuiteResult(path=path, name=path, format="holodeck", fingerprint="f", cases=[])


def job(position: int, path: str = "agent.yaml") -> Job:
    agent = AgentSpec(kind="python", target="agent:reply", directory="")
    asked = Case(f"{path}::{position}", str(position), (Turn("question"),))
    item = PlannedCase(Suite(path, path, "holodeck", ()), asked, agent, 1)
    return Job(item, suite_plan(), build_agent(agent, 1, Gateway(LlmSettings())), position=position)


@contextmanager
def begun(directory: Path) -> Iterator[CaseStore]:
    """The store of a run of ten cases."""
    store = CaseStore(run_plan(directory / "journal.jsonl", ()), 10)
    with store.journal as journal:
        journal.begin("run-1", {})
        yield store


def test_iterations_between_cases_are_no_cases(tmp_path: Path) -> None:
    item = runs.case("a", "failed", response="again")
    with begun(tmp_path) as store:
        store.journal.add("agent.yaml", runs.case("a").model_dump_json().encode())
        store.record(job(7), item)
        store.journal.add_iteration("agent.yaml", "agent.yaml::b", item.iterations[0].model_dump_json())
    assert list(store.cases(suite("agent.yaml"))) == [item]
    assert list(store.texts(suite("agent.yaml"))) == [item.model_dump_json()]
    assert [found[0] for found in store.findings(suite("agent.yaml")) if isinstance(found, tuple)] == [item]
    assert list(store.cases(suite("other.yaml"))) == []
    assert store.seconds(suite("other.yaml")) == 0.0


def test_another_file_at_the_path_is_never_read(tmp_path: Path) -> None:
    path, item = tmp_path / "journal.jsonl", runs.case("a")
    with begun(tmp_path) as store:
        store.record(job(0), item)
        path.rename(tmp_path / "moved")
        path.write_text("another\n", encoding="utf-8")
    assert list(store.cases(suite("agent.yaml"))) == [item]


def test_suites_with_overlapping_positions_keep_their_cases(tmp_path: Path) -> None:
    with begun(tmp_path) as store:
        for position in (4, 1, 0, 3):
            store.record(job(position, f"{position % 2}.yaml"), runs.case(str(position)))
    store.unfinished(2, job(2, "0.yaml").item, runs.case("2"))
    assert [item.name for item in store.cases(suite("0.yaml"))] == ["0", "2", "4"]
    assert [item.name for item in store.cases(suite("1.yaml"))] == ["1", "3"]


def test_a_very_long_case_is_in_memory_with_shortened_values(tmp_path: Path) -> None:
    long = runs.case("a", response="x" * 250_000)
    with begun(tmp_path) as store:
        store.record(job(0), long)
    held = store.shown()["agent.yaml"][0]
    assert held.iterations[0].turns[0].response == "x" * 16_000
    assert list(store.cases(suite("agent.yaml"))) == [long]
