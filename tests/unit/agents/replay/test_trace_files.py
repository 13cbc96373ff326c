"""Files of recorded traces: read line by line at any length, with a message for every broken line."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from agenteval.agents.recorded_cases import LONGEST_LINE, find_traces, read_traces
from agenteval.agents.recording import BadLine, Trace
from agenteval.core.errors import ConfigError
from agenteval.core.text import text_of
from agenteval.results.case import ToolCall, Usage
from agenteval.results.record import trace_of_reply, value_at

RECORD = {
    "trace_id": "t-1",
    "iteration": 2,
    "persona": "novice",
    "input": "Where is it?",
    "output": "There.",
    "duration_ms": 12.5,
    "success": True,
    "metadata": {"topic": "orders"},
}


def write(folder: Path, *lines: str | bytes | dict[str, Any], name: str = "traces.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
    path.write_bytes(b"\n".join(text.encode() if isinstance(text, str) else text for text in texts))
    return path


def read(folder: Path, *lines: str | bytes | dict[str, Any]) -> list[Trace | BadLine]:
    return list(read_traces(write(folder, *lines)))


def bad(folder: Path, **fields: Any) -> str:
    (item,) = read(folder, {**RECORD, **fields})
    assert isinstance(item, BadLine)
    return item.message


def test_a_trace(tmp_path: Path) -> None:
    assert read(tmp_path, RECORD) == [Trace(1, "t-1", 2, "novice", "Where is it?", "There.", 12.5, True, RECORD)]


def test_blank_lines_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    line = json.dumps(RECORD).encode()
    items = read(tmp_path, b"\xef\xbb\xbf" + line + b"\r", b"\r", b"  ", line + b"\r", line)
    assert [(type(item), item.line) for item in items] == [(Trace, 1), (Trace, 4), (Trace, 5)]


def test_broken_lines_do_not_hide_the_others(tmp_path: Path) -> None:
    items = read(tmp_path, "{", RECORD, "[1]", "nonsense", b'{"a": "\xff"}', '{"a": ' * 5000, RECORD)
    found = {item.line: item.message for item in items if isinstance(item, BadLine)}
    assert [item.line for item in items if isinstance(item, Trace)] == [2, 7]
    assert found.keys() == {1, 3, 4, 5, 6}
    assert found[1].startswith(
        "not JSON: Expecting property name enclosed in double quotes at column 2; each line must"
    )
    # The allowed nesting depends on the version of Python.
    assert found[6].startswith(("JSON that cannot be read: ", "not JSON: "))
    assert found[3] == "must be a JSON object with `input` and `output`, not a list"
    assert found[5] == "not UTF-8 text (byte 7 of the line); save the file as UTF-8"
    assert all(item.file == tmp_path / "traces.jsonl" for item in items if isinstance(item, BadLine))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"input": None}, "`input` is missing: it is what the agent was asked"),
        ({"iteration": "1"}, '`iteration` must be a whole number of at least 0, not "1"'),
        ({"persona": {"name": "x"}}, "`persona` must be a name, not an object"),
        ({"duration_ms": -0.5}, "`duration_ms` must be a number of milliseconds, not -0.5"),
        ({"duration_ms": float("inf")}, "`duration_ms` must be a number of milliseconds, not Infinity"),
        ({"duration_ms": 1e308}, "`duration_ms` must be a number of milliseconds, not 1e+308 (at most 10^15)"),
        ({"success": "false"}, '`success` must be true or false, not "false"'),
    ],
)
def test_wrong_fields(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    assert bad(tmp_path, **fields) == message


def test_a_line_of_50_megabytes_is_passed_over_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    with path.open("wb") as file:
        file.write(json.dumps(RECORD).encode() + b"\n")
        file.write(b'{"input": "')
        for _ in range(50):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n' + json.dumps(RECORD).encode())
    tracemalloc.start()
    items = list(read_traces(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(type(item), item.line) for item in items] == [(Trace, 1), (BadLine, 2), (Trace, 3)]
    assert items[1] == BadLine(path, 2, "the line is longer than 10 MB; remove the fields that no metric reads")
    assert peak < 3 * LONGEST_LINE


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["per_trace_analysis/per_trace.jsonl", "trace_summary.jsonl"], "per_trace_analysis/per_trace.jsonl"),
        (["trace_summary.jsonl", "observations.jsonl", "evaluation/per_trace.jsonl"], "trace_summary.jsonl"),
        (["experiments/run_1/trace_summary.jsonl"], "experiments/run_1/trace_summary.jsonl"),
    ],
)
def test_the_best_file_of_an_experiment(tmp_path: Path, given: list[str], expected: str) -> None:
    for name in given:
        write(tmp_path, RECORD, name=name)
    assert find_traces(tmp_path) == tmp_path / expected


def test_several_experiments_are_named(tmp_path: Path) -> None:
    paths = [write(tmp_path, RECORD, name=f"run_{number}/trace_summary.jsonl") for number in (1, 2)]
    with pytest.raises(ConfigError) as caught:
        list(read_traces(tmp_path))
    assert (
        str(caught.value) == f"{tmp_path}: several experiments have traces; name one of them: {paths[0]}, {paths[1]}"
    )


VALUES = {
    "metadata.expected": "a key with a dot",
    "metadata": {"expected": "nested", "empty": None},
    "output": {"answer": {"text": "deep"}},
    "reply": '{"answer": "inside text"}',
    "summary": {"raw": {"metadata": {"late": "raw"}, "extra": 3}, "extra": 4},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.expected", "a key with a dot"),
        ("output.answer.text", "deep"),
        ("reply.answer", "inside text"),
        ("metadata.late", "raw"),
        ("extra", 3),
        ("summary.extra", 4),
        ("metadata.empty", None),
        ("metadata.none", None),
        ("output.answer.text.more", None),
        ("", None),
    ],
)
def test_paths(path: str, value: Any) -> None:
    assert value_at(VALUES, path) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), ("a", "a"), ("", ""), (0, "0"), (False, "false"), (1.5, "1.5"), ({}, "{}"), (["ü"], '["ü"]')],
)
def test_text_of_values(value: Any, text: str) -> None:
    assert text_of(value) == text


def test_a_reply_as_a_record() -> None:
    record = trace_of_reply(
        input="Where?",
        output="There.",
        duration_ms=5.0,
        persona="novice",
        iteration=1,
        trace_id="case#1",
        metadata={"expected": "what the agent would like", "seen": True},
        expected={"expected": "Here."},
        usage=Usage(input_tokens=10, output_tokens=5),
        tool_calls=[ToolCall(name="find", args={"q": 1}, result="x", duration_ms=2.0)],
    )
    assert record == {
        "trace_id": "case#1",
        "iteration": 1,
        "persona": "novice",
        "input": "Where?",
        "output": "There.",
        "duration_ms": 5.0,
        "success": True,
        "metadata": {"expected": "Here.", "seen": True},
        "timeline": [
            {"type": "tool", "name": "find", "input": {"q": 1}, "output": "x", "error": None, "duration_ms": 2.0}
        ],
        "token_usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
