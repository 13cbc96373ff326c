"""The answers of a run, asked again: ours and those of other tools."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support import agent_spec, answer, request
from tests.unit import runs

from agenteval.agents.base import Reply
from agenteval.agents.recording import RecordedQuestion, read_recorded_results
from agenteval.core.errors import AgentError, ConfigError
from agenteval.core.writing import write_file
from agenteval.results.case import CaseResult, IterationResult, TurnResult
from agenteval.results.store import IN_MEMORY, results_json
from agenteval.suite.model import AgentSpec


def turn(index: int = 0, text: str = "hello", response: str | None = "hi", **fields: Any) -> TurnResult:
    return TurnResult(index=index, input=text, ground_truth=None, response=response, **fields)


def case(name: str, *iterations: Sequence[TurnResult], path: str = "agent.yaml") -> CaseResult:
    return CaseResult(
        id=f"{path}::{name}",
        name=name,
        status="passed",
        score=None,
        iterations=[
            IterationResult(index=index, status="passed", score=None, turns=list(turns))
            for index, turns in enumerate(iterations)
        ],
    )


def recorded(directory: Path, *cases: CaseResult) -> AgentSpec:
    write_file(directory, "results.json", results_json(runs.results(*cases), IN_MEMORY))
    return agent_spec("replay", str(directory / "results.json"), directory)


def error(spec: AgentSpec, **fields: Any) -> str:
    with pytest.raises(AgentError) as caught:
        answer(spec, request(**fields))
    return str(caught.value)


@pytest.mark.parametrize(
    ("mask", "asked", "same"),
    [
        ("use *** now", "use sk-123 now", True),
        ("use *** or *** now", "use sk-123 or sk-4 now", True),
        ("***", "anything", True),
        ("use *** now", "use sk-123 later", False),
        ("use *** now", "do use sk-123 now", False),
        ("use *** or *** now", "use sk-123 now", False),
        ("ab***ba", "aba", False),
    ],
)
def test_a_masked_secret_stands_for_any_text(tmp_path: Path, mask: str, asked: str, same: bool) -> None:
    spec = recorded(tmp_path, case("case", [turn(text=mask)]))
    if same:
        assert answer(spec, request(asked)).response == "hi"
    else:
        assert "the recorded question differs" in error(spec, text=asked)


def test_a_large_file_is_never_held_as_a_whole(tmp_path: Path) -> None:
    reasons = runs.score(reason="because " * 5000)
    cases = [case(f"case {index}", [turn(response=f"{index}", scores=[reasons])]) for index in range(200)]
    spec = recorded(tmp_path, *cases)
    file = Path(str(spec.target))
    tracemalloc.start()
    recording = read_recorded_results(file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < file.stat().st_size / 4
    for index, found in enumerate(cases):
        reply = recording.find(RecordedQuestion(found.id, found.name, ()))[0][0].answer
        assert isinstance(reply, Reply)
        assert reply.response == str(index)


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9, 0.99])
def test_a_file_that_is_cut_off_is_told(tmp_path: Path, cut: float) -> None:
    spec = recorded(tmp_path, *(case(f"case {index}", [turn()]) for index in range(20)))
    file = tmp_path / "results.json"
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * cut)])
    with pytest.raises(ConfigError, match=r"results\.json"):
        answer(spec)
