"""Attempts of a pull request through the whole action, against an independent emulation of GitHub."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.peers.github_emulator import OWNER, STRANGER
from tests.peers.github_service import GithubService
from tests.peers.pull_request import CASES, NUMBER, SHARDS, PullRequest
from tests.support import open_folder, results_in

from agenteval.results.comparison import Comparison
from agenteval.run.config import DEFAULT_CONCURRENCY

pytestmark = pytest.mark.peer


@pytest.fixture
def pull(github: GithubService) -> Iterator[PullRequest]:
    with open_folder() as home:
        found = PullRequest(github, home)
        found.create()
        yield found


def label(pull: PullRequest, by: str, name: str = "agenteval: prove") -> None:
    later = pull.github.actions.runs[-1].created_at + timedelta(minutes=10)
    pull.github.labels.event(NUMBER, "labeled", name, by, later)


def test_a_red_commit_stays_red_without_a_call(pull: PullRequest) -> None:
    pull.push_agent(right=False)
    first = pull.attempt()
    assert first.status == 1, first.log
    assert pull.calls > CASES
    said = results_in(pull.workspace).gate
    assert said is not None

    # Whoever asks for a proof.
    label(pull, OWNER)
    again = pull.attempt()

    assert again.status == 1, again.log
    assert pull.calls == 0
    assert again.outputs["verdict"] == "failed"
    assert again.outputs["failed"] == first.outputs["failed"] == str(CASES)
    found = results_in(pull.workspace).gate
    assert found is not None
    assert found.headline == (
        f"{said.headline}; already shown in attempt 1 for commit {pull.heads[0][:7]}: push a change or accept it"
    )
    assert (pull.memory.attempt, pull.memory.repeats) == (1, True)
    assert "already shown in attempt 1" in again.summary
    label(pull, OWNER, "agenteval: forget")

    forgotten = pull.attempt()

    assert forgotten.status == 1, forgotten.log
    assert pull.calls > CASES
    assert (pull.memory.attempt, pull.memory.forgotten_by) == (1, OWNER)
    assert f"{OWNER} set" in forgotten.summary


def test_a_file_that_does_not_count_changes_no_verdict(pull: PullRequest) -> None:
    pull.push_agent(right=True)
    pull.attempt()
    assert pull.calls == CASES
    pull.push(README_md="Another text.\n")

    green = pull.attempt()

    assert green.status == 0, green.log
    assert pull.calls == 0
    assert (pull.memory.attempt, pull.memory.repeats) == (1, True)
    pull.push_agent(right=False)
    assert pull.attempt().status == 1
    assert pull.calls > CASES
    pull.push(README_md="A third text.\n")

    red = pull.attempt()

    assert red.status == 1, red.log
    assert pull.calls == 0
    assert (pull.memory.attempt, pull.memory.repeats) == (2, True)


def test_a_verdict_of_another_base_branch_does_not_count(pull: PullRequest) -> None:
    pull.commit_to("weak", {"fail_on": ["none"]})
    pull.base = "weak"
    pull.push_agent(right=False)
    green = pull.attempt()
    assert green.status == 0, green.log
    assert results_in(pull.workspace).run.base_ref == "weak"
    assert "| To merge into | weak |" in green.summary
    pull.retarget("main")

    red = pull.attempt(edited="base")

    assert red.status == 1, red.log
    assert pull.calls > CASES
    assert (pull.memory.attempt, pull.memory.repeats) == (1, False)
    assert "| To merge into | main |" in red.summary
    # Back again, the attempt for that branch counts.
    pull.retarget("weak")
    again = pull.attempt(edited="base")
    assert (again.status, pull.calls) == (0, 0), again.log


def test_an_edited_title_costs_no_call(pull: PullRequest) -> None:
    pull.push_agent(right=True)
    assert pull.attempt().status == 0
    pull.commit_to("main", {"fail_on": ["regressions", "unproven", "errors"]})
    pull.retarget("main")

    edited = pull.attempt(edited="title")

    assert (edited.status, pull.calls, pull.memory.repeats) == (0, 0, True), edited.log
    # The base has moved: whoever repeats the job wants to know.
    assert pull.attempt(edited="title", attempt="2").status == 0
    assert (pull.calls, pull.memory.attempt) == (CASES, 2)


def test_a_fork_has_no_attempts(pull: PullRequest) -> None:
    pull.push_agent(right=False)
    pull.attempt()
    pull.github.proxy.forget()

    step = pull.run(head_repository="mallory/widgets")

    assert step.status == 1, step.log
    assert pull.calls > CASES
    assert results_in(pull.workspace).memory is None
    assert not pull.github.proxy.called("GET", "/artifacts")


def test_a_cancelled_attempt_is_resumed(pull: PullRequest) -> None:
    pull.push_agent(right=False)
    cancelled = pull.cancel("confirmation")
    assert cancelled.status == 143, cancelled.log
    before = pull.calls
    pull.upload(conclusion="cancelled")

    resumed = pull.attempt()

    assert resumed.status == 1, resumed.log
    assert (pull.memory.attempt, pull.memory.repeats) == (1, False)
    asked = pull.calls
    # A fork has no attempts, so this is a whole run.
    pull.run(head_repository="mallory/widgets")
    # What the cancelled run got is not asked for again, but for the answers that were on their way.
    assert 0 < asked <= pull.calls - (before - DEFAULT_CONCURRENCY) < pull.calls


def comparison_of(pull: PullRequest) -> Comparison:
    found = results_in(pull.workspace).comparison
    assert found is not None
    return found


def test_a_green_attempt_is_continued_to_prove_an_improvement(github: GithubService) -> None:
    with open_folder() as home:
        pull = PullRequest(github, home)
        pull.create(right=False)
        pull.push_agent(right=True)
        assert pull.attempt().status == 0
        assert (pull.calls, comparison_of(pull).state) == (CASES, "clear")
        label(pull, STRANGER)
        refused = pull.attempt()
        assert (refused.status, pull.calls) == (0, 0)
        assert "does not count: this needs write access" in refused.summary.replace("\u200b", "")
        label(pull, OWNER)

        proven = pull.attempt()

        assert proven.status == 0, proven.log
        comparison = comparison_of(pull)
        assert comparison.cost is not None
        # The first run counts; only the proof is new.
        assert pull.calls == comparison.cost.calls > 0
        assert comparison.improvements > 0
        assert "Improvement proven side by side with main" in proven.summary
        assert (pull.memory.attempt, pull.memory.repeats) == (1, False)

        again = pull.attempt()

        assert (again.status, pull.calls, comparison_of(pull).improvements > 0) == (0, 0, True)
        assert (pull.memory.attempt, pull.memory.repeats) == (1, True)


def test_a_whole_run_that_repeats_a_verdict_is_decided_by_its_own_files(pull: PullRequest) -> None:
    pull.push_agent(right=False)
    pull.attempt()
    assert pull.attempt().status == 1
    kept = results_in(pull.workspace)
    assert kept.memory is not None
    assert kept.memory.repeats
    forged = kept.gate.model_copy(update={"verdict": "passed", "exit_status": 0}) if kept.gate else None
    folder = pull.workspace / SHARDS
    folder.mkdir()
    text = kept.model_copy(update={"gate": forged}).model_dump_json()
    (folder / "results.json").write_text(text, encoding="utf-8")
    pull.github.actions.clear()
    step = pull.run(mode="gate")
    assert (step.status, step.outputs["verdict"]) == (1, "failed"), step.log


def test_another_configuration_or_setup_is_another_attempt(pull: PullRequest) -> None:
    for name in ("lax", "strict"):
        (pull.workspace / f"{name}.yaml").write_text("gate: {fail_on: [errors]}\n", encoding="utf-8")
    pull.push_agent(right=True)
    asked = []
    for inputs in ({"config": "lax.yaml"}, {"config": "lax.yaml"}, {"config": "strict.yaml"}, {"setup": "true"}):
        step = pull.run(**inputs)
        assert step.status == 0, step.log
        pull.upload()
        asked.append(pull.calls)
    assert asked == [CASES, 0, CASES, CASES]
