"""Attempts of a pull request whose results are made elsewhere: shards of a run, and runs of other steps."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.git_server import commit, git
from tests.support import case, python_agent, write_suite

from agenteval.core.errors import ConfigError
from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.run.attempts.source import EarlierAttempt, Recollection
from agenteval.run.context import RunContext
from agenteval.run.git import Provenance
from agenteval.run.merge import merge_files
from agenteval.run.outcome import RunOutcome
from agenteval.run.pipeline import run
from agenteval.run.settings import Settings
from agenteval.run.shard import Shard

CASES = 20
AGENT = """
def reply(request):
    with open({log!r}, "a") as file:
        file.write("asked\\n")
    return "wrong" if int(request["case"]) < {broken} else request["input"]
"""
BASE = Path("../base")


@dataclass
class Workflow:
    """The jobs of a pull request; the newest decided run is kept."""

    folder: Path
    found: Recollection = field(default_factory=Recollection)

    def recall(self) -> Recollection:
        return self.found

    @property
    def context(self) -> RunContext:
        commit_id = git(self.folder, "rev-parse", "HEAD")
        return RunContext(Provenance(commit_id, "refs/pull/7/merge", "org/bot", "1"), attempts=self)

    @property
    def log(self) -> Path:
        return self.folder.parent / "asked"

    @property
    def calls(self) -> int:
        return len(self.log.read_text(encoding="utf-8").splitlines()) if self.log.exists() else 0

    def change(self, broken: int) -> None:
        """Commit an agent that answers the first cases wrong."""
        python_agent(self.folder, AGENT.format(log=str(self.log), broken=broken))
        commit(self.folder)

    def shards(self, *numbers: int) -> list[Path]:
        """Run shards; return their report directories."""
        self.log.unlink(missing_ok=True)
        places = [self.folder.parent / f"shard-{number}" for number in numbers]
        for number, place in zip(numbers, places, strict=True):
            shutil.rmtree(place, ignore_errors=True)
            settings = Settings(quiet=True, baseline=BASE, shard=Shard(number, 2), out=place)
            assert run(settings, self.context).exit_status == 0
        return places

    def decide(self, places: Sequence[Path]) -> RunOutcome:
        """Decide by results that exist, and keep the decided run."""
        out = self.folder.parent / "decided"
        shutil.rmtree(out, ignore_errors=True)
        outcome = merge_files(places, out, Settings(baseline=BASE), self.context)
        results = read_results(out)
        assert results.memory is not None
        self.found = Recollection(EarlierAttempt(results, results.memory, lambda _: False))
        return outcome

    def attempt(self) -> RunOutcome:
        return self.decide(self.shards(1, 2))


def compared(results: Results) -> str:
    assert results.comparison is not None
    return results.comparison.verdict


@pytest.fixture
def workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workflow:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    made = Workflow(folder)
    agent = python_agent(folder, AGENT.format(log=str(made.log), broken=0))
    write_suite(folder, [case(str(number)) for number in range(CASES)], agent=agent)
    (folder / ".gitignore").write_text("agenteval-report\n__pycache__\n", encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder)
    assert run(Settings(quiet=True, out=BASE)).exit_status == 0
    assert run(Settings(quiet=True, out=BASE, baseline=BASE)).exit_status == 0
    git(folder, "checkout", "--quiet", "-b", "feature")
    return made


@pytest.mark.parametrize(("broken", "status"), [(0, 0), (10, 1)])
def test_a_decided_run_is_shown_again(workflow: Workflow, broken: int, status: int) -> None:
    workflow.change(broken)
    first = workflow.attempt()
    assert (first.exit_status, workflow.calls) == (status, CASES)
    again = workflow.attempt()
    assert (again.exit_status, workflow.calls) == (status, 0)
    assert again.gate.headline.startswith(f"{first.gate.headline}; already shown in attempt 1")
    assert again.results.suites == first.results.suites
    # The gate is that of this job: another list of what fails it counts.
    other = merge_files(workflow.shards(1, 2), BASE.parent / "other", Settings(fail_on=frozenset()), workflow.context)
    assert (other.exit_status, workflow.calls) == (0, 0)


def test_a_shard_that_was_left_out_decides_for_all(workflow: Workflow) -> None:
    workflow.change(10)
    found = workflow.found
    workflow.attempt()
    kept, workflow.found = workflow.found, found
    (ran,) = workflow.shards(1)
    workflow.found = kept
    (left_out,) = workflow.shards(2)
    assert workflow.decide([ran, left_out]).exit_status == 1
    assert read_results(left_out).run.shard is not None


def test_shards_of_other_files_do_not_show_a_verdict(workflow: Workflow) -> None:
    workflow.change(10)
    workflow.attempt()
    (left_out,) = workflow.shards(2)
    workflow.change(0)
    (ran,) = workflow.shards(1)
    with pytest.raises(ConfigError, match="the other shards are of other files; run all shards again"):
        workflow.decide([ran, left_out])


def test_what_a_suspicion_left_open_is_decided_by_both_runs(workflow: Workflow) -> None:
    workflow.change(3)
    first = workflow.attempt()
    assert (first.gate.verdict, first.exit_status) == ("unproven", 3)
    second = workflow.attempt()
    assert workflow.calls == CASES
    # Both runs repeat exactly, so the change is a fact.
    assert (compared(second.results), second.exit_status) == ("regressed", 1)
    assert second.results.memory is not None
    assert second.results.memory.attempt == 1
    assert len({entry.run_id for entry in second.results.pool}) == 2


@pytest.mark.parametrize(("broken", "status", "attempt"), [(6, 1, 2), (0, 0, 2)])
def test_what_was_proven_must_be_refuted(workflow: Workflow, broken: int, status: int, attempt: int) -> None:
    workflow.change(10)
    assert workflow.attempt().exit_status == 1
    workflow.change(broken)
    outcome = workflow.attempt()
    assert (outcome.exit_status, workflow.calls) == (status, CASES)
    memory = outcome.results.memory
    assert memory is not None
    assert (memory.attempt, bool(memory.means or memory.cases)) == (attempt, status == 1)


def test_one_results_file_of_another_step_has_a_memory_too(workflow: Workflow) -> None:
    workflow.change(10)
    place = workflow.folder.parent / "whole"
    settings = Settings(quiet=True, out=place, fail_on=frozenset())
    assert run(settings).exit_status == 0
    assert workflow.decide([place]).exit_status == 1
    # The second draw is better, and does not count.
    workflow.change(0)
    assert run(settings).exit_status == 0
    git(workflow.folder, "reset", "--quiet", "--hard", "HEAD~")
    again = workflow.decide([place])
    assert again.exit_status == 1
    assert "already shown in attempt 1" in again.gate.headline


def test_whole_runs_are_compared_as_the_runs_that_they_are(workflow: Workflow) -> None:
    for _ in range(2):
        git(workflow.folder, "checkout", "--quiet", "main")
        assert run(Settings(quiet=True, out=BASE, baseline=BASE)).exit_status == 0
    workflow.change(3)
    places = [workflow.folder.parent / f"run-{number}" for number in range(4)]
    for place in places:
        run(Settings(quiet=True, out=place, fail_on=frozenset()))
    outcome = workflow.decide(places)
    comparison = outcome.results.comparison
    assert comparison is not None
    # One run of the change alone cannot show that its scores do not vary.
    assert "equality fell by 15 points; all scores repeat exactly on both sides" in comparison.policy["reason"]
    assert (comparison.verdict, outcome.exit_status) == ("regressed", 1)
    assert {len(found.iterations) for _, found in outcome.results.cases()} == {4}
