"""Azure's evaluators themselves, against a model's API on this machine."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.integration.model_server import INPUT_TOKENS, KEY, OUTPUT_TOKENS, Answer, ModelServer, error, says, serving
from tests.support import PATIENCE_S

from agenteval.core.llm.budget import Limits
from agenteval.core.llm.gateway import Gateway, LlmSettings, ResponseCache
from agenteval.core.llm.models import ModelSpec
from agenteval.core.llm.openai import AZURE_API_VERSION
from agenteval.core.llm.provider_base import MAX_BYTES
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

    @pytest.mark.parametrize(
        ("name", "shown", "hidden"),
        [
            ("groundedness", ["When do you open?", "At nine.", "From nine to six", "Closed on Mondays"], []),
            ("relevance", ["When do you open?", "At nine."], ["From nine to six", "o'clock"]),
            ("coherence", ["When do you open?", "At nine."], ["From nine to six", "o'clock"]),
            ("fluency", ["At nine."], ["When do you open?", "o'clock"]),
            ("similarity", ["When do you open?", "At nine.", "At nine o'clock."], ["From nine to six"]),
        ],
    )
    def test_what_the_model_sees(self, server: ModelServer, name: str, shown: list[str], hidden: list[str]) -> None:
        score(metric(name, server.model("azure_openai")))
        sent = json.dumps(server.asked[0].body["messages"])
        assert [text for text in shown if text not in sent] == []
        assert [text for text in hidden if text in sent] == []

    @pytest.mark.parametrize(
        ("given", "sent"), [(None, AZURE_API_VERSION), ("2025-01-01-preview", "2025-01-01-preview")]
    )
    def test_versions_of_the_api(self, server: ModelServer, given: str | None, sent: str) -> None:
        score(metric("fluency", server.model("azure_openai", api_version=given)))
        assert server.asked[0].path.endswith(f"?api-version={sent}")

    def test_reasoning_models_take_no_temperature(self, server: ModelServer) -> None:
        score(metric("fluency", server.model("azure_openai", "o3-mini")))
        assert "temperature" not in server.asked[0].body
        assert "max_completion_tokens" in server.asked[0].body

    @pytest.mark.parametrize(("rating", "scale", "expected"), [(1, None, 0.2), (5, None, 1.0), (4, 10, 0.4)])
    def test_scales(self, server: ModelServer, rating: int, scale: int | None, expected: float) -> None:
        server.script(json.dumps({"reason": "", "score": rating}))
        found = score(metric("coherence", server.model("azure_openai"), scale=scale))
        assert (found.score, found.reason) == (expected, None)

    def test_an_empty_answer_is_not_judged(self, server: ModelServer) -> None:
        found = score(metric("coherence", server.model("azure_openai")), replace(ALL, response=" \n"))
        assert (found.score, found.passed, found.reason) == (0.0, False, "empty response")
        assert server.asked == []

    @pytest.mark.parametrize(
        ("name", "observation", "reason"),
        [
            (
                "groundedness",
                replace(ALL, context=None, retrieval_context=None),
                "the case has no files and no retrieval_context",
            ),
            ("similarity", replace(ALL, ground_truth=None), "the case has no ground_truth"),
        ],
    )
    def test_what_a_case_lacks(self, server: ModelServer, name: str, observation: Observation, reason: str) -> None:
        config = metric(name, server.model("azure_openai"))
        found = score(config, observation)
        assert (found.status, found.reason) == ("skipped", reason)
        assert server.asked == []

    def test_a_case_that_asks_for_it_must_have_sources(self, server: ModelServer) -> None:
        config = replace(metric("groundedness", server.model("azure_openai")), requested_by="case")
        found = score(config, Observation(input="a", response="b"))
        assert found.error == "this case asks for groundedness but has no files and no retrieval_context"

    def test_measurements_do_not_mix(self, server: ModelServer) -> None:
        rates = {"coheren": 1, "fluen": 2, "relevan": 3, "ground": 4, "equivalence": 5}

        def respond(asked: Any) -> Answer:
            prompt = json.dumps(asked.body["messages"]).lower()
            rating = max(rates.items(), key=lambda item: prompt.count(item[0]))[1]
            return says(asked, json.dumps({"reason": "", "score": rating}))

        server.respond = respond
        model = server.model("azure_openai")
        found, _ = measure([metric(name, model) for name in NAMES])
        assert [item.score for item in found] == [0.8, 0.6, 0.2, 0.4, 1.0]


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

    def test_refused(
        self, server: ModelServer, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        server.script(error(401, "Access denied due to invalid subscription key."))
        model = server.model("azure_openai")
        with caplog.at_level(logging.INFO, logger="azure"):
            found = score(metric("coherence", model))
        assert found.status == "error"
        assert str(found.error).startswith(f"{model.label}: ")
        assert "Access denied" in str(found.error)
        assert (len(server.asked), caplog.records) == (1, [])
        assert capfd.readouterr() == ("", "")

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


@pytest.mark.parametrize("provider", ["azure_openai", "openai"])
def test_no_redirect_takes_keys_along(server: ModelServer, provider: str) -> None:
    with serving() as elsewhere:
        server.script(Answer("", 307, {"Location": f"{elsewhere.url}/v1/chat/completions"}))
        found = score(metric("fluency", server.model(provider)))
        assert (found.status, elsewhere.asked) == ("error", [])


def test_a_reply_without_end_is_cut_off(server: ModelServer) -> None:
    server.script(Answer(b" " * (MAX_BYTES + 1)))
    found = score(metric("fluency", server.model("openai")))
    assert (found.status, found.error) == ("error", "openai/gpt-4.1: the judge sent a reply of more than 8 MB")
    assert len(server.asked) == 1


class TestAccount:
    def test_a_measurement_is_a_call(self, server: ModelServer) -> None:
        model = server.model("azure_openai")
        settings = LlmSettings(limits=Limits(max_calls=2))
        found, gateway = measure([metric(name, model) for name in NAMES], settings=settings)
        assert sorted(item.status for item in found) == ["scored", "scored", "skipped", "skipped", "skipped"]
        assert {item.reason for item in found if item.status == "skipped"} == {"max_llm_calls (2) is used up"}
        assert (len(server.asked), gateway.budget.calls) == (2, 2)
        assert (gateway.input_tokens, gateway.output_tokens) == (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS)

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

    def test_at_once_as_the_limit_says(self, server: ModelServer) -> None:
        model = server.model("azure_openai")
        measure([metric(name, model) for name in NAMES], settings=LlmSettings(concurrency=1))
        assert server.most_at_once == 1
