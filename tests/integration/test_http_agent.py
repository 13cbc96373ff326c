"""Agents behind an HTTP address, against a real server on this machine."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support import Answer, Service, agent_spec, answer, ask, free_port, request, serving, started

from agenteval.agents.base import Reply
from agenteval.core.errors import AgentError
from agenteval.core.llm.calls import Call
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.core.llm.models import LlmError, ModelSpec
from agenteval.suite.model import AgentSpec


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def at(service: Service, directory: Path, **options: Any) -> AgentSpec:
    return agent_spec("http", service.url, directory, options=options)


# Replies


def test_reads_an_answer_of_five_megabytes(tmp_path: Path) -> None:
    with serving(lambda _: Answer("x" * 5_000_000, content_type="text/plain")) as service:
        assert answer(at(service, tmp_path)).response == "x" * 5_000_000


# The request


def test_asks_no_more_at_once_than_allowed(tmp_path: Path) -> None:
    together = threading.Barrier(3)

    def respond(_body: dict[str, Any]) -> Answer:
        # Passed only if three requests are under way at the same time.
        together.wait(timeout=30)
        return Answer({"response": "ok"})

    with serving(respond) as service:
        replies = ask(at(service, tmp_path), *(request(str(number)) for number in range(12)), concurrency=3)
        assert service.most_at_once == 3
    assert [reply.response for reply in replies if isinstance(reply, Reply)] == ["ok"] * 12


# What goes wrong


def test_shows_the_beginning_of_a_long_error(tmp_path: Path) -> None:
    with (
        serving(lambda _: Answer("x" * 100_000, status=503)) as service,
        pytest.raises(AgentError, match="answered 503") as caught,
    ):
        answer(at(service, tmp_path))
    assert len(str(caught.value)) < 500


def test_says_whose_localhost_it_is_in_the_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    seen = {}
    for variable in ("", "1"):
        monkeypatch.setenv("AGENTEVAL_CONTAINER", variable)
        model = ModelSpec("ollama", "llama3", endpoint=f"http://localhost:{port}")
        with pytest.raises(AgentError) as agent:
            answer(agent_spec("http", f"http://127.0.0.1:{port}/", tmp_path))
        with pytest.raises(LlmError) as judge:
            asyncio.run(Gateway(LlmSettings(retries=0)).complete(Call(model, "Is it?")))
        seen[variable] = ["localhost is its container" in str(error.value) for error in (agent, judge)]
    assert seen == {"": [False, False], "1": [True, True]}


def test_one_call_that_is_given_up_leaves_the_others_alone(tmp_path: Path) -> None:
    slow = threading.Event()

    def respond(body: dict[str, Any]) -> Answer:
        if body["input"] == "slow":
            slow.wait(timeout=30)
        return Answer({"response": body["input"]})

    async def run(service: Service) -> list[str]:
        async with started(at(service, tmp_path), concurrency=2) as agent:
            asking = asyncio.create_task(agent.session().send(request("slow")))
            answers = [(await agent.session().send(request(str(number)))).response for number in range(3)]
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            # The connection of the call that was given up is free again.
            later = await asyncio.gather(*(agent.session().send(request(text)) for text in "ab"))
            return answers + [reply.response for reply in later]

    with serving(respond) as service:
        try:
            assert asyncio.run(run(service)) == ["0", "1", "2", "a", "b"]
        finally:
            slow.set()
