"""There is one way to score recorded answers: ``--traces PATH`` and ``--agent replay:PATH`` do the same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import CoroutineType
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command

from agenteval.results.store import read_results

RULES = [{"check": "output_not_empty"}]
SUITE = {"evaluators": [{"name": "answered", "type": "rule_based", "enabled": True, "rules": RULES}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A suite without inputs, and the traces of an experiment, of which every third has no answer."""
    (tmp_path / "evaluation.yaml").write_text(yaml.safe_dump(SUITE), encoding="utf-8")
    write_traces(tmp_path / "experiment" / "trace_summary.jsonl", lines())
    return tmp_path


def lines() -> list[str]:
    return [
        json.dumps({"input": f"question {number}", "output": "yes" if number % 3 else "", "persona": "novice"})
        for number in range(12)
    ]


def write_traces(file: Path, content: list[str]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(content), encoding="utf-8")


def test_no_more_tasks_are_started_than_there_are_traces(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = asyncio.TaskGroup.create_task
    names: list[str] = []

    def create_task(
        group: asyncio.TaskGroup, coroutine: CoroutineType[Any, Any, Any], **named: Any
    ) -> asyncio.Task[Any]:
        names.append(coroutine.cr_code.co_name)
        return usual(group, coroutine, **named)

    monkeypatch.setattr(asyncio.TaskGroup, "create_task", create_task)
    ended = command("run", folder / "evaluation.yaml", "--traces", folder / "experiment", "--concurrency", "1000000")
    assert ended.status == 1, ended.text
    assert 1 < names.count("_score_recorded") <= 12 + 1


@pytest.mark.parametrize("successful", [True, False])
def test_the_criteria_of_traces_stay_what_the_run_found(tmp_path: Path, command: Command, successful: bool) -> None:
    # What a trace reports beside its answer, such as success, is not in the results.
    rule = {"name": "any", "type": "rule_based", "enabled": True, "rules": [{"check": "output_not_empty"}]}
    criteria = {"performance": {"all_traces_successful": True}}
    suite = {"evaluators": [rule], "success_criteria": criteria}
    (tmp_path / "evaluation.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
    traces = [
        {"trace_id": f"t{n}", "input": f"q{n}", "output": "a", "success": n > 0 or successful} for n in range(3)
    ]
    (tmp_path / "traces.jsonl").write_text("\n".join(map(json.dumps, traces)), encoding="utf-8")
    ran = command("run", "evaluation.yaml", "--traces", "traces.jsonl", "--out", "one")
    merged = command("merge", "one", "-o", "merged")
    compared = command("compare", "one", "one")
    assert {ran.status, merged.status, compared.status} == {0 if successful else 1}, merged.text
    first, again = (read_results(tmp_path / name).suites[0].criteria for name in ("one", "merged"))
    assert first == again
    assert [criterion.met for criterion in first] == [successful]
    assert "could not be checked" not in merged.text
