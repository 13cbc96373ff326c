"""Recorded answers scored again: no agent is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.support import EQUALITY, ROOT, case, error_of, python_agent, results_in, statuses, write_suite

from agenteval.results.case import CaseResult
from agenteval.results.model import Results
from agenteval.results.store import read_results

TRACES = ROOT / "tests" / "data" / "traces" / "openai-v2.jsonl"
# Answers with its number, so that no two answers are the same, and notes that it was asked.
AGENT = """
import itertools, os, pathlib
numbers = itertools.count()

def reply(request):
    number = next(numbers)
    with open("asked.txt", "a") as file:
        file.write(f"{os.getpid()} {number}\\n")
    if request["input"] == "break":
        raise RuntimeError("out of order")
    return {
        "response": f"{request['input']} {os.getpid()} {number}",
        "tool_calls": [{"name": "search", "args": {"n": number}, "result": ["a"], "duration_ms": 2}],
        "retrieval_context": [f"passage {number}"],
        "usage": {"input_tokens": number, "output_tokens": 1},
    }
"""
CASES: Sequence[dict[str, Any]] = (
    case("one"),
    case("broken", "break"),
    {"name": "talk", "turns": [{"input": "hi", "ground_truth": "hi"}, {"input": "more", "ground_truth": "more"}]},
)
ROUGE = {"type": "standard", "metric": "rouge", "threshold": 0.1}


def record(command: Command, folder: Path, *arguments: str) -> Results:
    """A run of the agent itself in ``recorded``."""
    write_suite(folder, CASES, agent=python_agent(folder, AGENT))
    ended = command("run", "--out", "recorded", "--fail-on", "none", "--quiet", *arguments)
    # One case breaks.
    assert ended.status == 3, ended.text
    return read_results(folder / "recorded")


def answers(results: Results) -> list[Any]:
    """All that is recorded of answers, and nothing of scores."""
    return [
        (found.id, [[turn.model_dump(exclude={"scores"}) for turn in item.turns] for item in found.iterations])
        for _, found in results.cases()
    ]


def by_name(results: Results, name: str) -> CaseResult:
    (found,) = (found for _, found in results.cases() if found.name == name)
    return found


@pytest.mark.parametrize("recording", ["recorded/results.json", "recorded"])
def test_other_metrics_score_the_same_answers(command: Command, tmp_path: Path, recording: str) -> None:
    before = record(command, tmp_path, "--iterations", "3")
    asked = (tmp_path / "asked.txt").read_text(encoding="utf-8")
    assert set(statuses(before).values()) == {"failed", "error"}

    write_suite(tmp_path, CASES, evaluations={"metrics": [ROUGE]})
    ended = command("run", "--agent", f"replay:{recording}")
    assert ended.status == 3, ended.text
    after = results_in(tmp_path)
    assert answers(after) == answers(before)
    assert statuses(after) == {"one": "passed", "broken": "error", "talk": "passed"}
    scores = [score.id for _, found in after.cases() for turn in found.iterations[0].turns for score in turn.scores]
    assert set(scores) == {"rouge"}
    assert (tmp_path / "asked.txt").read_text(encoding="utf-8") == asked


def test_scoring_again_with_the_same_metrics_changes_nothing(command: Command, tmp_path: Path) -> None:
    before = record(command, tmp_path)
    command("run", "--agent", "replay:recorded", "--baseline", "recorded", "--fail-on", "none")
    after = results_in(tmp_path)
    assert statuses(after) == statuses(before)
    assert after.summary.score == before.summary.score
    assert after.comparison is not None
    assert {found.change for found in after.comparison.cases} == {"same"}


@pytest.mark.parametrize(("asked", "run"), [((), 3), (("--iterations", "2"), 2)])
def test_there_are_as_many_iterations_as_recorded_or_asked_for(
    command: Command, tmp_path: Path, asked: Sequence[str], run: int
) -> None:
    record(command, tmp_path, "--iterations", "3")
    command("run", "--agent", "replay:recorded", "--fail-on", "none", *asked)
    assert {len(found.iterations) for _, found in results_in(tmp_path).cases()} == {run}


def test_lines_of_replies_do_not_say_how_often_a_case_is_run(command: Command, tmp_path: Path) -> None:
    write_suite(tmp_path, [case("one")])
    lines = [json.dumps({"case": "one", "iteration": index, "response": "hello"}) for index in range(3)]
    (tmp_path / "replies.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for asked, run in (((), 1), (("--iterations", "3"), 3)):
        assert command("run", "--agent", "replay:replies.jsonl", "--fail-on", "none", *asked).status == 0
        assert [len(found.iterations) for _, found in results_in(tmp_path).cases()] == [run]


def test_iterations_that_were_not_recorded_are_errors(command: Command, tmp_path: Path) -> None:
    record(command, tmp_path)
    ended = command("run", "--agent", "replay:recorded", "--iterations", "3", "-k", "one", "--fail-on", "errors")
    found = by_name(results_in(tmp_path), "one")
    assert [item.status for item in found.iterations] == ["failed", "error", "error"]
    told = "recorded has no reply for case 'one', turn 0, iteration 2: it was recorded once"
    assert told in (found.iterations[2].turns[0].error or "")
    assert ended.status == 3


def test_new_and_changed_cases_are_errors_and_the_rest_is_scored(command: Command, tmp_path: Path) -> None:
    record(command, tmp_path)
    turns = [{"input": "hi", "ground_truth": "hi"}, {"input": "and then?", "ground_truth": "more"}]
    cases = [case("one"), case("broken", "another"), {"name": "talk", "turns": turns}, case("new")]
    write_suite(tmp_path, cases, evaluations={"metrics": [ROUGE]})
    ended = command("run", "--agent", "replay:recorded")
    assert ended.status == 3
    results = results_in(tmp_path)
    assert statuses(results) == {"one": "passed", "broken": "error", "talk": "error", "new": "error"}
    assert "turn 0 of case 'broken': the recorded question differs ('break')" in error_of(by_name(results, "broken"))
    first, second = by_name(results, "talk").iterations[0].turns
    assert first.error is None
    assert "turn 1 of case 'talk': the recorded question differs ('more')" in (second.error or "")
    assert "no reply for case 'new'; record it: agenteval run -k 'new'" in error_of(by_name(results, "new"))


def test_a_missing_recording_ends_the_run_before_it_begins(command: Command, tmp_path: Path) -> None:
    write_suite(tmp_path, CASES)
    ended = command("run", "--agent", "replay:gone.json")
    assert ended.status == 2
    assert "gone.json does not exist" in ended.err
    assert not (tmp_path / "agenteval-report" / "results.json").exists()


def test_an_interrupted_replay_notices_another_recording(command: Command, tmp_path: Path) -> None:
    record(command, tmp_path)
    command("run", "--agent", "replay:recorded", "--fail-on", "none")
    assert command("run", "--agent", "replay:recorded", "--fail-on", "none", "--resume").status == 3
    record(command, tmp_path)
    ended = command("run", "--agent", "replay:recorded", "--fail-on", "none", "--resume")
    assert ended.status == 2
    assert "--resume" in ended.err


def test_traces_are_replayed_and_what_they_leave_over_is_counted(command: Command, tmp_path: Path) -> None:
    turns = [
        {"input": "I am Ada.", "ground_truth": "Nice to meet you."},
        {"input": "What is my name?", "ground_truth": "Your name is Ada."},
    ]
    weather = {
        "name": "weather",
        "input": "What is the weather in Paris and Rome?",
        "ground_truth": "Sunny in Paris, rain in Rome.",
        "expected_tools": ["get_weather"],
    }
    write_suite(tmp_path, [weather, {"name": "names", "turns": turns}])
    ended = command("run", "--agent", f"replay:{TRACES}")
    assert ended.status == 0, ended.text
    assert "openai-v2.jsonl: 1 of 5 traces belongs to no case of this run" in ended.text
    results = results_in(tmp_path)
    assert statuses(results) == {"weather": "passed", "names": "passed"}
    assert [len(found.iterations) for _, found in results.cases()] == [2, 1]
    assert results.summary.usage.input_tokens == 60


def test_fluxloop_suites_take_the_same_traces(command: Command, tmp_path: Path) -> None:
    rules = [{"check": "output_not_empty"}, {"check": "success"}]
    evaluation = {"evaluators": [{"name": "answered", "type": "rule_based", "enabled": True, "rules": rules}]}
    (tmp_path / "evaluation.yaml").write_text(yaml.safe_dump(evaluation), encoding="utf-8")
    ended = command("run", "evaluation.yaml", "--traces", TRACES, "--fail-on", "none")
    assert ended.status == 0, ended.text
    summary = results_in(tmp_path).summary
    assert (summary.cases, summary.metrics["answered"].mean) == (5, 0.8)


def test_a_replay_in_the_configuration_starts_at_its_folder(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "answers.jsonl").write_text(json.dumps({"case": "one", "response": "hello"}), encoding="utf-8")
    write_suite(folder, [case("one")], agent={"replay": "answers.jsonl"}, evaluations={"metrics": [EQUALITY]})
    assert command("run", folder).status == 0
