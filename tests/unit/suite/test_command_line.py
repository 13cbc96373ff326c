"""The placeholder of a program's arguments."""

from __future__ import annotations

import pytest

from agenteval.suite.agent_keys import check_arguments, with_input


@pytest.mark.parametrize(
    "arguments",
    [
        ["node", "cli.mjs", "{input}"],
        ["node", "cli.mjs", "-p", "{input}"],
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
        ["tool", "{}", '{"prompt": 1}'],
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
