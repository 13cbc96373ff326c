"""What goes over the wire to each provider, and what is made of what comes back; judges by deepeval included."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
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
from agenteval.metrics.base import MetricError, NotApplicableError, Observation, Outcome
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

    def test_openai_with_every_option(self, server: ModelServer) -> None:
        asked = sent(server, server.model(temperature=0.3, top_p=0.9, max_tokens=500), schema=None)

        assert asked.body == {
            "model": "gpt-4.1",
            "messages": MESSAGES,
            "temperature": 0.3,
            "top_p": 0.9,
            "max_tokens": 500,
        }

    def test_openai_with_log_probabilities(self, server: ModelServer) -> None:
        asked = sent(server, server.model(), top_logprobs=5)

        assert asked.body == {
            "model": "gpt-4.1",
            "messages": MESSAGES,
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": 5,
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

    def test_an_unknown_name_is_asked_like_any_other(self, server: ModelServer) -> None:
        asked = sent(server, server.model(name="our-own-model"))

        assert set(asked.body) == {"model", "messages", "temperature", "response_format"}

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

    def test_anthropic_with_every_option(self, server: ModelServer) -> None:
        # More than the library would let through by itself.
        asked = sent(server, server.model("anthropic", temperature=0.3, top_p=0.9, max_tokens=64_000), schema=None)

        assert asked.body == {
            "model": "claude-sonnet-4-6",
            "messages": MESSAGES,
            "max_tokens": 64_000,
            "temperature": 0.3,
            "top_p": 0.9,
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

    def test_ollama_with_every_option(self, server: ModelServer) -> None:
        asked = sent(server, server.model("ollama", temperature=0.3, top_p=0.9, max_tokens=500), schema=None)

        assert asked.body["options"] == {"temperature": 0.3, "top_p": 0.9, "num_predict": 500}
        assert "format" not in asked.body


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

    def test_the_weights_outlive_the_cache(self, server: ModelServer, tmp_path: Path) -> None:
        logprobs = {"content": [token("8", {"8": 0.5, "10": 0.5})], "refusal": None}
        server.respond = lambda asked: says(asked, scored(8), logprobs=logprobs)
        first, second = (
            judge(geval(), server.model(), CASE, cache=ResponseCache(tmp_path, Seal()))[0] for _ in range(2)
        )

        assert first.score == second.score == pytest.approx(0.9)
        assert len(server.asked) == 1
        assert (second.details, second.cost_usd) == ({"llm_calls": 0, "cached_calls": 1}, 0.0)

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

    def test_probabilities_do_not_hide_a_score_out_of_scale(self, server: ModelServer) -> None:
        logprobs = {"content": [token("11", {"11": 0.5, "9": 0.5})], "refusal": None}
        server.respond = lambda asked: says(asked, scored(11), logprobs=logprobs)
        (outcome,) = judge(geval(), server.model(), CASE)

        assert str(outcome) == "the judge's score is 11, outside its scale of 0 to 10"

    @pytest.mark.parametrize("provider", PROVIDERS)
    @pytest.mark.parametrize(
        ("score", "expected"),
        [(1, 1.0), (0, 0.0), ("1", 1.0), (0.7, MetricError), (8, MetricError), (True, MetricError)],
    )
    def test_a_strict_judge(self, server: ModelServer, provider: str, score: Any, expected: Any) -> None:
        server.script(scored(score))
        (outcome,) = judge(geval(strict_mode=True), server.model(provider), CASE)

        if isinstance(outcome, Outcome):
            assert outcome.score == expected
        else:
            assert type(outcome) is expected

    def test_steps_are_made_from_the_criteria(self, server: ModelServer) -> None:
        server.script('{"steps": ["Compare the years."]}', scored(3))
        (outcome,) = judge(geval(evaluation_steps=None), server.model("ollama"), CASE)

        assert outcome.score == pytest.approx(0.3)
        steps, score = (asked.prompt for asked in server.asked)
        assert "Is it right?" in steps
        assert "Compare the years." in score

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_without_steps_nothing_is_judged(self, server: ModelServer, provider: str) -> None:
        server.script('{"steps": []}', '{"steps": []}', scored(10))
        (outcome,) = judge(geval(evaluation_steps=None), server.model(provider), CASE)

        assert str(outcome) == "the judge wrote no evaluation steps, so there is no score"
        assert len(server.asked) == 2

    def test_the_judge_sees_what_it_should_and_no_more(self, server: ModelServer) -> None:
        server.script(scored(8))
        judge(geval(), server.model(), CASE)
        judge(geval(evaluation_params=("input", "actual_output", "expected_output")), server.model(), CASE)
        judge(geval(evaluation_params=("retrieval_context",)), server.model(), CASE)

        seen = [
            [word in asked.prompt for word in ("capital of France?", "1999", "Expected Output:\nParis.", "Bread")]
            for asked in server.asked
        ]
        assert seen == [
            [False, True, False, False],
            [True, True, True, False],
            [False, False, False, True],
        ]


def replies(**by_schema: Any) -> Callable[[RecordedQuestion], Answer]:
    """Answers by the name of the schema that is asked for; OpenAI's requests hold it."""
    return lambda asked: says(asked, json.dumps(by_schema[asked.body["response_format"]["json_schema"]["name"]]))


YES, NO = {"verdict": "yes", "reason": "Found."}, {"verdict": "no", "reason": "Not found."}


class TestRag:
    @pytest.mark.parametrize(
        ("metric_type", "by_schema", "expected"),
        [
            ("faithfulness", {"Truths": {"truths": ["a"]}, "Claims": {"claims": ["a", "b"]}}, 0.5),
            ("answer_relevancy", {"Statements": {"statements": ["a", "b"]}}, 0.5),
            ("contextual_precision", {}, 1.0),
            ("contextual_recall", {}, 0.5),
        ],
    )
    @pytest.mark.parametrize("reason", [True, False])
    def test_scores_with_and_without_a_reason(
        self, server: ModelServer, metric_type: str, by_schema: dict[str, Any], expected: float, reason: bool
    ) -> None:
        name = "".join(word.capitalize() for word in metric_type.split("_"))
        given = {"Verdicts": {"verdicts": [YES, NO]}, f"{name}ScoreReason": {"reason": "Because."}, **by_schema}
        server.respond = replies(**given)
        (outcome,) = judge(rag(metric_type, include_reason=reason), server.model(), CASE)

        assert (outcome.score, outcome.reason) == (expected, "Because." if reason else None)
        assert len(server.asked) == len(by_schema) + 1 + reason

    @pytest.mark.parametrize(
        ("metric_type", "by_schema", "problem"),
        [
            ("faithfulness", {"Claims": {"claims": []}, "Truths": {"truths": ["a"]}}, "found nothing in the answer"),
            ("faithfulness", {"Claims": {"claims": ["a"]}, "Truths": {"truths": ["a"]}}, "gave no verdict"),
            ("answer_relevancy", {"Statements": {"statements": []}}, "found nothing in the answer"),
            ("answer_relevancy", {"Statements": {"statements": ["a"]}}, "gave no verdict"),
            ("contextual_precision", {}, "gave no verdict"),
            ("contextual_recall", {}, "gave no verdict"),
            ("contextual_relevancy", {"ContextualRelevancyVerdicts": {"verdicts": []}}, "gave no verdict"),
        ],
    )
    def test_where_nothing_is_judged_there_is_no_score(
        self, server: ModelServer, metric_type: str, by_schema: dict[str, Any], problem: str
    ) -> None:
        server.respond = replies(Verdicts={"verdicts": []}, **by_schema)
        (outcome,) = judge(rag(metric_type, include_reason=False), server.model(), CASE)

        nothing_to_check = problem == "found nothing in the answer"
        assert isinstance(outcome, NotApplicableError if nothing_to_check else MetricError)
        assert problem in str(outcome)

    @pytest.mark.parametrize(
        ("metric_type", "verdicts", "expected"),
        [
            ("faithfulness", ["Yes", " No ", "idk", "YES."], 0.75),
            ("faithfulness", ["No, it is not", "borderline", "perhaps"], 1 / 3),
            ("answer_relevancy", ["Yes", " No ", "no way"], 1 / 3),
            ("contextual_recall", ["Yes", " No ", "idk", None], 0.25),
            ("contextual_precision", ["YES ", "NO"], 1.0),
            ("contextual_precision", ["perhaps", "yes"], 0.5),
        ],
    )
    def test_verdicts_are_read_as_deepeval_reads_them(
        self, server: ModelServer, metric_type: str, verdicts: list[str | None], expected: float
    ) -> None:
        listed = [{"verdict": verdict, "reason": "So."} for verdict in verdicts]
        server.respond = replies(
            Verdicts={"verdicts": listed},
            Truths={"truths": ["a"]},
            Claims={"claims": ["a"]},
            Statements={"statements": ["a"]},
        )
        (outcome,) = judge(rag(metric_type, include_reason=False), server.model(), CASE)

        assert outcome.score == pytest.approx(expected)

    @pytest.mark.parametrize("metric_type", ["faithfulness", "answer_relevancy", "contextual_precision"])
    def test_a_list_with_too_few_verdicts_is_no_score(self, server: ModelServer, metric_type: str) -> None:
        server.respond = replies(
            Verdicts={"verdicts": [YES]},
            Truths={"truths": ["a"]},
            Claims={"claims": ["a", "b"]},
            Statements={"statements": ["a", "b"]},
        )
        (outcome,) = judge(rag(metric_type, include_reason=False), server.model(), CASE)

        assert isinstance(outcome, MetricError)
        assert str(outcome) == "the judge gave 1 of 2 verdicts, so there is no score"

    def test_a_passage_that_nothing_is_said_about(self, server: ModelServer) -> None:
        def respond(asked: RecordedQuestion) -> Answer:
            about_bread = "Bread" in asked.prompt
            verdicts = [] if about_bread else [{"statement": "a", **YES}]
            return says(asked, json.dumps({"verdicts": verdicts}))

        server.respond = respond
        (outcome,) = judge(rag("contextual_relevancy", include_reason=False), server.model(), CASE)

        assert str(outcome) == "the judge gave no verdict, so there is no score"

    def test_a_failed_judgement_leaves_nothing_running(self, server: ModelServer) -> None:
        release = Event()

        def respond(asked: RecordedQuestion) -> Answer:
            if "Bread" in asked.prompt:
                return says(asked, "no idea")
            release.wait(PATIENCE_S)
            return says(asked, "too late")

        server.respond = respond

        async def run() -> None:
            gateway = Gateway(LlmSettings(retries=0))
            metric = Rag("contextual_relevancy", server.model(), Resources(gateway=gateway, graders=GraderPool()))
            with pytest.raises(MetricError, match="not JSON"):
                await metric.measure(CASE)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            await gateway.close()

        try:
            asyncio.run(run())
        finally:
            release.set()

    @pytest.mark.parametrize("mode", ["hybrid", "system_one"])
    def test_the_environment_does_not_choose_another_judge(
        self, server: ModelServer, monkeypatch: pytest.MonkeyPatch, mode: str
    ) -> None:
        monkeypatch.setenv("DEEPEVAL_EVAL_MODE", mode)
        server.respond = replies(Verdicts={"verdicts": [YES]})
        (outcome,) = judge(rag("contextual_recall", include_reason=False), server.model(), CASE)

        assert outcome.score == 1.0


class TestManyCases:
    """One metric and one model, judging many cases at once."""

    def test_everyone_gets_their_own_score_and_reason(self, server: ModelServer) -> None:
        def respond(asked: RecordedQuestion) -> Answer:
            number = int(asked.prompt.partition("answer number ")[2].split()[0])
            return says(asked, scored(number % 11, f"about {number}"))

        server.respond = respond
        cases = [Observation(input="?", response=f"answer number {number} here") for number in range(50)]
        outcomes = judge(geval(), server.model("ollama"), *cases)

        assert [(round(outcome.score * 10), outcome.reason) for outcome in outcomes] == [
            (number % 11, f"about {number}") for number in range(50)
        ]

    def test_over_several_steps_too(self, server: ModelServer) -> None:
        """Every reply carries the number of its case on to the next question."""

        def respond(asked: RecordedQuestion) -> Answer:
            number = int(asked.prompt.rpartition("case-")[2][:3])
            mark = f"case-{number:03}"
            verdicts = [{"verdict": "yes" if index < number else "no", "reason": mark} for index in range(50)]
            by_schema = {
                "Statements": {"statements": [mark] * 50},
                "Verdicts": {"verdicts": verdicts},
                "AnswerRelevancyScoreReason": {"reason": mark},
            }
            return says(asked, json.dumps(by_schema[asked.body["response_format"]["json_schema"]["name"]]))

        server.respond = respond
        cases = [
            Observation(input=f"question of case-{number:03}", response=f"answer of case-{number:03}")
            for number in range(50)
        ]
        outcomes = judge(rag("answer_relevancy"), server.model(), *cases)

        assert [(outcome.score, outcome.reason) for outcome in outcomes] == [
            (pytest.approx(number / 50), f"case-{number:03}") for number in range(50)
        ]

    def test_one_broken_answer_concerns_one_case(self, server: ModelServer) -> None:
        def respond(asked: RecordedQuestion) -> Answer:
            return error(400, "too bad") if "number 3" in asked.prompt else says(asked, scored(8))

        server.respond = respond
        cases = [Observation(input="?", response=f"answer number {number} here") for number in range(6)]
        outcomes = judge(geval(), server.model(), *cases)

        assert [isinstance(outcome, LlmError) for outcome in outcomes] == [number == 3 for number in range(6)]


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
