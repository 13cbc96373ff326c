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
    KEY,
    Answer,
    ModelServer,
    RecordedQuestion,
    embeds,
    error,
    serving,
    words,
)

from agenteval.core.errors import ConfigError
from agenteval.core.llm.budget import Limits
from agenteval.core.llm.embeddings import Embeddings
from agenteval.core.llm.gateway import Gateway, LlmSettings, ResponseCache
from agenteval.core.llm.models import LlmError, ModelSpec, embedding_model
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


def test_a_server_that_knows_no_packed_numbers(server: ModelServer) -> None:
    server.respond = lambda asked: Answer({"data": [{"embedding": [1.0, 2.0]}]})

    assert vectors(["x"], model(server)) == [(1.0, 2.0)]


def test_a_server_that_knows_only_the_older_form_of_ollama(server: ModelServer) -> None:
    def respond(asked: RecordedQuestion) -> Answer:
        return Answer({"embedding": [9.0]}) if asked.path == "/api/embed" else embeds(asked, [1.0, 2.0])

    server.respond = respond

    assert vectors(["x"], model(server, "ollama")) == [(1.0, 2.0)]
    assert [(asked.path, asked.embedded) for asked in server.asked] == [("/api/embed", "x"), ("/api/embeddings", "x")]


# How often it is asked


@each_provider
def test_a_second_run_asks_nothing(server: ModelServer, tmp_path: Path, provider: str) -> None:
    kept = settings(cache=ResponseCache(tmp_path / "cache", Seal()))
    first = vectors(["a", "b"], model(server, provider), kept)
    second = vectors(["b", "a"], model(server, provider), settings(cache=kept.cache, limits=Limits(max_calls=0)))

    assert len(server.asked) == 2
    assert second == first[::-1]


# Failures


@each_provider
@pytest.mark.parametrize("first", [error(500, "oops"), error(429, "slow"), HANG_UP, Answer("{}")])
def test_what_passes_is_tried_again(server: ModelServer, provider: str, first: Answer) -> None:
    left = [first]
    server.respond = lambda asked: left.pop() if left else embeds(asked, [3.0])

    assert vectors(["x"], model(server, provider)) == [(3.0,)]
    assert len(server.asked) == 2


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


def test_a_broken_file_of_the_cache_is_no_vector(server: ModelServer, tmp_path: Path) -> None:
    kept = settings(cache=ResponseCache(tmp_path / "cache", Seal()))
    vectors(["x"], model(server), kept)
    (file,) = (tmp_path / "cache").rglob("*.json")
    file.write_text(file.read_text(encoding="utf-8").replace("[", "{"), encoding="utf-8")
    vectors(["x"], model(server), kept)

    assert len(server.asked) == 2


# Which model


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


def test_other_dimensions(server: ModelServer) -> None:
    server.respond = lambda asked: embeds(asked, [1.0] * len(asked.embedded or ""))
    with pytest.raises(MetricError, match="the embeddings have 3 and 5 dimensions"):
        similar(server, "abc", "abcde")
    with pytest.raises(MetricError, match="dimensions"):
        consistent(server, 0.5, "abc", "abcde")


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
