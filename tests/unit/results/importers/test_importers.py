"""Runs that HoloDeck, FluxLoop and promptfoo recorded become results that ours can be compared with."""

from __future__ import annotations

import json
import math
import os
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit import runs

from agenteval.core.errors import ConfigError
from agenteval.gate.pairing import pair_cases
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.case import CaseResult, Score
from agenteval.results.importers.base import KnownCase, KnownSuite, suites_of
from agenteval.results.importers.detect import read_run
from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.suite import cases as case_names
from agenteval.suite.formats.holodeck.suite import load_holodeck
from agenteval.suite.model import Suite


def write(folder: Path, content: Any, name: str = "run.json") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def read(folder: Path, content: Any, suites: Sequence[KnownSuite] = ()) -> Results:
    return read_run(write(folder, content), suites)[0]


def only(results: Results) -> CaseResult:
    ((_, case),) = results.cases()
    return case


def scores(case: CaseResult, turn: int = 0) -> dict[str, Score]:
    return {score.id: score for score in case.iterations[0].turns[turn].scores}


def statuses(results: Results) -> dict[str, str]:
    return {case.id.partition("::")[2]: case.status for _, case in results.cases()}


def problems_of(folder: Path, content: Any, suites: Sequence[KnownSuite] = ()) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(folder, content, suites)
    return [str(problem).replace(f"{folder}{os.sep}", "") for problem in caught.value.problems]


def known(suite: Suite) -> KnownSuite:
    return KnownSuite(
        path=suite.path,
        name=suite.name,
        format=suite.format,
        cases=tuple(
            KnownCase(
                id=case.id,
                name=case.name,
                inputs=tuple(turn.input for turn in case.turns),
                ground_truths=tuple(turn.ground_truth for turn in case.turns),
                persona=case.persona,
            )
            for case in suite.cases
        ),
        metrics=frozenset(metric.id for metric in suite.metrics),
    )


def known_suite(
    path: str = "agent.yaml", *asked: str, name: str = "support", format_: str = "holodeck", **more: Any
) -> KnownSuite:
    """A suite with a case of each question, which is its name, too."""
    cases = tuple(KnownCase(id=f"{path}::{text}", name=text, inputs=(text,)) for text in asked)
    return KnownSuite(path=path, name=name, format=format_, cases=cases, **more)


# HoloDeck


def metric(
    name: str = "numeric", score: float | None = 1.0, passed: bool | None = True, **more: Any
) -> dict[str, Any]:
    known = {"metric_name": name, "kind": "standard", "score": score, "threshold": None, "passed": passed}
    return known | {"scale": "0-1", "error": None, "evaluation_time_ms": 10} | more


def holodeck_test(name: str | None = "refund", *metrics: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "test_name": name,
        "test_input": f"question {name}",
        "agent_response": "14 days",
        "tool_calls": [],
        "metric_results": list(metrics),
        "ground_truth": "14",
        "passed": all(item["passed"] is not False for item in metrics),
        "execution_time_ms": 150,
        "errors": [],
        **more,
    }


def holodeck_turn(index: int, *metrics: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    own = {"turn_index": index, "input": f"question {index}", "response": f"answer {index}", "skipped": False}
    test = holodeck_test(None, *metrics)
    return {key: test[key] for key in test.keys() - {"test_name", "test_input", "agent_response"}} | own | more


def report(*tests: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "agent_name": "support",
        "agent_config_path": "agents/support/agent.yaml",
        "results": list(tests),
        "summary": {"total_tests": len(tests), "total_duration_ms": 2500},
        "timestamp": "2026-03-01T10:00:10.500000+00:00",
        "holodeck_version": "0.7.1",
        **more,
    }


AGENT = """\
name: support
model: {provider: openai, name: gpt-4o}
instructions: {inline: Help.}
evaluations:
  metrics:
    - {type: standard, metric: equality}
test_cases:
  - {name: refund, input: How long?, ground_truth: "14"}
  - {input: Nameless, ground_truth: x}
  - {input: Nameless, ground_truth: x}
  - name: two turns
    turns:
      - {input: first, ground_truth: a}
      - {input: second, ground_truth: b}
  - turns:
      - {input: first, ground_truth: a}
      - {input: third, ground_truth: b}
"""


def test_holodeck_cases_have_the_ids_that_its_suite_gives_them(tmp_path: Path) -> None:
    suite = known(load_holodeck(write(tmp_path, AGENT, "agent.yaml"), "agents/support/agent.yaml"))

    def turns(*inputs: str) -> list[dict[str, Any]]:
        return [holodeck_turn(index, input=text) for index, text in enumerate(inputs)]

    content = report(
        holodeck_test("refund", test_input="How long?"),
        holodeck_test(None, test_input="Nameless"),
        holodeck_test(None, test_input="Nameless"),
        holodeck_test("two turns", test_input="first\n---\nsecond", turns=turns("first", "second")),
        holodeck_test(None, test_input="first\n---\nthird", turns=turns("first", "third")),
    )
    expected = [case.id for case in suite.cases]
    assert [case.id for _, case in read(tmp_path, content, [suite]).cases()] == expected
    assert [case.id for _, case in read(tmp_path, content).cases()] == expected


def test_a_holodeck_report_is_imported(tmp_path: Path) -> None:
    test = holodeck_test(
        "refund",
        metric("numeric", 1.0, threshold=0.9),
        metric("geval", 0.4, False, kind="geval", reasoning="too short", model_used="gpt-4o", evaluation_time_ms=90),
        tools_matched=True,
        tool_calls=["search"],
        tool_invocations=[
            {"name": "search", "args": {"q": 1}, "result": ["x"], "bytes": 5, "duration_ms": 7, "error": None}
        ],
        token_usage={"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
    )
    results = read(tmp_path, report(test))
    case = only(results)
    (turn,) = case.iterations[0].turns
    assert (case.name, case.status) == ("refund", "failed")
    assert case.score == pytest.approx((1 + 0.4 + 1) / 3)
    assert (turn.input, turn.response, turn.ground_truth) == ("question refund", "14 days", "14")
    assert [call.model_dump() for call in turn.tool_calls] == [
        {"name": "search", "args": {"q": 1}, "result": ["x"], "error": None, "duration_ms": 7}
    ]
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cost_usd) == (12, 3, None)
    # The time of a test of one turn includes its metrics, here 10 and 90 ms.
    assert turn.latency_ms == 50
    found = scores(case)
    assert (found["numeric"].kind, found["numeric"].score, found["numeric"].threshold) == ("standard", 1.0, 0.9)
    assert (found["geval"].kind, found["geval"].passed, found["geval"].reason) == ("geval", False, "too short")
    assert (found["geval"].model, found["geval"].duration_ms) == ("gpt-4o", 90)
    assert (found["tools"].kind, found["tools"].score, found["tools"].passed) == ("tools", 1.0, True)
    assert results.summary.metrics["geval"].mean == 0.4
    assert results.summary.usage.input_tokens == 12
    assert (results.tool.name, results.tool.version) == ("holodeck", "0.7.1")
    assert (results.run.started_at, results.run.finished_at) == (
        "2026-03-01T10:00:08.000Z",
        "2026-03-01T10:00:10.500Z",
    )
    assert (results.run.duration_s, results.run.commit, results.run.complete) == (2.5, None, True)


@pytest.mark.parametrize(
    ("test", "status"),
    [
        (holodeck_test("a", metric("bleu", 0.0, passed=True)), "passed"),
        # HoloDeck passes what nobody checked, an empty answer included.
        (holodeck_test("a"), "skipped"),
        (holodeck_test("a", tools_matched=True), "passed"),
        (holodeck_test("a", tools_matched=False, passed=False), "failed"),
        (holodeck_test("a", agent_response="", tools_matched=False, passed=False, errors=["expected x"]), "failed"),
        (holodeck_test("a", agent_response=None, passed=False, errors=["Agent invocation error: down"]), "error"),
        (holodeck_test("a", agent_response="", passed=False, errors=["Agent error: down"]), "error"),
        (holodeck_test("a", metric(), passed=False, errors=["File error: gone"]), "failed"),
        (holodeck_test("a", metric(score=0.0, passed=False, error="timeout")), "error"),
        (holodeck_test("a", metric(score=0.0, passed=False), metric("geval", 0.0, False, error="timeout")), "failed"),
        (holodeck_test("a", metric("geval", 1.2, kind="geval")), "error"),
    ],
)
def test_statuses_of_holodeck(tmp_path: Path, test: dict[str, Any], status: str) -> None:
    assert only(read(tmp_path, report(test))).status == status


@pytest.mark.parametrize(
    ("scale", "written", "score"),
    [
        (None, 0.7, 0.7),
        ("0-100", 70, 0.7),
        ("0 to 10", 7, 0.7),
        ("0-0", 0.7, 0.7),
        ("0-1", 1.0000000000000004, 1.0),
        ("0-1", -1e-12, 0.0),
    ],
)
def test_scores_of_all_scales_become_0_to_1(tmp_path: Path, scale: str | None, written: float, score: float) -> None:
    found = scores(only(read(tmp_path, report(holodeck_test("a", metric(score=written, scale=scale))))))["numeric"]
    assert found.status == "scored"
    assert found.score == pytest.approx(score)


@pytest.mark.parametrize("written", [5.0, -1.0, 1.2, math.nan, math.inf, None, "0.5", True, [1]])
def test_a_score_that_is_none_is_an_error(tmp_path: Path, written: Any) -> None:
    found = scores(only(read(tmp_path, report(holodeck_test("a", metric(score=written), metric("f"))))))["numeric"]
    assert (found.status, found.score, found.passed) == ("error", None, None)
    assert found.error


def test_rouge_without_a_value_is_not_a_score(tmp_path: Path) -> None:
    content = report(
        holodeck_test("a", metric("rouge", 0.0, False), metric()),
        holodeck_test("b", metric("rouge", 0.0, False)),
        holodeck_test("c", metric("rouge", 0.0, False), metric(score=0.0, passed=False)),
    )
    results = read(tmp_path, content)
    assert statuses(results) == {"a": "passed", "b": "skipped", "c": "failed"}
    assert "rouge" not in results.summary.metrics
    assert "0.7.1" in (scores(results.cases()[0][1])["rouge"].reason or "")


def test_of_suites_with_the_same_agent_the_one_with_the_path_is_meant(tmp_path: Path) -> None:
    content = report(holodeck_test("a", metric()), agent_config_path="/home/me/repo/b/agent.yaml")
    suites = [known_suite(f"{folder}/agent.yaml", "a") for folder in "abc"]
    assert only(read(tmp_path, content, suites)).id == "b/agent.yaml::a"


def current(*names: str, path: str = "agents/support/agent.yaml", **more: Any) -> Results:
    return runs.results(
        *(runs.case(name, "failed", [{"numeric": 0.0}], suite=path) for name in names), suite=path, **more
    )


@pytest.mark.parametrize("other", [{"test_input": "another question"}, {"ground_truth": "another answer"}])
def test_a_case_that_asked_something_else_is_not_compared(tmp_path: Path, other: dict[str, Any]) -> None:
    now = current("refund")
    same = {"test_input": "question 0", "ground_truth": None}
    before = read(tmp_path, report(holodeck_test("refund", metric(), **{**same, **other})), suites_of(now))
    (case,) = pair_cases(now, before, {"agents/support/agent.yaml::refund"})
    assert (case.change, case.metrics) == ("changed", [])


# FluxLoop


def trace(question: Any = "hi", persona: Any = "novice", **more: Any) -> dict[str, Any]:
    meta = {} if question is None else {"input": question, "output": f"answer to {question}"}
    return {
        "trace_id": "8c48",
        "iteration": 0,
        "persona": persona,
        "success": True,
        "duration_ms": 1500.5,
        "scores": {"not_empty": 1.0, "clarity": 0.5},
        "final_score": 0.75,
        "pass": True,
        "reasons": {"clarity": "vague"},
        "meta": meta,
        **more,
    }


def lines(*traces: Mapping[str, Any]) -> str:
    return "".join(json.dumps(item) + "\n" for item in traces)


def summary(total: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "total_traces": total,
        "passed_traces": 1,
        "pass_rate": 1 / max(total, 1),
        "average_score": 0.75,
        "threshold": 0.7,
        "evaluator_stats": {"clarity": {"average": 0.5, "min": 0.5, "max": 0.5, "count": total}},
        **more,
    }


def test_traces_have_the_ids_that_traces_get_here(tmp_path: Path) -> None:
    content = lines(trace("hi"), trace("hi", None), trace("hi"), trace("ho", ""), trace({"a": "ü"}))
    suite = known_suite("configs/evaluation.yaml", format_="fluxloop")
    cases = [case for _, case in read(tmp_path, content, [suite]).cases()]

    def own(persona: str | None, asked: str) -> str:
        return f"configs/evaluation.yaml::{case_names.content_id([persona, asked])}"

    assert [case.id for case in cases] == [
        own("novice", "hi"),
        own(None, "hi"),
        f"{own('novice', 'hi')}#2",
        own(None, "ho"),
        own("novice", '{"a": "ü"}'),
    ]
    assert cases[0].tags == ["persona:novice"]
    assert cases[1].tags == []
    assert [case.cluster for case in cases] == [case.id.partition("::")[2].partition("#2")[0] for case in cases]


def test_traces_are_the_known_cases_of_their_question_one_after_another(tmp_path: Path) -> None:
    cases = tuple(KnownCase(id=f"e.yaml::{number}", name="hi", inputs=("hi",), persona="novice") for number in "ab")
    suite = KnownSuite(path="e.yaml", name="e", format="fluxloop", cases=cases)
    found = {case.id: case for _, case in read(tmp_path, lines(trace(), trace(), trace()), [suite]).cases()}
    assert {case_id: len(case.iterations) for case_id, case in found.items()} == {"e.yaml::a": 1, "e.yaml::b": 2}


@pytest.mark.parametrize(
    ("reason", "status", "case_status"),
    [
        ("Skipped due to LLM sampling", "skipped", "skipped"),
        ("LLM evaluation budget exhausted", "skipped", "skipped"),
        ("LLM API key not provided. Set --llm-api-key or FLUXLOOP_LLM_API_KEY.", "error", "error"),
        ("LLM call failed: 429", "error", "error"),
        ("Score 85.0 outside expected range 0-10", "error", "error"),
        ("Unknown parser 'json_score'", "error", "error"),
        (["No numeric score found in response"], "error", "error"),
        ("the answer is wrong", "scored", "failed"),
        (None, "scored", "failed"),
    ],
)
def test_missing_judgements_of_fluxloop_are_not_zero_scores(
    tmp_path: Path, reason: Any, status: str, case_status: str
) -> None:
    lost = trace(scores={"rule": 1.0, "judge": 0.0}, reasons={"judge": reason}, final_score=0.5, **{"pass": False})
    case = only(read(tmp_path, lines(lost)))
    found = scores(case)["judge"]
    assert (found.status, found.score) == (status, 0.0 if status == "scored" else None)
    # The final score counts it as 0, so the final score is not used.
    assert (case.status, case.score) == (case_status, 0.5 if status == "scored" else None)


def test_both_files_of_an_evaluation_are_read_whichever_is_named(tmp_path: Path) -> None:
    traces = write(tmp_path, lines(trace("a"), trace("b")), "exp/evaluation/per_trace.jsonl")
    total = write(tmp_path, summary(2), "exp/evaluation/summary.json")
    write(tmp_path, {"name": "exp", "date": "2026-01-01", "results": {"total_runs": 2}}, "exp/summary.json")
    found = [read_run(path)[0] for path in (traces, total, traces.parent, traces.parent.parent)]
    assert len({results.run.id for results in found}) == 1
    assert found[0].suites[0].threshold == 0.7
    assert [case.name for _, case in found[1].cases()] == ["a [novice]", "b [novice]"]
    assert next(iter(found[0].baseline_runs[0].cases.values())).scores["score"] == [0.75]


def test_success_criteria_are_taken_over_in_our_units(tmp_path: Path) -> None:
    found = {
        "performance": {
            "all_traces_successful": {"met": False, "expected": True, "total_traces": 4, "successful_traces": 3},
            "avg_response_time": {"met": True, "average_ms": 1500, "threshold_ms": 2000, "trace_count": 4},
            "error_rate": {"met": False, "error_rate_percent": 25.0, "threshold_percent": 5},
            "max_response_time": {"met": None, "max_ms": None, "threshold_ms": 5000, "message": "no data"},
        },
        "quality": {
            "clarity": {"met": False, "average_score": 0.5, "threshold": 0.7},
            "tone": {"met": "yes", "average_score": 0.9, "threshold": 0.7},
            "length": 5,
        },
        "functionality": {"correct_parameters": {"met": False, "ratio": 0.5, "trace_count": 2}},
        "overall_success": False,
    }
    (suite,) = read(tmp_path, summary(4, success_criteria_results=found)).suites
    assert [(item.name, item.met, item.value, item.threshold) for item in suite.criteria] == [
        ("all_traces_successful", False, 0.75, 1.0),
        ("avg_response_time", True, 1.5, 2.0),
        ("error_rate", False, 0.25, 0.05),
        ("max_response_time", None, None, 5.0),
        ("quality.clarity", False, 0.5, 0.7),
        ("quality.tone", None, 0.9, 0.7),
        ("tool_calling.correct_parameters", False, 0.5, 1.0),
    ]


def test_an_evaluation_belongs_to_the_suite_with_its_metrics(tmp_path: Path) -> None:
    suites = [
        known_suite("a.yaml", format_="fluxloop", metrics=frozenset({"other"})),
        known_suite("b.yaml", format_="fluxloop", metrics=frozenset({"clarity"})),
        known_suite("c.yaml", metrics=frozenset({"clarity", "not_empty"})),
    ]
    assert only(read(tmp_path, lines(trace()), suites)).id.startswith("b.yaml::")
    assert only(read(tmp_path, lines(trace()), suites[:1])).id.startswith("a.yaml::")
    assert problems_of(tmp_path, lines(trace()), [suites[1], suites[1]]) == [
        "run.json: does not say which suite it evaluates (b.yaml, b.yaml); compare one at a time"
    ]


def test_files_of_agenteval_for_fluxloop_suites_can_be_read(tmp_path: Path) -> None:
    answer = EvaluatedAnswer(
        case_id="e.yaml::#12",
        name="the question",
        trace_id="",
        order=0,
        persona="novice",
        success=True,
        duration_ms=20.0,
        tokens=7,
        scores={"rule": 0.5},
        absent={"judge": "not sampled"},
        final_score=0.5,
        passed=False,
        reasons={},
        tool_checks={},
    )
    case = only(read(tmp_path, lines(answer.as_json())))
    assert (case.id, case.name, case.status, case.score) == ("e.yaml::#12", "the question [novice]", "failed", 0.5)
    assert {name: (score.status, score.score) for name, score in scores(case).items()} == {
        "rule": ("scored", 0.5),
        "judge": ("skipped", None),
    }


def test_every_broken_line_is_named(tmp_path: Path) -> None:
    good, bare = json.dumps(trace()), {"trace_id": "1", "input": "x"}
    content = "\n".join([good, "", "{broken", json.dumps(bare), good.replace("1500.5", "NaN"), "[1]"])
    assert problems_of(tmp_path, content) == [
        "run.json:3: not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "run.json:4: not a scored trace: it needs `scores`, `final_score` and `pass`",
        "run.json:6: not a scored trace: it needs `scores`, `final_score` and `pass`",
    ]


# promptfoo


def component(type_: str = "contains", score: float | None = 1.0, passed: bool = True, **more: Any) -> dict[str, Any]:
    return {"pass": passed, "score": score, "reason": "because", "assertion": {"type": type_, "value": "x", **more}}


def row(description: str | None = "greets", *components: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    passed = all(item["pass"] for item in components)
    variables = more.pop("vars", {"q": f"question {description}"})
    asserts = [item["assertion"] for item in components if "assertion" in item]
    named = {} if description is None else {"description": description}
    return {
        "testIdx": 0,
        "provider": {"id": "openai:gpt-4o", "label": ""},
        "prompt": {"raw": f"Answer: {variables}", "label": "Answer: {{q}}"},
        "vars": variables,
        "response": {"output": "hello", "cached": False},
        "error": None if passed else "because",
        "failureReason": 0 if passed else 1,
        "success": passed,
        "latencyMs": 800,
        "gradingResult": {"pass": passed, "score": 1.0, "componentResults": list(components)},
        "testCase": named | {"vars": variables, "assert": asserts},
        **more,
    }


def promptfoo(*rows: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    results = {"version": 3, "timestamp": "2026-11-21T19:41:13.880Z", "results": list(rows)}
    return {
        "evalId": "eval-hNM-2026-11-21T19:41:13",
        "results": results | {"stats": {"durationMs": 2786}},
        "config": {"description": "Flights"},
        "metadata": {"promptfooVersion": "0.121.20"},
        **more,
    }


def test_promptfoo_results_are_imported(tmp_path: Path) -> None:
    tokens = {"prompt": 5, "completion": 7, "cached": 0, "total": 12}
    results = read(tmp_path, promptfoo(row("greets", component(), tokenUsage=tokens, cost=0.002)))
    case = only(results)
    (turn,) = case.iterations[0].turns
    assert (case.id, case.name, case.status, case.score) == ("promptfoo::greets", "greets", "passed", 1.0)
    assert (turn.input, turn.response, turn.latency_ms) == ("question greets", "hello", 800)
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cost_usd) == (5, 7, 0.002)
    assert [(score.id, score.kind, score.passed, score.reason) for score in turn.scores] == [
        ("contains", "custom", True, "because")
    ]
    assert (results.run.started_at, results.run.finished_at) == (
        "2026-11-21T19:41:13.880Z",
        "2026-11-21T19:41:16.666Z",
    )
    assert (results.tool.name, results.tool.version, results.run.duration_s) == ("promptfoo", "0.121.20", 2.786)


def test_assertions_become_scores(tmp_path: Path) -> None:
    group = {
        "pass": True,
        "score": 0.5,
        "reason": "Aggregate score 0.50",
        "componentResults": [component("equals", 0.0, passed=False)],
        "metadata": {"assertionSet": {"type": "assert-set", "metric": "either", "threshold": 0.5}},
    }
    components = [
        component("llm-rubric", 0.8, threshold=0.7),
        component("not-contains"),
        component("javascript", 0.19, metric="Tone"),
        component("icontains", metric="Tone"),
        component("contains", 0.0, weight=0),
        component("levenshtein", 0.0, passed=False, threshold=1),
        component("latency", threshold=0.5),
        component("javascript", 7),
        group,
        component("equals", 0.0, passed=False),
        None,
        {**group, "metadata": None},
    ]
    grading = {"pass": True, "score": 1, "componentResults": components}
    found = scores(only(read(tmp_path, promptfoo(row("a", gradingResult=grading)))))
    assert [(score.id, score.score, score.passed, score.threshold) for score in found.values()] == [
        ("llm-rubric", 0.8, True, 0.7),
        ("not-contains", 1.0, True, None),
        ("Tone", 0.19, True, None),
        ("Tone#2", 1.0, True, None),
        ("contains", 0.0, None, None),
        ("levenshtein", 0.0, False, None),
        ("latency", 1.0, True, None),
        ("javascript", None, None, None),
        ("either", 0.5, True, None),
        ("equals", 0.0, False, None),
        ("assert-set", 0.5, True, None),
    ]


BROKEN = {"response": None, "gradingResult": None, "success": False}


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (row("a", component()), "passed"),
        (row("a", component(score=0.0, passed=False)), "failed"),
        # promptfoo passes what nobody checked.
        (row("a"), "skipped"),
        (row("a", component(), gradingResult=None), "passed"),
        (row("a", **BROKEN, failureReason=2, error="Error: down\n    at callApi (/home/me/p.js:1:94)"), "error"),
        (row("a", **BROKEN, failureReason=None, error="Error: down"), "error"),
        (row("a", component(score=0.0, passed=False), failureReason=None), "failed"),
    ],
)
def test_statuses_of_promptfoo(tmp_path: Path, content: dict[str, Any], status: str) -> None:
    assert only(read(tmp_path, promptfoo(content))).status == status


def test_repeated_tests_are_iterations_and_others_are_not(tmp_path: Path) -> None:
    content = promptfoo(
        row("many", component(), vars={"q": "one"}, testIdx=0),
        row("many", component(), vars={"q": "two"}, testIdx=1),
        row("many", component(score=0.0, passed=False), vars={"q": "one"}, testIdx=2),
        row(None, component(), vars={"q": "three"}, testIdx=3),
        row(None, component("equals"), vars={"q": "three"}, testIdx=4),
    )
    own = [case_names.content_id({"q": text}) for text in ("one", "two", "three")]
    found = {case.id: case for _, case in read(tmp_path, content).cases()}
    assert {name: len(case.iterations) for name, case in found.items()} == {
        f"promptfoo::many {own[0]}": 2,
        f"promptfoo::many {own[1]}": 1,
        f"promptfoo::{own[2]}": 1,
        f"promptfoo::{own[2]}#2": 1,
    }
    assert [case.name for case in found.values()] == ["many", "many", "three", "three"]
    assert (next(iter(found.values())).status, next(iter(found.values())).score) == ("failed", 0.5)


def test_tests_of_promptfoo_are_cases_of_any_suite(tmp_path: Path) -> None:
    suites = [
        known_suite("a.yaml", "greets", "How long?", "twice"),
        known_suite("b.toml", "Answer: exact", "twice", format_="agentci"),
    ]
    content = promptfoo(
        row("greets", component()),
        row("by variable", component(), vars={"lang": "en", "q": "How long?"}),
        row(None, component(), prompt={"raw": "Answer: exact", "label": "Answer: {{q}}"}),
        row("twice", component()),
        row("again", component(), vars={"q": "How long?"}),
        row("nobody's", component()),
    )
    results = read(tmp_path, content, suites)
    assert {suite.path: (suite.format, [case.id for case in suite.cases]) for suite in results.suites} == {
        "a.yaml": ("holodeck", ["a.yaml::greets", "a.yaml::How long?"]),
        "b.toml": ("agentci", ["b.toml::Answer: exact"]),
        "promptfoo": ("promptfoo", ["promptfoo::twice", "promptfoo::again", "promptfoo::nobody's"]),
    }


@pytest.mark.parametrize(
    ("asked", "fingerprint"),
    [({"q": "refund"}, ""), ({"q": {"text": "the refund"}}, ""), ({"q": "something else"}, "asked:")],
)
def test_a_test_with_a_known_name_may_have_another_question(
    tmp_path: Path, asked: dict[str, Any], fingerprint: str
) -> None:
    content = promptfoo(row("refund", component(), vars=asked))
    (case,) = read(tmp_path, content, [known_suite("a.yaml", "refund")]).baseline_runs[0].cases.values()
    assert case.fingerprint.startswith(fingerprint)
    assert bool(case.fingerprint) == bool(fingerprint)


def two_providers() -> dict[str, Any]:
    return promptfoo(
        row("a", component(), provider={"id": "openai:gpt-4o", "label": "big"}),
        row("a", component(), provider={"id": "openai:mini", "label": ""}, promptIdx=1),
        row("a", component(), provider="echo", promptIdx=2),
        row("a", component(), provider="echo", promptIdx=3, prompt={"raw": "x", "label": "Say\n{{q}}"}),
    )


def test_several_providers_cannot_be_one_baseline(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, two_providers(), [known_suite("a.yaml", "a")])
    assert problem.startswith(
        "run.json: has answers of several providers or prompts to the same cases (promptfoo[big], promptfoo[o"
    )
    assert "--filter-providers" in problem


# DeepEval, Inspect and JUnit XML


def geval(
    name: str = "Correctness [GEval]", score: float | None = 0.9, passed: bool = True, **more: Any
) -> dict[str, Any]:
    return {"name": name, "threshold": 0.5, "success": passed, "score": score, "strictMode": False, **more}


def deepeval(*tests: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"testRunData": {"testFile": "t.py", "testCases": list(tests), "conversationalTestCases": [], **more}}


def inspect(*samples: Mapping[str, Any]) -> dict[str, Any]:
    evaluation = {"task": "support", "model": "m", "created": "2026-11-20T10:00:00+00:00"}
    return {"version": 2, "status": "success", "eval": evaluation, "samples": list(samples)}


def junit(*cases: str) -> str:
    suite = f'<testsuite name="pytest" timestamp="2026-11-20T10:00:00">{"".join(cases)}</testsuite>'
    return f"<testsuites>{suite}</testsuites>"


def found(results: Results) -> dict[str, tuple[str, list[float | None]]]:
    return {case.id: (case.status, [score.score for score in case.scores]) for _, case in results.cases()}


def test_deepeval_scores_below_a_threshold_count_from_the_other_end(tmp_path: Path) -> None:
    tests: list[Mapping[str, Any]] = [
        {"name": "bias", "input": "a", "success": True, "metricsData": [geval("Bias", 0.1)]},
        {"name": "bias", "input": "b", "success": True, "metricsData": [geval("Bias", 0.5), geval()]},
        {"name": "test_case_2", "input": "c", "success": None, "metricsData": [geval(score=None, error="no key")]},
        {"name": "test_case_3", "input": "d", "success": True, "metricsData": []},
    ]
    talk = {
        "name": "talk", "success": False, "metricsData": [geval(passed=False, score=0.2)],
        "turns": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}] * 2,
    }  # fmt: skip
    results = read(tmp_path, deepeval(*tests, conversationalTestCases=[talk]))
    ids = [f"t.py::{name}" for name in map(case_names.turns_id, (["a"], ["b"], ["c"], ["d"]))]
    assert found(results) == {
        ids[0].replace("::", "::bias "): ("passed", [0.9]),
        ids[1].replace("::", "::bias "): ("passed", [0.5, 0.9]),
        ids[2]: ("error", [None]),
        ids[3]: ("skipped", []),
        "t.py::talk": ("failed", [0.2]),
    }
    assert [turn.response for turn in results.suites[0].cases[-1].turns] == ["ho", "ho"]


def test_epochs_of_inspect_are_iterations_and_grades_are_scores(tmp_path: Path) -> None:
    def sample(value: Any, epoch: int = 1, **more: Any) -> dict[str, Any]:
        return {"id": more.pop("id", "q"), "epoch": epoch, "input": "hi", "scores": {"s": {"value": value}}, **more}

    values = {"C": 1, "I": 0, "P": 0.5, 0.7: 0.7, True: 1, None: None, 7: None, "?": None}
    assert [only(read(tmp_path, inspect(sample(value)))).scores[0].score for value in values] == [*values.values()]
    results = read(tmp_path, inspect(sample("I", 2), sample("C"), sample({"a": 1, "b": 0}, id=1)))
    assert found(results) == {"support::q": ("failed", [1, 0]), "support::1": ("failed", [1, 0])}
    broken = only(read(tmp_path, inspect(sample("C", error={"message": "boom"}))))
    assert (broken.status, broken.turns[0].error) == ("error", "boom")
    messages = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "function": "bash", "arguments": {"cmd": "ls"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "a.txt"}]},
    ]
    (call,) = only(read(tmp_path, inspect(sample("C", messages=messages)))).turns[0].tool_calls
    assert (call.name, call.args, call.result) == ("bash", {"cmd": "ls"}, "a.txt")


def test_tests_of_junit_are_cases(tmp_path: Path) -> None:
    cases = (
        '<testcase classname="a.yaml" name="one"/>',
        '<testcase classname="b" name="one"><skipped message="later"/></testcase>',
        '<testcase name="x&amp;y"><error>Traceback</error><failure message="no"/></testcase>',
    )
    (tmp_path / "junit.xml").write_text(junit(*cases))
    results = read_run(tmp_path / "junit.xml", [known_suite("a.yaml", "one")])[0]
    assert found(results) == {
        "a.yaml::one": ("passed", [1]),
        "b::one": ("skipped", [None]),
        "pytest::x&y": ("error", [None]),
    }
    assert [case.reason for _, case in results.cases()] == ["", "test: later", "Traceback; test: Traceback"]
    assert results.run.started_at == "2026-11-20T10:00:00.000Z"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'<!DOCTYPE a [<!ENTITY x "yyyy">]><testsuite name="&x;"/>', "x.xml: not valid XML: a document type"),
        (b"<testsuite>\n<a></testsuite>", "x.xml:2: not valid XML: mismatched tag"),
        (b"<html/>", "x.xml: not the results of a run"),
        (b"PK\x03\x04", "x.xml: a zip archive; convert a log of Inspect: inspect log convert --to json"),
        (b'{"testRunLink": "https://app.confident-ai.com/x"}', "x.xml: has a link to Confident AI, not the results"),
    ],
)
def test_files_without_results_are_named_with_the_reason(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.xml").write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        read_run(tmp_path / "x.xml")
    assert str(raised.value).replace(f"{tmp_path}/", "").startswith(message)


# All of them

GOOD = {
    "holodeck": report(holodeck_test("a", metric())),
    "fluxloop": summary(),
    "fluxloop traces": trace(),
    "promptfoo": promptfoo(row("a", component())),
    "deepeval": deepeval(
        {"name": "a", "input": "hi", "actualOutput": "ho", "metricsData": [geval()], "success": True}
    ),
    "inspect": inspect({"id": "a", "epoch": 1, "input": "hi", "scores": {"match": {"value": "C"}}}),
}


@pytest.mark.parametrize("kind", GOOD)
def test_a_run_is_the_same_wherever_its_file_lies(tmp_path: Path, kind: str) -> None:
    one, other = write(tmp_path, GOOD[kind], "a.json"), write(tmp_path, GOOD[kind], "b/results.json")
    os.utime(one, (1_700_000_000, 1_700_000_000))
    assert read_run(one)[0].run.id == read_run(other)[0].run.id
    assert read_run(one)[0].run.id.startswith(kind.partition(" ")[0])


@pytest.mark.parametrize("timestamp", ["yesterday", "", None, "0001-01-01T00:00:00+14:00"])
def test_a_time_that_is_none_does_not_matter(tmp_path: Path, timestamp: str | None) -> None:
    file = write(tmp_path, report(holodeck_test("a", metric()), timestamp=timestamp))
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert read_run(file)[0].run.finished_at == "2023-11-14T22:13:20.000Z"


def test_mistakes_in_a_file_are_named_with_their_place(tmp_path: Path) -> None:
    content = report(holodeck_test("a", metric()), holodeck_test("b", metric()))
    del content["results"][0]["passed"]
    content["results"][1]["metric_results"][0]["metric_name"] = 5
    assert problems_of(tmp_path, content) == [
        "run.json: report.results.0.passed: Field required",
        "run.json: report.results.1.metric_results.0.metric_name: Input should be a valid string",
    ]


def test_files_of_other_tools_are_refused_by_their_size_before_they_are_read(tmp_path: Path) -> None:
    """Three gigabytes of nothing: their reading would take twenty seconds and six gigabytes."""
    with (tmp_path / "run.json").open("wb") as file:
        file.truncate(3_000_000_000)
    tracemalloc.start()
    try:
        for read in (read_run, read_results):
            with pytest.raises(ConfigError, match="cannot be read: it has more than 500,000,000 bytes"):
                read(tmp_path / "run.json")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_numbers_beyond_all_measure_are_none(tmp_path: Path) -> None:
    content = json.dumps(report(holodeck_test("a", metric(threshold=11), execution_time_ms=22)))
    content = content.replace("11,", "1e999,").replace("22,", f"{10**300},").replace("2500", "1e300")
    results = read(tmp_path, content)
    assert scores(only(results))["numeric"].threshold is None
    assert only(results).iterations[0].turns[0].latency_ms is None
    assert results.run.duration_s == 0


@pytest.mark.parametrize("kind", GOOD)
def test_files_with_a_byte_order_mark_are_read(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD[kind]).encode())
    assert read_run(file)[0].tool.name == kind.partition(" ")[0]


def test_another_content_is_another_run(tmp_path: Path) -> None:
    assert len({read(tmp_path, content).run.id for content in GOOD.values()}) == len(GOOD)


def test_a_line_with_a_wrong_field_is_named(tmp_path: Path) -> None:
    content = lines(trace(), trace(scores=[1]), trace(**{"pass": "perhaps"}))
    found = problems_of(tmp_path, content)
    assert [problem.partition(": ")[0] for problem in found] == ["run.json:2", "run.json:3"]
    assert found[0].startswith("run.json:2: scores: ")
    assert found[1].startswith("run.json:3: pass: ")
