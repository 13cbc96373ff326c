"""Agents that repeat recorded answers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support import agent_spec, answer, ask, request

from agenteval.agents.base import Reply
from agenteval.core.errors import AgentError, ConfigError
from agenteval.results.case import ToolCall, Usage
from agenteval.suite.model import AgentSpec


def recorded(directory: Path, *records: Mapping[str, Any] | str) -> AgentSpec:
    """A recording with these lines."""
    lines = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in records]
    file = directory / "answers.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return agent_spec("replay", str(file), directory)


def test_answers_by_name_or_id(tmp_path: Path) -> None:
    spec = recorded(tmp_path, {"case": "a", "response": "one"}, {"case": "agent.yaml::b", "response": "two"})
    asked = (request(case="a", case_id="agent.yaml::a"), request(case="b", case_id="agent.yaml::b"))
    assert [reply.response for reply in ask(spec, *asked) if isinstance(reply, Reply)] == ["one", "two"]


def test_tells_turns_and_iterations_apart(tmp_path: Path) -> None:
    spec = recorded(
        tmp_path,
        {"case": "a", "response": "0/0"},
        {"case": "a", "turn": 1, "response": "1/0"},
        {"case": "a", "turn": 1, "iteration": 2, "response": "1/2"},
    )
    asked = (request(case="a"), request(case="a", turn=1), request(case="a", turn=1, iteration=2))
    assert [reply.response for reply in ask(spec, *asked) if isinstance(reply, Reply)] == ["0/0", "1/0", "1/2"]


def test_repeats_all_of_a_reply(tmp_path: Path) -> None:
    record = {
        "case": "case",
        "response": "42",
        "tool_calls": [{"name": "search", "args": {"q": 1}, "duration_ms": 2}],
        "retrieval_context": ["passage"],
        "usage": {"input_tokens": 5, "cost_usd": 0.5},
        "metadata": {"model": "m"},
        "latency_ms": 1234,
    }
    assert answer(recorded(tmp_path, record)) == Reply(
        response="42",
        tool_calls=(ToolCall(name="search", args={"q": 1}, duration_ms=2),),
        retrieval_context=("passage",),
        usage=Usage(input_tokens=5, cost_usd=0.5),
        metadata={"model": "m"},
        latency_ms=1234.0,
    )


def test_repeats_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"^rate limited$"):
        answer(recorded(tmp_path, {"case": "case", "error": "rate limited"}))
    assert answer(recorded(tmp_path, {"case": "case", "response": "x", "error": ""})).response == "x"


def test_a_recorded_answer_can_be_missing(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="returned no answer"):
        answer(recorded(tmp_path, {"case": "case", "response": None}))


def test_the_last_of_several_records_counts(tmp_path: Path) -> None:
    spec = recorded(tmp_path, {"case": "case", "error": "first try"}, {"case": "case", "response": "second"})
    assert answer(spec).response == "second"


def test_only_a_line_feed_ends_a_record(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be"
    assert answer(recorded(tmp_path, "", {"case": "case", "response": text}, "")).response == text


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"case": "case", "response": "x"}\r\n')
    assert answer(agent_spec("replay", str(file), tmp_path)).response == "x"


def test_compressed_lines(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"case": "case", "response": "x"}\n'))
    assert answer(agent_spec("replay", str(file), tmp_path)).response == "x"


def test_a_missing_reply_is_an_error_of_that_case(tmp_path: Path) -> None:
    spec = recorded(tmp_path, {"case": "a", "response": "one"})
    found = ask(spec, request(case="a"), request(case="b", turn=1, iteration=2), request(case="a", iteration=2))
    assert isinstance(found[0], Reply)
    missing, few = map(str, found[1:])
    assert missing.startswith("answers.jsonl has no reply for case 'b'; record it: agenteval run -k 'b'")
    assert few.startswith("answers.jsonl has no reply for case 'a', turn 0, iteration 2: it was recorded once")


def test_every_bad_line_is_told_with_its_number(tmp_path: Path) -> None:
    spec = recorded(
        tmp_path,
        {"case": "a", "response": "fine"},
        "{'case': 'a'}",
        "[1]",
        "",
        {"response": "whose?"},
        {"case": 5, "response": "x"},
        {"case": "a"},
        {"case": "a", "response": "x", "turn": -1},
        {"case": "a", "response": "x", "iteration": "first"},
        {"case": "a", "response": "x", "latency_ms": "fast"},
        {"case": "a", "response": "x", "tool_calls": "search"},
        {"case": "a", "response": "x", "usage": {"input_tokens": -1}},
        '{"case": "a", "response": ' + "[" * 20_000,
    )
    with pytest.raises(ConfigError) as caught:
        answer(spec)
    problems = caught.value.problems
    assert [problem.line for problem in problems] == [2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert {problem.file for problem in problems} == {str(tmp_path / "answers.jsonl")}
    texts = [problem.message for problem in problems]
    assert all(text.startswith("not a recorded reply: ") for text in texts)
    for text, named in zip(
        texts[1:-1],
        ["object", "`case`", "`case`", "`response`", "`turn`", "`iteration`", "`latency_ms`", "tool_calls", "usage"],
        strict=True,
    ):
        assert named in text


def test_a_missing_recording_is_told_where_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        answer(agent_spec("replay", str(tmp_path / "gone.jsonl"), tmp_path))
    place = f"{tmp_path / 'agenteval.yaml'}:3: agent: "
    assert str(caught.value) == f"{place}recording {tmp_path / 'gone.jsonl'} does not exist"


def test_a_recording_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"answers\.jsonl:1: not UTF-8 text"):
        answer(agent_spec("replay", str(tmp_path / "answers.jsonl"), tmp_path))
