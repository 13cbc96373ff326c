"""What a run covered is recorded, stands in its headline, and decides whether it can be a baseline."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.model_server import says, serving
from tests.support import Ended, agenteval, case, python_agent, verdict_of, write_suite

AGENT = """
import time
def reply(request):
    if request["case"].startswith("slow"):
        time.sleep(1000)
    return request["input"]
"""
WHOLE: dict[str, object] = {
    "cases": 4,
    "selected": 4,
    "finished": 4,
    "iterations": None,
    "filter": None,
    "tags": [],
    "max_llm_calls": None,
    "max_cost_usd": None,
    "time_limit_s": None,
    "ended_by": None,
}
NOT_A_BASELINE = "this run cannot be a baseline: "


def project(directory: Path, *names: str, **keys: Any) -> None:
    write_suite(directory, [case(name) for name in names], **keys)
    agents = {"default": python_agent(directory, AGENT)}
    (directory / "agenteval.yaml").write_text(yaml.safe_dump({"agents": agents}), encoding="utf-8")


def run(directory: Path, *arguments: str) -> Ended:
    return agenteval("run", "--no-cache", *arguments, cwd=directory)


def last_line(ended: Ended) -> str:
    return verdict_of(ended.out)


@pytest.mark.parametrize(
    ("arguments", "covered", "headline", "refused"),
    [
        ((), {}, "4 of 4 cases passed", ""),
        (("--iterations", "2"), {"iterations": 2}, "4 of 4 cases passed", ""),
        (("-k", "::"), {"filter": "::"}, "4 of 4 cases passed", ""),
        (
            ("-k", "refund"),
            {"selected": 2, "finished": 2, "filter": "refund"},
            "2 of 2 cases passed; 2 of 4 cases selected (filter 'refund')",
            "it is partial: 2 of 4 cases selected (filter 'refund')",
        ),
        (
            ("-k", "refund", "--max-llm-calls", "7", "--max-cost-usd", "0.5", "--time-limit", "900"),
            {"selected": 2, "finished": 2, "filter": "refund"}
            | {"max_llm_calls": 7, "max_cost_usd": 0.5, "time_limit_s": 900.0},
            "2 of 2 cases passed; 2 of 4 cases selected (filter 'refund')",
            "it is partial",
        ),
    ],
)
def test_a_selection(
    tmp_path: Path, arguments: tuple[str, ...], covered: dict[str, Any], headline: str, refused: str
) -> None:
    project(tmp_path, "refund 1", "refund 2", "hours", "gifts")
    ended = run(tmp_path, "--out", "first", *arguments)
    assert (ended.status, last_line(ended)) == (0, f"passed: {headline}")
    written = json.loads((tmp_path / "first" / "results.json").read_text(encoding="utf-8"))
    assert written["run"]["coverage"] == WHOLE | covered
    assert {**written["gate"], "rules": None} == {
        "rules": None,
        "verdict": "passed",
        "exit_status": 0,
        "headline": headline,
        "reasons": [],
    }
    badge = json.loads((tmp_path / "first" / "badge.json").read_text(encoding="utf-8"))
    assert (badge["color"] == "lightgrey") is bool(refused)
    second = run(tmp_path, "--baseline", "first")
    compared = agenteval("compare", "first", "first", cwd=tmp_path)
    assert (second.status, compared.status) == ((2, 2) if refused else (0, 0)), second.text
    assert (f"--baseline: {NOT_A_BASELINE}{refused}" in second.err) is bool(refused)


def test_a_budget_that_ends_judging(tmp_path: Path) -> None:
    with serving() as server:
        server.respond = lambda asked: says(asked, '{"score": 9, "reason": "good"}')
        model = {"provider": "openai", "name": "gpt-4.1", "endpoint": f"{server.url}/v1", "api_key": "sk-0"}
        judged = {"type": "geval", "name": "good", "criteria": "Is it good?", "evaluation_steps": ["Look."]}
        project(tmp_path, "a", "b", "c", "d", evaluations={"model": model, "metrics": [judged]})
        enough = run(tmp_path, "--max-llm-calls", "4", "--out", "whole")
        ended = run(tmp_path, "--max-llm-calls", "3", "--out", "first", "--concurrency", "1")
    assert (enough.status, last_line(enough)) == (0, "passed: 4 of 4 cases passed")
    assert ended.status == 3, ended.text
    assert last_line(ended).startswith("unproven: 1 of 4 cases not fully judged: ")
    assert "judged 3 of 4 cases (budget of 3 calls)" in last_line(ended)
    comment = (tmp_path / "first" / "comment.md").read_text(encoding="utf-8")
    assert re.match("### 🔌 .*: 1 of 4 cases not fully judged: ", comment)
    assert f"{NOT_A_BASELINE}its budget of model calls ended" in run(tmp_path, "--baseline", "first").err
