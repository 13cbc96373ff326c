"""A reply is read in the same way, whatever kind of agent sends it: forms of replies by kinds of agents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support import Answer, agent_spec, ask, request, serving

from agenteval.agents.base import Reply
from agenteval.agents.callable import callable_spec
from agenteval.agents.reading import WHOLE, suggestion
from agenteval.suite.model import AgentSpec

ARGS = {"item": "bolt"}
TEXT = json.dumps(ARGS)
CALL = [{"id": "1", "type": "function", "function": {"name": "price_of", "arguments": TEXT}}]
TWICE = [{"name": "price_of", "args": json.dumps(TEXT)}]
RESULT = {"role": "tool", "tool_call_id": "1", "content": "5 USD"}
BLOCKS = [
    {"type": "tool_use", "id": "2", "name": "price_of", "input": ARGS},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "2", "content": "5 USD"}]},
]
CALLED = [("price_of", ARGS, None)]
ENDED = [("price_of", ARGS, "5 USD")]
PARTS = [{"type": "text", "text": "5 "}, {"type": "text", "text": "USD"}]

# Name → the object → what is read of it: the answer, the calls, or the tokens and the cost; or the error.
OBJECTS: dict[str, tuple[dict[str, Any], Any]] = {
    "answer": ({"response": "5 USD"}, "5 USD"),
    "parts of a content": ({"response": PARTS}, "5 USD"),
    "JSON as the answer": ({"response": [1]}, "[1]"),
    "error": ({"response": "5 USD", "error": "card service unavailable"}, ValueError("card service unavailable")),
    "calls of OpenAI's chat": ({"response": "", "tool_calls": [*CALL, RESULT]}, ENDED),
    "calls of Anthropic": ({"response": "", "tool_calls": BLOCKS}, ENDED),
    "arguments that are encoded twice": ({"response": "", "tool_calls": TWICE}, CALLED),
    "own usage": ({"response": "", "usage": {"input_tokens": 3, "output_tokens": 1, "cost_usd": 0.5}}, (3, 1, 0.5)),
    "OpenAI's usage": (
        {
            "response": "",
            "usage": {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 2},
                "cost": 0.25,
            },
        },
        (9, 5, 0.25),
    ),
    "Anthropic's usage": (
        {"response": "", "usage": {"input_tokens": 1, "cache_read_input_tokens": 8, "output_tokens": 5}},
        (9, 5, None),
    ),
    "Google's usage": (
        {"response": "", "usage": {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}},
        (9, 5, None),
    ),
    "usage of several models": ({"response": "", "usage": [{"inputTokens": 4}, {"inputTokens": 5}]}, (9, None, None)),
    "usage that is no number": ({"response": "", "usage": {"prompt_tokens": "9"}}, ValueError("usage.prompt_tokens")),
}
UNAVAILABLE = '{"error": "card service unavailable"}'
# Name → the text → the answer, or the error.
TEXTS: dict[str, tuple[str, Any]] = {
    "text": ("5 USD", "5 USD"),
    "object": ('{"response": "5 USD"}', "5 USD"),
    "byte order mark": ('\ufeff{"response": "5 USD"}', "5 USD"),
    "log lines": ('loading\n{"level": 30}\n{"response": "5 USD"}', "5 USD"),
    "indented after log lines": ('loading\n{\n  "response": "5 USD",\n  "metadata": {}\n}', "5 USD"),
    "the last object": ('{"response": "draft"}\n{"response": "5 USD"}', "5 USD"),
    "lines after it": ('{"response": "5 USD"}\ntook 3 s', "5 USD"),
    "error": (UNAVAILABLE, ValueError("reported an error: card service unavailable")),
    "error after log lines": (f"loading\n{UNAVAILABLE}", ValueError("reported an error: card service unavailable")),
    "error before log lines": (f"{UNAVAILABLE}\ndone", ValueError("reported an error: card service unavailable")),
    "error among log lines": (f"a\n{UNAVAILABLE}\nb", ValueError("reported an error: card service unavailable")),
    "object of another form": ('{"answer": "5 USD"}', ValueError("its keys: answer")),
    "object of another form after log lines": ('loading\n{"answer": "5 USD"}', ValueError("its keys: answer")),
    "objects of other forms": ('{"level": 30}\n{"price": 5}', ValueError("its keys: price")),
    "cut off": ('{"response": "5 USD', ValueError("starts like JSON and is none (line 1, column 14)")),
    "cut off in a word": ('{"response": tru', ValueError("starts like JSON and is none (line 1, column 14)")),
    "cut off after log lines": (
        'loading\n{\n  "response": "5 USD",',
        ValueError("starts like JSON and is none (line 3"),
    ),
    "as Python prints it": (
        "{'error': 'card service'}",
        ValueError("starts like JSON and is none (line 1, column 2)"),
    ),
    "too deep": ('{"a":' * 100_000, ValueError("nested too deeply")),
    "a quotation": ('Send this:\n{"price": 5}', 'Send this:\n{"price": 5}'),
    "a quotation in the middle": ('Send\n{"answer": 5}\nplease.', 'Send\n{"answer": 5}\nplease.'),
    "a block of code": ("So:\n{\n  color: red\n}", "So:\n{\n  color: red\n}"),
    "an object of another form and text": ('{"answer": 5}\ndone', ValueError("is none (line 1, column 14)")),
    "an object and text": ('{"price": 5} is valid', '{"price": 5} is valid'),
    "an object that is wrong": ('{"price": 5,}\nis not', '{"price": 5,}\nis not'),
    "braces": ("{name} is 5 USD", "{name} is 5 USD"),
    "a list": ('["5 USD"]', '["5 USD"]'),
}
SENT: dict[str, Any] = {**{f"object: {key}": row[0] for key, row in OBJECTS.items()}}
SENT |= {f"text: {key}": row[0] for key, row in TEXTS.items()}
WANTED = {**{f"object: {key}": row[1] for key, row in OBJECTS.items()}}
WANTED |= {f"text: {key}": row[1] for key, row in TEXTS.items()}

# A recording has objects only, and it is refused as a whole if a line cannot be read.
RECORDED = {f"object: {key}" for key in OBJECTS} - {"object: usage that is no number"}


PART = {"type": "text", "text": "5 USD"}
# The path of the answer → replies of APIs, of which the error names the path.
PATHS: dict[str, dict[str, Any]] = {
    "choices[0].message.content": {"choices": [{"message": {"role": "assistant", "content": "5 USD"}}]},
    "content[*].text": {"role": "assistant", "content": [{"type": "thinking", "thinking": "?"}, PART]},
    "output[-1].content[*].text": {"output": [{"type": "reasoning"}, {"role": "assistant", "content": [PART]}]},
    "candidates[-1].content.parts[*].text": {"candidates": [{"content": {"role": "model", "parts": [PART]}}]},
    "messages[-1].content": {"messages": [{"role": "user", "content": "Price?"}, {"content": "5 USD"}]},
}


def test_the_error_names_the_path_of_the_answer() -> None:
    named = {path: suggestion(form) for path, form in PATHS.items()}
    assert named == {path: f"set `response_path: {path}`, or {WHOLE}" for path in PATHS}


def written(form: Any) -> str:
    return form if isinstance(form, str) else json.dumps(form)


@contextmanager
def agent_of(kind: str, directory: Path) -> Iterator[AgentSpec]:
    """An agent that sends the form whose name is its input."""
    (directory / "forms.json").write_text(json.dumps(SENT), encoding="utf-8")
    if kind == "command":
        for number, form in enumerate(SENT.values()):
            (directory / str(number)).write_text(written(form), encoding="utf-8")
        yield agent_spec("command", ["sh", "-c", 'cat "$1"', "sh", "{input}"], directory)
    elif kind == "python":
        code = "import json\nFORMS = list(json.load(open('forms.json')).values())\n"
        (directory / "bot.py").write_text(
            code + "def reply(text: str):\n    return FORMS[int(text)]\n", encoding="utf-8"
        )
        yield agent_spec("python", "bot:reply", directory)
    elif kind == "callable":
        yield callable_spec(lambda text: list(SENT.values())[int(text)])
    elif kind == "http":

        def respond(body: dict[str, Any]) -> Answer:
            form = list(SENT.values())[int(body["input"])]
            kind = "text/plain; charset=utf-8" if isinstance(form, str) else "application/json"
            return Answer(written(form), content_type=kind)

        with serving(respond) as service:
            yield agent_spec("http", service.url, directory)
    else:
        lines = [{"case": str(number), **SENT[name]} for number, name in enumerate(SENT) if name in RECORDED]
        (directory / "answers.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        yield agent_spec("replay", str(directory / "answers.jsonl"), directory)


def read(reply: Reply | BaseException, wanted: Any) -> Any:
    """The part of a reply that a form is about."""
    if isinstance(reply, BaseException) or isinstance(wanted, ValueError):
        return str(wanted) if str(wanted) in str(reply) else repr(reply)
    if isinstance(wanted, str):
        return reply.response
    if isinstance(wanted, list):
        return [(call.name, call.args, call.result) for call in reply.tool_calls]
    return reply.usage and (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost_usd)


@pytest.mark.parametrize("kind", ["command", "http", "python", "callable", "replay"])
def test_a_reply_is_read_in_the_same_way_from_every_kind_of_agent(tmp_path: Path, kind: str) -> None:
    names = {name: number for number, name in enumerate(SENT) if kind != "replay" or name in RECORDED}
    with agent_of(kind, tmp_path) as spec:
        replies = ask(spec, *(request(str(number), case=str(number)) for number in names.values()))
    found = {name: read(reply, WANTED[name]) for name, reply in zip(names, replies, strict=True)}
    assert found == {
        name: str(WANTED[name]) if isinstance(WANTED[name], ValueError) else WANTED[name] for name in names
    }
