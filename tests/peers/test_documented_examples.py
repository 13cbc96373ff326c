"""Every example of HoloDeck's documentation runs as it stands there."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.mistakes import shown
from tests.peers.aimock import KEY, offer
from tests.peers.model_bench import JUDGES, Bench

pytestmark = pytest.mark.peer

EXAMPLES: list[dict[str, str]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "holodeck" / "documented.yaml").read_text(encoding="utf-8")
)
LEGACY = ("groundedness", "relevance", "coherence", "safety")
CASE = """
test_cases:
  - name: sample
    input: "What is the capital of France?"
    ground_truth: "42"
    retrieval_context: ["Paris is the capital of France.", "It lies on the Seine.", "It is old."]
    files: [{path: notes.txt, type: text}]
"""
GRADERS = {
    "exact_tool_call": """
from holodeck.lib.test_runner.code_grader import GraderContext, GraderResult

def called_subtract_with(ctx: GraderContext) -> GraderResult:
    called = [call for call in ctx.tool_invocations if call.name == "subtract"]
    return GraderResult(score=1.0, passed=True, reason=f"{len(called)} calls")
""",
    "turn_program_equivalence": """
def turn_program_equivalence(ctx):
    call = ctx.tool_invocations[0]
    return ctx.turn_config["turn_program"] == f"{call.name}({call.args['a']}, {call.args['b']})"
""",
}
ANSWERS = ["60.94", "25.14", "35.8"]
SUBTRACT = {"name": "subtract", "args": {"a": "60.94", "b": "25.14"}, "result": 35.8}


@pytest.fixture(autouse=True)
def played(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges, wherever the suite takes them from, are the mock."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{bench.mock.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OLLAMA_HOST", bench.mock.url)
    # HoloDeck's default judge is asked only if Ollama has it.
    bench.mock.play(*JUDGES, offer("gpt-oss:20b"))
    bench.file("notes.txt", "Paris has been the capital for long.")
    for name, code in GRADERS.items():
        bench.file(f"graders/{name}.py", code)


def _suite(text: str) -> dict[str, Any]:
    """The example as a suite: a metric list goes where metric lists stand, and without cases there is one."""
    if isinstance(yaml.safe_load(text), list):
        text = "evaluations:\n  metrics:\n" + textwrap.indent(text, "    ")
    if "test_cases" not in yaml.safe_load(text):
        text += CASE
    Path("agent.yaml").write_text(text, encoding="utf-8")
    suite: dict[str, Any] = yaml.safe_load(text)
    return suite


def _recorded(suite: dict[str, Any]) -> None:
    lines = [
        {"case": case["name"], "turn": turn, "response": answer, "tool_calls": [SUBTRACT]}
        | ({"retrieval_context": ["Founded in 2010."]} if "turns" not in case else {})
        for case in suite["test_cases"]
        for turn, answer in enumerate(ANSWERS)
    ]
    Path("answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _is_legacy(example: dict[str, str]) -> bool:
    return any(f"metric: {name}\n" in example["text"] + "\n" for name in LEGACY)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda item: item["name"])
def test_it_runs(example: dict[str, str], bench: Bench) -> None:
    suite = _suite(example["text"])
    _recorded(suite)
    if "enabled: false" in example["text"]:
        (mistake,) = shown(bench.refused("--agent", "replay:answers.jsonl"))
        assert mistake.title == "no case has an enabled metric"
        assert not Path("agenteval-report", "results.json").exists()
        return

    ran = bench.run("--agent", "replay:answers.jsonl", "--quiet", "--fail-on", "none")

    assert ran.status == 0
    # Without Azure, their replacements run instead.
    assert ("deprecated by HoloDeck" in ran.shown) == _is_legacy(example)
    assert {score.status for score in ran.scores} == {"scored"}, [
        (score.id, score.error or score.reason) for score in ran.scores
    ]
