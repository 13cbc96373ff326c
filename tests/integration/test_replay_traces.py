"""OpenTelemetry traces, recorded with real libraries, as answers of an agent."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support import ROOT

from agenteval.agents.base import Reply
from agenteval.agents.otel import OtelAnswer
from agenteval.agents.recording import BadLine, RecordedCase, RecordedQuestion, Recording
from agenteval.agents.replay_agent import read_recording
from agenteval.agents.traces import read_answers
from agenteval.core.errors import ConfigError
from agenteval.results.case import ToolCall, Usage

DATA = ROOT / "tests" / "data" / "traces"
WEATHER = "What is the weather in Paris and Rome?"
OPENAI = ("openai-v2.jsonl", "openai-v2-events.jsonl", "openllmetry.jsonl")
ALL = (*OPENAI, "pydantic-ai.jsonl")


def find(recording: Recording, *inputs: str, name: str = "a case") -> RecordedCase:
    return recording.find(RecordedQuestion(f"agent.yaml::{name}", name, inputs))


def answers(file: Path) -> list[OtelAnswer]:
    found = list(read_answers(file))
    assert not [item for item in found if isinstance(item, BadLine)]
    return [item for item in found if isinstance(item, OtelAnswer)]


def texts(case: RecordedCase) -> list[list[str]]:
    return [
        [
            turn.answer.response if isinstance(turn.answer, Reply) else f"error: {turn.answer}"
            for turn in turns.values()
        ]
        for turns in case.values()
    ]


def without_times(call: ToolCall) -> ToolCall:
    assert call.duration_ms is not None
    return call.model_copy(update={"duration_ms": None})


@pytest.mark.parametrize("name", ALL)
def test_answers_of_real_libraries(name: str) -> None:
    recording = read_recording(DATA / name)
    weather = find(recording, WEATHER)
    assert texts(weather) == [["Sunny in Paris, rain in Rome."]] * (2 if name in OPENAI else 1)
    reply = weather[0][0].answer
    assert isinstance(reply, Reply)
    # Two model calls; the sum that Pydantic AI's agent tells is not counted once more.
    assert reply.usage == Usage(input_tokens=20, output_tokens=10)
    assert reply.latency_ms is not None
    assert sum(call.duration_ms or 0 for call in reply.tool_calls) < reply.latency_ms
    assert [(call.name, call.args) for call in reply.tool_calls] == [
        ("get_weather", {"city": "Paris"}),
        ("get_weather", {"city": "Rome"}),
    ]


@pytest.mark.parametrize("name", OPENAI)
def test_results_and_errors_of_tools(name: str) -> None:
    reply = find(read_recording(DATA / name), WEATHER)[0][0].answer
    assert isinstance(reply, Reply)
    assert [without_times(call) for call in reply.tool_calls] == [
        ToolCall(name="get_weather", args={"city": "Paris"}, result={"sky": "sunny", "degrees": 21}),
        # The tool raised, which the agent told the model as "none".
        ToolCall(name="get_weather", args={"city": "Rome"}, result="none", error="LookupError: no station in Rome"),
    ]


def test_ids_in_base64_are_ids(tmp_path: Path) -> None:
    def encoded(value: Any) -> Any:
        if isinstance(value, list):
            return [encoded(item) for item in value]
        if not isinstance(value, dict):
            return value
        ids = {"traceId", "spanId", "parentSpanId"}
        return {
            key: base64.b64encode(bytes.fromhex(item)).decode() if key in ids else encoded(item)
            for key, item in value.items()
        }

    for name in ALL:
        file = tmp_path / name
        lines = (DATA / name).read_text(encoding="utf-8").splitlines()
        file.write_text("\n".join(json.dumps(encoded(json.loads(line))) for line in lines), encoding="utf-8")
        assert [(item.input, item.response, item.tool_calls, item.usage) for item in answers(file)] == [
            (item.input, item.response, item.tool_calls, item.usage) for item in answers(DATA / name)
        ]


def test_spans_that_were_sent_twice_count_once(tmp_path: Path) -> None:
    for name in ALL:
        file = tmp_path / name
        file.write_bytes((DATA / name).read_bytes() * 2)
        assert answers(file) == answers(DATA / name)


def test_every_broken_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    good = (DATA / "openai-v2.jsonl").read_text(encoding="utf-8").splitlines()
    span = {"traceId": "a", "spanId": "b", "startTimeUnixNano": "soon"}
    bad = ["{", "[1]", "{}", json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})]
    file.write_text("\n".join([good[0], *bad, "", *good[1:]]), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_recording(file)
    problems = caught.value.problems
    assert [(problem.file, problem.line) for problem in problems] == [(str(file), line) for line in (2, 3, 4, 5)]
    assert "resourceSpans.0.scopeSpans.0.spans.0.startTimeUnixNano" in str(problems[3])


def test_packed_data_that_is_cut_off_is_told(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl.gz"
    packed = gzip.compress((DATA / "openai-v2.jsonl").read_bytes())
    file.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ConfigError, match="broken gzip data"):
        read_recording(file)
