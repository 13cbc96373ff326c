"""Agents that are programs, run as real processes."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import PATIENCE_S, agent_spec, answer, ends, number_in, request, started

from agenteval.agents.base import RemarkingAgent
from agenteval.core import child
from agenteval.suite.model import AgentSpec


def program(directory: Path, code: str, **fields: Any) -> AgentSpec:
    """A command agent with this Python code; the request is ``request``."""
    start = "import json, os, sys\nrequest = json.load(sys.stdin)\n"
    (directory / "agent.py").write_text(start + code, encoding="utf-8")
    return agent_spec("command", [sys.executable, "-S", "agent.py"], directory, **fields)


def shell(directory: Path, line: str, **fields: Any) -> AgentSpec:
    return agent_spec("command", ["sh", "-c", line], directory, **fields)


def asked_twice(spec: AgentSpec) -> tuple[list[str], tuple[str, ...]]:
    """The answers of an agent, and what it remarked."""

    async def run() -> tuple[list[str], tuple[str, ...]]:
        async with started(spec) as bot:
            replies = [await bot.session().send(request(str(number))) for number in range(2)]
            assert isinstance(bot, RemarkingAgent)
            return [reply.response for reply in replies], bot.remarks().texts

    return asyncio.run(run())


# Replies


@pytest.mark.parametrize(
    "line",
    [
        "echo one; (sleep 0.2; echo two) & exit 0",
        "echo one; setsid sh -c 'sleep 0.2; echo two' & exit 0",
        # A filter of the whole output, which ends after the program.
        "exec bash -c 'exec > >(sleep 0.2; cat); echo one; echo two'",
    ],
    ids=["in its group", "elsewhere", "filter"],
)
def test_what_background_processes_print_within_a_second_is_in_the_reply(
    tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine may need longer.
    monkeypatch.setattr(child, "LAST_WORDS_S", PATIENCE_S)
    assert answer(shell(tmp_path, line)).response == "one\ntwo"


@pytest.mark.parametrize("start", ["", "setsid "])
def test_a_background_process_that_keeps_the_output_open_is_ended_and_remarked_once(
    tmp_path: Path, start: str
) -> None:
    answers, remarks = asked_twice(shell(tmp_path, f"echo one; {start}sleep 1000 & echo $! > pid"))
    assert answers == ["one", "one"]
    (remark,) = remarks
    assert "keeps the command's standard output open" in remark
    assert ends(number_in(tmp_path / "pid"))


def test_one_that_keeps_only_the_errors_open_is_not_waited_for(tmp_path: Path) -> None:
    async def run() -> tuple[str, ...]:
        async with started(shell(tmp_path, "echo one; sleep 1000 > /dev/null & exit 0")) as bot:
            assert (await bot.session().send(request())).response == "one"
            assert isinstance(bot, RemarkingAgent)
            return bot.remarks().texts

    assert not asyncio.run(run())


def test_replaces_what_is_no_utf8(tmp_path: Path) -> None:
    reply = answer(program(tmp_path, "sys.stdout.buffer.write(b'caf\\xe9 \\xff')"))
    assert reply.response == "caf\ufffd \ufffd"


# The request


def test_does_not_mind_a_program_that_never_reads(tmp_path: Path) -> None:
    spec = shell(tmp_path, "exec <&-; echo answered")
    assert answer(spec, request("x" * 1_000_000)).response == "answered"


def test_hides_what_belongs_to_the_workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = (
        *("INPUT_SUITE", "INPUT_GITHUB-TOKEN", "GITHUB_TOKEN", "GH_TOKEN"),
        *("ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL"),
        *("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"),
        "LD_LIBRARY_PATH",
    )
    for name in (*hidden, "GITHUB_SHA", "MY_SETTING"):
        monkeypatch.setenv(name, "value")
    monkeypatch.setenv("AGENTEVAL_CONTAINER", "1")
    monkeypatch.setenv("CI", "true")
    spec = program(tmp_path, "print(json.dumps({'response': json.dumps(dict(os.environ))}))", env={"EXTRA": "1"})
    seen = json.loads(answer(spec).response)
    assert not seen.keys() & set(hidden)
    assert (seen.get("GITHUB_SHA"), seen.get("MY_SETTING"), seen["EXTRA"]) == (None, None, "1")


# What goes wrong


def test_a_hanging_program_ends_with_all_its_children(tmp_path: Path) -> None:
    spec = shell(tmp_path, "sleep 1000 & echo $! > child; echo $$ > parent; wait")

    async def give_up() -> tuple[int, int]:
        async with asyncio.timeout(PATIENCE_S), started(spec) as agent:
            asking = asyncio.create_task(agent.session().send(request()))
            pids = await asyncio.to_thread(lambda: (number_in(tmp_path / "parent"), number_in(tmp_path / "child")))
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            return pids

    for pid in asyncio.run(give_up()):
        assert ends(pid)


def test_a_program_given_up_while_it_starts_ends_with_all_its_children(tmp_path: Path) -> None:
    spec = shell(tmp_path, "sleep 1000 & echo $! > child; wait")

    async def give_up() -> int:
        async with asyncio.timeout(PATIENCE_S), started(spec) as agent:
            asking = asyncio.create_task(agent.session().send(request()))
            for _ in range(2):
                await asyncio.sleep(0)
            # Waits without the loop: asyncio has not finished starting when the program runs already.
            pid = number_in(tmp_path / "child")
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            return pid

    pid = asyncio.run(give_up())
    assert ends(pid)


def test_keeps_library_paths_of_earlier_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert answer(shell(tmp_path, "echo $PYTHONPATH")).response == "/somewhere"
