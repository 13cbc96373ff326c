"""Vectors of texts: over HTTP from OpenAI, Azure and Ollama, and from a model on this machine."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.integration.model_server import (
    HANG_UP,
    INPUT_TOKENS,
    KEY,
    Answer,
    ModelServer,
    RecordedQuestion,
    embeds,
    error,
    serving,
    words,
)
from tests.support import agenteval, environment, results_in, statuses

from agenteval.core.errors import ConfigError
from agenteval.core.llm.budget import Limits
from agenteval.core.llm.embeddings import Embeddings, read_vector
from agenteval.core.llm.gateway import Gateway, LlmSettings, ResponseCache
from agenteval.core.llm.models import BudgetSpentError, LlmError, ModelSpec, embedding_model
from agenteval.core.shared_files import Seal
from agenteval.metrics.base import MetricError, Observation
from agenteval.metrics.resources import GraderPool, Resources, RunResources
from agenteval.metrics.similarity import Consistency, Similar

PATIENCE_S = 300
PROVIDERS = ("openai", "azure_openai", "ollama")
NAME = "text-embedding-3-small"
ADDRESSES = {
    "openai": "/v1/embeddings",
    "azure_openai": f"/openai/deployments/{NAME}/embeddings?api-version=2024-10-21",
    "ollama": "/api/embed",
}
each_provider = pytest.mark.parametrize("provider", PROVIDERS)

Work = Callable[[Embeddings], Awaitable[Any]]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        running.respond = lambda asked: embeds(asked, words(asked.embedded or ""))
        yield running


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def model(server: ModelServer, provider: str = "openai", **fields: Any) -> ModelSpec:
    return server.model(provider, NAME, temperature=None, **fields)


def settings(**given: Any) -> LlmSettings:
    return LlmSettings(**{"backoff_s": 0.0, **given})


def within(work: Work, default: ModelSpec | None, given: LlmSettings | None = None) -> Any:
    """Do something with the embeddings of a run."""

    async def run() -> Any:
        gateway = Gateway(given or settings())
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await work(Embeddings(gateway, default))
        finally:
            await gateway.close()

    return asyncio.run(run())


def vectors(texts: Sequence[str], chosen: ModelSpec, given: LlmSettings | None = None) -> Any:
    """The vectors of texts, or what was raised."""

    async def work(embeddings: Embeddings) -> Any:
        (found,) = await asyncio.gather(embeddings.vectors(texts, chosen), return_exceptions=True)
        return found

    return within(work, None, given)


def plain(vector: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in vector]


# Requests


@each_provider
def test_a_text_goes_out_as_it_is(server: ModelServer, provider: str) -> None:
    text = "Ünïcode \U0001f600 and\nlines"
    (found,) = vectors([text], model(server, provider))

    (asked,) = server.asked
    assert (asked.path, asked.body["model"], asked.body["input"]) == (ADDRESSES[provider], NAME, text)
    assert plain(found) == plain(words(text))
    key = {"openai": "authorization", "azure_openai": "api-key"}.get(provider)
    assert key is None or asked.headers[key].removeprefix("Bearer ") == KEY


@each_provider
def test_numbers_come_as_they_were_sent(server: ModelServer, provider: str) -> None:
    sent = [0.125, -2.5, 0.0, 1e-7]
    server.respond = lambda asked: embeds(asked, sent)

    assert vectors(["x"], model(server, provider)) == [pytest.approx(sent)]


def test_a_server_that_knows_no_packed_numbers(server: ModelServer) -> None:
    server.respond = lambda asked: Answer({"data": [{"embedding": [1.0, 2.0]}]})

    assert vectors(["x"], model(server)) == [(1.0, 2.0)]


def test_a_server_that_knows_only_the_older_form_of_ollama(server: ModelServer) -> None:
    def respond(asked: RecordedQuestion) -> Answer:
        return Answer({"embedding": [9.0]}) if asked.path == "/api/embed" else embeds(asked, [1.0, 2.0])

    server.respond = respond

    assert vectors(["x"], model(server, "ollama")) == [(1.0, 2.0)]
    assert [(asked.path, asked.embedded) for asked in server.asked] == [("/api/embed", "x"), ("/api/embeddings", "x")]


@each_provider
def test_halves_of_characters_do_not_stop_it(server: ModelServer, provider: str) -> None:
    (found,) = vectors(["half \ud83d of one"], model(server, provider))

    assert server.asked[0].embedded == "half ? of one"
    assert len(found) == 256


@pytest.mark.parametrize(
    ("name", "provider", "rest"),
    [
        ("text-embedding-3-small", "openai", "text-embedding-3-small"),
        ("openai/text-embedding-3-large", "openai", "text-embedding-3-large"),
        ("azure/my-deployment", "azure_openai", "my-deployment"),
        ("ollama/nomic-embed-text", "ollama", "nomic-embed-text"),
        ("local/minishlab/potion-base-8M", "local", "minishlab/potion-base-8M"),
        ("local//models/own", "local", "/models/own"),
    ],
)
def test_names(name: str, provider: str, rest: str) -> None:
    assert embedding_model(name) == ModelSpec(provider, rest)


@pytest.mark.parametrize("name", ["anthropic/claude-3", "claude-3-opus", "local/", "cohere/embed-v4"])
def test_names_that_have_none(name: str) -> None:
    with pytest.raises(ValueError, match=r"embedding models|unknown provider"):
        embedding_model(name)


# How often it is asked


@each_provider
def test_each_text_once(server: ModelServer, provider: str) -> None:
    async def work(embeddings: Embeddings) -> None:
        both = model(server, provider)
        await asyncio.gather(*(embeddings.vectors(["a", "b", "a"], both) for _ in range(5)))
        await embeddings.vectors(["b", "c"], both)

    within(work, None)

    assert sorted(asked.embedded or "" for asked in server.asked) == ["a", "b", "c"]


def test_each_model_for_itself(server: ModelServer) -> None:
    async def work(embeddings: Embeddings) -> None:
        for name in ("one", "two"):
            await embeddings.vectors(["a"], server.model("openai", name))

    within(work, None)

    assert [asked.body["model"] for asked in server.asked] == ["one", "two"]


@each_provider
def test_a_second_run_asks_nothing(server: ModelServer, tmp_path: Path, provider: str) -> None:
    kept = settings(cache=ResponseCache(tmp_path / "cache", Seal()))
    first = vectors(["a", "b"], model(server, provider), kept)
    second = vectors(["b", "a"], model(server, provider), settings(cache=kept.cache, limits=Limits(max_calls=0)))

    assert len(server.asked) == 2
    assert second == first[::-1]


def test_a_chat_with_the_same_words_is_another_question(server: ModelServer, tmp_path: Path) -> None:
    from agenteval.core.llm.calls import Call
    from agenteval.core.llm.gateway import cache_key, key_of

    asked = model(server)
    assert cache_key(Call(asked, "a")) != key_of(asked, ["embedding", "a"])


@each_provider
def test_nobody_is_asked_about_nothing(server: ModelServer, provider: str) -> None:
    found = vectors(["", "cat", " \n"], model(server, provider))

    assert [asked.embedded for asked in server.asked] == ["cat"]
    assert [len(vector) for vector in found] == [256] * 3
    assert found[0] == found[2] == (0.0,) * 256


def test_nothing_at_all(server: ModelServer) -> None:
    assert vectors(["", " "], model(server)) == [(), ()]
    assert vectors([], model(server)) == []
    assert server.asked == []


# Failures


@each_provider
@pytest.mark.parametrize("first", [error(500, "oops"), error(429, "slow"), HANG_UP, Answer("{}")])
def test_what_passes_is_tried_again(server: ModelServer, provider: str, first: Answer) -> None:
    left = [first]
    server.respond = lambda asked: left.pop() if left else embeds(asked, [3.0])

    assert vectors(["x"], model(server, provider)) == [(3.0,)]
    assert len(server.asked) == 2


@each_provider
def test_not_for_ever(server: ModelServer, provider: str) -> None:
    server.script(error(503, "down"))
    problem = vectors(["x"], model(server, provider), settings(retries=2))

    assert isinstance(problem, LlmError)
    assert str(problem) == f"{provider}/{NAME} answered 503: down (after 3 attempts)"
    assert len(server.asked) == 3


@each_provider
def test_what_does_not_pass_is_not_tried_again(server: ModelServer, provider: str) -> None:
    server.script(error(404, "no such model"))
    problem = vectors(["x"], model(server, provider))

    assert str(problem) == f"{provider}/{NAME} answered 404: no such model"
    assert len(server.asked) == 1


def test_after_a_failure_it_is_asked_again(server: ModelServer) -> None:
    left = [error(400, "too long")]
    server.respond = lambda asked: left.pop() if left else embeds(asked, [3.0])

    async def work(embeddings: Embeddings) -> Any:
        with pytest.raises(LlmError, match="too long"):
            await embeddings.vectors(["x"], model(server))
        return await embeddings.vectors(["x"], model(server))

    assert within(work, None) == [(3.0,)]


@pytest.mark.parametrize(
    "body",
    ["hello", {}, [], {"data": []}, {"data": [{}]}, {"data": [{"embedding": []}]}, {"data": "x"}, {"data": [5]}]
    + [{"data": [{"embedding": value}]} for value in ("@", None, ["a"], [math.nan], [1.0, math.inf])],
)
def test_replies_without_a_vector(server: ModelServer, body: Any, tmp_path: Path) -> None:
    server.respond = lambda asked: Answer(body)
    kept = settings(retries=0, cache=ResponseCache(tmp_path / "cache", Seal()))
    problem = vectors(["x"], model(server), kept)

    assert isinstance(problem, LlmError), problem
    assert list((tmp_path / "cache").rglob("*.json")) == []


@pytest.mark.parametrize("body", ["hello", {}, {"embeddings": []}, {"embeddings": [[]]}, {"embeddings": [["x"]]}])
def test_replies_of_ollama_without_a_vector(server: ModelServer, body: Any) -> None:
    server.respond = lambda asked: Answer(body)
    assert isinstance(vectors(["x"], model(server, "ollama"), settings(retries=0)), LlmError)


@pytest.mark.parametrize("text", ["", "1", "[]", "[NaN]", "[1, Infinity]", "{}", '["a"]', "[null]", "[[1]]"])
def test_what_is_no_vector(text: str) -> None:
    with pytest.raises(LlmError, match="sent no vector"):
        read_vector(text)


def test_a_broken_file_of_the_cache_is_no_vector(server: ModelServer, tmp_path: Path) -> None:
    kept = settings(cache=ResponseCache(tmp_path / "cache", Seal()))
    vectors(["x"], model(server), kept)
    (file,) = (tmp_path / "cache").rglob("*.json")
    file.write_text(file.read_text(encoding="utf-8").replace("[", "{"), encoding="utf-8")
    vectors(["x"], model(server), kept)

    assert len(server.asked) == 2


def test_anthropic_has_none(server: ModelServer) -> None:
    problem = vectors(["x"], server.model("anthropic"))
    assert str(problem).endswith("Anthropic has no embedding models")


# Budget


@each_provider
def test_calls_count(server: ModelServer, provider: str) -> None:
    async def work(embeddings: Embeddings) -> Any:
        asked = (embeddings.vectors([str(n)], model(server, provider)) for n in range(8))
        found = await asyncio.gather(*asked, return_exceptions=True)
        return [type(item) for item in found].count(BudgetSpentError), embeddings.gateway.budget.calls

    assert within(work, None, settings(limits=Limits(max_calls=3))) == (5, 3)
    assert len(server.asked) == 3


@pytest.mark.parametrize(("provider", "cost"), [("openai", 2e-5), ("azure_openai", 2e-5), ("ollama", 0.0)])
def test_what_they_cost(server: ModelServer, provider: str, cost: float) -> None:
    async def work(embeddings: Embeddings) -> Any:
        await embeddings.vectors(["x"], model(server, provider))
        gateway = embeddings.gateway
        return gateway.input_tokens, gateway.budget.cost_usd, gateway.unpriced

    tokens, spent, unpriced = within(work, None)

    # 0.02 dollars for a million tokens.
    assert (tokens, spent, unpriced) == (INPUT_TOKENS, pytest.approx(cost), set())


# Which model


def test_the_metrics_own_then_the_runs(server: ModelServer) -> None:
    async def work(embeddings: Embeddings) -> Any:
        await embeddings.vectors(["a"], None)
        await embeddings.vectors(["a"], model(server))
        return embeddings.label(None), embeddings.label(model(server))

    labels = within(work, server.model("ollama", "nomic-embed-text"))

    assert [asked.body["model"] for asked in server.asked] == ["nomic-embed-text", NAME]
    assert labels == ("ollama/nomic-embed-text", f"openai/{NAME}")


def test_without_any_it_is_openais(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")

    async def work(embeddings: Embeddings) -> Any:
        embeddings.check(None)
        return await embeddings.vectors(["a"], None)

    within(work, None)

    assert [asked.body["model"] for asked in server.asked] == ["text-embedding-3-small"]


def test_none_is_named_and_there_is_no_key() -> None:
    async def work(embeddings: Embeddings) -> None:
        embeddings.check(None)

    with pytest.raises(ConfigError) as caught:
        within(work, None)
    said = str(caught.value)
    assert said.startswith("similarity needs an embedding model, and none is configured: no API key for openai/")
    assert "embeddings: ollama/nomic-embed-text" in said
    assert "embeddings: local/minishlab/potion-base-8M" in said


def observation(response: str, iteration: int = 0) -> Observation:
    return Observation(input="?", response=response, iteration=iteration)


# Similarity as the metrics compute it


def measured(chosen: ModelSpec, measure: Callable[[Resources], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        resources = Resources(Gateway(settings()), GraderPool(), embedder=chosen)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await measure(resources)
        finally:
            await RunResources(resources.gateway, [resources]).close()

    return asyncio.run(run())


def similar(server: ModelServer, reference: str, response: str) -> Any:
    return measured(model(server), lambda resources: Similar(reference, resources).measure(observation(response)))


def consistent(server: ModelServer, least: float, *responses: str) -> Any:
    answers = [observation(text, index) for index, text in enumerate(responses)]
    return measured(model(server), lambda resources: Consistency(least, resources).measure_all(answers))


@pytest.mark.parametrize(
    ("vectors", "score"),
    [
        (([1, 0], [1, 0]), 1.0),
        (([1, 0], [5, 0]), 1.0),
        (([1, 0], [0, 1]), 0.0),
        (([1, 1], [1, 0]), math.sqrt(0.5)),
        (([3, 4], [4, 3]), 0.96),
        (([1, 0], [-1, 0]), 0.0),
        (([1, 0], [0, 0]), 0.0),
    ],
)
def test_the_cosine(server: ModelServer, vectors: Any, score: float) -> None:
    server.respond = lambda asked: embeds(asked, vectors[0] if asked.embedded == "reference" else vectors[1])
    assert similar(server, "reference", "answer").score == pytest.approx(score, abs=1e-6)


def test_the_same_text_needs_no_model(server: ModelServer) -> None:
    assert similar(server, "reference", "reference").score == 1.0
    assert consistent(server, 1.0, "same", "same", "same")[0].passed is True
    assert server.asked == []


@pytest.mark.parametrize("response", ["", "  \n"])
def test_an_empty_answer_resembles_nothing(server: ModelServer, response: str) -> None:
    outcome = similar(server, "reference", response)
    assert (outcome.score, outcome.passed, outcome.reason) == (0.0, False, "empty response")
    assert server.asked == []


def test_other_dimensions(server: ModelServer) -> None:
    server.respond = lambda asked: embeds(asked, [1.0] * len(asked.embedded or ""))
    with pytest.raises(MetricError, match="the embeddings have 3 and 5 dimensions"):
        similar(server, "abc", "abcde")
    with pytest.raises(MetricError, match="dimensions"):
        consistent(server, 0.5, "abc", "abcde")


def test_the_least_similar_answer_decides(server: ModelServer) -> None:
    given = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    server.respond = lambda asked: embeds(asked, given[asked.embedded or ""])
    # The middle of a, a, b is (2, 1): its cosine to a is 2/√5, to b 1/√5.
    outcomes = consistent(server, 0.5, "a", "a", "b")

    near, far = 2 / math.sqrt(5), 1 / math.sqrt(5)
    assert [outcome.score for outcome in outcomes] == [pytest.approx(value) for value in (near, near, far)]
    assert [(outcome.passed, outcome.decided) for outcome in outcomes] == [(False, True)] * 3
    assert outcomes[0].details == {
        "min": pytest.approx(far),
        "mean": pytest.approx((2 * near + far) / 3),
        "distinct_answers": 2,
    }
    assert consistent(server, far - 1e-9, "a", "a", "b")[0].passed is True


def test_empty_answers_are_unlike_others(server: ModelServer) -> None:
    outcomes = consistent(server, 0.1, "cat", "")
    assert [outcome.score for outcome in outcomes] == [1.0, 0.0]
    assert outcomes[0].passed is False
    assert [outcome.score for outcome in consistent(server, 1.0, "", " ")] == [0.0, 0.0]
    assert [outcome.score for outcome in consistent(server, 1.0, "", "")] == [1.0, 1.0]


def test_one_answer_is_not_enough(server: ModelServer) -> None:
    with pytest.raises(MetricError, match="only one answer"):
        consistent(server, 1.0, "cat")


@pytest.fixture(scope="module")
def local_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real model of model2vec that knows five words, three of which mean about the same."""
    numpy = pytest.importorskip("numpy")
    model2vec = pytest.importorskip("model2vec")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    vocabulary = {"[UNK]": 0, "[PAD]": 1, "refund": 2, "repayment": 3, "money": 4, "cat": 5, "dog": 6}
    rows = [[0, 0, 0], [0, 0, 0], [1, 0, 0], [0.9, 0.1, 0], [0.8, 0.3, 0], [0, 0, 1], [0, 0.2, 0.9]]
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.normalizer = Lowercase()
    folder = tmp_path_factory.mktemp("model")
    model2vec.StaticModel(vectors=numpy.array(rows, dtype="float32"), tokenizer=tokenizer).save_pretrained(folder)
    return folder


# A model on this machine


def test_meaning_without_a_network(local_model: Path) -> None:
    chosen = embedding_model(f"local/{local_model}")

    def similarity(response: str) -> float:
        score: float = measured(
            chosen, lambda resources: Similar("refund", resources).measure(observation(response))
        ).score
        return score

    assert similarity("Repayment") == pytest.approx(0.9 / math.hypot(0.9, 0.1), abs=1e-4)
    assert similarity("cat") == pytest.approx(0.0, abs=1e-4)
    assert similarity("something unknown") == 0.0
    assert similarity("refund money") > similarity("refund cat")


def test_it_needs_no_budget_and_no_cache(local_model: Path, tmp_path: Path) -> None:
    kept = settings(cache=ResponseCache(tmp_path / "cache", Seal()), limits=Limits(max_calls=0, max_cost_usd=0))

    async def work(embeddings: Embeddings) -> Any:
        found = await embeddings.vectors(["cat", "dog", "cat", ""], None)
        gateway = embeddings.gateway
        return found, gateway.budget.calls, gateway.unpriced

    found, calls, unpriced = within(work, embedding_model(f"local/{local_model}"), kept)

    assert [plain(vector) for vector in found[:2]] == [[0.0, 0.0, 1.0], [0.0, 0.2, 0.9]]
    assert found[3] == (0.0, 0.0, 0.0)
    assert (calls, unpriced, (tmp_path / "cache").exists()) == (0, set(), False)


def test_many_at_once_load_it_once(local_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from model2vec import StaticModel

    loaded = []
    load = StaticModel.from_pretrained

    def counted(path: str, *arguments: Any, **options: Any) -> Any:
        loaded.append(path)
        return load(path, *arguments, **options)

    monkeypatch.setattr(StaticModel, "from_pretrained", counted)

    async def work(embeddings: Embeddings) -> Any:
        return await asyncio.gather(*(embeddings.vectors([f"cat {n}"], None) for n in range(20)))

    assert len(within(work, embedding_model(f"local/{local_model}"))) == 20
    assert loaded == [str(local_model)]


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    problem = vectors(["x"], embedding_model(f"local/{tmp_path}/missing"))
    assert isinstance(problem, LlmError)
    needed = " (needed: a static model of model2vec)"
    assert str(problem).startswith(f"local/{tmp_path}/missing cannot be used{needed}: ")


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval.core.runtime.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        Gateway(settings()).check(embedding_model("local/minishlab/potion-base-8M"))
    assert str(caught.value) == (
        "local/minishlab/potion-base-8M needs model2vec: pip install 'agenteval-action[local]'"
    )


def test_it_does_not_judge(local_model: Path) -> None:
    from agenteval.core.llm.calls import Call

    async def run() -> None:
        await Gateway(settings()).complete(Call(embedding_model(f"local/{local_model}"), "Is it?"))

    with pytest.raises(LlmError, match="makes embeddings only"):
        asyncio.run(run())


# Through the whole program


LIVE = """\
[eval]
description = "Facts about the shop"
type = "accuracy"
targets.agents = ["*"]

[[eval.cases]]
prompt = "alike"
output = { similar = "refund money", threshold = 0.7 }

[[eval.cases]]
prompt = "unlike"
output = { similar = "refund money", threshold = 0.7 }
"""


@pytest.mark.parametrize("name", ["openai/m", "azure/m", "ollama/m", "local"])
def test_similar_in_a_whole_run(
    server: ModelServer, tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    server.respond = lambda asked: embeds(asked, words(asked.embedded or ""))
    chosen = f"local/{request.getfixturevalue('local_model')}" if name == "local" else name
    (tmp_path / ".agentci/evals").mkdir(parents=True)
    (tmp_path / ".agentci/evals/shop.toml").write_text(LIVE)
    answers = {"alike": "money refund", "unlike": "cat dog"}
    (tmp_path / "agent.py").write_text(f"def reply(request):\n    return {answers}[request['input']]\n")
    (tmp_path / "agenteval.yaml").write_text(
        f"agents: {{default: {{python: 'agent:reply'}}}}\nembeddings: {chosen}\n"
    )
    variables = {
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": KEY,
        "AZURE_OPENAI_ENDPOINT": server.url,
        "AZURE_OPENAI_API_KEY": KEY,
        "OLLAMA_HOST": server.url,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    ended = agenteval("run", cwd=tmp_path, env=environment(**variables))
    assert ended.status == 1, ended.text
    results = results_in(tmp_path)
    assert list(statuses(results).values()) == ["passed", "failed"]
    scores = [case.scores[0].score for suite in results.suites for case in suite.cases]
    assert scores == [pytest.approx(1.0, abs=1e-6), pytest.approx(0.0, abs=0.2)]
    # The expected text and both answers, once each; a model on this machine asks nobody.
    assert len(server.asked) == (0 if name == "local" else 3)
