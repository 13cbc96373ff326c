"""The journal that survives a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

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
