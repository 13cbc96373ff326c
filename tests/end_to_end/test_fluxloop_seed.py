"""The complete examples of FluxLoop's guide to evaluations, unchanged, on 240 traces whose scores are known."""

from __future__ import annotations

import html
import json
import re
import shutil
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.conftest import Command
from tests.end_to_end.exact_statistics import fisher, mean, percentile
from tests.end_to_end.fluxloop_analysis_checks import (
    check_comparison,
    check_criteria,
    check_failures,
    check_outliers,
    check_statistics,
    check_trends,
)
from tests.end_to_end.fluxloop_checks import (
    Done,
    by_persona,
    check_everything,
    finals_of,
    near,
    present,
)
from tests.end_to_end.fluxloop_known import (
    COUNT,
    ITERATIONS,
    PERSONAS,
    QUESTIONS,
    Known,
    Plan,
    Row,
    judged,
    latency_under,
    make_traces,
    not_empty,
    raw_score,
    reply,
    sampled,
    score_all,
    success,
    tokens_under,
)
from tests.integration.model_server import KEY, ModelServer, RecordedQuestion, says, serving
from tests.mistakes import shown

EXAMPLES = Path(__file__).parents[1] / "data" / "fluxloop"
CONFIG = Path("configs/evaluation.yaml")
PLANS = {
    "quick_start": Plan({"basic_checks": (not_empty, success)}, {"basic_checks": Fraction(1)}, Fraction("0.7")),
    "minimal": Plan({"basic": (not_empty, success)}, {"basic": Fraction(1)}, Fraction("0.7")),
    "standard": Plan(
        {"completeness": (not_empty, success, latency_under(2000))},
        {
            "completeness": Fraction("0.3"),
            "intent_recognition": Fraction("0.35"),
            "response_clarity": Fraction("0.35"),
        },
        Fraction("0.75"),
        {"intent_recognition": "gpt-4o-mini", "response_clarity": "gpt-4o-mini"},
        sample_rate=0.5,
        max_calls=100,
    ),
    "production": Plan(
        {"not_empty": (not_empty,), "token_budget": (tokens_under(4000),)},
        {
            "not_empty": Fraction("0.2"),
            "token_budget": Fraction("0.2"),
            "intent_recognition": Fraction("0.3"),
            "response_quality": Fraction("0.3"),
        },
        Fraction("0.8"),
        {"intent_recognition": "gpt-4o", "response_quality": "gpt-4o"},
        max_calls=500,
    ),
}
# How the built-in prompts begin.
QUESTIONS_OF_JUDGES = {
    "Did the agent understand": "intent_recognition",
    "Would the person who asked understand": "response_clarity",
    "How good is the agent's answer": "response_quality",
}


Evaluate = Callable[..., Done]


@pytest.fixture
def judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Judges that give every trace its known score."""
    with serving() as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.delenv("FLUXLOOP_LLM_API_KEY", raising=False)
        server.respond = lambda asked: says(asked, reply(*question(asked)))
        yield server


@pytest.fixture
def evaluate(command: Command, judges: ModelServer) -> Evaluate:
    """Runs an evaluation of a project on traces."""

    def run(text: str, traces: Sequence[Known], *options: str, out: str = "out") -> Done:
        CONFIG.parent.mkdir(exist_ok=True)
        CONFIG.write_text(text, encoding="utf-8")
        write_traces(traces)
        return Done(command("run", CONFIG, "--traces", "traces.jsonl", "--out", out, "--quiet", *options), Path(out))

    return run


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")


def status_with_failures(rows: Sequence[Row]) -> int:
    """1, or 3 if more than a tenth of the traces that should be judged have no judgement."""
    counts = Counter(row.status for row in rows)
    return 3 if counts["error"] > (len(rows) - counts["skipped"]) / 10 else 1


def write_traces(traces: Sequence[Known]) -> None:
    Path("traces.jsonl").write_text("".join(f"{json.dumps(trace.record)}\n" for trace in traces), encoding="utf-8")


def question(asked: RecordedQuestion) -> tuple[str, int]:
    """Which judge is asked about which trace."""
    (judge,) = (name for text, name in QUESTIONS_OF_JUDGES.items() if text in asked.prompt)
    found = re.search(r"Do it like this \[(\d+)\]", asked.prompt)
    assert found
    return judge, int(found[1])


def test_the_traces_have_something_of_everything() -> None:
    traces = make_traces(1)
    assert len(traces) == COUNT == 240
    assert Counter(trace.persona for trace in traces) == dict.fromkeys(PERSONAS, QUESTIONS * ITERATIONS)
    assert {trace.reported_success for trace in traces} == {True, False, None}
    assert sum(trace.is_blank for trace in traces) > 5
    assert sum(trace.tokens is None for trace in traces) > 10
    assert sum((trace.tokens or 0) > 4000 for trace in traces) > 5
    assert sum((trace.duration_ms or 0) > 2000 for trace in traces) > 5
    assert sum(raw_score("intent_recognition", trace.number) is None for trace in traces) > 3


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", PLANS)
def test_every_number_is_the_one_that_the_guide_describes(
    evaluate: Evaluate, judges: ModelServer, name: str, seed: int
) -> None:
    traces, plan = make_traces(seed), PLANS[name]
    done = evaluate(example(name), traces)
    rows = score_all(plan, traces)
    assert 0 < sum(row.passed is True for row in rows) < len(judged(rows))
    assert done.ended.status == status_with_failures(rows)
    check_everything(done, plan, rows)
    assert {asked.body["model"] for asked in judges.asked} == set(plan.judges.values())


def test_fifty_calls_are_allowed_where_nothing_is_said(evaluate: Evaluate, judges: ModelServer) -> None:
    traces = make_traces(3)
    text = re.sub(r"^limits:\n(  .*\n)+", "", example("standard"), flags=re.MULTILINE)
    assert "limits" not in text
    done = evaluate(text, traces)
    plan = replace(PLANS["standard"], sample_rate=1.0, max_calls=50)
    rows = score_all(plan, traces)
    check_everything(done, plan, rows)
    why = Counter(text for line in done.lines for text in line.get("absent", {}).values())
    spent = why.pop("limits.max_llm_calls (50) is used up")
    assert spent == 2 * (COUNT - 25)
    assert ["limits.max_llm_calls (50) is used up", spent] in done.summary["absent_reasons"]
    calls = 50 - 2 * sum(row.trace.is_blank and not row.is_skipped for row in rows)
    assert len(judges.asked) == calls
    assert done.results["summary"]["judging"] == {
        "cases": COUNT,
        "judged": 25,
        "not_judged": [{"cause": "limit", "limit": "limit of 50 calls", "cases": COUNT - 25}],
    }
    # The questions that must be repeated have no call left.
    assert any(row.absent and not row.is_skipped for row in rows)
    judges.respond = lambda asked: says(asked, "excellent")
    judges.asked.clear()
    evaluate(text, traces, "--no-cache", "--concurrency", "16")
    assert len(judges.asked) == calls


def test_calls_at_once_are_counted_all_the_same(evaluate: Evaluate) -> None:
    traces = make_traces(4)
    done = evaluate(example("standard"), traces, "--concurrency", "16")
    asked = [
        (name, line["trace_id"])
        for line, trace in zip(done.lines, traces, strict=True)
        for name in set(line["scores"]) & PLANS["standard"].judges.keys()
        if not trace.is_blank
    ]
    assert {trace_id for _, trace_id in asked} <= sampled(PLANS["standard"], traces)


@pytest.mark.long
def test_the_production_example_as_a_whole(evaluate: Evaluate) -> None:
    plan, earlier, traces = PLANS["production"], make_traces(5), make_traces(4)
    before, now = score_all(plan, earlier), score_all(plan, traces)
    first = evaluate(example("production"), earlier, out="experiments/baseline")
    missing = "there is no baseline at configs/experiments/baseline/evaluation/summary.json"
    assert first.summary["analysis"]["comparison"] == {"message": missing}
    assert f"⚠️ {missing}" in html.unescape(first.report)
    done = evaluate(example("production"), traces)
    assert (first.ended.status, done.ended.status) == (1, 1)
    check_everything(done, plan, now)
    for run, rows in ((first, before), (done, now)):
        check_criteria(run, rows)
        check_outliers(run, rows)
        check_trends(run, rows)
    analysis = done.summary["analysis"]
    trends = [run.summary["analysis"]["performance"]["trends"] for run in (first, done)]
    assert [(trend["final_score"]["trend"], trend["duration_ms"]["trend"]) for trend in trends] == [
        ("decreasing", "decreasing"),
        ("stable", "increasing"),
    ]
    check_failures(analysis["failures"], now, PLANS["production"].threshold)
    check_comparison(done, plan, now, before)
    check_statistics(analysis["statistics"], plan, now, before)
    rate = Fraction(100 * sum(not row.was_successful for row in now), COUNT)
    (alert,) = analysis["alerts"]
    assert alert == {"metric": "error_rate", "operator": ">", "threshold": 5, "value": near(rate), "triggered": True}
    assert f"alert: error_rate > 5: it is {float(rate):.4g}" in html.unescape(done.report)
    for name, group in by_persona(now).items():
        averages = analysis["persona"]["breakdown"][name]["evaluator_averages"]
        assert averages == {
            metric: near(mean([row.scores[metric] for row in group if metric in row.scores]))
            for metric in plan.weights
        }


@pytest.mark.long
def test_a_baseline_that_fluxloop_wrote(evaluate: Evaluate) -> None:
    traces = make_traces(1)
    rows = score_all(PLANS["production"], traces)
    earlier = {
        "total_traces": 100,
        "passed_traces": 90,
        "pass_rate": 0.9,
        "average_score": 0.75,
        "threshold": 0.5,
        "evaluator_stats": {"token_budget": {"average": 0.5, "min": 0.0, "max": 1.0, "count": 100}},
    }
    path = Path("experiments/baseline/evaluation/summary.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(earlier), encoding="utf-8")
    analysis = evaluate(example("production"), traces).summary["analysis"]
    passed = sum(row.passed is True for row in rows)
    comparison = analysis["comparison"]
    assert comparison["message"].startswith("the threshold was 0.5 in the baseline and is 0.8 now")
    assert comparison["pass_rate"]["delta"] == near(Fraction(passed, len(judged(rows))) - Fraction("0.9"))
    assert comparison["total_traces"]["delta"] == COUNT - 100
    tokens = mean([row.scores["token_budget"] for row in rows])
    assert comparison["evaluator_averages"] == {
        "token_budget": {"current": near(tokens), "baseline": 0.5, "delta": near(tokens - Fraction("0.5"))}
    }
    against = [test for test in analysis["statistics"]["tests"] if test["against"] == "the baseline"]
    assert [(test["measure"], test["p"]) for test in against] == [
        ("pass_rate", pytest.approx(fisher(passed, len(judged(rows)), 90, 100)))
    ]


def test_alerts_watch_every_number_of_a_run(evaluate: Evaluate) -> None:
    traces = make_traces(9)
    rows = score_all(PLANS["minimal"], traces)
    times = present([trace.duration_ms for trace in traces])
    average = mean(finals_of(rows))
    values: dict[str, Fraction | int] = {
        "avg_score": average,
        "basic": average,
        "pass_rate": Fraction(sum(row.passed is True for row in rows), COUNT),
        "error_rate": Fraction(100 * sum(not row.was_successful for row in rows), COUNT),
        "total_traces": COUNT,
        "failed_traces": sum(row.passed is False for row in rows),
        "avg_response_time": mean(times),
        "p95_response_time": percentile(times, Fraction(95, 100)),
        "max_response_time": max(times),
        "avg_tokens": mean(present([trace.tokens for trace in traces])),
    }
    conditions: list[dict[str, Any]] = [
        {"metric": metric, "operator": operator, "threshold": threshold}
        for metric, value in values.items()
        for operator in (">", ">=", "<", "<=", "==")
        for threshold in (float(value) - 0.01, float(value), float(value) + 0.01)
    ]
    text = f"{example('minimal')}\nadvanced:\n  alerts: {json.dumps({'enabled': True, 'conditions': conditions})}\n"
    done = evaluate(text, traces)
    # Each value against a threshold below it, equal to it, and above it.
    wanted = [
        triggered
        for _ in values
        for triggered in (
            *(True, False, False),
            *(True, True, False),
            *(False, False, True),
            *(False, True, True),
            *(False, True, False),
        )
    ]
    alerts = done.summary["analysis"]["alerts"]
    assert alerts == [
        {**condition, "value": near(values[condition["metric"]]), "triggered": triggered}
        for condition, triggered in zip(conditions, wanted, strict=True)
    ]


def flawless() -> list[Known]:
    found = [
        trace
        for trace in make_traces(5)
        if trace.reported_success
        and not trace.is_blank
        and trace.tokens is not None
        and trace.tokens <= 4000
        and trace.duration_ms is not None
        and trace.duration_ms <= 2000
    ]
    # Two models judge each. One of them that fails stays within the 2 % of the criterion `error_rate`.
    return found[::2]


@pytest.mark.parametrize("name", PLANS)
def test_the_gate_passes_where_every_trace_passes_and_every_criterion_is_met(
    evaluate: Evaluate, judges: ModelServer, name: str
) -> None:
    judges.respond = lambda asked: says(asked, "10")
    traces = flawless()
    done = evaluate(example(name), traces)
    passed = len(judged(score_all(PLANS[name], traces, broken=False)))
    assert (done.ended.status, done.results["summary"]["passed"]) == (0, passed)
    assert all(criterion["met"] for criterion in done.suite["criteria"])


@pytest.mark.long
def test_judgements_outlive_the_reports(evaluate: Evaluate, judges: ModelServer) -> None:
    traces, plan = make_traces(7), PLANS["production"]
    rows = score_all(plan, traces)
    first = evaluate(example("production"), traces)
    asked = Counter(map(question, judges.asked))
    due = {(judge, row.trace.number) for row in rows for judge in plan.judges if not row.trace.is_blank}
    broken = {(judge, number) for judge, number in due if raw_score(judge, number) is None}
    # A reply that says nothing useful is asked for once more; 500 calls have room for 20 beyond those of 240 traces.
    assert len(broken) == 17
    assert asked == Counter([*due, *broken])
    kept = CONFIG.with_name("prod_eval_cache.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(kept) == len(due - broken)
    shutil.rmtree(first.out)
    shutil.rmtree("cache")
    judges.asked.clear()
    again = evaluate(example("production"), traces)
    # What said nothing useful is worth asking again, and nothing else.
    assert Counter(map(question, judges.asked)) == Counter([*broken, *broken])
    check_everything(again, plan, rows)
    judges.asked.clear()
    sound = [trace for trace in traces if not broken & {(judge, trace.number) for judge in plan.judges}]
    shutil.rmtree(again.out)
    evaluate(example("production"), sound)
    assert judges.asked == []
    evaluate(example("production"), sound, "--no-cache")
    assert len(judges.asked) == len(plan.judges) * sum(not trace.is_blank for trace in sound)


def test_an_endless_line_is_named_and_not_kept_in_memory(evaluate: Evaluate, command: Command) -> None:
    traces, plan = make_traces(8), PLANS["minimal"]
    evaluate(example("minimal"), traces)
    lines = Path("traces.jsonl").read_bytes().splitlines(keepends=True)
    with Path("traces.jsonl").open("wb") as file:
        file.writelines(lines[:3])
        file.write(b'{"input": "a", "output": "' + b"x" * 50_000_000 + b'"}\n')
        file.writelines(lines[3:])
    options = ("run", CONFIG, "--traces", "traces.jsonl", "--quiet", "--out")
    message = "traces.jsonl:4: the line is longer than 10 MB"
    refused = command(*options, "refused")
    assert refused.status == 2
    (mistake,) = shown(refused.err)
    assert mistake.says(message), refused.err
    tracemalloc.start()
    kept = Done(command(*options, "kept", "--keep-going"), Path("kept"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000
    assert message in kept.ended.out + kept.ended.err
    check_everything(kept, plan, score_all(plan, traces))
