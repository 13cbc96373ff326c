"""Model agents in whole runs: real clients and a real MCP server, against an independent mock of the providers."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.mistakes import shown
from tests.peers.aimock import KEY
from tests.peers.model_bench import (
    AZURE,
    CLAUDE,
    GPT,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    Bench,
    Model,
    calls,
    refuses,
    says,
)
from tests.support import PATIENCE_S, eventually, free_port, is_alive, number_in

from agenteval.results.case import Usage

pytestmark = pytest.mark.peer

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
SHOP = """
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
FORM = {
    "type": "object",
    "properties": {"total": {"type": "number"}, "currency": {"type": "string"}},
    "required": ["total"],
}
# The model uses a tool once, then answers.
PRICES = (calls("price_of", {"item": "bolt"}, hasToolResult=False), says("5 USD", hasToolResult=True))
REMEMBERS = (calls("remember", {"text": "bolts"}, hasToolResult=False), says("5 USD", hasToolResult=True))

OLLAMA = Model("ollama", "llama3.1:8b", 0.0)
each_provider = pytest.mark.parametrize("model", [GPT, AZURE, CLAUDE, OLLAMA], ids=lambda model: model.provider)


def write(
    bench: Bench, model: Model | Mapping[str, Any] = GPT, llm: Mapping[str, Any] | None = None, **keys: Any
) -> None:
    """A suite that describes its agent itself."""
    suite = {
        "name": "shop",
        "model": bench.model(model) if isinstance(model, Model) else dict(model),
        "instructions": {"inline": INSTRUCTIONS},
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": [dict(CASE)],
        **keys,
    }
    bench.file("agent.yaml", suite)
    bench.file("agenteval.yaml", {"llm": {"backoff": 0, **(llm or {})}})


def asked_about(*inputs: str, **fields: Any) -> list[dict[str, Any]]:
    """A case for each question."""
    return [{**CASE, "name": text, "input": text, **fields} for text in inputs]


@pytest.fixture(autouse=True)
def played(bench: Bench) -> None:
    bench.mock.play(says("5 USD"))
    bench.file("shop.py", SHOP)


@each_provider
def test_answers_failures_and_what_they_took(bench: Bench, model: Model) -> None:
    bench.mock.play(
        refuses(429, "slow down", "A busy one?", sequence=0, retry_after=1),
        refuses(401, f"invalid api key {KEY}", "A wrong key?"),
        refuses(500, "out of order", "A broken one?"),
        says("5 USD"),
    )
    write(
        bench, model, {"retries": 2}, test_cases=[CASE, *asked_about("A busy one?", "A wrong key?", "A broken one?")]
    )
    ran = bench.run()

    assert (ran.status, ran.statuses) == (3, ["passed", "passed", "error", "error"])
    turns = [turn for (turn,) in ran.turns.values()]
    assert (turns[0].response, turns[0].tool_calls, turns[0].retrieval_context) == ("5 USD", [], [])
    assert turns[0].latency_ms
    for turn in turns[:2]:
        assert turn.usage is not None
        assert (turn.usage.input_tokens, turn.usage.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)
        assert turn.usage.cost_usd == pytest.approx(model.cost_usd)
    assert [turn.error for turn in turns] == [
        None,
        None,
        f"{model.label} answered 401: invalid api key ***",
        f"{model.label} answered 500: out of order (after 3 attempts)",
    ]
    # Counted once, though the turn and the account of all calls both know it.
    usage = ran.results.summary.usage
    assert (usage.input_tokens, usage.output_tokens, usage.llm_calls) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS, 7)
    assert usage.cost_usd == pytest.approx(2 * (model.cost_usd or 0))
    assert KEY not in ran.shown + ran.results.model_dump_json()

    asked = {text: [r for r in bench.mock.requests() if r.prompt == text] for text in (CASE["input"], "A busy one?")}
    (first,) = asked[CASE["input"]]
    assert first.body["model"] == model.name
    assert first.body["temperature"] == 0.3
    assert first.body["max_completion_tokens" if model is AZURE else "max_tokens"] == 1000
    said = [(message["role"], message["content"]) for message in first.body["messages"]]
    assert said == [("system", INSTRUCTIONS), ("user", CASE["input"])]
    refused, repeated = asked["A busy one?"]
    assert [refused.status, repeated.status] == [429, 200]
    # As long as it asked to be left alone.
    assert repeated.time_ms - refused.time_ms >= 900


@each_provider
def test_an_answer_by_a_schema(bench: Bench, model: Model) -> None:
    bench.mock.play(says("five", "A wrong one?"), says({"total": 60.94, "currency": "USD"}))
    metrics = [{"type": "standard", "metric": "numeric", "response_path": "total"}]
    cases = asked_about("A right one?", "A wrong one?", ground_truth="60.94")
    write(bench, model, test_cases=cases, response_format=FORM, evaluations={"metrics": metrics})
    ran = bench.run("--concurrency", "1")

    assert ran.statuses == ["passed", "passed"]
    for (turn,) in ran.turns.values():
        assert json.loads(turn.response or "") == {"total": 60.94, "currency": "USD"}
    # It was told once what was wrong.
    first, *others = bench.mock.requests()
    assert len(others) == 2
    if model is GPT:
        assert set(first.body["response_format"]["json_schema"]["schema"]["properties"]) == {"total", "currency"}


def test_an_answer_that_stays_wrong(bench: Bench) -> None:
    bench.mock.play(says("five"))
    write(bench, response_format=FORM)
    assert "the model gave no answer by `response_format`: " in (bench.run().turn.error or "")
    assert len(bench.mock.requests()) == 2


def test_one_conversation_per_case(bench: Bench) -> None:
    bench.mock.play(says("The bolt.", "cheaper"), says("5 USD"))
    bolt, cheaper, screw = "What does a bolt cost?", "Is it cheaper than a nut?", "And a screw?"
    turns = [{"input": bolt, "ground_truth": "5 USD"}, {"input": cheaper}]
    write(bench, test_cases=[{"name": "two", "turns": turns}, *asked_about(screw)])
    ran = bench.run("--concurrency", "1")

    assert [turn.response for turn in ran.turns["two"]] == ["5 USD", "The bolt."]
    said = [[message["content"] for message in asked.body["messages"]] for asked in bench.mock.requests()]
    assert said == [[INSTRUCTIONS, bolt], [INSTRUCTIONS, bolt, "5 USD", cheaper], [INSTRUCTIONS, screw]]


class TestTools:
    @each_provider
    def test_the_model_calls_a_function(self, bench: Bench, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CI", "true")
        monkeypatch.setenv("GITHUB_TOKEN", "ghs_0123456789")
        bench.mock.play(*PRICES)
        cases = [{**CASE, "expected_tools": ["price_of"]}]
        write(bench, model, tools=[{**PRICE, "is_retrieval": True}], test_cases=cases)
        ran = bench.run()

        assert (ran.status, ran.statuses) == (0, ["passed"])
        (call,) = ran.turn.tool_calls
        assert (call.name, call.args, call.error) == ("price_of", {"item": "bolt"}, None)
        # It runs in the user's process, without the workflow's token.
        assert call.result == ["bolt: 5 USD", None, {"unit": "piece"}]
        assert call.duration_ms
        assert ran.turn.retrieval_context == ["bolt: 5 USD", '{"unit": "piece"}']
        assert ran.turn.usage is not None
        assert ran.turn.usage.input_tokens == ran.results.summary.usage.input_tokens == 2 * INPUT_TOKENS
        assert ran.turn.usage.cost_usd == pytest.approx(2 * (model.cost_usd or 0))
        assert ran.results.summary.usage.llm_calls == 2
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
            calls("broken", {"item": "bolt"}, "function", hasToolResult=False),
            calls("fail", {}, "program", hasToolResult=False),
            says("I do not know.", hasToolResult=True),
        )
        write(
            bench,
            tools=[{**PRICE, "name": "broken", "function": "broken"}, NOTES],
            test_cases=asked_about("function", "program"),
        )
        function, program = (turn for (turn,) in bench.run("--concurrency", "1").turns.values())

        assert function.response == program.response == "I do not know."
        (call,) = function.tool_calls
        assert (call.result, call.error) == (None, "ValueError: no such item: bolt (shop.py:9)")
        (call,) = program.tool_calls
        assert call.result is None
        assert "this tool always fails" in (call.error or "")
        assert "no such item: bolt" in str(bench.mock.requests()[1].prompt)

    def test_a_function_that_never_ends_costs_one_turn(self, bench: Bench) -> None:
        bench.mock.play(calls("forever", {"item": "x"}, "forever", hasToolResult=False), says("5 USD"))
        tool = {**PRICE, "name": "forever", "function": "forever"}
        write(bench, test_cases=[CASE, *asked_about("Take forever.")], tools=[tool], execution={"llm_timeout": 2})
        ran = bench.run()
        assert ran.statuses == ["passed", "error"]
        assert ran.turns["Take forever."][0].error == "no answer within 2 s"

    def test_a_loop_comes_to_an_end(self, bench: Bench) -> None:
        bench.mock.play(calls("price_of", {"item": "bolt"}))
        write(bench, tools=[PRICE])
        assert bench.run().turn.error == "no answer after 50 model calls in one turn"
        assert len(bench.mock.requests()) == 50

    def test_everything_that_is_missing_is_named_before_anything_runs(self, bench: Bench) -> None:
        bench.file("wrong.py", "import no_such_module\n")
        tools = [
            {**PRICE, "name": "a", "function": "none"},
            {**PRICE, "name": "b", "file": "wrong.py"},
            {**NOTES, "command": "no-such-program"},
        ]
        write(bench, {"provider": "anthropic", "name": "claude-sonnet-4-6"}, tools=tools)
        said = bench.refused()
        assert "no API key for anthropic/claude-sonnet-4-6: set ANTHROPIC_API_KEY" in said
        assert "the tool 'a' cannot be used: AttributeError: module" in said
        assert "the tool 'b' cannot be used: ModuleNotFoundError: No module named 'no_such_module'" in said
        assert "the program 'no-such-program' does not exist" in said
        assert [mistake.place for mistake in shown(said) if not mistake.place.startswith("agent.yaml:")] == []
        assert len(shown(said)) == 4

        write(bench, tools=[{"name": "kb", "description": "d", "type": "vectorstore", "source": "data"}])
        said = bench.refused()
        assert "HoloDeck runs this agent, and " in said
        assert "-m pip install 'holodeck-ai[openai-agents]' exceptiongroup" in said

    def test_the_agents_model_answers_prompt_tools(self, bench: Bench) -> None:
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
        write(bench, tools=[tool])
        ran = bench.run()
        (call,) = ran.turn.tool_calls
        assert (call.name, call.args, call.result) == ("sum_up", {"text": "bolts"}, "Bolts, 5 USD.")
        assert ran.results.summary.usage.llm_calls == len(bench.mock.requests()) == 3


class TestMcpServers:
    def test_each_conversation_has_and_keeps_a_program(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CI", "true")
        monkeypatch.setenv("GITHUB_TOKEN", "ghs_0123456789")
        monkeypatch.setenv("SHOP", "Lisbon")
        bench.mock.play(*REMEMBERS)
        two = {"name": "two", "turns": [{"input": "A bolt?", "ground_truth": "5 USD"}, {"input": "A nut?"}]}
        cases = [two, *asked_about("Bolt 1?", "Bolt 2?")]
        write(bench, test_cases=cases, tools=[{**NOTES, "env": {"PLACE": "${SHOP}"}}])
        ran = bench.run()

        assert (ran.status, ran.statuses) == (0, ["passed"] * 3)
        found = [turn.tool_calls[0] for turns in ran.turns.values() for turn in turns]
        assert {(call.name, f"{call.args}", call.error) for call in found} == {
            ("remember", "{'text': 'bolts'}", None)
        }
        kept = [json.loads(str(call.result)) for call in found]
        # None knows the notes of another, or the workflow's token.
        assert [note["notes"] for note in kept] == [["bolts"], ["bolts", "bolts"], ["bolts"], ["bolts"]]
        assert {(note["place"], note["token"]) for note in kept} == {("Lisbon", None)}
        assert len({note["pid"] for note in kept}) == 3
        assert eventually(lambda: not any(is_alive(note["pid"]) for note in kept))
        assert "::error::" not in ran.shown

    def test_what_a_retrieving_server_returns_are_passages(self, bench: Bench) -> None:
        bench.mock.play(calls("look_up", {"word": "bolt"}, hasToolResult=False), says("5 USD", hasToolResult=True))
        write(bench, tools=[{**NOTES, "is_retrieval": True}])
        assert bench.run().turn.retrieval_context == ["A bolt costs 5 USD.", "A bolt is not a nut."]

    def test_a_tool_that_never_ends_costs_one_turn(self, bench: Bench) -> None:
        bench.mock.play(calls("hang", {"file": "pid"}))
        # A loaded machine needs longer to start the server, which is part of the turn.
        for seconds in (4, 16, 64):
            write(bench, tools=[NOTES], execution={"llm_timeout": seconds})
            assert bench.run().turn.error == f"no answer within {seconds} s"
            if (bench.directory / "pid").exists():
                break
        assert not is_alive(number_in(bench.directory / "pid"))

    def test_allowed_tools_are_offered_by_names_that_tell_them_apart(self, bench: Bench) -> None:
        write(bench, tools=[NOTES, {**NOTES, "name": "more", "config": {"allowed_tools": ["fail"]}}])
        bench.run()
        (asked,) = bench.mock.requests()
        names = [tool["function"]["name"] for tool in asked.body["tools"]]
        assert names == ["remember", "look_up", "fail", "hang", "more_fail"]

    def test_a_server_that_does_not_start_is_told(self, bench: Bench) -> None:
        write(bench, tools=[{**NOTES, "args": ["-c", "import sys; sys.exit('::error::no licence')"]}])
        ran = bench.run()
        error = ran.turn.error or ""
        assert error.startswith("the MCP server 'notes' cannot be used: ")
        assert error.endswith(": ::error::no licence")
        assert "\n::error::" not in ran.shown

        address = f"http://127.0.0.1:{free_port()}/mcp"
        write(bench, tools=[{"name": "web", "description": "d", "type": "mcp", "transport": "http", "url": address}])
        error = bench.run().turn.error or ""
        assert error.startswith("the MCP server 'web' cannot be used: ")
        assert "connect" in error.lower()
        assert bench.mock.requests() == []

    @pytest.mark.parametrize(("transport", "path"), [("http", "mcp"), ("sse", "sse")])
    def test_a_server_behind_an_address(self, bench: Bench, transport: str, path: str) -> None:
        bench.mock.play(*REMEMBERS)
        with serving(transport) as address:
            server = {"name": "web", "description": "d", "type": "mcp", "transport": transport}
            write(bench, tools=[{**server, "url": f"{address}/{path}", "headers": {"X-Shop": "Lisbon"}}])
            ran = bench.run()
        assert (ran.status, ran.statuses) == (0, ["passed"])
        (call,) = ran.turn.tool_calls
        assert json.loads(str(call.result))["shop"] == "Lisbon"


class TestTheAccount:
    def test_a_spent_budget_ends_the_run_cleanly(self, bench: Bench) -> None:
        write(bench, test_cases=asked_about(*(f"Bolt {number}?" for number in range(5))))
        ran = bench.run("--max-llm-calls", "2")
        assert sorted(ran.statuses) == ["error", "error", "error", "passed", "passed"]
        errors = {turns[0].error for turns in ran.turns.values()} - {None}
        assert errors == {"the model was not called: max_llm_calls (2) is used up"}
        assert len(bench.mock.requests()) == ran.results.summary.usage.llm_calls == 2
        assert "the LLM budget is exhausted: 3 calls were not made" in ran.shown

    def test_a_budget_that_ends_within_a_turn(self, bench: Bench) -> None:
        bench.mock.play(*PRICES)
        write(bench, tools=[PRICE])
        ran = bench.run("--max-llm-calls", "1")
        assert ran.turn.error == "the model was not called: max_llm_calls (1) is used up"
        # What was spent on it is in the account all the same.
        assert ran.results.summary.usage.input_tokens == INPUT_TOKENS

    def test_a_second_run_asks_nothing(self, bench: Bench) -> None:
        bench.mock.play(*PRICES)
        cached = {"cache_agents": True}
        write(bench, llm=cached, tools=[PRICE], test_cases=asked_about("A bolt?", "A nut?"))
        first = bench.run()
        assert len(bench.mock.requests()) == 4
        bench.mock.forget()
        second = bench.run()
        assert bench.mock.requests() == []
        assert second.statuses == first.statuses == ["passed", "passed"]
        for name, (turn,) in second.turns.items():
            assert turn.response == first.turns[name][0].response
            assert [call.args for call in turn.tool_calls] == [{"item": "bolt"}]
            assert turn.usage == Usage(input_tokens=200, output_tokens=20)
        assert second.results.summary.usage.model_dump() == {
            "input_tokens": 0,
            "output_tokens": 0,
            "llm_calls": 0,
            "cost_usd": 0,
            "cached_calls": 4,
            "saved_usd": pytest.approx(first.results.summary.usage.cost_usd),
        }

        # Whatever shapes the answer is asked anew.
        bench.mock.play(says({"total": 5}))
        for change in (
            {"tools": [PRICE]},
            {"instructions": "You work in a bank."},
            {"tools": [{**PRICE, "description": "What an item costs."}]},
            {"response_format": {"type": "object", "properties": {}}},
        ):
            write(bench, llm=cached, **change)
            bench.mock.forget()
            bench.run()
            assert len(bench.mock.requests()) == 1, change
        bench.mock.forget()
        bench.run()
        assert bench.mock.requests() == []

    def test_every_iteration_is_asked(self, bench: Bench) -> None:
        # Only on request is it kept: otherwise the model may have changed behind its address.
        for cache_agents, asked in ((True, 3), (True, 3), (False, 6)):
            write(bench, llm={"cache_agents": cache_agents})
            bench.run("--iterations", "3")
            assert len(bench.mock.requests()) == asked

    def test_judges_and_agents_share_one_account(self, bench: Bench) -> None:
        bench.mock.play(says({"reason": "Fine.", "score": 8}, "evaluation steps"), says("5 USD"))
        geval = {"type": "geval", "name": "Right", "criteria": "Is it right?", "evaluation_steps": ["Look."]}
        write(bench, evaluations={"metrics": [geval]})
        ran = bench.run()
        assert ran.statuses == ["passed"]
        usage = ran.results.summary.usage
        assert (usage.llm_calls, usage.input_tokens) == (2, 2 * INPUT_TOKENS)
        assert usage.cost_usd == pytest.approx(2 * (GPT.cost_usd or 0))


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def serving(transport: str) -> Iterator[str]:
    """The notes behind an address of this machine."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(SERVER), transport, str(port)], stderr=subprocess.DEVNULL)
    try:
        assert eventually(lambda: is_listening(port) or process.poll() is not None)
        assert process.poll() is None
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
