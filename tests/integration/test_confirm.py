"""What looks worse is run again before anything is said about it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.integration.gated_suite import CASES, K, Project, names
from tests.integration.model_server import Answer, ModelServer, RecordedQuestion, says, serving
from tests.support import (
    AGENTEVAL,
    PATIENCE_S,
    case,
    copied_agenteval,
    environment,
    eventually,
    verdict_of,
    write_suite,
)

from agenteval.results.comparison import Comparison, ConfirmationCost
from agenteval.results.model import Results
from agenteval.results.store import read_results


@pytest.fixture
def project(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    found = Project(folder, command, monkeypatch)
    # Without a repository there is no control.
    found.write(gate=EARLIER_RUNS)
    return found


EARLIER_RUNS = {"confirm": "rerun"}


def comparison_of(results: Results) -> Comparison:
    assert results.comparison is not None
    return results.comparison


def regressed(comparison: Comparison) -> list[str]:
    return [item.name for item in comparison.cases if item.change == "regressed"]


# What is run again, and how often


def test_an_unchanged_agent_is_not_asked_again(project: Project) -> None:
    baseline = project.past(1, "--iterations", "2")
    stale = project.folder / "agenteval-report" / "confirmation-2.jsonl"
    stale.parent.mkdir()
    stale.touch()
    ended = project.run("--iterations", "2", "--baseline", baseline)
    assert ended.status == 0, ended.text
    assert len(project.asked()) == CASES * 2
    assert not stale.exists()


def test_a_broken_case_of_an_agent_that_repeats_is_run_again_by_itself(project: Project) -> None:
    baseline = project.past(3, "--iterations", str(K))
    ended = project.run("--iterations", str(K), "--baseline", baseline, BROKEN="c07")
    assert ended.status == 1, ended.text
    comparison = comparison_of(project.results())
    assert (comparison.verdict, regressed(comparison)) == ("regressed", ["c07"])
    assert (comparison.stage, comparison.policy["confirmed"]) == ("earlier-runs", True)
    assert "'c07' fails 3 of 3 re-runs, 0 of 9 iterations in earlier runs" in comparison.policy["reason"]
    assert comparison.cost == ConfirmationCost(runs=3 / (CASES * K), calls=3)
    again = project.asked_again()
    assert Counter(item.case for item in again) == {"c07": 3}
    # Iterations are counted on behind those of the first run.
    numbers = sorted(int(item.session.rpartition("#")[2]) for item in again)
    assert numbers == list(range(K, K + 3))
    assert len(project.asked()) == CASES * K + 3


def test_a_suite_that_looks_worse_is_run_again_as_a_whole(project: Project) -> None:
    baseline = project.past(3)
    ended = project.run("--baseline", baseline, BROKEN=names(0, 10))
    assert ended.status == 1, ended.text
    comparison = comparison_of(project.results())
    (metric,) = comparison.metrics
    assert (comparison.verdict, metric.verdict, comparison.stage) == ("regressed", "regressed", "earlier-runs")
    assert "compared with earlier runs, so drift cannot be told from regression" in comparison.policy["reason"]
    # A mean marks no case.
    assert regressed(comparison) == []
    again = project.asked_again()
    assert Counter(item.case for item in again) == dict.fromkeys(names(0, CASES).split(), 1)
    assert {item.session.rpartition("#")[2] for item in again} == {"1"}
    journal = (project.folder / "agenteval-report" / "confirmation-1.jsonl").read_text(encoding="utf-8")
    kinds = Counter(
        next(kind for kind in ("run", "case") if kind in json.loads(line)) for line in journal.splitlines()
    )
    assert kinds == {"run": 1, "case": CASES}


def test_what_was_bad_luck_the_first_time_passes(project: Project) -> None:
    options = ("--iterations", "2")
    baseline = project.past(3, *options)
    # Only sessions of the first run are told to answer wrong: those of the second are well again.
    agent = (project.folder / "agent.py").read_text(encoding="utf-8")
    lucky = agent.replace("in broken else", 'in broken and request["session"].startswith("agent.yaml") else')
    assert lucky != agent
    (project.folder / "agent.py").write_text(lucky, encoding="utf-8")
    ended = project.run("--baseline", baseline, *options, BROKEN=names(0, 5))
    assert ended.status == 0, ended.text
    comparison = comparison_of(project.results())
    assert (comparison.verdict, comparison.policy["confirmed"]) == ("unchanged", True)
    assert [proof.id for proof in comparison.proofs] == [f"agent.yaml::{name}" for name in names(0, 5).split()]
    assert "'c00' failed in the first run, not when repeated" in comparison.policy["reason"]
    assert "looked worse (−25.0 points); both runs together do not prove it (−12.5)" in comparison.policy["reason"]
    assert regressed(comparison) == []


def test_with_confirm_off_a_suspicion_is_unproven(project: Project) -> None:
    baseline = project.past(1)
    project.configure({"confirm": "off", "fail_on": ["unproven"]})
    ended = project.run("--baseline", baseline, BROKEN=names(0, 12))
    assert ended.status == 3, ended.text
    assert "'confirm: against-base' would prove or clear it" in ended.out
    assert project.asked_again() == []


def test_a_simple_rule_confirms_nothing(project: Project) -> None:
    baseline = project.past(1)
    project.configure({"policy": "any-flip"})
    assert project.run("--baseline", baseline, BROKEN="c00").status == 1
    assert project.asked_again() == []


def test_only_the_chosen_cases_are_run_again(project: Project) -> None:
    baseline = project.past(3)
    project.run("--baseline", baseline, "-k", "c0", BROKEN=names(0, 10))
    assert {item.case for item in project.asked_again()} == set(names(0, 10).split())


def test_an_agent_that_fails_when_it_runs_again_scores_0(project: Project) -> None:
    baseline = project.past(3)
    ended = project.run("--baseline", baseline, BROKEN=names(0, 5), CRASHES=names(5, 20))
    assert ended.status == 1, ended.text
    (metric,) = comparison_of(project.results()).metrics
    assert metric.verdict == "regressed"
    assert metric.current == pytest.approx((15 / 20 + 0) / 2)


# The pool that is handed on


def test_runs_of_the_base_branch_hand_their_history_on(project: Project) -> None:
    baseline = project.past(3)
    runs = [read_results(project.folder / f"base-{number}") for number in range(3)]
    assert [len(run.pool) for run in runs] == [1, 2, 3]
    assert [entry.run_id for entry in runs[2].pool] == [run.run.id for run in runs]
    assert all(entry.cases["agent.yaml::c00"].fingerprint for entry in runs[2].pool)
    ended = project.run("--baseline", baseline)
    assert ended.status == 0, ended.text
    comparison = comparison_of(project.results())
    assert [metric.runs for metric in comparison.metrics] == [3]


def test_a_pull_request_hands_on_itself_alone(project: Project) -> None:
    baseline = project.past(2)
    github = {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/pull/7/merge", "GITHUB_SHA": "c" * 40}
    project.run("--baseline", baseline, **github)
    results = project.results()
    assert [entry.run_id for entry in results.pool] == [results.run.id]


def test_a_proof_by_earlier_runs_begins_no_epoch(project: Project) -> None:
    baseline = project.past(3)
    assert project.run("--baseline", baseline, BROKEN=names(0, 10)).status == 1
    results = project.results()
    assert comparison_of(results).stage == "earlier-runs"
    assert (len(results.pool), results.pool[-1].run_id) == (4, results.run.id)
    assert len({entry.epoch for entry in results.pool}) == 1


def test_a_broken_pool_is_used_as_far_as_it_is_sound(project: Project) -> None:
    baseline = project.past(3)
    file = project.folder / baseline / "results.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["pool"][0] = {"run_id": 7}
    file.write_text(json.dumps(content), encoding="utf-8")
    ended = project.run("--baseline", baseline)
    note = "1 run of the baseline's pool is damaged and omitted"
    assert ended.status == 0
    assert f"warning: {note}" in ended.out
    comparison = comparison_of(project.results())
    assert comparison.notes == [note]
    assert [metric.runs for metric in comparison.metrics] == [2]
    compared = project.command("compare", "agenteval-report", baseline)
    assert f"warning: {note}" in compared.out


# Quarantine


def test_what_to_tidy_up_is_told(project: Project) -> None:
    project.configure(
        {"quarantine": [{"case": "c00", "until": "2020-01-31"}, {"case": "gone", "until": "2099-01-31"}]}
    )
    ended = project.run()
    assert "warning: the quarantine of 'c00' ended on 2020-01-31; its cases count again" in ended.out
    assert "warning: the quarantine of 'gone' matches no case" in ended.out


def test_a_case_in_quarantine_is_neither_failed_nor_run_again(project: Project) -> None:
    baseline = project.past(3, "--iterations", str(K))
    project.configure(
        {"fail_on": ["failures", "regressions"], "quarantine": [{"case": "c07", "until": "2099-12-31"}]}
    )
    ended = project.run("--iterations", str(K), "--baseline", baseline, BROKEN="c07")
    assert ended.status == 0, ended.text
    assert project.asked_again() == []
    (found,) = (item for item in comparison_of(project.results()).cases if item.name == "c07")
    assert (found.status_after, found.notes) == ("failed", ["quarantined"])


# Recorded answers


def record(folder: Path, wrong: str = "") -> None:
    lines = [
        json.dumps({"case": name, "response": "wrong" if name in wrong.split() else "hello"})
        for name in names(0, CASES).split()
    ]
    (folder / "answers.jsonl").write_text("\n".join(lines), encoding="utf-8")


def test_recorded_answers_stay_what_they_are_and_are_never_confirmed(project: Project) -> None:
    record(project.folder)
    agent = ("--agent", "replay:answers.jsonl")
    baseline = project.past(1, *agent)
    record(project.folder, wrong="c03")
    ended = project.run("--baseline", baseline, *agent)
    assert ended.status == 1, ended.text
    comparison = comparison_of(project.results())
    assert (comparison.verdict, regressed(comparison)) == ("regressed", ["c03"])
    assert not list((project.folder / "agenteval-report").glob("confirmation*"))


def test_recorded_answers_beside_living_ones_are_given_again(project: Project) -> None:
    other = project.folder / "recorded"
    other.mkdir()
    record(other)
    recorded = {"replay": "answers.jsonl"}
    write_suite(other, [case(name) for name in names(0, CASES).split()], agent=recorded)
    suites = ("agent.yaml", "recorded/agent.yaml")
    baseline = project.past(3, *suites)
    ended = project.run(*suites, "--baseline", baseline, BROKEN=names(0, 12))
    assert ended.status == 1, ended.text
    comparison = comparison_of(project.results())
    assert (comparison.stage, regressed(comparison)) == ("earlier-runs", [])
    assert comparison.metrics[0].verdict == "regressed"


# What models may cost


@pytest.fixture
def prompted(project: Project) -> Project:
    """The suite is answered by a model, as its instructions say."""
    instruct(project, "Be right.")
    return project


def instruct(project: Project, instructions: str) -> None:
    agent = {"model": {"provider": "openai", "name": "gpt-4.1", "endpoint": "${MODEL_URL}", "api_key": "sk-0"}}
    write_suite(
        project.folder,
        # The same question twice would be one for the cache.
        [case(name, f"question {name}", "hello") for name in names(0, CASES).split()],
        **agent,
        instructions={"inline": instructions},
    )


def obey(asked: RecordedQuestion) -> Answer:
    return says(asked, "wrong" if "Be wrong" in json.dumps(asked.body) else "hello")


def model_calls(server: ModelServer) -> int:
    count = len(server.asked)
    server.asked.clear()
    return count


@pytest.mark.long
def test_the_cache_of_the_first_run_does_not_answer_the_second(prompted: Project) -> None:
    (prompted.folder / "agenteval.yaml").write_text(
        yaml.safe_dump({"gate": {"fail_on": ["regressions"]}, "llm": {"cache": "kept", "cache_agents": True}}),
        encoding="utf-8",
    )
    with serving() as server:
        server.respond = obey
        url = {"MODEL_URL": server.url}
        prompted.patch.setenv("MODEL_URL", server.url)
        baseline = prompted.past(3)
        # The runs after the first one are answered from the cache.
        assert model_calls(server) == CASES
        instruct(prompted, "Be wrong.")
        ended = prompted.run("--baseline", baseline, **url)
        assert ended.status == 1, ended.text
        assert model_calls(server) == 2 * CASES
        usage = prompted.results().summary.usage
        assert usage.llm_calls == 2 * CASES
        # The first run is answered from the cache, but a cached answer is no second sample.
        assert prompted.run("--baseline", baseline, **url).status == 1
        assert model_calls(server) == CASES


@pytest.mark.parametrize(
    ("limit", "asked", "reason"),
    [
        (CASES, CASES, "the LLM budget is exhausted"),
        (CASES + 3, CASES + 3, "the LLM budget was exhausted by the confirmation run"),
        (2 * CASES, 2 * CASES, ""),
    ],
)
def test_a_budget_that_is_used_up_leaves_it_open(prompted: Project, limit: int, asked: int, reason: str) -> None:
    with serving() as server:
        server.respond = obey
        url = {"MODEL_URL": server.url}
        prompted.patch.setenv("MODEL_URL", server.url)
        baseline = prompted.past(3, "--no-cache")
        model_calls(server)
        instruct(prompted, "Be wrong.")
        ended = prompted.run("--no-cache", "--baseline", baseline, "--max-llm-calls", str(limit), **url)
        assert model_calls(server) == asked
    comparison = comparison_of(prompted.results())
    assert comparison.verdict == ("unproven" if reason else "regressed")
    assert ended.status == (0 if reason else 1)
    assert comparison.policy["reason"].endswith(reason)
    assert reason in ended.out


# Signals


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_it_is_confirmed_loses_nothing(project: Project, number: signal.Signals, status: int) -> None:
    baseline = project.past(1)
    project.log.unlink()
    reports = project.folder / "agenteval-report"
    with subprocess.Popen(
        [str(AGENTEVAL), "run", "--quiet", "--baseline", baseline],
        cwd=project.folder,
        env=environment(BROKEN=names(0, 12), HANGS=names(5, 8), PYTHONWARNINGS="always"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert eventually(lambda: any(item.case == "c05" for item in project.asked_again()))
        # Even without a word of the confirmation everything is there already.
        early = read_results(reports)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (status, "")
    assert verdict_of(out) == "error: interrupted during the confirmation run"
    assert (early.summary.cases, comparison_of(early).verdict) == (CASES, "unproven")
    results = project.results()
    assert results.run.complete
    assert (results.summary.cases, results.summary.failed) == (CASES, 12)
    comparison = comparison_of(results)
    assert comparison.verdict == "unproven"
    assert comparison.policy["reason"].endswith("the confirmation run was interrupted")
    ElementTree.fromstring((reports / "junit.xml").read_text(encoding="utf-8"))
    assert {path.name for path in reports.iterdir()} >= {"summary.md", "comment.md", "journal.jsonl"}


def test_an_interrupted_confirmation_is_finished_by_a_resumed_run(project: Project) -> None:
    baseline = project.past(3, "--iterations", str(K))
    options = ("--iterations", str(K), "--baseline", baseline)
    project.log.unlink()
    with subprocess.Popen(
        [copied_agenteval(), "run", "--quiet", *options],
        cwd=project.folder,
        env=environment(BROKEN=names(0, 8), HANGS="c07"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        others = set(names(0, 7).split())
        assert eventually(lambda: {item.case for item in project.asked_again()} == {*others, "c07"})
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    before = {item.session for item in project.asked_again() if item.case != "c07"}
    ended = project.run(*options, "--resume", BROKEN=names(0, 8))
    assert ended.status == 1, ended.text
    again = {item.session for item in project.asked()}
    assert {item.case for item in project.asked()} >= {"c07"}
    # Sessions have the same names, and only what was under way is asked again.
    assert all(".1." in session for session in again)
    assert len(before & again) <= 8
    comparison = comparison_of(project.results())
    assert (comparison.stage, regressed(comparison)) == ("earlier-runs", names(0, 8).split())
    # Resumed once more, nothing is left to run, and the verdict is the same.
    finished = project.run(*options, "--resume", BROKEN=names(0, 8))
    assert (finished.status, project.asked()) == (1, [])
    assert comparison_of(project.results()).cases == comparison.cases
    # A new run does not take over the answers of another one.
    assert project.run(*options, BROKEN=names(0, 8)).status == 1
    assert len(project.asked_again()) == 8 * K
