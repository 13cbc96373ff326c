"""Agents that repeat recorded answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support import agent_spec, answer

from agenteval.core.errors import ConfigError
from agenteval.suite.model import AgentSpec


def recorded(directory: Path, *records: Mapping[str, Any] | str) -> AgentSpec:
    """A recording with these lines."""
    lines = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in records]
    file = directory / "answers.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return agent_spec("replay", str(file), directory)


def test_only_a_line_feed_ends_a_record(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\u0085d\x0be"
    assert answer(recorded(tmp_path, "", {"case": "case", "response": text}, "")).response == text


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
