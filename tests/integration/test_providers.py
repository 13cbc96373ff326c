"""What goes over the wire to each provider, and what is made of what comes back; judges by deepeval included."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.integration.model_server import (
    INPUT_TOKENS,
    KEY,
    OUTPUT_TOKENS,
    PROVIDERS,
    Answer,
    ModelServer,
    RecordedQuestion,
    error,
    says,
    serving,
)

from agenteval.core.llm.calls import Call, Completion
from agenteval.core.llm.gateway import Gateway, LlmSettings, ResponseCache
from agenteval.core.llm.models import LlmError, ModelSpec
from agenteval.core.shared_files import Seal
from agenteval.metrics.base import MetricError, Observation
from agenteval.metrics.deepeval import GEval, Rag
from agenteval.metrics.resources import GraderPool, Resources

PATIENCE_S = 300
SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"type": "number", "default": 0}},
    "required": ["reason"],
}
STRICT = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"type": "number"}},
    "required": ["reason", "score"],
    "additionalProperties": False,
}
MESSAGES = [{"role": "user", "content": "Is it?"}]
RESPONSE_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "Judged", "schema": STRICT, "strict": True},
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        yield running


def ask(call: Call, **settings: Any) -> Completion:
    async def run() -> Completion:
        gateway = Gateway(LlmSettings(**{"backoff_s": 0.0, "retries": 0, **settings}))
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await gateway.complete(call)
        finally:
            await gateway.close()

    return asyncio.run(run())


def sent(server: ModelServer, model: ModelSpec, **fields: Any) -> RecordedQuestion:
    """The request for a question with a schema."""
    ask(Call(model, "Is it?", **{"schema": SCHEMA, "schema_name": "Judged", **fields}))
    (asked,) = server.asked
    return asked


class TestRequests:
    def test_openai(self, server: ModelServer) -> None:
        asked = sent(server, server.model())

        assert asked.path == "/v1/chat/completions"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.body == {
            "model": "gpt-4.1",
            "messages": MESSAGES,
            "temperature": 0.0,
            "response_format": RESPONSE_FORMAT,
        }

    @pytest.mark.parametrize("name", ["gpt-5", "gpt-5-mini", "gpt-6-luna", "gpt-10", "o1", "o3-mini", "o4-mini"])
    def test_reasoning_models_take_no_temperature(self, server: ModelServer, name: str) -> None:
        asked = sent(server, server.model(name=name, temperature=0.3, top_p=0.9, max_tokens=500))

        assert asked.body == {
            "model": name,
            "messages": MESSAGES,
            "max_completion_tokens": 500,
            "response_format": RESPONSE_FORMAT,
        }

    @pytest.mark.parametrize(("given", "used"), [(None, "2024-10-21"), ("2025-04-01-preview", "2025-04-01-preview")])
    def test_azure(self, server: ModelServer, given: str | None, used: str) -> None:
        asked = sent(server, server.model("azure_openai", "judge-deployment", api_version=given))

        assert asked.path == f"/openai/deployments/judge-deployment/chat/completions?api-version={used}"
        assert asked.headers["api-key"] == KEY
        assert "authorization" not in asked.headers
        assert asked.body == {
            "model": "judge-deployment",
            "messages": MESSAGES,
            "temperature": 0.0,
            "response_format": RESPONSE_FORMAT,
        }

    def test_anthropic(self, server: ModelServer) -> None:
        asked = sent(server, server.model("anthropic"))

        assert asked.path == "/v1/messages"
        assert KEY in {asked.headers.get("x-api-key"), asked.headers.get("authorization", "").removeprefix("Bearer ")}
        assert asked.body == {
            "model": "claude-sonnet-4-6",
            "messages": MESSAGES,
            "max_tokens": 8192,
            "output_config": {"format": {"type": "json_schema", "schema": STRICT}},
        }

    def test_ollama(self, server: ModelServer) -> None:
        asked = sent(server, server.model("ollama"))

        assert asked.path == "/api/chat"
        assert "authorization" not in asked.headers
        assert asked.body == {
            "model": "gpt-oss:20b",
            "messages": MESSAGES,
            "stream": False,
            "tools": [],
            "format": SCHEMA,
            "options": {"temperature": 0.0},
        }

    @pytest.mark.parametrize(
        ("provider", "expected"),
        [
            ("openai", {"temperature": 0.3, "top_p": 0.9, "max_tokens": 500}),
            ("anthropic", {"temperature": 0.3, "top_p": 0.9, "max_tokens": 500}),
            ("ollama", {"options": {"temperature": 0.3, "top_p": 0.9, "num_predict": 500}}),
        ],
    )
    def test_each_option_arrives(self, server: ModelServer, provider: str, expected: dict[str, Any]) -> None:
        asked = sent(server, server.model(provider, temperature=0.3, top_p=0.9, max_tokens=500))

        assert {name: asked.body.get(name) for name in expected} == expected


@pytest.mark.parametrize("provider", PROVIDERS)
class TestReplies:
    def test_text_and_usage(self, server: ModelServer, provider: str) -> None:
        server.script("It is.")
        answer = ask(Call(server.model(provider), "Is it?"))

        assert (answer.text, answer.input_tokens, answer.output_tokens) == ("It is.", INPUT_TOKENS, OUTPUT_TOKENS)
        assert (answer.logprobs, answer.cached) == (None, False)

    def test_without_usage_nothing_is_made_up(self, server: ModelServer, provider: str) -> None:
        def respond(asked: RecordedQuestion) -> Answer:
            body = dict(says(asked, "It is.").body)
            for name in ("usage", "prompt_eval_count", "eval_count"):
                body.pop(name, None)
            return Answer(body)

        server.respond = respond
        answer = ask(Call(server.model(provider), "Is it?"))

        assert (answer.text, answer.input_tokens, answer.output_tokens) == ("It is.", None, None)
        assert answer.cost_usd == (0.0 if provider == "ollama" else None)

    @pytest.mark.parametrize("text", [None, ""])
    def test_no_answer(self, server: ModelServer, provider: str, text: str | None) -> None:
        finish = "max_tokens" if provider == "anthropic" else "length"
        server.respond = lambda asked: says(asked, text, finish=finish)
        with pytest.raises(LlmError) as caught:
            ask(Call(server.model(provider), "Is it?"), retries=3)

        assert str(caught.value) == f"{server.model(provider).label} gave no answer: max_tokens was reached"
        assert len(server.asked) == 1

    @pytest.mark.parametrize(
        "answer",
        [
            Answer("<html>a proxy says hello</html>"),
            Answer("<html>a proxy says hello</html>", headers={"Content-Type": "text/html"}),
            Answer('{"choices": [{"mess'),
            Answer("null"),
            Answer("[]"),
            Answer("{}"),
            Answer('"text"'),
            Answer({"error": {"message": "but with status 200"}}),
            Answer({"choices": []}),
            Answer({"choices": None, "content": None, "message": None}),
            Answer({"choices": [{"index": 0}], "content": "text", "message": "text"}),
        ],
        ids=["html", "html type", "cut off", "null", "list", "empty", "text", "error", "none", "nulls", "other"],
    )
    def test_what_cannot_be_read_is_asked_again(self, server: ModelServer, provider: str, answer: Answer) -> None:
        server.script(answer, "It is.")
        assert ask(Call(server.model(provider), "Is it?"), retries=1).text == "It is."

        server.script(answer)
        label = server.model(provider).label
        with pytest.raises(
            LlmError,
            match=rf"^{label} sent a reply (that is not JSON|without an answer|that does not have Ollama's format)",
        ):
            ask(Call(server.model(provider), "Is it?"), retries=1)
        assert len(server.asked) == 4

    @pytest.mark.parametrize(
        ("answer", "told"),
        [
            (error(404, "The model `x` does not exist", code="model_not_found"), "404: The model `x` does not exist"),
            (Answer({"type": "error", "error": {"type": "e", "message": "Overloaded"}}, 529), "529: Overloaded"),
            (Answer({"error": 'model "x" not found, try pulling it first'}, 404), '404: model "x" not found'),
            (Answer({"detail": "Not Found"}, 404), "404: Not Found"),
            (Answer({"message": "no Route matched with those values"}, 404), "404: no Route matched"),
            (Answer("upstream connect error", 503, {"Content-Type": "text/plain"}), "503: upstream connect error"),
            (Answer("", 502), "502"),
            (Answer({"unknown": "shape"}, 500), "500"),
            (Answer({"error": {"message": "x" * 100_000}}, 400), f"400: {'x' * 300}"),
        ],
        ids=["openai", "anthropic", "ollama", "fastapi", "gateway", "proxy", "nothing", "unknown", "endless"],
    )
    def test_errors_are_told_in_the_words_of_the_server(
        self, server: ModelServer, provider: str, answer: Answer, told: str
    ) -> None:
        server.script(answer)
        with pytest.raises(LlmError) as caught:
            ask(Call(server.model(provider), "Is it?"))

        status, _, words = told.partition(": ")
        assert str(caught.value).startswith(f"{server.model(provider).label} answered {status}")
        assert words in str(caught.value)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("provider", ["openai", "azure_openai"])
def test_a_refusal_is_told(server: ModelServer, provider: str) -> None:
    server.respond = lambda asked: says(asked, None, refusal="I can't help with that.")
    with pytest.raises(LlmError, match=r"gave no answer: I can't help with that\.$"):
        ask(Call(server.model(provider), "Is it?"))


# Judges


CASE = Observation(
    input="What is the capital of France?",
    response="Paris, founded in 1999.",
    ground_truth="Paris.",
    retrieval_context=("Paris is the capital of France.", "Bread is tasty."),
    case="capital",
)
Make = Callable[[ModelSpec, Resources], GEval | Rag]


def judge(make: Make, model: ModelSpec, *cases: Observation, **settings: Any) -> list[Any]:
    """What a metric says about cases that are judged at once."""

    async def run() -> list[Any]:
        gateway = Gateway(LlmSettings(**{"backoff_s": 0.0, "retries": 0, **settings}))
        metric = make(model, Resources(gateway=gateway, graders=GraderPool()))
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await asyncio.gather(*(metric.measure(case) for case in cases), return_exceptions=True)
        finally:
            await gateway.close()

    return asyncio.run(run())


def geval(**fields: Any) -> Make:
    """G-Eval with given steps, so that it takes one call."""
    values: dict[str, Any] = {"name": "Right", "criteria": "Is it right?", "evaluation_steps": ("Look.",), **fields}
    return lambda model, resources: GEval(model=model, resources=resources, **values)


def rag(metric_type: Any, **fields: Any) -> Make:
    return lambda model, resources: Rag(metric_type, model, resources, **fields)


def scored(score: Any, reason: str = "So.") -> str:
    return json.dumps({"reason": reason, "score": score})


def token(text: str, alternatives: Mapping[str, float] | None = None) -> dict[str, Any]:
    """A token as OpenAI reports it, with the probabilities of what might have stood there."""
    listed = [
        {"token": other, "logprob": math.log(share), "bytes": None} for other, share in (alternatives or {}).items()
    ]
    return {"token": text, "logprob": 0.0, "bytes": None, "top_logprobs": listed}


class TestGEval:
    @pytest.mark.parametrize(
        ("score", "tokens", "expected"),
        [
            (8, None, 0.8),
            (8, [], 0.8),
            (8, [token("8", {"8": 0.6, "9": 0.2, "7": 0.2})], 0.8),
            (8, [token("8", {"8": 0.5, "10": 0.5})], 0.9),
            (8, [token("8", {"8": 0.5, "10": 0.5}), token("}")], 0.9),
            (8, [token("8", {"8": 0.98, "9": 0.001})], 0.8),
            (8, [token('"', {"8": 0.5}), token("8", {"8": 0.5, "x": 0.5})], 0.8),
            (10, [token("10", {"10": 0.5, "100": 0.5})], 1.0),
            (0, [token("0", {"0": 0.5, "00": 0.5})], 0.0),
            ("8", [token("8", {"8": 0.5, "10": 0.5})], 0.9),
            (8.5, [token("8", {"8": 0.5, "10": 0.5}), token("."), token("5", {"5": 1.0})], 0.85),
            (8, [token("8")], 0.8),
        ],
    )
    def test_the_score_is_weighed_by_its_probabilities(
        self, server: ModelServer, score: Any, tokens: list[Any] | None, expected: float
    ) -> None:
        logprobs = None if tokens is None else {"content": tokens, "refusal": None}
        server.respond = lambda asked: says(asked, scored(score), logprobs=logprobs)
        (outcome,) = judge(geval(), server.model(), CASE)

        assert outcome.score == pytest.approx(expected)
        assert outcome.reason == "So."

    @pytest.mark.parametrize("provider", PROVIDERS)
    @pytest.mark.parametrize("score", [42, 10.5, -1, 1e308, float("nan"), float("inf")])
    def test_out_of_scale_is_an_error_and_not_kept(
        self, server: ModelServer, tmp_path: Path, provider: str, score: float
    ) -> None:
        server.script(scored(score), scored(score), scored(8))
        cache = ResponseCache(tmp_path, Seal())
        (first,) = judge(geval(), server.model(provider), CASE, cache=cache)
        (second,) = judge(geval(), server.model(provider), CASE, cache=cache)

        assert isinstance(first, MetricError)
        assert str(first) == f"the judge's score is {score:g}, outside its scale of 0 to 10"
        assert second.score == 0.8


def replies(**by_schema: Any) -> Callable[[RecordedQuestion], Answer]:
    """Answers by the name of the schema that is asked for; OpenAI's requests hold it."""
    return lambda asked: says(asked, json.dumps(by_schema[asked.body["response_format"]["json_schema"]["name"]]))


YES = {"verdict": "yes", "reason": "Found."}


class TestRag:
    @pytest.mark.parametrize("mode", ["hybrid", "system_one"])
    def test_the_environment_does_not_choose_another_judge(
        self, server: ModelServer, monkeypatch: pytest.MonkeyPatch, mode: str
    ) -> None:
        monkeypatch.setenv("DEEPEVAL_EVAL_MODE", mode)
        server.respond = replies(Verdicts={"verdicts": [YES]})
        (outcome,) = judge(rag("contextual_recall", include_reason=False), server.model(), CASE)

        assert outcome.score == 1.0


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("response", ["", "  \n\t "])
@pytest.mark.parametrize("make", [geval(), rag("faithfulness"), rag("contextual_precision")])
def test_an_empty_answer_is_not_judged(server: ModelServer, provider: str, response: str, make: Make) -> None:
    case = Observation(input="?", response=response, ground_truth="x", retrieval_context=("x",))
    (outcome,) = judge(make, server.model(provider), case)

    assert (outcome.score, outcome.passed, outcome.reason) == (0.0, False, "empty response")
    assert server.asked == []


# Provider, what its portal or documentation shows after the address of the server, and the path that is asked.
ENDPOINTS = [
    ("openai", "/v1", "/v1/chat/completions"),
    ("openai", "/v1/chat/completions", "/v1/chat/completions"),
    ("openai", "/v1/chat/completions/", "/v1/chat/completions"),
    ("azure_openai", "", "/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21"),
    ("azure_openai", "/openai/", "/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21"),
    ("azure_openai", "/openai/v1/", "/openai/v1/chat/completions"),
    (
        "azure_openai",
        "/openai/v1/chat/completions?api-version=preview",
        "/openai/v1/chat/completions?api-version=preview",
    ),
    ("azure_openai", "/openai/deployments/mine", "/openai/deployments/mine/chat/completions?api-version=2024-10-21"),
    (
        "azure_openai",
        "/openai/deployments/mine/chat/completions?api-version=2025-01-01",
        "/openai/deployments/mine/chat/completions?api-version=2025-01-01",
    ),
]


@pytest.mark.parametrize(("provider", "shown", "path"), ENDPOINTS)
def test_an_endpoint_is_as_portals_show_it(server: ModelServer, provider: str, shown: str, path: str) -> None:
    model = replace(server.model(provider), endpoint=f"{server.url}{shown}")
    server.respond = lambda asked: says(replace(asked, path="/v1/chat/completions"), "It is.")

    assert ask(Call(model, "Is it?")).text == "It is."
    assert [asked.path for asked in server.asked] == [path]


def test_a_reply_can_come_in_parts(server: ModelServer) -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": '{"score": 1}'}]}
    parts = [thought, {"type": "text", "text": "It "}, {"type": "text", "text": "is."}]
    server.respond = lambda asked: says(asked, cast(Any, parts))

    assert ask(Call(server.model(), "Is it?")).text == "It is."
