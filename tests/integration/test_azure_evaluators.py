"""Azure's evaluators themselves, against a model's API on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.integration.model_server import INPUT_TOKENS, KEY, OUTPUT_TOKENS, Answer, ModelServer, says, serving
from tests.support import PATIENCE_S

from agenteval.core.llm.gateway import Gateway, LlmSettings, ResponseCache
from agenteval.core.llm.models import ModelSpec
from agenteval.core.runtime import missing_extra
from agenteval.core.shared_files import Seal
from agenteval.metrics.base import Observation
from agenteval.metrics.resources import GraderPool, Resources, RunResources
from agenteval.metrics.scoring import MetricCatalog, score_turn
from agenteval.results.case import Score
from agenteval.suite.model import MetricConfig, Place

if missing_extra("azure"):
    pytest.skip("needs the extra azure", allow_module_level=True)

GOOD = json.dumps({"reason": "It follows.", "score": 4})
ALL = Observation(
    input="When do you open?",
    response="At nine.",
    ground_truth="At nine o'clock.",
    context=("File: hours.txt\nFrom nine to six",),
    retrieval_context=("Closed on Mondays",),
)
NAMES = ("groundedness", "relevance", "coherence", "fluency", "similarity")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        running.script(GOOD)
        yield running


def metric(name: str, model: ModelSpec, **options: Any) -> MetricConfig:
    return MetricConfig(
        id=name,
        type=name,
        kind="standard",
        threshold=0.7,
        options={"metric": name, "model": model, **options},
        where=Place("", "agent.yaml", 4),
    )


def measure(
    configs: Sequence[MetricConfig], observation: Observation = ALL, settings: LlmSettings | None = None
) -> tuple[list[Score], Gateway]:
    async def run() -> tuple[list[Score], Gateway]:
        gateway = Gateway(settings or LlmSettings())
        resources = Resources(gateway, GraderPool())
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await score_turn(configs, observation, MetricCatalog(resources)), gateway
        finally:
            await RunResources(resources.gateway, [resources]).close()

    return asyncio.run(run())


def score(config: MetricConfig, observation: Observation = ALL, settings: LlmSettings | None = None) -> Score:
    (found,) = measure([config], observation, settings)[0]
    return found


class TestScores:
    @pytest.mark.parametrize("provider", ["azure_openai", "openai"])
    @pytest.mark.parametrize("name", NAMES)
    def test_four_of_five(self, server: ModelServer, name: str, provider: str) -> None:
        model = server.model(provider)
        found = score(metric(name, model))
        assert (found.status, found.score, found.passed) == ("scored", 0.8, True), found.error
        assert (found.reason, found.model, found.kind) == ("It follows.", model.label, "standard")
        assert found.details == {
            "rating": 4,
            "llm_calls": 1,
            "cached_calls": 0,
            "input_tokens": INPUT_TOKENS,
            "output_tokens": OUTPUT_TOKENS,
        }
        assert found.cost_usd is not None
        assert found.cost_usd > 0
        (asked,) = server.asked
        path = f"/openai/deployments/{model.name}/chat/completions" if provider == "azure_openai" else "/v1/chat/"
        assert asked.path.startswith(path)
        assert KEY in {asked.headers.get("api-key"), asked.headers.get("authorization", "").removeprefix("Bearer ")}

    def test_an_empty_answer_is_not_judged(self, server: ModelServer) -> None:
        found = score(metric("coherence", server.model("azure_openai")), replace(ALL, response=" \n"))
        assert (found.score, found.passed, found.reason) == (0.0, False, "empty response")
        assert server.asked == []


class TestErrors:
    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ('{"score": 12}', "the model rated 12, which is outside 1 to 5"),
            ('{"score": 0}', "the model rated 0, which is outside 1 to 5"),
            ("{}", "the model gave no rating"),
            ("7", "the model gave no rating"),
            ('{"status": "skipped", "reason": "no text"}', "the model gave no rating: Not applicable: no text"),
            ("I like it.", "JSONDecodeError"),
        ],
    )
    def test_nothing_is_scored_that_was_not_judged(self, server: ModelServer, answer: str, said: str) -> None:
        server.script(answer)
        found = score(metric("coherence", server.model("azure_openai")))
        assert (found.status, found.score) == ("error", None)
        assert said in str(found.error)

    def test_what_takes_too_long(self, server: ModelServer) -> None:
        release = Event()

        def hang(asked: Any) -> Answer:
            release.wait(PATIENCE_S)
            return says(asked, GOOD)

        server.respond = hang
        settings = LlmSettings(timeout_s=0.3, retries=0)
        try:
            found = score(metric("coherence", server.model("azure_openai")), settings=settings)
        finally:
            release.set()
        assert found.error == f"{server.model('azure_openai').label} did not answer within 0.3 s"


class TestAccount:
    def test_kept_in_the_cache(self, server: ModelServer, tmp_path: Path) -> None:
        settings = LlmSettings(cache=ResponseCache(tmp_path, Seal()))
        configs = [metric(name, server.model("azure_openai")) for name in NAMES]
        first, _ = measure(configs, settings=settings)
        second, gateway = measure(configs, settings=settings)
        assert [item.score for item in first] == [item.score for item in second]
        assert (len(server.asked), gateway.budget.calls) == (5, 0)
        assert {str(item.details) for item in second} == {"{'rating': 4.0, 'llm_calls': 0, 'cached_calls': 1}"}
        assert score(configs[0], replace(ALL, iteration=1), settings).details == {
            "rating": 4.0,
            "llm_calls": 1,
            "cached_calls": 0,
            "input_tokens": INPUT_TOKENS,
            "output_tokens": OUTPUT_TOKENS,
        }
