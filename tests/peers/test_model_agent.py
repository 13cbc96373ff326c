"""Model agents in whole runs: real clients and a real MCP server, against an independent mock of the providers."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.mistakes import shown
from tests.peers.aimock import KEY, Aimock, Fixture
from tests.support import PATIENCE_S, eventually, is_alive, number_in

from agenteval.cli.main import main
from agenteval.results.case import TurnResult, Usage
from agenteval.results.model import Results
from agenteval.results.store import read_results

pytestmark = pytest.mark.peer

INPUT_TOKENS, OUTPUT_TOKENS = 100, 10
INSTRUCTIONS = "You work in a shop."
SERVER = Path(__file__).parent / "fixtures" / "mcp_notes.py"
CASE: Mapping[str, Any] = {"name": "price", "input": "What does a bolt cost?", "ground_truth": "5 USD"}
PRICE: Mapping[str, Any] = {
    "name": "price_of",
    "description": "The price of an item.",
    "type": "function",
    "file": "shop.py",
    "function": "price_of",
}
NOTES: Mapping[str, Any] = {
    "name": "notes",
    "description": "Keeps notes.",
    "type": "mcp",
    "command": sys.executable,
    "args": [str(SERVER)],
}


def says(said: Any, match: str = "", **gates: Any) -> Fixture:
    """What the model says, JSON or text, to a prompt that contains something."""
    user = {"userMessage": match} if match else {}
    usage = {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    return {"match": {**user, **gates}, "response": {"content": said, "usage": usage}}


def calls(name: str, arguments: Mapping[str, Any], match: str = "", **gates: Any) -> Fixture:
    """The model wants a tool called."""
    fixture = says(None, match, **gates)
    asked = {"name": name, "arguments": json.dumps(arguments)}
    return {**fixture, "response": {"toolCalls": [asked], "usage": fixture["response"]["usage"]}}


def refuses(status: int, message: str, sequence: int | None = None, **fields: Any) -> Fixture:
    """An error; with ``sequence`` only for the request of that number."""
    match = {} if sequence is None else {"sequenceIndex": sequence}
    return {"match": match, "response": {"error": {"message": message}, "status": status}, **fields}


@dataclass(frozen=True)
class Provider:
    """A model of the mock, and what one answer of it takes."""

    name: str
    model: str
    cost_usd: float
    tokens: tuple[int, int] = (INPUT_TOKENS, OUTPUT_TOKENS)
    limit: str = "max_tokens"


OPENAI = Provider("openai", "gpt-4.1", 0.00028)
AZURE = Provider("azure_openai", "gpt-4.1", 0.00028, limit="max_completion_tokens")
CLAUDE = Provider("anthropic", "claude-sonnet-4-6", 0.00045)
OLLAMA = Provider("ollama", "llama3.1:8b", 0.0)
each_provider = pytest.mark.parametrize(
    "provider", [OPENAI, AZURE, CLAUDE, OLLAMA], ids=lambda provider: provider.name
)


@dataclass(frozen=True)
class Ran:
    """What a run led to."""

    status: int
    results: Results
    shown: str

    def turns(self) -> dict[str, list[TurnResult]]:
        """The turns of the first iteration by the name of the case."""
        return {case.name: list(case.iterations[0].turns) for _, case in self.results.cases()}

    def turn(self) -> TurnResult:
        """The only one."""
        ((only,),) = self.turns().values()
        return only

    def statuses(self) -> list[str]:
        return [case.status for _, case in self.results.cases()]


@dataclass
class Bench:
    """A directory with a suite that describes its agent itself, run by the command in this process."""

    mock: Aimock
    directory: Path
    _capture: pytest.CaptureFixture[str] = field(repr=False)

    def write(
        self,
        provider: Provider = OPENAI,
        cases: Sequence[Mapping[str, Any]] = (CASE,),
        llm: Mapping[str, Any] | None = None,
        model: Mapping[str, Any] | None = None,
        **keys: Any,
    ) -> None:
        suite = {
            "name": "shop",
            "model": self.mock.model(provider.name, provider.model) if model is None else dict(model),
            "instructions": {"inline": INSTRUCTIONS},
            "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
            "test_cases": [dict(case) for case in cases],
            **keys,
        }
        self.file("agent.yaml", yaml.safe_dump(suite))
        self.file("agenteval.yaml", yaml.safe_dump({"llm": {"backoff": 0, **(llm or {})}}))

    def file(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text, encoding="utf-8")

    def run(self, *options: str) -> Ran:
        status = main(["run", "agent.yaml", *options])
        captured = self._capture.readouterr()
        return Ran(status, read_results(self.directory / "agenteval-report"), captured.out + captured.err)

    def refused(self) -> str:
        """What is said where nothing is run."""
        assert main(["run", "agent.yaml"]) == 2
        assert self.mock.requests() == []
        captured = self._capture.readouterr()
        return captured.out + captured.err


@pytest.fixture
def bench(
    no_providers: None,
    models: Aimock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Bench:
    monkeypatch.setenv("AGENTEVAL_PYTHON", sys.executable)
    models.play(says("5 USD"))
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return Bench(models, directory, capsys)


class TestAnswers:
    @each_provider
    def test_a_plain_answer(self, bench: Bench, provider: Provider) -> None:
        bench.write(provider)
        ran = bench.run()
        assert (ran.status, ran.statuses()) == (0, ["passed"])
        turn = ran.turn()
        assert (turn.response, turn.tool_calls, turn.retrieval_context) == ("5 USD", [], [])
        assert turn.latency_ms
        assert turn.usage is not None
        assert (turn.usage.input_tokens, turn.usage.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)
        assert turn.usage.cost_usd == pytest.approx(provider.cost_usd)
        # Counted once, though the turn and the account of all calls both know it.
        usage = ran.results.summary.usage
        assert (usage.input_tokens, usage.output_tokens, usage.llm_calls) == (INPUT_TOKENS, OUTPUT_TOKENS, 1)
        assert usage.cost_usd == pytest.approx(provider.cost_usd)

        (asked,) = bench.mock.requests()
        assert asked.body["model"] == provider.model
        assert asked.body["temperature"] == 0.3
        assert asked.body[provider.limit] == 1000
        assert [message["role"] for message in asked.body["messages"]] == ["system", "user"]
        assert [message["content"] for message in asked.body["messages"]] == [INSTRUCTIONS, CASE["input"]]

    @each_provider
    def test_an_answer_by_a_schema(self, bench: Bench, provider: Provider) -> None:
        bench.mock.play(says({"total": 60.94, "currency": "USD"}))
        bench.write(
            provider,
            cases=[{**CASE, "ground_truth": "60.94"}],
            response_format={
                "type": "object",
                "properties": {"total": {"type": "number"}, "currency": {"type": "string"}},
                "required": ["total"],
            },
            evaluations={"metrics": [{"type": "standard", "metric": "numeric", "response_path": "total"}]},
        )
        ran = bench.run()
        assert (ran.status, ran.statuses()) == (0, ["passed"])
        assert json.loads(ran.turn().response or "") == {"total": 60.94, "currency": "USD"}
        if provider is OPENAI:
            (asked,) = bench.mock.requests()
            assert set(asked.body["response_format"]["json_schema"]["schema"]["properties"]) == {"total", "currency"}

    def test_an_answer_that_is_no_json(self, bench: Bench) -> None:
        bench.mock.play(says("five"))
        bench.write(response_format={"type": "object", "properties": {"total": {"type": "number"}}})
        ran = bench.run()
        assert ran.statuses() == ["error"]
        assert "the model gave no answer by `response_format`: " in (ran.turn().error or "")
        # It was told once what was wrong.
        assert len(bench.mock.requests()) == 2

    def test_one_conversation_per_case(self, bench: Bench) -> None:
        bench.mock.play(says("The bolt.", "cheaper"), says("5 USD"))
        turns = [
            {"input": "What does a bolt cost?", "ground_truth": "5 USD"},
            {"input": "Is it cheaper than a nut?"},
        ]
        bench.write(cases=[{"name": "two", "turns": turns}, {**CASE, "name": "other", "input": "And a screw?"}])
        ran = bench.run("--concurrency", "1")
        assert [turn.response for turn in ran.turns()["two"]] == ["5 USD", "The bolt."]
        said = [
            [(message["role"], message["content"]) for message in asked.body["messages"]]
            for asked in bench.mock.requests()
        ]
        assert said == [
            [("system", INSTRUCTIONS), ("user", turns[0]["input"])],
            [
                ("system", INSTRUCTIONS),
                ("user", turns[0]["input"]),
                ("assistant", "5 USD"),
                ("user", turns[1]["input"]),
            ],
            [("system", INSTRUCTIONS), ("user", "And a screw?")],
        ]


class TestFunctionTools:
    LOOP = (
        calls("price_of", {"item": "bolt"}, hasToolResult=False),
        says("5 USD", hasToolResult=True),
    )
    CODE = """
import os

def price_of(item: str, pieces: int = 1) -> list:
    print("::error::what tools print is not shown")
    return [f"{item}: {5 * pieces} USD", os.environ.get("GITHUB_TOKEN"), {"unit": "piece"}]

def broken(item):
    raise ValueError("no such item: " + item)

async def forever(item):
    import asyncio
    await asyncio.sleep(600)
"""

    @pytest.fixture(autouse=True)
    def shop(self, bench: Bench) -> None:
        bench.file("shop.py", self.CODE)

    @each_provider
    def test_the_model_calls_a_function(
        self, bench: Bench, provider: Provider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CI", "true")
        monkeypatch.setenv("GITHUB_TOKEN", "ghs_0123456789")
        bench.mock.play(*self.LOOP)
        bench.write(
            provider, tools=[{**PRICE, "is_retrieval": True}], cases=[{**CASE, "expected_tools": ["price_of"]}]
        )
        ran = bench.run()
        assert (ran.status, ran.statuses()) == (0, ["passed"])
        turn = ran.turn()
        (call,) = turn.tool_calls
        assert (call.name, call.args, call.error) == ("price_of", {"item": "bolt"}, None)
        # It runs in the user's process, without the workflow's token.
        assert call.result == ["bolt: 5 USD", None, {"unit": "piece"}]
        assert call.duration_ms
        assert turn.retrieval_context == ["bolt: 5 USD", '{"unit": "piece"}']
        assert turn.usage is not None
        assert turn.usage.input_tokens == 200
        assert turn.usage.cost_usd == pytest.approx(2 * provider.cost_usd)
        assert ran.results.summary.usage.llm_calls == 2
        assert ran.results.summary.usage.input_tokens == 200
        assert "::error::" not in ran.shown

        first, second = bench.mock.requests()
        (described,) = first.body["tools"]
        assert described["function"]["parameters"] == {
            "type": "object",
            "properties": {"item": {"type": "string"}, "pieces": {"type": "integer"}},
            "required": ["item"],
            "additionalProperties": False,
        }
        assert "bolt: 5 USD" in str(second.prompt)

    def test_the_model_is_told_what_went_wrong(self, bench: Bench) -> None:
        bench.mock.play(
            calls("broken", {"item": "bolt"}, hasToolResult=False), says("I do not know.", hasToolResult=True)
        )
        bench.write(tools=[{**PRICE, "name": "broken", "function": "broken"}])
        turn = bench.run().turn()
        assert turn.response == "I do not know."
        (call,) = turn.tool_calls
        assert (call.result, call.error) == (None, "ValueError: no such item: bolt (shop.py:9)")
        assert "no such item: bolt" in str(bench.mock.requests()[1].prompt)

    def test_a_function_that_never_ends_costs_one_turn(self, bench: Bench) -> None:
        bench.mock.play(calls("forever", {"item": "x"}, "forever", hasToolResult=False), says("5 USD"))
        cases = [CASE, {"name": "hangs", "input": "Take forever.", "ground_truth": "5 USD"}]
        bench.write(
            cases=cases,
            tools=[{**PRICE, "name": "forever", "function": "forever"}],
            execution={"llm_timeout": 2},
        )
        ran = bench.run()
        assert ran.statuses() == ["passed", "error"]
        assert ran.turns()["hangs"][0].error == "no answer within 2 s"

    def test_a_loop_comes_to_an_end(self, bench: Bench) -> None:
        bench.mock.play(calls("price_of", {"item": "bolt"}))
        bench.write(tools=[PRICE])
        ran = bench.run()
        assert ran.turn().error == "no answer after 50 model calls in one turn"
        assert len(bench.mock.requests()) == 50

    def test_everything_that_is_missing_is_named_before_anything_runs(self, bench: Bench) -> None:
        bench.file("wrong.py", "import no_such_module\n")
        model = {"provider": "anthropic", "name": "claude-sonnet-4-6"}
        bench.write(
            model=model,
            tools=[
                {**PRICE, "name": "a", "function": "none"},
                {**PRICE, "name": "b", "file": "wrong.py"},
                {**NOTES, "command": "no-such-program"},
            ],
        )
        said = bench.refused()
        assert "no API key for anthropic/claude-sonnet-4-6: set ANTHROPIC_API_KEY" in said
        assert "the tool 'a' cannot be used: AttributeError: module" in said
        assert "the tool 'b' cannot be used: ModuleNotFoundError: No module named 'no_such_module'" in said
        assert "the program 'no-such-program' does not exist" in said
        assert [mistake.place for mistake in shown(said) if not mistake.place.startswith("agent.yaml:")] == []
        assert len(shown(said)) == 4

    def test_documents_of_holodecks(self, bench: Bench) -> None:
        bench.write(tools=[{"name": "kb", "description": "d", "type": "vectorstore", "source": "data"}])
        said = bench.refused()
        assert "HoloDeck runs this agent, and " in said
        assert "-m pip install 'holodeck-ai[openai-agents]' exceptiongroup" in said


class TestPromptTools:
    def test_the_agents_model_answers_them(self, bench: Bench) -> None:
        bench.mock.play(
            says("Bolts, 5 USD.", "Sum up briefly: bolts"),
            calls("sum_up", {"text": "bolts"}, "bolt cost", hasToolResult=False),
            says("5 USD", hasToolResult=True),
        )
        tool = {
            "name": "sum_up",
            "description": "Sums up a text.",
            "type": "prompt",
            "template": "Sum up briefly: {{text}}",
            "parameters": {"text": {"type": "string"}},
        }
        bench.write(tools=[tool])
        ran = bench.run()
        (call,) = ran.turn().tool_calls
        assert (call.name, call.args, call.result) == ("sum_up", {"text": "bolts"}, "Bolts, 5 USD.")
        assert ran.results.summary.usage.llm_calls == len(bench.mock.requests()) == 3


class TestMcpServers:
    LOOP = (
        calls("remember", {"text": "bolts"}, hasToolResult=False),
        says("5 USD", hasToolResult=True),
    )

    def test_a_program_for_each_conversation(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CI", "true")
        monkeypatch.setenv("GITHUB_TOKEN", "ghs_0123456789")
        monkeypatch.setenv("SHOP", "Lisbon")
        bench.mock.play(*self.LOOP)
        cases = [{**CASE, "name": f"case {number}", "input": f"Bolt {number}?"} for number in range(3)]
        bench.write(cases=cases, tools=[{**NOTES, "env": {"PLACE": "${SHOP}"}}])
        ran = bench.run()
        assert (ran.status, ran.statuses()) == (0, ["passed"] * 3)
        found = [turns[0].tool_calls[0] for turns in ran.turns().values()]
        assert [(call.name, call.args, call.error) for call in found] == [("remember", {"text": "bolts"}, None)] * 3
        kept = [json.loads(str(call.result)) for call in found]
        # None knows the notes of another, or the workflow's token.
        assert [(note["notes"], note["place"], note["token"]) for note in kept] == [(["bolts"], "Lisbon", None)] * 3
        assert len({note["pid"] for note in kept}) == 3
        assert eventually(lambda: not any(is_alive(note["pid"]) for note in kept))
        assert "::error::" not in ran.shown

    def test_a_conversation_keeps_its_program(self, bench: Bench) -> None:
        bench.mock.play(*self.LOOP)
        asked = [{"input": "A bolt?", "ground_truth": "5 USD"}, {"input": "A nut?"}]
        bench.write(cases=[{"name": "two", "turns": asked}], tools=[NOTES])
        turns = bench.run().turns()["two"]
        kept = [json.loads(str(turn.tool_calls[0].result))["notes"] for turn in turns]
        assert kept == [["bolts"], ["bolts", "bolts"]]

    def test_what_a_retrieving_server_returns_are_passages(self, bench: Bench) -> None:
        bench.mock.play(calls("look_up", {"word": "bolt"}, hasToolResult=False), says("5 USD", hasToolResult=True))
        bench.write(tools=[{**NOTES, "is_retrieval": True}])
        turn = bench.run().turn()
        assert turn.retrieval_context == ["A bolt costs 5 USD.", "A bolt is not a nut."]

    def test_an_error_of_a_tool(self, bench: Bench) -> None:
        bench.mock.play(calls("fail", {}, hasToolResult=False), says("5 USD", hasToolResult=True))
        bench.write(tools=[NOTES])
        turn = bench.run().turn()
        (call,) = turn.tool_calls
        assert call.result is None
        assert "this tool always fails" in (call.error or "")
        assert turn.response == "5 USD"

    def test_a_tool_that_never_ends_costs_one_turn(self, bench: Bench) -> None:
        bench.mock.play(calls("hang", {"file": "pid"}))
        # A loaded machine needs longer to start the server, which is part of the turn.
        for seconds in (4, 16, 64):
            bench.write(tools=[NOTES], execution={"llm_timeout": seconds})
            assert bench.run().turn().error == f"no answer within {seconds} s"
            if (bench.directory / "pid").exists():
                break
        assert not is_alive(number_in(bench.directory / "pid"))

    def test_only_the_allowed_tools_are_offered(self, bench: Bench) -> None:
        bench.write(tools=[{**NOTES, "config": {"allowed_tools": ["remember"]}}])
        bench.run()
        (asked,) = bench.mock.requests()
        assert [tool["function"]["name"] for tool in asked.body["tools"]] == ["remember"]

    def test_tools_of_the_same_name_are_told_apart(self, bench: Bench) -> None:
        bench.write(tools=[NOTES, {**NOTES, "name": "more", "config": {"allowed_tools": ["fail"]}}])
        bench.run()
        (asked,) = bench.mock.requests()
        names = [tool["function"]["name"] for tool in asked.body["tools"]]
        assert names == ["remember", "look_up", "fail", "hang", "more_fail"]

    def test_a_program_that_ends_at_once(self, bench: Bench) -> None:
        code = "import sys; sys.exit('::error::no licence')"
        bench.write(tools=[{**NOTES, "args": ["-c", code]}])
        ran = bench.run()
        error = ran.turn().error or ""
        assert error.startswith("the MCP server 'notes' cannot be used: ")
        assert error.endswith(": ::error::no licence")
        assert "\n::error::" not in ran.shown
        assert bench.mock.requests() == []

    @pytest.mark.parametrize(("transport", "path"), [("http", "mcp"), ("sse", "sse")])
    def test_a_server_behind_an_address(self, bench: Bench, transport: str, path: str) -> None:
        bench.mock.play(*self.LOOP)
        with serving(transport) as address:
            server = {"name": "web", "description": "d", "type": "mcp", "transport": transport}
            bench.write(tools=[{**server, "url": f"{address}/{path}", "headers": {"X-Shop": "Lisbon"}}])
            ran = bench.run()
        assert (ran.status, ran.statuses()) == (0, ["passed"])
        (call,) = ran.turn().tool_calls
        assert json.loads(str(call.result))["shop"] == "Lisbon"

    def test_an_address_without_a_server(self, bench: Bench) -> None:
        address = f"http://127.0.0.1:{free_port()}/mcp"
        bench.write(tools=[{"name": "web", "description": "d", "type": "mcp", "transport": "http", "url": address}])
        error = bench.run().turn().error or ""
        assert error.startswith("the MCP server 'web' cannot be used: ")
        assert "connect" in error.lower()


class TestTheAccount:
    def test_a_spent_budget_ends_the_run_cleanly(self, bench: Bench) -> None:
        cases = [{**CASE, "name": f"case {number}", "input": f"Bolt {number}?"} for number in range(5)]
        bench.write(cases=cases)
        ran = bench.run("--max-llm-calls", "2")
        assert sorted(ran.statuses()) == ["error", "error", "error", "passed", "passed"]
        errors = {turns[0].error for turns in ran.turns().values()} - {None}
        assert errors == {"the model was not called: max_llm_calls (2) is used up"}
        assert len(bench.mock.requests()) == ran.results.summary.usage.llm_calls == 2
        assert "the LLM budget is exhausted: 3 calls were not made" in ran.shown

    def test_a_budget_that_ends_within_a_turn(self, bench: Bench) -> None:
        bench.file("shop.py", TestFunctionTools.CODE)
        bench.mock.play(*TestFunctionTools.LOOP)
        bench.write(tools=[PRICE])
        ran = bench.run("--max-llm-calls", "1")
        assert ran.turn().error == "the model was not called: max_llm_calls (1) is used up"
        # What was spent on it is in the account all the same.
        assert ran.results.summary.usage.input_tokens == INPUT_TOKENS

    def test_a_second_run_asks_nothing(self, bench: Bench) -> None:
        bench.file("shop.py", TestFunctionTools.CODE)
        bench.mock.play(*TestFunctionTools.LOOP)
        cases = [CASE, {**CASE, "name": "other", "input": "What does a nut cost?"}]
        bench.write(tools=[PRICE], cases=cases, llm={"cache_agents": True})
        first = bench.run()
        assert len(bench.mock.requests()) == 4
        bench.mock.forget()
        second = bench.run()
        assert bench.mock.requests() == []
        assert second.statuses() == first.statuses() == ["passed", "passed"]
        for name, turns in second.turns().items():
            assert turns[0].response == first.turns()[name][0].response
            assert [call.args for call in turns[0].tool_calls] == [{"item": "bolt"}]
            assert turns[0].usage == Usage(input_tokens=200, output_tokens=20)
        assert second.results.summary.usage.model_dump() == {
            "input_tokens": 0,
            "output_tokens": 0,
            "llm_calls": 0,
            "cost_usd": 0,
            "cached_calls": 4,
            "saved_usd": pytest.approx(first.results.summary.usage.cost_usd),
        }

    @pytest.mark.parametrize(
        "change",
        [
            {"instructions": "You work in a bank."},
            {"tools": [{**PRICE, "description": "What an item costs."}]},
            {"response_format": {"type": "object", "properties": {}}},
        ],
        ids=["instructions", "tools", "response_format"],
    )
    def test_whatever_shapes_the_answer_is_asked_anew(self, bench: Bench, change: Mapping[str, Any]) -> None:
        bench.file("shop.py", TestFunctionTools.CODE)
        bench.mock.play(says({"total": 5}))
        bench.write(tools=[PRICE])
        bench.run()
        bench.mock.forget()
        bench.write(**{"tools": [PRICE], **change})
        bench.run()
        assert len(bench.mock.requests()) == 1

    def test_every_iteration_is_asked(self, bench: Bench) -> None:
        bench.write(llm={"cache_agents": True})
        bench.run("--iterations", "3")
        assert len(bench.mock.requests()) == 3
        bench.run("--iterations", "3")
        assert len(bench.mock.requests()) == 3
        # Only on request: otherwise the model may have changed behind its address.
        bench.write()
        bench.run("--iterations", "3")
        assert len(bench.mock.requests()) == 6

    def test_judges_and_agents_share_one_account(self, bench: Bench) -> None:
        bench.mock.play(says({"reason": "Fine.", "score": 8}, "evaluation steps"), says("5 USD"))
        geval = {"type": "geval", "name": "Right", "criteria": "Is it right?", "evaluation_steps": ["Look."]}
        bench.write(evaluations={"metrics": [geval]})
        ran = bench.run()
        assert ran.statuses() == ["passed"]
        usage = ran.results.summary.usage
        assert (usage.llm_calls, usage.input_tokens) == (2, 2 * INPUT_TOKENS)
        assert usage.cost_usd == pytest.approx(2 * OPENAI.cost_usd)


class TestFailures:
    @each_provider
    def test_a_busy_provider_is_asked_again(self, bench: Bench, provider: Provider) -> None:
        bench.mock.play(
            {**refuses(429, "slow down", 0), "response": {**refuses(429, "slow down")["response"], "retryAfter": 1}},
            says("5 USD"),
        )
        bench.write(provider)
        ran = bench.run()
        assert ran.statuses() == ["passed"]
        first, second = bench.mock.requests()
        assert [first.status, second.status] == [429, 200]
        # As long as it asked to be left alone.
        assert second.time_ms - first.time_ms >= 900

    @each_provider
    def test_a_wrong_key(self, bench: Bench, provider: Provider) -> None:
        bench.mock.play(refuses(401, "invalid api key"))
        bench.write(provider)
        ran = bench.run()
        assert (ran.status, ran.statuses()) == (3, ["error"])
        assert ran.turn().error == f"{provider.name}/{provider.model} answered 401: invalid api key"
        assert len(bench.mock.requests()) == 1
        assert KEY not in ran.shown + ran.results.model_dump_json()

    @each_provider
    def test_a_provider_that_stays_broken(self, bench: Bench, provider: Provider) -> None:
        bench.mock.play(refuses(500, "out of order"))
        bench.write(provider, llm={"retries": 2})
        error = bench.run().turn().error
        assert error == f"{provider.name}/{provider.model} answered 500: out of order (after 3 attempts)"
        assert len(bench.mock.requests()) == 3

    @each_provider
    def test_a_provider_that_cannot_be_reached(self, bench: Bench, provider: Provider) -> None:
        model = {**bench.mock.model(provider.name, provider.model), "endpoint": f"http://127.0.0.1:{free_port()}"}
        bench.write(model=model, llm={"retries": 0})
        error = bench.run().turn().error or ""
        assert error.startswith(f"{provider.name}/{provider.model} cannot be reached: ")
        assert "connect" in error.lower()

    def test_a_reply_that_is_no_json(self, bench: Bench) -> None:
        bench.mock.disturb(malformedRate=1)
        bench.write(llm={"retries": 1})
        error = bench.run().turn().error or ""
        bench.mock.disturb()
        assert error.startswith("openai/gpt-4.1 ")
        assert error.endswith("(after 2 attempts)")


@contextmanager
def serving(transport: str) -> Iterator[str]:
    """The notes behind an address of this machine."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(SERVER), transport, str(port)], stderr=subprocess.DEVNULL)
    try:
        assert eventually(lambda: is_open(port) or process.poll() is not None)
        assert process.poll() is None
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        number: int = server.getsockname()[1]
        return number
