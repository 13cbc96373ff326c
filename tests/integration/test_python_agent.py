"""Agents that are Python callables, in real worker processes."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.support import PATIENCE_S, agent_spec, answer, ask, ends, number_in, request, started

from agenteval.agents.base import Reply
from agenteval.core.errors import AgentError, ConfigError, UserCodeError
from agenteval.suite.model import AgentSpec


def agent(directory: Path, code: str, target: str = "agent:reply", **fields: Any) -> AgentSpec:
    """A Python agent with this code."""
    (directory / "agent.py").write_text(textwrap.dedent(code), encoding="utf-8")
    return agent_spec("python", target, directory, options={"interpreter": sys.executable}, **fields)


def outcomes(replies: list[Reply | BaseException]) -> list[str]:
    """Answers, and errors in words."""
    return [found.response if isinstance(found, Reply) else f"{type(found).__name__}: {found}" for found in replies]


# Replies


def test_what_the_code_prints_is_no_reply(tmp_path: Path) -> None:
    code = """
        import os, subprocess, sys
        print("while importing")
        def reply(request):
            print("to stdout")
            print('{"id": 1, "value": "forged"}')
            os.write(1, b'{"id": 2, "value": "forged"}\\n\\xff garbage')
            sys.__stdout__.flush()
            subprocess.run(["echo", "from a child"])
            return request["input"]
    """
    replies = ask(agent(tmp_path, code), *(request(str(number)) for number in range(5)))
    assert outcomes(replies) == ["0", "1", "2", "3", "4"]


# The world of the code


def test_modules_beside_the_file_that_names_the_agent_are_importable(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("WORD = 'found'", encoding="utf-8")
    # Named like modules of agenteval, and like one of Python's own that is imported late.
    (tmp_path / "worker.py").write_text("WORD = 'mine'", encoding="utf-8")
    (tmp_path / "http.py").write_text("WORD = 'mine too'", encoding="utf-8")
    (tmp_path / "data.txt").write_text("read", encoding="utf-8")
    code = """
        import helper, http, worker
        def reply(request):
            return " ".join([helper.WORD, worker.WORD, http.WORD, open("data.txt").read()])
    """
    assert answer(agent(tmp_path, code)).response == "found mine mine too read"


def test_asynchronous_calls_share_one_loop(tmp_path: Path) -> None:
    code = """
        import asyncio
        waiting = asyncio.Queue()
        async def reply(request):
            # Answered only if both calls are under way in one loop.
            if request["input"] == "get":
                return await waiting.get()
            await waiting.put("from the other call")
            return "put"
    """
    replies = ask(agent(tmp_path, code), request("get"), request("put"))
    assert outcomes(replies) == ["from the other call", "put"]


# What goes wrong in a call


BAD = [
    ("raise ValueError('no model')", "ValueError: no model"),
    ("raise KeyError", "KeyError"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("raise SystemExit(3)", "SystemExit: 3"),
    ("raise GeneratorExit", "GeneratorExit"),
    ("raise asyncio.CancelledError", "CancelledError"),
    ("raise TimeoutError('upstream')", "TimeoutError: upstream"),
    ("raise Own", "Own: (no text)"),
    ("raise Worse", "Worse: (no text)"),
    ("raise ValueError('half \\ud800')", "ValueError: half "),
    ("return object()", "TypeError: the agent returned a object, in which no answer can be found"),
    ("return [object()]", "neither text nor JSON: TypeError: Object of type object is not JSON serializable"),
    ("return {(1, 2): 3}", "neither text nor JSON"),
    ("loop = []; loop.append(loop); return loop", "neither text nor JSON: ValueError: Circular reference"),
    ("deep = []\n    for _ in range(100_000): deep = [deep]\n    return deep", "RecursionError"),
    ("return endless(request)", "RecursionError"),
    ("return {'response': 'x', 'usage': {'input_tokens': 10 ** 400}}", "usage.input_tokens"),
    ("return {'response': 'x', 'tool_calls': [{'name': 'x', 'duration_ms': float('nan')}]}", "duration_ms"),
]


@pytest.mark.parametrize("prefix", ["", "async "], ids=["sync", "async"])
def test_bad_calls_leave_the_others_alone(tmp_path: Path, prefix: str) -> None:
    code = """
import asyncio
class Own(BaseException):
    def __str__(self): raise ValueError
class Worse(Exception):
    def __str__(self): raise KeyboardInterrupt
def endless(request): return endless(request)
"""
    code += "".join(f"def bad{number}(request):\n    {body}\n" for number, (body, _) in enumerate(BAD))
    code += f"""
{prefix}def reply(request):
    text = request["input"]
    return globals()[text](request) if text.startswith("bad") else text
"""
    texts = ["a", *(f"bad{number}" for number in range(len(BAD))), "b"]
    first, *bad, last = ask(agent(tmp_path, code), *map(request, texts))
    assert outcomes([first, last]) == ["a", "b"]
    for found, (body, said) in zip(bad, BAD, strict=True):
        assert isinstance(found, AgentError), body
        assert said in str(found), body


@pytest.mark.parametrize(
    ("death", "said"),
    [
        ("os._exit(3)", "ended with exit status 3"),
        ("os._exit(0)", "ended with exit status 0"),
        ("os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("print('last words', file=sys.stderr, flush=True); os.abort()", "was killed by SIGABRT: last words"),
    ],
)
def test_only_the_call_that_ends_the_process_fails(tmp_path: Path, death: str, said: str) -> None:
    # In the first process nobody answers before all are under way, so that it dies with company.
    code = f"""
        import os, sys, threading
        first = not os.path.exists("started")
        open("started", "w").close()
        together = threading.Barrier(4)
        def reply(request):
            if first:
                together.wait()
            if request["input"] == "bad":
                {death}
            if first:
                threading.Event().wait()
            return request["input"]
    """
    texts = ["a", "b", "bad", "c"]
    replies = ask(agent(tmp_path, code), *(request(text) for text in texts), concurrency=4)
    found = outcomes(replies)
    assert [found[0], found[1], found[3]] == ["a", "b", "c"]
    assert said in found[2]


# Calls that hang


def test_a_hanging_call_is_given_up_without_harm_to_others(tmp_path: Path) -> None:
    code = """
        import os, subprocess, threading
        release = threading.Event()
        def reply(request):
            if request["input"] == "hang":
                child = subprocess.Popen(["sleep", "1000"])
                with open("child", "w") as file:
                    file.write(f"{child.pid}\\n")
                threading.Event().wait()
            if request["input"] == "wait":
                with open("waiting", "w") as file:
                    file.write(f"{os.getpid()}\\n")
                release.wait()
            if request["input"] == "release":
                release.set()
            return f"{request['input']} {os.getpid()}"
    """

    async def run() -> tuple[str, str, str, int]:
        async with asyncio.timeout(PATIENCE_S), started(agent(tmp_path, code)) as bot:

            async def send(text: str) -> str:
                return (await bot.session().send(request(text))).response

            hanging, waiting = asyncio.create_task(send("hang")), asyncio.create_task(send("wait"))
            child = await asyncio.to_thread(number_in, tmp_path / "child")
            await asyncio.to_thread(number_in, tmp_path / "waiting")
            releasing = asyncio.create_task(send("release"))
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging
            # The call beside it ends in the old process, a new one starts in another.
            return await waiting, await releasing, await send("next"), child

    waited, released, after, child = asyncio.run(run())
    assert waited.startswith("wait ")
    assert released.split()[1] == waited.split()[1]
    assert after.split()[1] != waited.split()[1]
    assert ends(child)


def test_closing_ends_the_process_and_its_children(tmp_path: Path) -> None:
    code = """
        import os, subprocess
        def reply(request):
            return f"{os.getpid()} {subprocess.Popen(['sleep', '1000']).pid}"
    """
    pids = [int(pid) for pid in answer(agent(tmp_path, code)).response.split()]
    assert len(pids) == 2
    for pid in pids:
        assert ends(pid)


# Definitions that cannot work


def test_an_import_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval.agents.python.DEFAULT_TURN_TIMEOUT_S", 0.5)
    spec = agent(tmp_path, "import time\ntime.sleep(1000)", timeout_s=0.5)
    with pytest.raises(UserCodeError, match=r"importing 'agent:reply' took longer than 0\.5 s"):
        answer(spec)


@pytest.mark.parametrize(
    ("interpreter", "said"),
    [
        ("no-such-python", "'no-such-python' does not exist or is not executable"),
        ("{}/garbage", "garbage cannot be started"),
        ("true", "the agent's process ended with exit status 0"),
    ],
)
def test_an_interpreter_that_is_none_is_told(tmp_path: Path, interpreter: str, said: str) -> None:
    (tmp_path / "garbage").write_bytes(b"\x00\x01")
    (tmp_path / "garbage").chmod(0o755)
    options = {"interpreter": interpreter.format(tmp_path)}
    with pytest.raises((ConfigError, UserCodeError)) as caught:
        answer(agent_spec("python", "agent:reply", tmp_path, options=options))
    assert str(caught.value).startswith(f"{tmp_path / 'agenteval.yaml'}:3: agent: ")
    assert said in str(caught.value)


def test_an_agent_that_changes_within_a_second_is_read_again(tmp_path: Path) -> None:
    for word in ("one", "two"):
        found = agent(tmp_path, f"def reply(request):\n    return {word!r}\n")
        os.utime(tmp_path / "agent.py", (1, 1))
        assert answer(found).response == word
