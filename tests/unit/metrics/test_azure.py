"""HoloDeck's deprecated metrics in a suite: configuration, requirements and messages."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from agenteval.core import runtime
from agenteval.core.errors import ConfigError
from agenteval.core.llm.gateway import Gateway, LlmSettings
from agenteval.core.llm.models import ModelSpec
from agenteval.metrics.base import Observation
from agenteval.metrics.registry import REGISTRY, build
from agenteval.metrics.resources import GraderPool, Resources
from agenteval.suite.formats.holodeck.schema import LEGACY_METRICS
from agenteval.suite.formats.holodeck.suite import load_holodeck
from agenteval.suite.model import MetricConfig, Place, Suite

AZURE = "{provider: azure_openai, name: judge, endpoint: 'https://example.org', api_key: secret}"
MODEL = ModelSpec("azure_openai", "judge", temperature=0.0, endpoint="https://example.org", api_key="secret")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> ModuleSpec | None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(runtime, "find_spec", find)


def load(folder: Path, *metrics: str, model: str | None = AZURE, case: str = "{input: hello}") -> Suite:
    """A suite with these metrics; each is a mapping without its braces."""
    lines = "".join(f"  - {{type: standard, {metric}}}\n" for metric in metrics)
    judge = f"  model: {model}\n" if model else ""
    path = folder / "agent.yaml"
    path.write_text(f"evaluations:\n{judge}  metrics:\n{lines}test_cases:\n- {case}\n")
    return load_holodeck(path, "agent.yaml")


def config(folder: Path, metric: str, **keys: Any) -> MetricConfig:
    (found,) = load(folder, metric, **keys).cases[0].turns[0].metrics
    return found


def told(how: str) -> str:
    return f"agent.yaml:4: evaluations.metrics[0]: deprecated by HoloDeck: {how}"


class TestConfiguration:
    @pytest.mark.parametrize("name", [name for name in LEGACY_METRICS if name != "safety"])
    def test_runs_by_azure(self, tmp_path: Path, name: str) -> None:
        found = config(tmp_path, f"metric: {name}, threshold: 0.8, retry_on_failure: 2, timeout_ms: 1500")
        assert found == MetricConfig(
            id=name,
            type=name,
            kind="standard",
            threshold=0.8,
            options={"metric": name, "model": MODEL, "scale": None},
            fail_on_error=False,
            retries=2,
            timeout_s=1.5,
            where=Place(str(tmp_path), "agent.yaml", 4),
        )
        assert REGISTRY[name].implementation == "agenteval.metrics.azure:AzureMetric"

    def test_the_key_is_a_secret(self, tmp_path: Path) -> None:
        suite = load(tmp_path, "metric: coherence", model=AZURE.replace("secret", "k-1234567"))
        assert suite.secrets == {"k-1234567"}
        assert "k-1234567" not in repr(suite)

    @pytest.mark.parametrize(
        ("name", "seen"),
        [
            ("groundedness", ("input", "actual_output", "context")),
            ("relevance", ("input", "actual_output")),
            ("similarity", ("input", "actual_output", "expected_output")),
            ("safety", ("input", "actual_output")),
        ],
    )
    def test_its_own_prompt_is_for_geval(self, tmp_path: Path, name: str, seen: tuple[str, ...]) -> None:
        ollama = "{provider: ollama, name: llama3.2}"
        suite = load(tmp_path, f"metric: {name}, custom_prompt: Is it kind?, threshold: 0.6", model=ollama)
        (found,) = suite.cases[0].turns[0].metrics
        assert (found.id, found.type, found.kind, found.threshold) == (name, "geval", "geval", 0.6)
        assert found.options == {
            "name": name,
            "criteria": "Is it kind?",
            "evaluation_params": seen,
            "model": ModelSpec("ollama", "llama3.2", temperature=0.0),
        }
        assert suite.warnings == (told(f"{name} runs as `type: geval` with its custom_prompt"),)


REPLACED = {
    "groundedness": "as `type: rag, metric_type: faithfulness`",
    "relevance": "as `type: rag, metric_type: answer_relevancy`",
    "coherence": "as `type: geval` with built-in criteria",
    "fluency": "as `type: geval` with built-in criteria",
    "similarity": "as `type: geval` with built-in criteria",
    "safety": "as `type: geval` with built-in criteria",
}


class TestWithoutAzure:
    @pytest.mark.parametrize("name", LEGACY_METRICS)
    @pytest.mark.parametrize("model", [None, "{provider: anthropic, name: m}", "{provider: ollama, name: m}"])
    def test_runs_as_the_guide_replaces_it(self, tmp_path: Path, name: str, model: str | None) -> None:
        case = "{input: a, ground_truth: b}"
        suite = load(tmp_path, f"metric: {name}, threshold: 4, scale: 5", model=model, case=case)
        (found,) = suite.cases[0].turns[0].metrics
        assert (found.id, found.threshold) == (name, 0.8)
        assert f"type: {found.type}" in REPLACED[name]
        assert found.options.get("metric_type", "built-in criteria") in REPLACED[name]
        (note,) = suite.warnings
        assert note.endswith(f": evaluations.metrics[0]: deprecated by HoloDeck: {name} runs {REPLACED[name]}")

    @pytest.mark.usefixtures("nothing_installed")
    def test_the_extra_is_named(self, tmp_path: Path) -> None:
        assert load(tmp_path, "metric: coherence", "metric: relevance").warnings == (
            told(
                f"coherence runs {REPLACED['coherence']}, relevance runs {REPLACED['relevance']}; Azure's evaluators "
                "need an extra that is not installed: pip install 'agenteval-action[azure]'"
            ),
        )


class TestNotes:
    def test_one_for_all_metrics(self, tmp_path: Path) -> None:
        own = "{input: a, evaluations: [{metric: coherence}]}"
        suite = load(tmp_path, "metric: coherence", "metric: coherence", "metric: safety", case=own)
        safety = "safety runs as `type: geval` with built-in criteria"
        assert suite.warnings == (told(f"coherence runs by Azure's evaluator, {safety}"),)


class TestBeforeTheRun:
    def build(self, folder: Path, model: str) -> Any:
        resources = Resources(Gateway(LlmSettings()), GraderPool())
        return build(config(folder, "metric: groundedness", model=model), resources)

    def test_there_must_be_a_key(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="no API key for azure_openai/judge: set AZURE_OPENAI_API_KEY, or"):
            self.build(tmp_path, "{provider: azure_openai, name: judge, endpoint: 'https://example.org'}")

    def test_there_must_be_an_endpoint(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="no address for azure_openai/judge"):
            self.build(tmp_path, "{provider: azure_openai, name: judge, api_key: secret}")

    def test_both_may_come_from_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "secret")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://example.org")
        # Its import takes seconds.
        monkeypatch.setattr("agenteval.metrics.azure._sdk", lambda: None)
        metric = self.build(tmp_path, "{provider: azure_openai, name: judge}")
        assert metric.requires == {"sources"}

    def test_files_and_passages_are_sources(self) -> None:
        assert Observation("a", "b").sources == ()
        assert Observation("a", "b", context=("file",), retrieval_context=("passage",)).sources == ("file", "passage")
