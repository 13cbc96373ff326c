"""The command, with servers that cut replies off, redirect or lie; and two runs with one directory."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import yaml
from tests.support import (
    AGENTEVAL,
    JUDGED_SUITE,
    Ended,
    agenteval,
    case,
    environment,
    eventually,
    listening,
    write_suite,
)

SCORE = json.dumps({"score": 10, "reasoning": "It does."})
ECHO = {"agents": {"default": {"command": ["/bin/echo", "right"]}}}


@dataclass
class Web:
    """A server; by path, what it answers: status, headers, body."""

    url: str = ""
    answers: dict[str, tuple[int, Mapping[str, str], bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            web.asked.append(self.path)
            status, headers, body = web.answers[self.path]
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the base class's name

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Tests are quiet."""

    with listening(Handler) as url:
        web.url = url
        yield web


def completion(tokens: int) -> tuple[int, Mapping[str, str], bytes]:
    """A judge's reply that reports a number of tokens."""
    message = {"role": "assistant", "content": SCORE}
    usage = {"prompt_tokens": tokens, "completion_tokens": tokens, "total_tokens": 2 * tokens}
    body = {"id": "a", "object": "chat.completion", "created": 1, "model": "gpt-4.1", "usage": usage}
    body["choices"] = [{"index": 0, "finish_reason": "stop", "message": message}]
    return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()


def judged(web: Web, folder: Path, number: int, *options: str) -> Ended:
    cases = "".join(f'\n[[eval.cases]]\nprompt = "question {n}"\nscore = {{ min = 7 }}\n' for n in range(number))
    suite = folder / ".agentci" / "evals" / "help.toml"
    suite.parent.mkdir(parents=True)
    suite.write_text(JUDGED_SUITE + cases, encoding="utf-8")
    (folder / "agenteval.yaml").write_text(yaml.safe_dump(ECHO), encoding="utf-8")
    given = environment(OPENAI_BASE_URL=f"{web.url}/v1", OPENAI_API_KEY="sk-of-the-job-0123")
    return agenteval("run", "--no-cache", "--concurrency", "1", *options, cwd=folder, env=given)


@pytest.mark.parametrize("status", [307, 308])
def test_a_judge_elsewhere_is_not_asked(web: Web, tmp_path: Path, status: int) -> None:
    elsewhere = web.url.replace("127.0.0.1", "localhost") + "/elsewhere"
    web.answers["/v1/chat/completions"] = (status, {"Location": elsewhere}, b"")
    web.answers["/elsewhere"] = completion(10)

    ended = judged(web, tmp_path, 1)

    assert set(web.asked) == {"/v1/chat/completions"}
    assert ended.status == 3, ended.text


def test_a_judge_cannot_use_up_the_budget(web: Web, tmp_path: Path) -> None:
    web.answers["/v1/chat/completions"] = completion(10**9)

    ended = judged(web, tmp_path, 3, "--max-cost-usd", "0.1")

    assert (ended.status, len(web.asked)) == (0, 3), ended.text
    assert ended.out.splitlines()[0] == "warning: max_cost_usd does not limit openai/gpt-4.1: the price is not known"
    assert judged(web, tmp_path / "fewer", 3, "--max-llm-calls", "2").status == 3
    assert len(web.asked) == 3 + 2


def test_two_runs_do_not_write_to_one_directory(tmp_path: Path) -> None:
    wait = "touch started; while [ ! -e go ]; do sleep 0.05; done; echo right"
    agent = {"agents": {"default": {"command": ["/bin/sh", "-c", wait]}}}
    (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump(agent), encoding="utf-8")
    write_suite(tmp_path, [case("a", ground_truth="right")])
    command = [str(AGENTEVAL), "run", "--out", "out"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True) as first:
        assert eventually((tmp_path / "started").exists)

        second = agenteval("run", "--out", "out", cwd=tmp_path, env=environment())

        (tmp_path / "go").touch()
        assert first.wait() == 0
    assert second.status == 3, second.text
    assert f"(process {first.pid}, since " in second.err
    assert agenteval("run", "--out", "out", cwd=tmp_path, env=environment()).status == 0
