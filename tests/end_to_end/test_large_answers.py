"""Large answers: metrics read them whole; results keep the beginning, with length and hash."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import agenteval, case, listening, python_agent, results_in, write_suite

from agenteval.results.model import Results
from agenteval.results.store import read_results

LENGTH = 600_000
KEPT = 262_144
CASES = 4
# The end of the answer alone decides: a metric that reads the beginning finds a wrong score.
CODE = """
import time
def reply(request):
    text = "x" * {length} + request["input"]
    return {{"response": text, "tool_calls": [{{"name": "search", "args": {{"q": text}}, "result": text}}],
            "retrieval_context": [text]}}
"""
METRICS = """
from agenteval.grader import Outcome
def last(observation):
    return 1.0 if observation.response.endswith(observation.input) else 0.0
def tools(observation):
    return Outcome(1.0, reason=observation.tool_calls[0].result)
"""
COMMAND = "import json, sys; sys.stdout.write('x' * {length} + json.load(sys.stdin)['input'])"


class Http(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"response": "x" * LENGTH + asked["input"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def project(folder: Path, kind: str, length: int = LENGTH, **keys: Any) -> Iterator[None]:
    """Write a suite whose agent gives answers of the length."""
    cases = [case(str(number), f"end {number}", None) for number in range(CASES)]
    code = CODE.format(length=length)
    (folder / "metrics.py").write_text(METRICS, encoding="utf-8")
    agents: Mapping[str, Any] = {
        "python": python_agent(folder, code),
        "command": {"command": [sys.executable, "-c", COMMAND.format(length=length)]},
    }
    metrics = [{"python": "metrics.py:last", "threshold": 0.5}] + (
        [{"python": "metrics.py:tools"}] if kind == "python" else []
    )
    with listening(Http) as url:
        agent = {"http": url} if kind == "http" else agents[kind]
        write_suite(folder, cases, agent=agent)
        config = yaml.safe_dump({"metrics": metrics, "gate": {"fail_on": ["regressions"]}, **keys})
        (folder / "agenteval.yaml").write_text(config, encoding="utf-8")
        yield


def run(folder: Path, *arguments: str, status: int = 0) -> Results:
    ended = agenteval("run", "--quiet", *arguments, cwd=folder)
    assert ended.status == status, ended.text
    return results_in(folder)


@pytest.mark.parametrize("kind", ["python", "command", "http"])
def test_metrics_read_the_whole_and_results_keep_the_beginning(tmp_path: Path, kind: str) -> None:
    with project(tmp_path, kind):
        results = run(tmp_path)
    assert results.summary.passed == CASES
    for number, (_, found) in enumerate(results.cases()):
        (turn,) = found.iterations[0].turns
        whole = "x" * LENGTH + f"end {number}"
        assert turn.response == "x" * KEPT
        assert turn.shortened["response"].characters == len(whole)
        assert turn.shortened["response"].sha256 == hashlib.sha256(whole.encode()).hexdigest()
        reads = {"tool_calls", "retrieval_context", *(name for name in turn.shortened if name.startswith("scores."))}
        assert turn.shortened.keys() == {"response", *(reads if kind == "python" else ())}
    # Nothing that is written has more: per case the answer and, of Python agents, tools, passages and a reason.
    most = CASES * (5 if kind == "python" else 1) * (KEPT + 4000) + 100_000
    for file in (tmp_path / "agenteval-report").iterdir():
        assert file.stat().st_size < most, file


def test_a_recording_that_is_not_whole_is_refused_and_not_scored(tmp_path: Path) -> None:
    with project(tmp_path, "python"):
        agenteval("run", "--quiet", "--out", "recorded", cwd=tmp_path)
        ended = agenteval("run", "--quiet", "--agent", "replay:recorded", cwd=tmp_path)
    assert ended.status == 3, ended.text
    found = results_in(tmp_path)
    assert found.summary.errors == CASES
    for turn in turns(found):
        assert turn.scores == []
        assert "only the beginning of this turn's response" in (turn.error or "")
        assert "max_answer_bytes" in (turn.error or "")


@pytest.mark.long
def test_runs_are_compared_merged_and_resumed(tmp_path: Path) -> None:
    with project(tmp_path, "python"):
        first = agenteval("run", "--quiet", "--out", "first", cwd=tmp_path)
        assert first.status == 0, first.text
        # The same answers: nothing is reported as changed.
        same = run(tmp_path, "--baseline", "first")
        assert same.comparison is not None
        assert not [answer for compared in same.comparison.cases for answer in compared.answers]
        ended = agenteval("run", "--quiet", "--resume", "--baseline", "first", cwd=tmp_path)
        assert ended.status == 0, ended.text
        assert [turn.shortened for turn in turns(results_in(tmp_path))] == [turn.shortened for turn in turns(same)]
        for number in (1, 2):
            ended = agenteval("run", "--quiet", "--shard", f"{number}/2", "--out", f"part{number}", cwd=tmp_path)
            assert ended.status == 0, ended.text
        ended = agenteval("merge", "part1", "part2", "-o", "merged", cwd=tmp_path)
        assert ended.status == 0, ended.text
        merged = read_results(tmp_path / "merged")
        assert [turn.shortened for turn in turns(merged)] == [turn.shortened for turn in turns(same)]
    # An answer that differs only after its kept beginning is a changed answer.
    (tmp_path / "metrics.py").write_text(METRICS.replace("1.0 if", "0.0 if"), encoding="utf-8")
    with project(tmp_path, "python", length=LENGTH + 1, gate={"strict": True}):
        (tmp_path / "metrics.py").write_text(METRICS.replace("1.0 if", "0.0 if"), encoding="utf-8")
        run(tmp_path, "--baseline", "first", status=1)
    report = tmp_path / "agenteval-report"
    summary = (report / "summary.md").read_text("utf-8")
    assert "gave the same answer" not in summary
    assert "answer: shortened, 600,006 characters, sha256 " in summary
    assert "response: shortened, 600,006 characters, sha256 " in (report / "junit.xml").read_text("utf-8")


def turns(results: Results) -> list[Any]:
    return [turn for _, found in results.cases() for turn in found.turns]
