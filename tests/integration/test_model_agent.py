"""Model agents over HTTP: what providers refuse, empty answers, limits, and what is kept."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.model_server import (
    PROVIDERS,
    Answer,
    ModelServer,
    RecordedQuestion,
    error,
    says,
    serving,
)
from tests.support import PATIENCE_S, request

from agenteval.agents.base import Reply, Request
from agenteval.agents.model_agent import ModelAgent
from agenteval.core.errors import AgentError, ConfigError, UserCodeError
from agenteval.core.llm.gateway import Gateway, LlmSettings, ResponseCache
from agenteval.core.llm.models import ModelSpec
from agenteval.core.shared_files import Seal
from agenteval.suite.agent_definitions import ModelAgentSpec
from agenteval.suite.model import AgentSpec
from agenteval.suite.model_tools import FunctionTool

each_provider = pytest.mark.parametrize("provider", PROVIDERS)
QUICK = LlmSettings(backoff_s=0)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as server:
        yield server


def model(server: ModelServer, provider: str = "openai", name: str | None = None, **fields: Any) -> ModelSpec:
    """A model as a suite gives it: with a limit, for without one Anthropic's answers are streamed."""
    return server.model(provider, name, **{"max_tokens": 1000, **fields})


def agent_spec(model: ModelSpec, directory: Path, **parts: Any) -> AgentSpec:
    parts = {"instructions": "Be brief.", **parts}
    return AgentSpec(
        kind="model",
        target=model.label,
        directory=str(directory),
        options={"agent": ModelAgentSpec(model=model, **parts)},
        where="agent.yaml:3",
    )


def ask(
    spec: AgentSpec, *conversations: list[Request], settings: LlmSettings = QUICK
) -> list[list[Reply | BaseException]]:
    """What an agent answers, or raises, in conversations that are held at once."""

    async def converse(agent: ModelAgent, requests: list[Request]) -> list[Reply | BaseException]:
        session = agent.session()
        said: list[Reply | BaseException] = []
        for item in requests:
            try:
                said.append(await session.send(item))
            except AgentError as problem:
                said.append(problem)
        await session.end()
        return said

    async def run() -> list[list[Reply | BaseException]]:
        gateway = Gateway(settings)
        agent = ModelAgent(spec, gateway, concurrency=8)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await agent.start()
                return await asyncio.gather(*(converse(agent, requests) for requests in conversations))
        finally:
            await agent.close()
            await gateway.close()

    return asyncio.run(run())


def answer(spec: AgentSpec, settings: LlmSettings = QUICK, **fields: Any) -> Reply:
    """The one reply to one request; what went wrong is raised."""
    ((reply,),) = ask(spec, [request(**fields)], settings=settings)
    if isinstance(reply, BaseException):
        raise reply
    return reply


class TestAnswers:
    @each_provider
    def test_an_empty_answer_is_one(self, server: ModelServer, tmp_path: Path, provider: str) -> None:
        server.script("")
        reply = answer(agent_spec(model(server, provider), tmp_path))
        assert (reply.response, len(server.asked)) == ("", 1)

    def test_a_turn_without_an_answer_leaves_the_conversation_as_it_was(
        self, server: ModelServer, tmp_path: Path
    ) -> None:
        server.script("one", error(400, "no"), "three")
        turns = [request(text) for text in ("a", "b", "c")]
        ((first, second, third),) = ask(agent_spec(model(server), tmp_path), turns)
        assert isinstance(first, Reply)
        assert isinstance(second, AgentError)
        assert isinstance(third, Reply)
        last = [message["content"] for message in server.asked[-1].body["messages"]]
        assert last == ["Be brief.", "a", "one", "c"]


class TestWhatProvidersTake:
    def test_an_option_that_is_refused_is_left_out_from_then_on(self, server: ModelServer, tmp_path: Path) -> None:
        def respond(asked: RecordedQuestion) -> Answer:
            for option in ("temperature", "max_tokens"):
                if option in asked.body:
                    return error(400, f"Unsupported parameter: '{option}' is not supported with this model.")
            return says(asked, "5 USD")

        server.respond = respond
        spec = agent_spec(model(server, temperature=0.3), tmp_path)
        ((first, second),) = ask(spec, [request("a"), request("b")])
        assert isinstance(first, Reply)
        assert isinstance(second, Reply)
        sent = [sorted({"temperature", "max_tokens"} & set(asked.body)) for asked in server.asked]
        assert sent == [["max_tokens", "temperature"], ["max_tokens"], [], []]

    @each_provider
    def test_a_reply_that_is_none_of_the_providers(self, server: ModelServer, tmp_path: Path, provider: str) -> None:
        server.script(Answer({"unexpected": True}))
        spec = agent_spec(model(server, provider), tmp_path)
        with pytest.raises(AgentError, match=rf"^{provider}/\S+ sent a reply that cannot be (read|used): "):
            answer(spec, replace(QUICK, retries=0))


def caching(folder: Path) -> LlmSettings:
    """Settings with a cache that also answers agents."""
    return replace(QUICK, cache=ResponseCache(folder / "cache", Seal()), caches_agents=True)


class TestCache:
    def test_a_damaged_answer_is_asked_anew(self, server: ModelServer, tmp_path: Path) -> None:
        server.script("5 USD")
        settings = caching(tmp_path)
        spec = agent_spec(model(server), tmp_path)
        assert answer(spec, settings).response == "5 USD"
        (kept,) = (tmp_path / "cache").rglob("*.json")
        stored = json.loads(kept.read_text())
        for damaged in ("[]", '[{"kind": "request", "parts": []}]', "no JSON"):
            kept.write_text(json.dumps({**stored, "text": damaged}))
            assert answer(spec, settings).response == "5 USD"
        assert len(server.asked) == 4
        assert answer(spec, settings).response == "5 USD"
        assert len(server.asked) == 4


class TestStart:
    def test_a_module_that_takes_too_long(
        self, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agenteval.agents.model_agent._IMPORT_TIMEOUT_S", 0.5)
        monkeypatch.setenv("AGENTEVAL_PYTHON", sys.executable)
        (tmp_path / "slow.py").write_text("import time\ntime.sleep(60)\n")
        tool = FunctionTool("slow", "d", str(tmp_path / "slow.py"), "slow", where="agent.yaml:7")
        with pytest.raises(
            UserCodeError, match=r"agent\.yaml:7: agent: importing .*slow\.py took longer than 0\.5 s"
        ):
            answer(agent_spec(model(server), tmp_path, tools=(tool,)))

    @pytest.mark.parametrize(
        "found",
        [
            ("import nowhere\ndef look(): ...", UserCodeError, "ModuleNotFoundError: No module named 'nowhere'"),
            ("raise SystemExit(1)", UserCodeError, "SystemExit: 1"),
            ("look = 1", ConfigError, "is not callable"),
            (None, ConfigError, "FileNotFoundError"),
        ],
    )
    def test_a_function_tool_that_cannot_be_imported(
        self,
        server: ModelServer,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        found: tuple[str | None, type[Exception], str],
    ) -> None:
        code, error, problem = found
        monkeypatch.setenv("AGENTEVAL_PYTHON", sys.executable)
        if code is not None:
            (tmp_path / "tools.py").write_text(code)
        tool = FunctionTool("look", "d", str(tmp_path / "tools.py"), "look", where="agent.yaml:7")
        with pytest.raises(error, match=rf"agent\.yaml:7: agent: the tool 'look' cannot be used: .*{problem}"):
            answer(agent_spec(model(server), tmp_path, tools=(tool,)))
