"""results.json: written files are read back, and invalid ones are refused."""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.unit.runs import case, iteration, results, score, turn

from agenteval.core.errors import ConfigError
from agenteval.core.writing import write_file
from agenteval.results.case import Score, ToolCall, TurnResult
from agenteval.results.model import Results
from agenteval.results.store import IN_MEMORY, read_results, results_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
# What an agent may send, lone surrogates included.
ANY_TEXT = st.text(st.characters())


def run_with(only: TurnResult) -> Results:
    return results(case("a").model_copy(update={"iterations": [iteration("passed", only)]}))


def nested(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = [value]
    return value


def _text(results: Results) -> str:
    return "".join(results_json(results, IN_MEMORY))


class TestRoundTrip:
    def test_of_a_run(self, tmp_path: Path) -> None:
        original = results(case("a", "failed", [{"numeric": 0.0}, {"numeric": 1 / 3}]), case("b", "skipped", []))
        write_file(tmp_path, "results.json", _text(original))
        assert read_results(tmp_path / "results.json") == original
        assert read_results(tmp_path) == original

    @given(response=ANY_TEXT, args=JSON, name=ANY_TEXT, reason=ANY_TEXT)
    def test_of_whatever_an_agent_says(self, response: str, args: Any, name: str, reason: str) -> None:
        call = ToolCall(name=name, args=args, result=response, error=reason)
        original = run_with(
            turn(score(reason=reason, details={"a": args}), response=response, tool_calls=[call], error=reason)
        )
        assert Results.model_validate_json(_text(original)) == original

    def test_invalid_unicode_is_replaced(self) -> None:
        said = turn(
            response="a\ud800b",
            retrieval_context=["\udfff"],
            tool_calls=[ToolCall(name="t", args={"\ud800": "\udc00"})],
        )
        assert said.response == "a\ufffdb"
        assert said.retrieval_context == ["\ufffd"]
        assert said.tool_calls[0].args == {"\ufffd": "\ufffd"}

    def test_all_other_text_is_kept(self) -> None:
        text = "\x00\x1b[31m\u202e\ufeff\uffff🦊"
        assert turn(response=text).response == text

    @pytest.mark.parametrize("depth", [1, 99, 100])
    def test_nesting_is_kept(self, depth: int) -> None:
        assert ToolCall(name="t", args=nested(depth)).args == nested(depth)

    @pytest.mark.parametrize("depth", [101, 300, 900])
    def test_endless_nesting_is_cut(self, depth: int) -> None:
        original = run_with(turn(tool_calls=[ToolCall(name="t", args=nested(depth), result={"a": nested(depth)})]))
        assert "nested too deeply" in _text(original)
        assert Results.model_validate_json(_text(original)) == original

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    def test_numbers_that_json_lacks_become_null(self, number: float) -> None:
        original = run_with(turn(tool_calls=[ToolCall(name="t", args=[number])]))
        read = Results.model_validate_json(_text(original))
        assert read.suites[0].cases[0].iterations[0].turns[0].tool_calls[0].args == [None]

    def test_keys_of_later_versions_are_ignored(self, tmp_path: Path) -> None:
        original = results(case("a"))
        content = json.loads(_text(original))
        content["new"] = content["suites"][0]["new"] = content["summary"]["new"] = {"a": 1}
        (tmp_path / "results.json").write_text(json.dumps(content))
        assert read_results(tmp_path) == original


class TestUnreadable:
    def problem(self, folder: Path, content: bytes) -> str:
        path = folder / "results.json"
        path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            read_results(path)
        assert caught.value.exit_status == 2
        return str(caught.value).removeprefix(str(path))

    def test_a_wrong_field_is_named(self, tmp_path: Path) -> None:
        content = json.loads(_text(results(case("a"))))
        content["suites"][0]["cases"][0]["status"] = "fine"
        message = self.problem(tmp_path, json.dumps(content).encode())
        assert message.startswith(
            ": suites.0.cases.0.status: not a results file of agenteval: Input should be 'passed'"
        )

    @pytest.mark.parametrize("item", [b"null", b"{}", b"[]", b"7", b'"x"'])
    @pytest.mark.parametrize(
        "key", ["suites", "baseline_runs", "suites.0.cases", "suites.0.cases.0.iterations", "baseline_runs.0.cases"]
    )
    def test_an_error_is_made_for_one_item_and_not_for_each(self, key: str, item: bytes) -> None:
        content = json.loads(_text(results(case("a"))))
        content["baseline_runs"] = [{"commit": None, "run_id": "r", "created_at": "2026-01-01", "cases": {}}]
        *steps, last = [int(step) if step.isdigit() else step for step in key.split(".")]
        parent = content
        for step in steps:
            parent = parent[step]
        parent[last] = [json.loads(item)] * 2000
        if key == "baseline_runs.0.cases":
            parent[last] = {str(number): json.loads(item) for number in range(2000)}
        with pytest.raises(ValidationError) as caught:
            Results.model_validate_json(json.dumps(content))
        # At most one for each field of a record.
        assert caught.value.error_count() < 20

    @pytest.mark.parametrize(
        "content",
        [
            b"\x89PNG\r\n",
            b'{"schema_version": 2, "suites": ' + b"[" * 500_000 + b"]" * 500_000 + b"}",
            b'{"schema_version": 2, "suites": ' + b'{"a":' * 500_000 + b"1" + b"}" * 500_000 + b"}",
            b'{"schema_version": 2, "tool": ' + b"9" * 2_000_000 + b"}",
            b'{"schema_version": 2, "suites": [' + b"null," * 200_000 + b"null]}",
            b'{"schema_version": 2, "baseline_runs": [' + b"{}," * 200_000 + b"{}]}",
        ],
        ids=["a picture", "lists", "objects", "digits", "suites", "baseline_runs"],
    )
    def test_hostile_size_and_depth_are_one_short_message(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "results.json"
        path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            read_results(path)
        assert len(str(caught.value)) < 500 + len(str(path))

    def test_more_values_than_a_run_has_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agenteval.results.store._MOST_SEPARATORS", 3)
        assert "has more than 3 values" in self.problem(tmp_path, b"[1,2,3,4,5]")

    def test_a_score_without_verdict_is_none(self) -> None:
        with pytest.raises(ValueError, match="status"):
            Score.model_validate({"id": "a", "kind": "standard", "score": 1.0, "passed": None})


class TestWriteFile:
    def test_everybody_may_read_it_and_nothing_else_is_left(self, tmp_path: Path) -> None:
        write_file(tmp_path, "a.txt", "one\r\ntwo\n")
        write_file(tmp_path, "a.txt", "größer\n")
        assert (tmp_path / "a.txt").read_bytes() == "größer\n".encode()
        assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o644
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
