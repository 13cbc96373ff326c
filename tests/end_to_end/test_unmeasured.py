"""What was not measured is never passed: dead judges, used-up limits, criteria without data, and old answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.integration.model_server import KEY, Answer, ModelServer, RecordedQuestion, error, serving
from tests.support import Ended, echo_agent, results_in, verdict_of, write_suite

from agenteval.results.model import Results

RULE = {
    "name": "answered",
    "type": "rule_based",
    "enabled": True,
    "weight": 0.2,
    "rules": [{"check": "output_not_empty"}],
}
JUDGE = {
    "name": "quality",
    "type": "llm_judge",
    "enabled": True,
    "weight": 0.8,
    "model": "gpt-4o-mini",
    "prompt_template": "Good? {output}",
}
Run = Callable[..., tuple[Ended, Results]]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with serving() as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("AGENTEVAL_CACHE", str(tmp_path / "cache"))
        yield server


@pytest.fixture
def run(command: Command, judge: ModelServer) -> Run:
    """Scores recorded traces by a rule and a judge."""

    def scored(count: int, *options: str, gate: dict[str, Any] | None = None, **keys: Any) -> tuple[Ended, Results]:
        suite = {"evaluators": [RULE, JUDGE], **keys}
        Path("evaluation.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
        config = {"llm": {"retries": 0, "cache": False}, **({"gate": gate} if gate else {})}
        Path("agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        lines = [json.dumps({"trace_id": f"t{n}", "input": f"q{n}", "output": f"a{n}"}) for n in range(count)]
        Path("traces.jsonl").write_text("\n".join(lines), encoding="utf-8")
        ended = command("run", "evaluation.yaml", "--traces", "traces.jsonl", *options)
        return ended, results_in(Path.cwd())

    return scored


def statuses(results: Results) -> Counter[str]:
    return Counter(case.status for _, case in results.cases())


def fails(status: int) -> Callable[[RecordedQuestion], Answer]:
    return lambda _: error(status, "no")


def test_the_sample_is_the_same_with_the_same_seed(run: Run, judge: ModelServer) -> None:
    judge.script("9")
    found = []
    for seed in ("1", "1", "2"):
        _, results = run(40, "--seed", seed, limits={"max_llm_calls": None, "sample_rate": 0.3})
        found.append([case.name for _, case in results.cases() if case.status == "passed"])
    assert found[0] == found[1] != found[2]


EQUAL, BLEU = ({"type": "standard", "metric": metric} for metric in ("equality", "bleu"))


FAITHFUL = {"type": "rag", "metric_type": "faithfulness", "model": {"provider": "openai", "name": "gpt-4o"}}
ADDED = {"type": "rag", "metric_type": "faithfulness"}


@pytest.mark.parametrize(
    ("listed", "status", "headline"),
    [
        (
            {"evaluations": [EQUAL, FAITHFUL]},
            1,
            "unproven: metric unchecked: faithfulness (unmeasured in every reply)",
        ),
        (
            {"evaluations": [EQUAL], "added": ADDED},
            1,
            "unproven: metric unchecked: rag (unmeasured in every reply)",
        ),
        ({"evaluations": [EQUAL], "added": {**ADDED, "gating": False}}, 0, "passed: 2 of 2 cases passed"),
        ({"evaluations": [EQUAL, BLEU]}, 0, "passed: 2 of 2 cases passed"),
        ({"evaluations": [{**EQUAL, "threshold": 0}]}, 0, "passed: 2 of 2 cases passed; compared with earlier"),
        ({"evaluations": [BLEU]}, 0, "passed: 2 of 2 cases passed; compared with earlier runs only"),
        (
            {"evaluations": [BLEU, {**FAITHFUL, "metric_type": "answer_relevancy"}]},
            3,
            "error: 2 of 2 cases could not be run",
        ),
    ],
)
def test_a_metric_that_measured_or_decided_nothing_is_never_silent(
    command: Command, judge: ModelServer, listed: dict[str, Any], status: int, headline: str
) -> None:
    judge.respond = fails(401)
    cases = [{"name": name, "input": "hello", "ground_truth": "hello"} for name in "ab"]
    write_suite(Path.cwd(), cases, evaluations={"metrics": listed["evaluations"]})
    added = [listed["added"]] if "added" in listed else []
    config = {"agents": {"default": echo_agent(Path.cwd())}, "metrics": added, "judge": "openai/gpt-4o"}
    Path("agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    ended = command("run")
    assert ended.status == status, ended.text
    assert verdict_of(ended.out).startswith(headline)
    comment = Path("agenteval-report", "comment.md").read_text(encoding="utf-8")
    told = "cases could not be run — all for the same reason" if status == 3 else headline.partition(": ")[2]
    assert told in comment
    assert status != 3 or "2 cases" in comment


AGENT = {
    "name": "support",
    "model": {"provider": "openai", "name": "gpt-4o-mini"},
    "instructions": {"inline": "Be brief."},
    "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
    "test_cases": [{"name": "price", "input": "How much?", "ground_truth": "5 USD"}],
}


@pytest.mark.parametrize("cached", [0, 1])
def test_a_model_agent_is_asked_again_unless_its_answers_may_be_cached(
    tmp_path: Path, command: Command, judge: ModelServer, cached: int
) -> None:
    Path("agent.yaml").write_text(yaml.safe_dump(AGENT), encoding="utf-8")
    Path("agenteval.yaml").write_text(yaml.safe_dump({"llm": {"cache_agents": bool(cached)}}), encoding="utf-8")
    judge.script("5 USD")
    assert command("run").status == 0
    judge.script("6 USD")
    ended = command("run")
    results = results_in(tmp_path)
    ((_, case),) = results.cases()
    turn = case.iterations[0].turns[0]
    assert (ended.status, results.summary.usage.cached_calls, turn.cached) == (1 - cached, cached, bool(cached))
    assert (turn.latency_ms is None) is bool(cached)
    assert ("1 of 1 model call from the cache" in ended.out) is bool(cached)
    for report in ("comment.md", "summary.md"):
        text = Path("agenteval-report", report).read_text(encoding="utf-8")
        assert ("1 of 1 model call from the cache" in text) is bool(cached)


@pytest.mark.parametrize(
    ("budget", "judged"), [((), 8), (("--max-llm-calls", "6"), 6), (("--max-llm-calls", "3"), 3)]
)
def test_a_resumed_run_judges_what_the_budget_left_out(
    run: Run, command: Command, judge: ModelServer, budget: tuple[str, ...], judged: int
) -> None:
    judge.script("9")
    run(8, "--max-llm-calls", "3", "--no-cache")
    arguments = ("run", "evaluation.yaml", "--traces", "traces.jsonl", "--no-cache", "--resume", *budget)
    ended = command(*arguments)
    results = results_in(Path.cwd())
    left = {} if judged == 8 else {"skipped": 8 - judged}
    assert statuses(results) == {"passed": judged, **left}, ended.text
    # Both parts of the run share the budget.
    assert len(judge.asked) == results.summary.usage.llm_calls == judged
    coverage = results.run.coverage
    assert coverage is not None
    assert coverage.ended_by == ("budget" if left else None)
    assert (f"budget of {judged} calls" in ended.out) is bool(left)
    assert ended.status == (3 if left else 0)
