"""What a run may spend holds for everything that it asks models: agents, judges and embeddings, sixteen at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.integration.model_server import Answer, ModelServer, RecordedQuestion, embeds, says, serving, words
from tests.support import Ended, agenteval, results_in, write_suite

CASES = 16
# 1000 × 2 $ + 200 × 8 $ per million tokens, and 1000 × 0.02 $ for a vector.
CHAT_USD, VECTOR_USD = 0.0036, 0.00002

EVALUATION = """
[eval]
type = "semantic"
description = "What it means."
targets.agents = ["*"]
"""
SIMILAR = '\n[[eval.cases]]\nprompt = "question {number}"\noutput = {{ similar = "hello there", threshold = 0.1 }}\n'


@pytest.fixture
def server() -> Iterator[ModelServer]:
    def respond(asked: RecordedQuestion) -> Answer:
        if asked.embedded is not None:
            return embeds(asked, words(asked.embedded))
        if "score" in str(asked.body):
            return says(asked, '{"score": 8, "reason": "good"}')
        return says(asked, f"hello {asked.prompt}")

    with serving() as running:
        running.respond = respond
        yield running


def project(directory: Path, server: ModelServer) -> None:
    """A model answers both suites; one is judged, the other compared by meaning."""
    model = {"provider": "openai", "name": "gpt-4.1", "endpoint": f"{server.url}/v1", "api_key": "sk-0"}
    judged = {"type": "geval", "name": "good", "criteria": "Is it good?", "evaluation_steps": ["Look."]}
    cases = [{"name": f"c{number}", "input": f"question {number}"} for number in range(CASES)]
    write_suite(
        directory,
        cases,
        model=model,
        instructions={"inline": "Answer."},
        evaluations={"model": model, "metrics": [judged]},
    )
    evaluations = directory / ".agentci" / "evals"
    evaluations.mkdir(parents=True)
    text = EVALUATION + "".join(SIMILAR.format(number=number) for number in range(CASES))
    (evaluations / "meaning.toml").write_text(text, encoding="utf-8")
    config = {"agents": {"echo": {"command": ["cat"], "reply": "text"}}, "embeddings": embedder(server)}
    (directory / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def embedder(server: ModelServer) -> dict[str, str]:
    return {"model": "openai/text-embedding-3-small", "endpoint": f"{server.url}/v1", "api_key": "sk-0"}


def run(directory: Path, *arguments: str) -> Ended:
    return agenteval("run", "--concurrency", "16", "--no-cache", "--fail-on", "none", *arguments, cwd=directory)


def kinds(server: ModelServer) -> Counter[str]:
    """How often what was asked."""
    return Counter(
        "vector" if asked.embedded is not None else "judge" if "score" in str(asked.body) else "agent"
        for asked in server.asked
    )


@pytest.mark.parametrize("limit", [40])
def test_calls_are_used_up_exactly(tmp_path: Path, server: ModelServer, limit: int) -> None:
    project(tmp_path, server)
    ended = run(tmp_path, "--max-llm-calls", str(limit))
    assert len(server.asked) == limit, ended.text
    assert results_in(tmp_path).summary.usage.llm_calls == limit
    assert "the LLM budget is exhausted" in ended.out


@pytest.mark.parametrize("limit", [0.01])
def test_money_is_not_overspent(tmp_path: Path, server: ModelServer, limit: float) -> None:
    project(tmp_path, server)
    ended = run(tmp_path, "--max-cost-usd", str(limit))
    found = kinds(server)
    spent = (found["agent"] + found["judge"]) * CHAT_USD + found["vector"] * VECTOR_USD
    # As far as it goes, and no further.
    assert limit - CHAT_USD <= spent <= limit, ended.text
    assert results_in(tmp_path).summary.usage.cost_usd == pytest.approx(spent)
