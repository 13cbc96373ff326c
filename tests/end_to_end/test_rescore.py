"""Recorded answers scored again: no agent is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.conftest import Command
from tests.support import EQUALITY, ROOT, case, python_agent, results_in, statuses, write_suite

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


@pytest.mark.parametrize(("asked", "run"), [((), 3), (("--iterations", "2"), 2)])
def test_there_are_as_many_iterations_as_recorded_or_asked_for(
    command: Command, tmp_path: Path, asked: Sequence[str], run: int
) -> None:
    record(command, tmp_path, "--iterations", "3")
    command("run", "--agent", "replay:recorded", "--fail-on", "none", *asked)
    assert {len(found.iterations) for _, found in results_in(tmp_path).cases()} == {run}


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


def test_a_replay_in_the_configuration_starts_at_its_folder(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "answers.jsonl").write_text(json.dumps({"case": "one", "response": "hello"}), encoding="utf-8")
    write_suite(folder, [case("one")], agent={"replay": "answers.jsonl"}, evaluations={"metrics": [EQUALITY]})
    assert command("run", folder).status == 0
