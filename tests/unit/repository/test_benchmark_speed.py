from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from benchmarks.speed.goals import Goal, goals
from benchmarks.speed.measure import Cost, ProgramError, median_cost, run
from benchmarks.speed.outcome import Outcome, check_outcome
from benchmarks.speed.programs import BARE, HTTP, PROMPTFOO, PYDANTIC, PYTHON, REPLAY, programs
from benchmarks.speed.tables import reasons
from benchmarks.speed.workloads import (
    ONE,
    USUAL,
    W1_HUGE,
    W1_LARGE,
    W2,
    W3,
    Kind,
    Workload,
    pairs,
    write_inputs,
)

_KINDS: tuple[Kind, ...] = ("exact", "overlap", "http")


def _goal(medians: dict[tuple[str, str], Cost], text: str) -> Goal:
    (goal,) = [goal for goal in goals(medians) if goal.text == text]
    return goal


def test_each_figure_has_its_own_median() -> None:
    costs = [Cost(1, 30, 200), Cost(3, 10, 300), Cost(2, 20, 100)]
    assert median_cost(costs) == Cost(2, 20, 200)


def test_the_median_of_two_is_their_mean() -> None:
    assert median_cost([Cost(1, 2, 3), Cost(2, 4, 5)]) == Cost(1.5, 3, 4)


@pytest.mark.parametrize(("cpu", "verdict"), [(0.25, "met"), (0.26, "missed")])
def test_a_goal_is_met_up_to_its_limit(cpu: float, verdict: str) -> None:
    assert _goal({(ONE.key, REPLAY): Cost(cpu, 1, 50)}, "one case: CPU").verdict == verdict


def test_what_was_given_up_has_its_reason_once() -> None:
    goals = [
        Goal("a", 1, "s", {BARE: 2}, "slow"),
        Goal("b", 1, "s", {BARE: 2}, "slow"),
        Goal("c", 3, "s", {BARE: 2}, "x"),
    ]
    assert reasons(goals) == "* a; b: slow."
    assert reasons(goals[2:]) == ""


def test_a_goal_must_hold_for_every_kind_of_agent() -> None:
    medians = {(ONE.key, REPLAY): Cost(0.2, 1, 50), (ONE.key, PYTHON): Cost(0.4, 1, 50)}
    goal = _goal(medians, "one case: CPU")
    assert goal.values == {REPLAY: 0.2, PYTHON: 0.4}
    assert goal.verdict == "missed"


def test_without_measurements_no_goal_is_met() -> None:
    assert {goal.verdict for goal in goals({})} == {"not measured"}


def test_a_share_needs_both_sides() -> None:
    text = "W1 10,000: CPU, as a share of promptfoo (echo)"
    ours = {(W1_LARGE.key, PYTHON): Cost(1.0, 1, 50)}
    assert _goal(ours, text).verdict == "not measured"
    assert _goal({**ours, (W1_LARGE.key, PROMPTFOO): Cost(24, 34, 1062)}, text).verdict == "met"
    assert _goal({**ours, (W1_LARGE.key, PROMPTFOO): Cost(19, 34, 1062)}, text).verdict == "missed"


def test_shares_are_of_the_right_peers() -> None:
    medians = {
        (W1_LARGE.key, PYTHON): Cost(1.0, 1, 50),
        (W1_LARGE.key, PYDANTIC): Cost(2.0, 1, 50),
        (W2.key, REPLAY): Cost(3.0, 1, 50),
        (W2.key, BARE): Cost(10.0, 1, 50),
    }
    assert _goal(medians, "W1 10,000: CPU, as a share of pydantic-evals").values == {PYTHON: 0.5}
    assert _goal(medians, "W2 10,000: CPU, as a share of bare loop").values == {REPLAY: 0.3}


def test_waiting_for_the_agent_does_not_count() -> None:
    medians = {(W3.key, HTTP): Cost(1.0, 2.25, 50)}
    assert _goal(medians, "W3 500: wall above the ideal").values[HTTP] == pytest.approx(0.25)
    assert _goal(medians, "W3 500: wall, as a ratio to the ideal").values[HTTP] == pytest.approx(1.125)


def test_a_failed_program_is_reported_with_the_end_of_its_output(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no such model'); raise SystemExit(3)"]
    with pytest.raises(ProgramError, match="ended with status 3: no such model"):
        run(command, folder=tmp_path, environment={}, limit_s=60)


@pytest.mark.parametrize(
    ("outcome", "problem"),
    [
        (Outcome(499, 499, {}), "499 results instead of 500"),
        (Outcome(500, 499, {}), "499 of 500 cases passed"),
        (Outcome(500, 500, {"bleu": 0.41}), "mean bleu is 0.410000 instead of 0.420000"),
    ],
)
def test_work_left_undone_has_no_figure(outcome: Outcome, problem: str) -> None:
    with pytest.raises(ProgramError, match=problem):
        check_outcome(outcome, W3, {"bleu": 0.42})


def test_scores_that_a_program_does_not_have_are_not_compared() -> None:
    check_outcome(Outcome(500, 500, {"bleu": 0.42}), W3, {"bleu": 0.42, "f1": 0.5})


@pytest.mark.parametrize("kind", _KINDS)
def test_all_programs_are_given_the_same_cases(kind: Kind, tmp_path: Path) -> None:
    workload = Workload("few", "few", kind, 20)
    write_inputs(workload, tmp_path, "http://127.0.0.1:1/")
    expected = list(pairs(workload))
    suite = yaml.safe_load((tmp_path / "agent.yaml").read_text(encoding="utf-8"))
    cases = yaml.safe_load((tmp_path / suite["test_cases_file"]).read_text(encoding="utf-8"))
    assert [case["ground_truth"] for case in cases] == [pair.expected for pair in expected]
    for file, key in (("answers.jsonl", "response"), ("cases.jsonl", "answer")):
        lines = (tmp_path / file).read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)[key] for line in lines] == [pair.answer for pair in expected]
    tests = [json.loads(line) for line in (tmp_path / "promptfoo.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {check["value"] for test in tests for check in test["assert"]} == {pair.expected for pair in expected}


def test_every_workload_is_done_by_agenteval() -> None:
    ours = programs(Path("agenteval"), {})
    for workload in (*USUAL, W1_HUGE):
        assert any(program.does(workload) for program in ours), workload.key
