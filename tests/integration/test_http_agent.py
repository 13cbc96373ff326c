"""Agents behind an HTTP address, against a real server on this machine."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support import Answer, HangUp, Service, agent_spec, answer, ask, free_port, request, serving, started

from agenteval.agents.base import Reply
from agenteval.core.errors import AgentError, ConfigError
from agenteval.core.llm.calls import Call
from agenteval.core.llm.errors import LlmError
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.core.llm.spec import ModelSpec
from agenteval.results.case import Usage
from agenteval.suite.model import AgentSpec


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def at(service: Service, directory: Path, **options: Any) -> AgentSpec:
    return agent_spec("http", service.url, directory, options=options)


# Replies


def test_reads_a_full_reply(tmp_path: Path) -> None:
    body = {
        "response": "42",
        "tool_calls": [{"name": "search"}],
        "retrieval_context": ["passage"],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    with serving(lambda _: Answer(body)) as service:
        reply = answer(at(service, tmp_path))
    assert (reply.response, reply.tool_calls[0].name, reply.retrieval_context) == ("42", "search", ("passage",))
    assert reply.usage == Usage(input_tokens=3, output_tokens=4)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (Answer("plain text\n", content_type="text/plain"), "plain text\n"),
        (Answer("Grüße".encode("latin-1"), content_type="text/plain; charset=latin-1"), "Grüße"),
        (Answer(b"", content_type="text/plain"), ""),
        (Answer('"a JSON text"'), "a JSON text"),
        (Answer('[{"answer": 1}]'), '[{"answer": 1}]'),
        (Answer('{"response": "problem"}', content_type="application/problem+json"), "problem"),
        (Answer("x" * 5_000_000, content_type="text/plain"), "x" * 5_000_000),
        (Answer('{"response": "half: \\ud800"}'), "half: \ufffd"),
    ],
    ids=["text", "charset", "empty", "json-text", "other-json", "json-suffix", "five-megabytes", "surrogate"],
)
def test_reads_an_answer(tmp_path: Path, sent: Answer, expected: str) -> None:
    with serving(lambda _: sent) as service:
        assert answer(at(service, tmp_path)).response == expected


@pytest.mark.parametrize(
    "content_type",
    ["text/html; charset=utf-8", "Text/XML", "application/xhtml+xml", "image/png", "application/octet-stream"],
)
def test_a_page_is_an_answer_only_if_the_definition_says_so(tmp_path: Path, content_type: str) -> None:
    with serving(lambda _: Answer("<h1>Log in</h1>", content_type=content_type)) as service:
        kind = re.escape(content_type.partition(";")[0].lower())
        said = f"has the type {kind}, not JSON or plain text; .*`reply: text`"
        with pytest.raises(AgentError, match=said):
            answer(at(service, tmp_path))
        assert answer(at(service, tmp_path, reply="text")).response == "<h1>Log in</h1>"


@pytest.mark.parametrize("content_type", ["text/plain", "text/markdown; charset=utf-8", "text/html", ""])
def test_text_and_content_without_a_type_are_answers(tmp_path: Path, content_type: str) -> None:
    with serving(lambda _: Answer("# Hello", content_type=content_type)) as service:
        assert answer(at(service, tmp_path)).response == "# Hello"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("choices[0].message.content", "Hello"),
        ("usage", '{"total": 3}'),
        ("count", "2"),
    ],
)
def test_finds_the_answer_in_a_foreign_reply(tmp_path: Path, path: str, expected: str) -> None:
    body = {"choices": [{"message": {"content": "Hello"}}], "usage": {"total": 3}, "count": 2}
    # The path says that it is JSON, whatever the service calls it.
    with serving(lambda _: Answer(body, content_type="text/plain")) as service:
        assert answer(at(service, tmp_path, response_path=path)).response == expected


# The request


def test_posts_the_request_with_the_headers_of_the_definition(tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer abc\n", "X-Team": "search"}
    with serving(lambda body: Answer({"response": body["input"]})) as service:
        reply = answer(at(service, tmp_path, headers=headers), request("Grüße \U0001f600", case="a", turn=2))
        (sent,), (received,) = service.requests, service.headers
    assert reply.response == "Grüße \U0001f600"
    assert sent == {
        "input": "Grüße \U0001f600",
        "case": "a",
        "turn": 2,
        "session": "a#0",
        "history": [],
        "files": [],
        "config": {},
        "context": {},
    }
    received = {name.lower(): value for name, value in received.items()}
    assert received["content-type"] == "application/json"
    # The line break at the end of a secret is not sent.
    assert (received["authorization"], received["x-team"]) == ("Bearer abc", "search")


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


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (Answer('{"detail": "no model"}', status=500), r'answered 500 Internal Server Error: {"detail": "no model"}'),
        (Answer("nothing here", status=404, content_type="text/plain"), "answered 404 Not Found: nothing here"),
        (Answer(status=307, headers={"Location": "/chat/"}), "answered 307 Temporary Redirect: /chat/"),
        (Answer("<html>", content_type="application/json"), "the agent's reply is not JSON"),
        (Answer("[" * 50_000), "the agent's reply is not JSON"),
        (Answer({"response": "x", "tool_calls": "none"}), "'tool_calls' must be a list"),
    ],
    ids=["500", "404", "redirect", "not-json", "too-deep", "wrong-shape"],
)
def test_says_what_the_service_answered(tmp_path: Path, sent: Answer, said: str) -> None:
    with serving(lambda _: sent) as service, pytest.raises(AgentError) as caught:
        answer(at(service, tmp_path))
    assert said in str(caught.value)


def test_shows_the_beginning_of_a_long_error(tmp_path: Path) -> None:
    with (
        serving(lambda _: Answer("x" * 100_000, status=503)) as service,
        pytest.raises(AgentError, match="answered 503") as caught,
    ):
        answer(at(service, tmp_path))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("choices[0].text", "the response has no item [0] in 'choices'"),
        ("answer.text", "the response has no 'answer'"),
    ],
)
def test_says_where_the_path_of_the_answer_leads_nowhere(tmp_path: Path, path: str, said: str) -> None:
    with serving(lambda _: Answer({"choices": []})) as service, pytest.raises(AgentError) as caught:
        answer(at(service, tmp_path, response_path=path))
    assert said in str(caught.value)


def test_a_text_is_no_place_to_look_for_a_path(tmp_path: Path) -> None:
    with (
        serving(lambda _: Answer("hello", content_type="text/plain")) as service,
        pytest.raises(AgentError, match="reply is not JSON"),
    ):
        answer(at(service, tmp_path, response_path="answer"))


def test_says_that_nobody_listens(tmp_path: Path) -> None:
    spec = agent_spec("http", f"http://127.0.0.1:{free_port()}/", tmp_path)
    with pytest.raises(AgentError, match=r"the agent at http://127\.0\.0\.1:\d+/ cannot be reached"):
        answer(spec)


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


def test_says_that_the_service_hung_up(tmp_path: Path) -> None:
    def hang_up(_body: dict[str, Any]) -> Answer:
        raise HangUp

    with (
        serving(hang_up) as service,
        pytest.raises(AgentError, match="broke off: it closed the connection without an answer"),
    ):
        answer(at(service, tmp_path))


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


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("http://127.0.0.1:http/", {}, "'http://127.0.0.1:http/' is not a valid address"),
        ("http://[::1", {}, "is not a valid address"),
        ("http://127.0.0.1/", {"headers": {"X-Name": "Zoë"}}, "the header 'X-Name' may contain printable ASCII only"),
        (
            "http://127.0.0.1/",
            {"headers": {"X-Name": "a\nb"}},
            "the header 'X-Name' may contain printable ASCII only",
        ),
    ],
)
def test_a_definition_that_cannot_work_is_told_before_anything_runs(
    tmp_path: Path, url: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        answer(agent_spec("http", url, tmp_path, options=options))
    assert str(caught.value).startswith(f"{tmp_path / 'agenteval.yaml'}:3: agent: ")
    assert said in str(caught.value)


def test_an_unusable_proxy_is_told_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://proxy:1")
    with pytest.raises(ConfigError, match="cannot be reached from here: Unknown scheme for proxy"):
        answer(agent_spec("http", "http://127.0.0.1/", tmp_path))
