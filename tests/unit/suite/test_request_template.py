"""Templates of requests."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.suite.agent_keys import PLACEHOLDERS, check_template, filled, missing_config

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
