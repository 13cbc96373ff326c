"""The journal that survives a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support import EQUALITY, agenteval, case, echo_agent, environment, python_agent, results_in, write_suite

from agenteval.core.errors import InfrastructureError
from agenteval.results.case import CaseResult, IterationResult, TurnResult
from agenteval.run import store as journal_file
from agenteval.run.store import Journal


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The complete lines of a journal; a line cut short by a crash is left out."""
    lines = []
    # Not splitlines(): a JSON text may hold other characters that end a line, such as U+2028.
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


def result(name: str, response: str = "hello") -> CaseResult:
    turn = TurnResult(index=0, input="hello", ground_truth="hello", response=response)
    iteration = IterationResult(index=0, status="passed", score=1.0, turns=[turn])
    return CaseResult(id=f"agent.yaml::{name}", name=name, status="passed", score=1.0, iterations=[iteration])


def test_a_line_that_a_crash_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.begin("run-1", {})
        journal.add("agent.yaml", result("a").model_dump_json().encode())
        journal.add("agent.yaml", result("b").model_dump_json().encode())
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole[:-30], encoding="utf-8")
    assert [line["case"]["name"] for line in read_journal(path)[1:]] == ["a"]


def test_a_journal_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(InfrastructureError, match=r"cannot write .*journal\.jsonl: No such file or directory"),
        Journal(tmp_path / "gone" / "journal.jsonl"),
    ):
        pass


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "create_file", lambda *_: os.open("/dev/full", os.O_RDWR))
    with (
        pytest.raises(InfrastructureError, match="No space left on device"),
        Journal(tmp_path / "journal.jsonl") as it,
    ):
        it.begin("run-1", {})


def test_secrets_never_reach_the_journal(tmp_path: Path) -> None:
    agent = echo_agent(tmp_path, env={"KEY": "${SERVICE_KEY}"})
    # As values of JSON, both would break the document if they were replaced in its text.
    for secret in ("true", "sk-abc123456"):
        write_suite(tmp_path, [case("a", secret, secret), case("b")], agent=agent)
        done = agenteval("run", cwd=tmp_path, env=environment(SERVICE_KEY=secret))
        assert done.status == 0, done.text
        lines = read_journal(tmp_path / "agenteval-report" / "journal.jsonl")
        assert lines[1]["case"]["iterations"][0]["turns"][0]["response"] == "***"
        assert secret not in json.dumps([line["case"]["iterations"][0]["turns"][0]["input"] for line in lines[1:]])


def test_long_answers_are_reported_in_full_but_not_held(tmp_path: Path) -> None:
    code = "def reply(request):\n    return request['input'] * (50_000 if request['case'] == 'long' else 1)\n"
    cases = [case("before"), case("long", ground_truth="hello" * 50_000), case("other", "hello"), case("long 2")]
    write_suite(tmp_path, cases, agent=python_agent(tmp_path, code), evaluations={"metrics": [EQUALITY]})
    assert agenteval("run", "--iterations", "2", cwd=tmp_path).status == 0
    results = results_in(tmp_path)
    assert [found.name for _, found in results.cases()] == ["before", "long", "other", "long 2"]
    (_, found) = results.cases()[1]
    assert [each.turns[0].response for each in found.iterations] == ["hello" * 50_000] * 2
    assert found.iterations[0].turns[0].ground_truth == "hello" * 50_000
