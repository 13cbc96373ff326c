"""Every example of AgentCI's guide to accuracy evaluations, line by line, run from the command line.

Each case is answered once as it wants it and once as it does not.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.integration.model_server import KEY, embeds, serving, words
from tests.mistakes import shown
from tests.support import results_in

from agenteval.results.case import CaseResult
from agenteval.results.model import Results

EXAMPLES = Path(__file__).parents[1] / "data" / "agentci" / "seed"
AGENT = """
import json, sys
request = json.load(sys.stdin)
with open("replies.json", encoding="utf-8") as file:
    reply = json.load(file)[request["input"]]
print(json.dumps({"response": reply if isinstance(reply, str) else json.dumps(reply)}))
"""
TOOL = """
import json
def call(*args, **context):
    with open("replies.json", encoding="utf-8") as file:
        return json.load(file)[args[0] if args else json.dumps(context)]
"""
HEADER = '[eval]\ndescription = "Completed"\ntype = "accuracy"\ntargets.{} = ["{}"]\n\n'
FIRST_CASE = "[[eval.cases]]\n"


@dataclass(frozen=True)
class Example:
    """One example.

    Attributes:
        name: its file.
        good: a reply for each of its cases.
        bad: for each of its cases replies that are wrong, with a part of what is said about them.
    """

    name: str
    good: Sequence[Any]
    bad: Sequence[Sequence[tuple[Any, str]]]


WEATHER = {"temperature": 18.5, "condition": "cloudy", "humidity": 60}
PROFILE = {"username": "marie", "age": 30, "status": "active", "tags": ["new"], "email": "marie@example.org"}
ACCOUNT = {"username": "marie", "status": "pending", "age": 120, "percentage": 100, "email": "a@b.c", "timeout": 5}
PRODUCT = {"id": 7, "name": "Lamp", "pricing": {"amount": 20, "currency": "EUR"}}
STATUS = {
    "status": "Operational",
    "error": "the upstream TIMEOUT was reached",
    "email": "marie@example.org",
    "message": "Welcome to our application!",
}
RULES = [
    Example(
        "contains",
        ["It is Paris.", "FRANCE's capital is paris", "the french capital"],
        [
            [("It is Rome.", "'Paris' is missing"), ("", "'Paris' is missing")],
            [("Paris, of course", "'France' is missing"), ("Rome", "'Paris', 'France' is missing")],
            [("Rome", "contains none of 'Paris', 'France', 'French capital'")],
        ],
    ),
    Example(
        "beginnings-and-ends",
        ["  the answer is 4", "GREETINGS, traveller", "That is all.\n", "Is it?"],
        [
            [("It is 4. The answer is 4", "does not start with 'The answer is'")],
            [("Good day", "does not start with 'Hi', 'Hello', 'Greetings'")],
            [("That is all", "does not end with '.'")],
            [("Yes:", "does not end with '!', '?', '.'")],
        ],
    ),
    Example(
        "match",
        ["555-123-4567"],
        [[("It is 555-123-4567", "is not found"), ("5551234567", "is not found"), ("555-123-45678", "is not found")]],
    ),
    Example(
        "similar",
        ["HTTP is the protocol for transferring data over the web."],
        [[("A cake recipe.", "similarity 0."), (" ", "empty response")]],
    ),
    Example(
        "schema",
        [WEATHER],
        [
            [
                ({**WEATHER, "humidity": 101}, "$.humidity: expected at most 100, got 101"),
                ({**WEATHER, "humidity": -1}, "$.humidity: expected at least 0, got -1"),
                ({**WEATHER, "humidity": 50.5}, "$.humidity: expected int, got float 50.5"),
                ({**WEATHER, "temperature": "18.5"}, "$.temperature: expected float, got str '18.5'"),
                ({**WEATHER, "condition": None}, "$.condition: expected str, got null"),
                ({"temperature": 1}, "$.condition: expected str, but it is missing; $.humidity: expected int, but"),
                ("It is sunny.", "the answer is not JSON"),
                ([WEATHER], "$: expected dict, got list"),
            ]
        ],
    ),
    Example(
        "mathematics",
        ["345", " 25\n"],
        [[("The answer is 345", "expected '345'"), ("", "expected '345', got ''")], [("25.0", "expected '25'")]],
    ),
    Example(
        "facts",
        ["TOKYO", "In 2007."],
        [[("Kyoto", "'Tokyo' is missing in 'Kyoto'")], [("In two thousand seven", "'2007' is missing")]],
    ),
    Example(
        "customer-support",
        ["Your order #12345 is being processed and will ship soon", "It has a cost."],
        [[("No idea.", "similarity 0.")], [("It is free of charge.", "contains none of '$', 'price', 'cost'")]],
    ),
    Example(
        "weather-api",
        [{**WEATHER, "city": "New York"}, {"temperature": 60, "condition": "fog", "more": [1]}],
        [[(WEATHER, "$.city: expected str, but it is missing")], [({"temperature": True}, "got bool True")]],
    ),
    Example(
        "user-database",
        [[{"name": "John Doe"}], 42],
        [[([], "'John Doe' is missing in '[]'")], [(0, "'42' is missing in '0'")]],
    ),
    Example(
        "workflow",
        ["Order 98765 was processed"],
        [[("Order 98765 was cancelled", "'processed' is missing"), ("processed", "'order', '98765' is missing")]],
    ),
    Example(
        "field-types",
        [{**WEATHER, "is_raining": False}],
        [[({**WEATHER, "is_raining": 0}, "$.is_raining: expected bool, got int 0"), ({}, "is missing")]],
    ),
    Example(
        "field-limits",
        [ACCOUNT],
        [
            [
                ({**ACCOUNT, "username": "me"}, "$.username: expected at least 3 characters, got 2"),
                ({**ACCOUNT, "username": "m" * 21}, "$.username: expected at most 20 characters, got 21"),
                ({**ACCOUNT, "status": "gone"}, "$.status: expected one of 'active', 'inactive', 'pending', got"),
                ({**ACCOUNT, "age": 121}, "$.age: expected at most 120"),
                ({**ACCOUNT, "percentage": 100.01}, "$.percentage: expected at most 100"),
                ({**ACCOUNT, "email": 5}, "$.email: expected str, got int 5"),
                ({**ACCOUNT, "timeout": "5"}, "$.timeout: expected int, got str '5'"),
            ]
        ],
    ),
    Example(
        "nested-object",
        [PRODUCT],
        [
            [
                ({**PRODUCT, "pricing": {"amount": 20}}, "$.pricing.currency: expected str, but it is missing"),
                ({**PRODUCT, "pricing": 20}, "$.pricing: expected dict, got int 20"),
                ({"id": 7, "name": "Lamp"}, "$.pricing: expected dict, but it is missing"),
            ]
        ],
    ),
    Example(
        "field-texts",
        [STATUS],
        [
            [
                ({**STATUS, "status": "down"}, "$.status: expected 'operational', got 'down'"),
                ({**STATUS, "error": "none"}, "$.error: 'timeout' is missing in 'none'"),
                ({**STATUS, "email": "marie"}, "$.email: the pattern"),
                ({**STATUS, "message": "Go away"}, "$.message: expected a text like 'Welcome to our application!'"),
            ]
        ],
    ),
    Example(
        "user-profile",
        [PROFILE],
        [
            [
                ({**PROFILE, "tags": []}, "$.tags: expected at least 1 entries, got 0"),
                ({**PROFILE, "tags": list("abcdef")}, "$.tags: expected at most 5 entries, got 6"),
                ({**PROFILE, "tags": [1]}, "$.tags[0]: expected str, got int 1"),
                ({**PROFILE, "age": 12}, "$.age: expected at least 13, got 12"),
                ({**PROFILE, "status": "pending"}, "$.status: expected one of"),
            ]
        ],
    ),
    Example(
        "edge-cases",
        ["It is undefined.", "2i"],
        [[("0", "contains none of 'undefined', 'indeterminate'")], [("-1", "contains none of")]],
    ),
    Example(
        "required-fields",
        [{"status": "sent", "order_id": "7", "estimated_delivery": "tomorrow"}],
        [[({"status": "sent"}, "$.order_id: expected str, but it is missing")]],
    ),
    Example(
        "field-constraints",
        [{"temperature": -100, "status": "sunny"}],
        [
            [
                ({"temperature": -100.5, "status": "sunny"}, "$.temperature: expected at least -100, got -100.5"),
                ({"temperature": 0, "status": "Sunny"}, "$.status: expected one of 'sunny', 'cloudy', 'rainy', got"),
            ]
        ],
    ),
    Example("phrasings", ["paris", "PARIS!"], [[("Lyon", "'Paris' is missing")], [("Nice", "'Paris' is missing")]]),
]
MISTAKES = {
    "exact": (
        "exact.toml:9: not valid TOML: ",
        'keep one of the two: output = "4"   or   output.exact = "4"; a further [[eval.cases]] takes the other',
    ),
    "collections": (
        "collections.toml:19: not valid TOML: ",
        'products = { type = "list" } is complete and cannot be extended; write it as a table:',
        "[eval.cases.output.schema.products]",
    ),
    "one-answer-three-ways": ("one-answer-three-ways.toml:12: not valid TOML: ",),
    "narrowing-down": ("narrowing-down.toml:12: not valid TOML: ",),
    "choice-of-strategy": ("choice-of-strategy.toml:12: not valid TOML: ",),
    "wrong-type": (
        "wrong-type.toml:14: not valid TOML: ",
        'keep one of the two: temperature = { type = "int" }   or   ',
    ),
    "configuration": ("configuration.toml:3: eval.type: an evaluation of type accuracy needs [[eval.cases]]",),
    "description": ("description.toml:1: eval.type: this key is required", "eval.targets: this key is required"),
}


def raw(name: str) -> str:
    """An example as it stands in its guide."""
    return textwrap.dedent((EXAMPLES / f"{name}.toml").read_text(encoding="utf-8"))


def completed(name: str) -> str:
    """An example as a suite: what stands above it in its guide is added, and a question where it has none."""
    text = raw(name)
    header = HEADER.format("tools", "weather-api") if "context = " in text else HEADER.format("agents", "*")
    above = "" if "[eval]\n" in text else header
    if above and FIRST_CASE not in text:
        above += FIRST_CASE + 'prompt = "Question"\n'
        above += "" if re.search("^(output|.eval)", text, re.MULTILINE) else "[eval.cases.output.schema]\n"
    numbers = iter(range(99))
    asked = re.compile(r"\[\[eval\.cases\]\]\n(?!prompt|context)")
    return asked.sub(lambda found: f'{found.group()}prompt = "Question {next(numbers)}"\n', above + text)


def questions(text: str) -> list[str]:
    """What the cases ask: the prompt, and of tools the arguments."""
    suite = tomllib.loads(text)["eval"]
    tools_only = not suite["targets"].get("agents")
    return [json.dumps(case["context"]) if tools_only else case["prompt"] for case in suite["cases"]]


@pytest.fixture(scope="module")
def models() -> Iterator[str]:
    """An embedding model by which texts are alike that share words."""
    with serving() as server:
        server.respond = lambda asked: embeds(asked, words(asked.embedded or ""))
        yield f"{server.url}/v1"


@pytest.fixture
def folder(tmp_path: Path, models: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with every agent and tool that the examples name."""
    monkeypatch.setenv("AGENTEVAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")
    (tmp_path / "tools.py").write_text(TOOL, encoding="utf-8")
    tools = ("weather-api", "user-database", "order-database", "email-sender")
    config = {
        "tools": {tool: {"python": "tools:call"} for tool in tools},
        "embeddings": {"model": "openai/text-embedding-3-small", "endpoint": models, "api_key": KEY},
    }
    (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (tmp_path / ".agentci" / "evals").mkdir(parents=True)
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    """The suite, and the one agent that it names."""
    (folder / ".agentci" / "evals" / f"{name}.toml").write_text(text, encoding="utf-8")
    named = re.search(r'targets\.agents = \["([\w-]+)"\]', text)
    config = yaml.safe_load((folder / "agenteval.yaml").read_text(encoding="utf-8"))
    agent = {"command": [sys.executable, "-S", "-E", "agent.py"]}
    config["agents"] = {named.group(1) if named else "default": agent}
    (folder / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def reason(case: CaseResult) -> str:
    """Why a case has the status that it has."""
    (turn,) = case.iterations[0].turns
    return "; ".join(filter(None, [turn.error, *(score.reason or score.error for score in turn.scores)]))


def run(folder: Path, command: Command, name: str, replies: Sequence[Any]) -> tuple[int, Results]:
    text = completed(name)
    write(folder, name, text)
    said: dict[str, Any] = dict(zip(questions(text), replies, strict=True))
    # A case with prompt and context asks agents the one and tools the other.
    for case in tomllib.loads(text)["eval"]["cases"]:
        if "prompt" in case and "context" in case:
            said[json.dumps(case["context"])] = said[case["prompt"]]
    (folder / "replies.json").write_text(json.dumps(said), encoding="utf-8")
    ended = command("run", "--quiet")
    assert ended.status in {0, 1}, ended.text
    return ended.status, results_in(folder)


@pytest.mark.parametrize("example", RULES, ids=lambda example: example.name)
def test_good_replies_pass(folder: Path, command: Command, example: Example) -> None:
    status, results = run(folder, command, example.name, example.good)

    assert [(case.status, reason(case)) for _, case in results.cases() if case.status != "passed"] == []
    assert status == 0
    targets = tomllib.loads(completed(example.name))["eval"]["targets"]
    count = len(targets.get("agents", [])) + len(targets.get("tools", []))
    assert results.summary.passed == count * len(example.good)


@pytest.mark.parametrize("example", RULES, ids=lambda example: example.name)
def test_bad_replies_fail_and_it_says_why(folder: Path, command: Command, example: Example) -> None:
    for number in range(max(map(len, example.bad))):
        chosen = [replies[min(number, len(replies) - 1)] for replies in example.bad]
        status, results = run(folder, command, example.name, [reply for reply, _ in chosen])

        assert status == 1
        cases = [case for _, case in results.cases()]
        assert {case.status for case in cases} == {"failed"}
        for index, case in enumerate(cases):
            assert chosen[index % len(chosen)][1] in reason(case)


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_wrong_with_the_others(folder: Path, command: Command, name: str) -> None:
    write(folder, name, raw(name) if name == "description" else completed(name))
    ended = command("run")

    assert ended.status == 2
    said = shown(ended.err)
    for part in MISTAKES[name]:
        assert any(mistake.says(part) or part in mistake.text for mistake in said), ended.err


def test_every_example_is_looked_at() -> None:
    assert {path.stem for path in EXAMPLES.iterdir()} == {example.name for example in RULES} | set(MISTAKES)


def test_validate_likes_them(folder: Path, command: Command) -> None:
    file = folder / "agenteval.yaml"
    agents: dict[str, object] = {}
    for example in RULES:
        write(folder, example.name, completed(example.name))
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
        agents |= config["agents"]
        file.write_text(yaml.safe_dump(config | {"agents": agents}), encoding="utf-8")
    ended = command("validate")

    assert (ended.status, ended.err) == (0, "")
    for example in RULES:
        assert f".agentci/evals/{example.name}.toml: ok, agentci, " in ended.out
