"""Placeholders in the arguments of programs and in requests."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.suite.agent_keys import (
    PLACEHOLDERS,
    check_arguments,
    check_template,
    filled,
    missing_config,
    with_input,
)


@pytest.mark.parametrize(
    "arguments",
    [
        ["claude", "-p", "{input}"],
        ["cli", "--prompt={input}", "ask: {input}"],
        ["bash", "run.sh", "-c", "{input}"],
        ["sh", "-c", 'tool "$1"', "sh", "{input}"],
        ["python", "-m", "tool", "-e", "{input}"],
        # Braces that mean something else.
        ["sh", "-c", "echo ${HOME} ${session} {x}"],
        ["python", "-c", "print(f'{prompt}')"],
        ["awk", "{ print }"],
        ["git", "show", "stash@{0}"],
    ],
)
def test_accepts_the_input_as_an_argument(arguments: list[str]) -> None:
    check_arguments(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["sh", "-c", "node cli.mjs {input}"],
        ["bash", "-o", "pipefail", "-c", "{input}"],
        ["/bin/bash", "-lc", "tool {input}"],
        ["/usr/bin/env", "bash", "-c", "{input}"],
        ["docker", "run", "image", "sh", "-c", "{input}"],
        ["python3.12", "-c", "print('{input}')"],
        ["node", "-e", "ask('{input}')"],
        ["node", "--require", "x", "--eval=ask('{input}')"],
    ],
)
def test_refuses_the_input_inside_program_text(arguments: list[str]) -> None:
    with pytest.raises(ValueError, match="must not be part of program text"):
        check_arguments(arguments)


@pytest.mark.parametrize(
    "argument",
    [
        "{prompt}",
        "{user_input}",
        "--session={session}",
        "{{input}}",
        "{{ question }}",
        "{{ input }}",
        "{input} in { messages }",
        "{context.user}",
        "Answer {question}",
        "{config.a}",
    ],
)
def test_refuses_other_placeholders_with_a_hint(argument: str) -> None:
    with pytest.raises(ValueError, match=r"only \{input\} is replaced.*JSON from standard input"):
        check_arguments(["tool", "{input}", argument])


def test_the_input_is_not_the_program() -> None:
    with pytest.raises(ValueError, match="must not depend on the input"):
        check_arguments(["{input}", "x"])


def test_an_input_with_a_placeholder_is_inserted_once() -> None:
    assert with_input(("-q", "{input}{input}"), "{input} $x") == ("-q", "{input} $x{input} $x")


VALUES: dict[str, Any] = {
    "input": 'say "hi" {session}',
    "history": [{"role": "user", "content": "a"}],
    "turn": 1,
    "session": "s",
    "config": {"model": {"name": "m"}, "k": 3, "on": True},
    "context": {},
}


@pytest.mark.parametrize(
    ("template", "made"),
    [
        ("{input}", 'say "hi" {session}'),
        ("Q: {input}", 'Q: say "hi" {session}'),
        ("{history}", [{"role": "user", "content": "a"}]),
        ("{config.k}", 3),
        ("{config.on}", True),
        ("{config.model}", {"name": "m"}),
        ("{config.model.name}-{turn}", "m-1"),
        ("{{input}}", "{input}"),
        ('{"json": "{input}"}', '{"json": "say "hi" {session}"}'),
        ({"a": ["{turn}", 1.5, None, False], "{input}": "x"}, {"a": [1, 1.5, None, False], "{input}": "x"}),
    ],
)
def test_placeholders_keep_their_types(template: Any, made: Any) -> None:
    check_template(template)
    result = filled(template, VALUES)
    assert result == made
    assert type(result) is type(made)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (
            {"a": ["{inptu}"]},
            r"^{inptu} is not a placeholder; did you mean 'input'\?; {{inptu}} is sent as {inptu}$",
        ),
        ("{input.x}", "{input.x} is not a placeholder"),
        ({"a": float("nan")}, "JSON cannot express it"),
        ({"a": object()}, "JSON cannot express it"),
    ],
)
def test_mistakes(template: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_template(template)


def test_missing_keys_of_the_configuration() -> None:
    assert list(missing_config(["{config.k}", {"a": "{config.x}-{config.model.y}"}], VALUES["config"])) == [
        "config.x",
        "config.model.y",
    ]


def test_every_placeholder_is_known_to_the_requests() -> None:
    from tests.support import request

    from agenteval.agents.http_agent import RequestBuilder

    template = {name: f"{{{name}}}" for name in PLACEHOLDERS}
    body = RequestBuilder("http://agent", {"body": template}, None, {}).body(
        request("hi", history=({"role": "user", "content": "a"},))
    )
    assert set(body) == set(PLACEHOLDERS)
    assert body["messages"] == [{"role": "user", "content": "a"}, {"role": "user", "content": "hi"}]
