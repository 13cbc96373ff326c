"""Judges in whole runs: deepeval, and the providers' own clients, against an independent mock of their APIs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from tests.peers.aimock import KEY, Aimock, Fixture, offer, read_fixtures
from tests.support import recorded_pauses

from agenteval.cli.main import main
from agenteval.results.case import Score
from agenteval.results.model import Results
from agenteval.results.store import read_results

pytestmark = pytest.mark.peer

INPUT_TOKENS, OUTPUT_TOKENS = 100, 10
USAGE = {
    "prompt_tokens": INPUT_TOKENS,
    "completion_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}
ITERATIONS = 3
PATIENCE_S = 300


def fixture(said: Any, match: str = "", **fields: Any) -> Fixture:
    """What the model says, JSON or text, to a prompt that contains something."""
    return {"match": {"userMessage": match} if match else {}, "response": {"content": said, "usage": USAGE}, **fields}


def refusing(status: int, message: str, sequence: int | None = None, **fields: Any) -> Fixture:
    """An error; with ``sequence`` only for the request of that number."""
    retry = {"retryAfter": fields.pop("retry_after")} if "retry_after" in fields else {}
    match = {} if sequence is None else {"sequenceIndex": sequence}
    return {"match": match, "response": {"error": {"message": message, **fields}, "status": status, **retry}}


JUDGES = [
    fixture(item["response"]["content"], item["match"]["userMessage"])
    for item in read_fixtures(Path(__file__).parent / "fixtures" / "judges.json")
]
GOOD = fixture({"reason": "Fine.", "score": 8})

# A judge that takes one call.
GEVAL: Mapping[str, Any] = {
    "type": "geval",
    "name": "Right",
    "criteria": "Is it right?",
    "evaluation_steps": ["Look."],
}
RAG = ("faithfulness", "answer_relevancy", "contextual_relevancy", "contextual_precision", "contextual_recall")
SIX: Sequence[Mapping[str, Any]] = [
    {
        "type": "geval",
        "name": "Right",
        "criteria": "Is the answer right?",
        "evaluation_params": ["input", "actual_output", "expected_output"],
    },
    *({"type": "rag", "metric_type": name} for name in RAG),
]
CASE: Mapping[str, Any] = {
    "name": "capital",
    "input": "What is the capital of Portugal?",
    "ground_truth": "Lisbon. It lies on the Tagus.",
    "retrieval_context": ["Lisbon is the capital of Portugal.", "Tiles are blue.", "The bridge opened in 1966."],
}
ANSWER = "Lisbon is the capital, and its bridge opened in 1999."


@dataclass(frozen=True)
class Judge:
    """A model of the mock, and what one answer of it takes."""

    provider: str
    name: str
    cost_usd: float | None
    tokens: tuple[int, int] = (INPUT_TOKENS, OUTPUT_TOKENS)

    @property
    def label(self) -> str:
        return f"{self.provider}/{self.name}"


GPT = Judge("openai", "gpt-4.1", 0.00028)
AZURE = Judge("azure_openai", "gpt-4.1", 0.00028)
CLAUDE = Judge("anthropic", "claude-sonnet-4-6", 0.00045)
# The mock counts no tokens in Ollama's form.
OLLAMA = Judge("ollama", "gpt-oss:20b", 0.0, (0, 0))
REASONING = Judge("openai", "gpt-5-mini", 0.000045)
UNKNOWN = Judge("openai", "our-own-model", None)
PROVIDERS = (GPT, AZURE, CLAUDE, OLLAMA)
each_provider = pytest.mark.parametrize("judge", PROVIDERS, ids=lambda judge: judge.provider)


@dataclass(frozen=True)
class Ran:
    """What a run led to."""

    status: int
    results: Results
    shown: str

    def scores(self) -> list[Score]:
        """All scores, in the order of the suite."""
        turns = [turn for _, case in self.results.cases() for turn in case.turns]
        return [score for turn in turns for score in turn.scores]

    def score(self) -> Score:
        """The only one."""
        (score,) = self.scores()
        return score

    def case(self) -> str:
        """The status of the only case."""
        ((_, case),) = self.results.cases()
        return case.status


@dataclass
class Bench:
    """A directory with a suite, run by the command in this process."""

    mock: Aimock
    directory: Path
    _capture: pytest.CaptureFixture[str] = field(repr=False)

    def write(
        self,
        metrics: Sequence[Mapping[str, Any]],
        judge: Judge | Mapping[str, Any] | None = GPT,
        cases: Sequence[Mapping[str, Any]] = (CASE,),
        answers: Mapping[str, str] | None = None,
        llm: Mapping[str, Any] | None = None,
        **keys: Any,
    ) -> None:
        model = self.mock.model(judge.provider, judge.name) if isinstance(judge, Judge) else judge
        evaluations: dict[str, Any] = {"metrics": [dict(metric) for metric in metrics]}
        if model is not None:
            evaluations["model"] = dict(model)
        suite = {
            "name": "judged",
            "agent": "replay:answers.jsonl",
            "evaluations": evaluations,
            "test_cases": [dict(case) for case in cases],
            **keys,
        }
        replies = answers if answers is not None else {case["name"]: ANSWER for case in cases}
        lines = (
            json.dumps({"case": name, "iteration": iteration, "response": text})
            for name, text in replies.items()
            for iteration in range(ITERATIONS)
        )
        settings = {"backoff": 0, **(llm or {})}
        self._file("agent.yaml", yaml.safe_dump(suite))
        self._file("answers.jsonl", "\n".join(lines))
        self._file("agenteval.yaml", yaml.safe_dump({"llm": settings}))

    def _file(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text, encoding="utf-8")

    def run(self, *options: str) -> Ran:
        status = main(["run", "agent.yaml", *options])
        captured = self._capture.readouterr()
        return Ran(status, read_results(self.directory / "agenteval-report"), captured.out + captured.err)

    def text(self, name: str) -> str:
        """A file of the report."""
        return (self.directory / "agenteval-report" / name).read_text(encoding="utf-8")


@pytest.fixture
def mock(models: Aimock) -> Aimock:
    models.play(*JUDGES)
    return models


@pytest.fixture
def bench(
    no_providers: None,
    mock: Aimock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Bench:
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return Bench(mock, directory, capsys)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return recorded_pauses(monkeypatch)


class TestAllMetrics:
    @pytest.mark.parametrize("judge", [GPT, REASONING, UNKNOWN, AZURE, CLAUDE, OLLAMA], ids=lambda judge: judge.label)
    def test_scores_reasons_and_what_they_took(self, bench: Bench, judge: Judge) -> None:
        bench.write(SIX, judge)
        ran = bench.run()

        assert (ran.status, ran.case()) == (0, "passed")
        calls = [2, 4, 3, 4, 2, 2]
        assert [(score.id, score.score and round(score.score, 4), score.reason) for score in ran.scores()] == [
            ("Right", 0.8, "The city is right, the year is not."),
            ("faithfulness", 0.5, "One of two claims contradicts the passages."),
            ("answer_relevancy", 0.5, "Nobody asked about the bridge."),
            ("contextual_relevancy", 0.5, "Half of what was found is about tiles."),
            ("contextual_precision", 0.8333, "The passage about tiles comes second."),
            ("contextual_recall", 0.5, "One of two sentences stands in the passages."),
        ]
        assert [(score.status, score.threshold, score.passed) for score in ran.scores()] == [
            ("scored", 0.5, True)
        ] * 6
        assert {score.model for score in ran.scores()} == {judge.label}
        tokens_in, tokens_out = judge.tokens
        assert [score.details for score in ran.scores()] == [
            {"llm_calls": n, "cached_calls": 0, "input_tokens": n * tokens_in, "output_tokens": n * tokens_out}
            for n in calls
        ]
        costs = [None if judge.cost_usd is None else pytest.approx(n * judge.cost_usd) for n in calls]
        assert [score.cost_usd for score in ran.scores()] == costs

        usage = ran.results.summary.usage
        assert usage.llm_calls == sum(calls) == len(bench.mock.requests())
        assert (usage.input_tokens, usage.output_tokens) == (17 * tokens_in, 17 * tokens_out)
        assert usage.cost_usd == pytest.approx(17 * (judge.cost_usd or 0.0))

    @each_provider
    def test_a_strict_judge(self, bench: Bench, judge: Judge) -> None:
        bench.write([{**GEVAL, "strict_mode": True}], judge)
        ran = bench.run()

        assert (ran.status, ran.case(), ran.score().score) == (1, "failed", 0.0)
        assert ran.score().reason == "The year is wrong."

    @each_provider
    def test_without_reasons_a_call_is_saved(self, bench: Bench, judge: Judge) -> None:
        bench.write([{"type": "rag", "metric_type": name, "include_reason": False} for name in RAG], judge)
        ran = bench.run()

        assert [score.reason for score in ran.scores()] == [None] * 5
        assert len(bench.mock.requests()) == 15 - 5

    def test_thresholds(self, bench: Bench) -> None:
        bench.write([{**GEVAL, "threshold": 0.8}, {**GEVAL, "name": "More", "threshold": 0.81}])
        ran = bench.run()

        assert [(score.score, score.passed) for score in ran.scores()] == [(0.8, True), (0.8, False)]
        assert (ran.status, ran.case()) == (1, "failed")


class TestWhichModel:
    def test_the_metrics_own_then_the_suites_then_the_agents(self, bench: Bench) -> None:
        own, suites, agents = (bench.mock.model("openai", name) for name in ("gpt-4o", "gpt-4.1", "gpt-4.1-mini"))
        metrics = [{**GEVAL, "model": own}, {**GEVAL, "name": "Other"}]
        bench.mock.play(GOOD)

        bench.write(metrics, suites, model=agents)
        assert [score.model for score in bench.run().scores()] == ["openai/gpt-4o", "openai/gpt-4.1"]
        bench.write(metrics, None, model=agents)
        assert [score.model for score in bench.run().scores()] == ["openai/gpt-4o", "openai/gpt-4.1-mini"]
        asked = {request.body["model"] for request in bench.mock.requests()}
        assert asked == {"gpt-4o", "gpt-4.1", "gpt-4.1-mini"}

    def test_without_any_it_is_ollamas(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OLLAMA_HOST", bench.mock.url)
        bench.mock.play(*JUDGES, offer("gpt-oss:20b"))
        bench.write(SIX, None)
        ran = bench.run()

        assert {score.model for score in ran.scores()} == {"ollama/gpt-oss:20b"}
        assert {request.path for request in bench.mock.requests()} == {"/api/chat"}

    @pytest.mark.parametrize(
        ("judge", "given", "sent"),
        [
            (GPT, None, 0),
            (GPT, 0.4, 0.4),
            (AZURE, None, 0),
            (OLLAMA, None, 0),
            (OLLAMA, 0.4, 0.4),
            (CLAUDE, None, None),
            (CLAUDE, 0.4, 0.4),
            (REASONING, None, None),
            (REASONING, 0.4, None),
            (UNKNOWN, None, 0),
        ],
    )
    def test_temperature(self, bench: Bench, judge: Judge, given: float | None, sent: float | None) -> None:
        fields = {} if given is None else {"temperature": given}
        bench.write([GEVAL], bench.mock.model(judge.provider, judge.name, **fields))
        bench.run()

        assert [request.body.get("temperature") for request in bench.mock.requests()] == [sent]

    def test_the_agents_temperature_is_not_the_judges(self, bench: Bench) -> None:
        bench.write([GEVAL], None, model=bench.mock.model("openai", "gpt-4.1", temperature=0.9))
        bench.run()

        assert [request.body["temperature"] for request in bench.mock.requests()] == [0]

    def test_a_missing_key_stops_before_anything_runs(self, bench: Bench) -> None:
        bench.write([GEVAL], {"provider": "anthropic", "name": "claude-sonnet-4-6"})

        assert main(["run", "agent.yaml"]) == 2
        assert bench.mock.requests() == []


class TestFailures:
    """What is not judged has no score, and says why."""

    @staticmethod
    def errors(bench: Bench, judge: Judge, *fixtures: Fixture, **llm: Any) -> tuple[str, int]:
        """The error of the only score, and the number of requests."""
        bench.mock.play(*fixtures)
        bench.write([GEVAL], judge, llm={"retries": 2, **llm})
        ran = bench.run()
        score = ran.score()
        assert (score.status, score.score, score.passed, score.reason) == ("error", None, None, None)
        # Every metric of the case broke, so the case did; and all cases did, so the run did.
        assert (ran.case(), ran.status) == ("error", 3)
        assert [(metric.n, metric.errors) for metric in ran.results.summary.metrics.values()] == [(0, 1)]
        return score.error or "", len(bench.mock.requests())

    @each_provider
    def test_a_server_that_stays_broken(self, bench: Bench, judge: Judge) -> None:
        error, requests = self.errors(bench, judge, refusing(500, "The server is on fire"))

        assert error == f"{judge.label} answered 500: The server is on fire (after 3 attempts)"
        assert requests == 3

    @each_provider
    def test_a_wrong_key(self, bench: Bench, judge: Judge) -> None:
        error, requests = self.errors(bench, judge, refusing(401, "Invalid API key", type="authentication_error"))

        assert error == f"{judge.label} answered 401: Invalid API key"
        assert requests == 1

    @each_provider
    def test_a_spent_quota(self, bench: Bench, judge: Judge) -> None:
        told = "You exceeded your current quota, please check your plan and billing details."
        spent = refusing(429, told, type="insufficient_quota", code="insufficient_quota")
        error, requests = self.errors(bench, judge, spent)

        assert error == f"{judge.label} answered 429: {told}"
        # The mock leaves the code out of Ollama's form; Ollama has no quotas.
        assert requests == 1 or judge is OLLAMA

    @each_provider
    def test_connections_that_break(self, bench: Bench, judge: Judge) -> None:
        error, requests = self.errors(bench, judge, {**GOOD, "chaos": {"disconnectRate": 1}})

        assert error.startswith(f"{judge.label} cannot be reached: ")
        assert error.endswith("(after 3 attempts)")
        assert requests == 3

    @each_provider
    def test_a_server_that_does_not_answer(self, bench: Bench, judge: Judge) -> None:
        slow = {**GOOD, "chaos": {"latencyMs": 30_000}}
        error, _ = self.errors(bench, judge, slow, timeout=0.2, retries=1)

        assert error == f"{judge.label} did not answer within 0.2 s (after 2 attempts)"

    @each_provider
    def test_a_reply_that_is_no_json(self, bench: Bench, judge: Judge) -> None:
        error, requests = self.errors(bench, judge, {**GOOD, "chaos": {"malformedRate": 1}})

        assert error.startswith(f"{judge.label} sent a reply that is not JSON")
        assert requests == 3

    @each_provider
    def test_no_text_but_something_else(self, bench: Bench, judge: Judge) -> None:
        call = {"match": {}, "response": {"toolCalls": [{"name": "search", "arguments": {}}]}}
        error, requests = self.errors(bench, judge, call)

        assert error.startswith(f"{judge.label} gave no answer: ")
        assert requests == 1

    @each_provider
    @pytest.mark.parametrize(
        ("said", "problem"),
        [
            ("Eight of ten.", "the judge's reply is not JSON: 'Eight of ten.'"),
            ({"reason": "Great!", "score": 42}, "the judge's score is 42, outside its scale of 0 to 10"),
            ({"reason": "Bad!", "score": -3}, "the judge's score is -3, outside its scale of 0 to 10"),
            ({"reason": "Great!"}, "the judge's reply does not fit ReasonScore: score: Field required"),
            ({"score": 8}, "the judge's reply does not fit ReasonScore: reason: Field required"),
            ({"verdicts": []}, "the judge's reply does not fit ReasonScore: reason: Field required"),
            ({"reason": "Great!", "score": True}, "the judge's score is True, not a number"),
        ],
    )
    def test_what_is_no_judgement(self, bench: Bench, judge: Judge, said: Any, problem: str) -> None:
        # The question is put once more.
        assert self.errors(bench, judge, fixture(said)) == (problem, 2)

    @each_provider
    @pytest.mark.parametrize(
        ("metric", "reply", "problem"),
        [
            ("faithfulness", ("EACH claim contradicts", []), "the judge gave no verdict, so there is no score"),
            (
                "answer_relevancy",
                ("each statement is relevant", []),
                "the judge gave no verdict, so there is no score",
            ),
            (
                "contextual_relevancy",
                ("each statement found in", []),
                "the judge gave no verdict, so there is no score",
            ),
            ("contextual_precision", ("remotely useful", []), "the judge gave no verdict, so there is no score"),
            ("contextual_recall", ("can be attributed", []), "the judge gave no verdict, so there is no score"),
            (
                "contextual_recall",
                ("can be attributed", ["maybe"]),
                "the judge gave no verdict, so there is no score",
            ),
        ],
    )
    def test_verdicts_on_nothing(
        self, bench: Bench, judge: Judge, metric: str, reply: tuple[str, list[str]], problem: str
    ) -> None:
        match, said = reply
        verdicts = [{"verdict": verdict, "reason": "So."} for verdict in said]
        bench.mock.play(fixture({"verdicts": verdicts}, match), *JUDGES)
        bench.write([{"type": "rag", "metric_type": metric}], judge)
        ran = bench.run()

        assert (ran.status, ran.case(), ran.score().status) == (3, "error", "error")
        assert problem in (ran.score().error or "")

    @each_provider
    def test_an_answer_without_claims_is_skipped(self, bench: Bench, judge: Judge) -> None:
        bench.mock.play(fixture({"claims": []}, "actual AI output"), *JUDGES)
        bench.write([{"type": "rag", "metric_type": "faithfulness"}], judge)
        ran = bench.run()

        assert (ran.status, ran.case(), ran.score().status) == (1, "skipped", "skipped")
        assert ran.score().reason == "the judge found nothing in the answer to give a verdict on"


class TestWhatPasses:
    """Failures that do not last, and replies that are odd but clear."""

    @staticmethod
    def scored(bench: Bench, judge: Judge, *fixtures: Fixture, **llm: Any) -> int:
        """The number of requests for one good score."""
        bench.mock.play(*fixtures)
        bench.write([GEVAL], judge, llm={"retries": 2, **llm})
        ran = bench.run()
        assert (ran.status, ran.score().error, ran.score().score) == (0, None, 0.8)
        usage = ran.results.summary.usage
        requests = bench.mock.requests()
        assert usage.llm_calls == len(requests)
        assert usage.input_tokens == judge.tokens[0]
        return len(requests)

    @each_provider
    def test_retry_after_is_waited_for(self, bench: Bench, judge: Judge, waits: list[float]) -> None:
        busy = refusing(429, "Slow down", sequence=0, retry_after=7)

        assert self.scored(bench, judge, busy, GOOD) == 2
        assert waits == [7.0]
        assert [request.status for request in bench.mock.requests()] == [429, 200]

    @each_provider
    @pytest.mark.parametrize("status", [500, 503, 529])
    def test_a_broken_server_recovers(self, bench: Bench, judge: Judge, status: int) -> None:
        assert self.scored(bench, judge, refusing(status, "Oops", sequence=0), GOOD) == 2

    @pytest.mark.parametrize(
        ("judge", "option"),
        [(GPT, "temperature"), (AZURE, "temperature"), (UNKNOWN, "response_format"), (CLAUDE, "output_config")],
    )
    def test_an_option_is_left_out(self, bench: Bench, judge: Judge, option: str) -> None:
        told = f"Unsupported parameter: '{option}' is not supported with this model."
        refused = refusing(400, told, sequence=0, param=option, code="unsupported_parameter")

        assert self.scored(bench, judge, refused, GOOD, retries=0) == 2
        first, second = bench.mock.requests()
        # The mock's list does not keep what only Anthropic has.
        assert judge is CLAUDE or (option in first.body) > (option in second.body)

    @each_provider
    @pytest.mark.parametrize(
        "said",
        [
            '```json\n{"reason": "Fine.", "score": 8}\n```',
            '```\n{"reason": "Fine.", "score": 8}\n```',
            'My judgement:\n\n{"reason": "Fine.", "score": 8}\n\nI hope that this helps.',
            '{"reason": "Fine.", "score": "8"}',
            '{"reason": "Fine.", "score": 8.0,}',
        ],
        ids=["fence", "bare fence", "prose", "text", "trailing comma"],
    )
    def test_odd_but_clear(self, bench: Bench, judge: Judge, said: str) -> None:
        assert self.scored(bench, judge, fixture(said)) == 1


class TestFailOnError:
    @pytest.mark.parametrize(("fail_on_error", "case"), [(False, "passed"), (True, "error")])
    @each_provider
    def test_it_decides_about_the_case(self, bench: Bench, judge: Judge, fail_on_error: bool, case: str) -> None:
        bench.mock.play(fixture("no idea", "Look hard."), GOOD)
        broken = {**GEVAL, "name": "Broken", "evaluation_steps": ["Look hard."], "fail_on_error": fail_on_error}
        bench.write([GEVAL, broken], judge)
        ran = bench.run()

        assert [(score.status, score.score) for score in ran.scores()] == [("scored", 0.8), ("error", None)]
        # Either way the metric has no score at all, so the run is never green.
        assert (ran.case(), ran.status) == (case, 3)
        assert ("Broken could not be computed in 1 case: the judge's reply" in ran.shown) == (not fail_on_error)
        assert "the judge's reply is not JSON: 'no idea'" in bench.text("summary.md")

    def test_one_case_never_stops_the_others(self, bench: Bench) -> None:
        cases = [{**CASE, "name": f"case-{number}"} for number in range(20)]
        answers = {case["name"]: f"The answer of {case['name']}." for case in cases}
        bench.mock.play(fixture("no idea", "of case-7."), GOOD)
        bench.write([{**GEVAL, "fail_on_error": True}], cases=cases, answers=answers)
        ran = bench.run()

        assert [case.status for _, case in ran.results.cases()] == [
            "error" if number == 7 else "passed" for number in range(20)
        ]


class TestBudget:
    # One call for G-Eval, three for answer relevancy, two for each of the others: ten for a case.
    FIVE: Sequence[Mapping[str, Any]] = [
        GEVAL,
        *(
            {"type": "rag", "metric_type": name, "include_reason": name == "answer_relevancy"}
            for name in ("answer_relevancy", "contextual_precision", "contextual_recall", "faithfulness")
        ),
    ]
    CALLS = 1 + 3 + 1 + 1 + 3

    @staticmethod
    def cases(count: int) -> tuple[list[Mapping[str, Any]], dict[str, str]]:
        cases: list[Mapping[str, Any]] = [
            {**CASE, "name": f"case-{n}", "input": f"Question {n}: {CASE['input']}"} for n in range(count)
        ]
        return cases, {case["name"]: f"Answer {n}: {ANSWER}" for n, case in enumerate(cases)}

    @pytest.mark.parametrize(("limit", "concurrency"), [(0, "8"), (137, "1"), (137, "8")])
    def test_calls_are_used_up_exactly(self, bench: Bench, limit: int, concurrency: str) -> None:
        cases, answers = self.cases(50)
        bench.write(self.FIVE, cases=cases, answers=answers, llm={"cache": False})
        ran = bench.run("--max-llm-calls", str(limit), "--concurrency", concurrency)

        assert len(bench.mock.requests()) == ran.results.summary.usage.llm_calls == limit
        scored = [score for score in ran.scores() if score.status == "scored"]
        skipped = [score for score in ran.scores() if score.status == "skipped"]
        assert len(scored) + len(skipped) == 250
        assert {score.reason for score in skipped} == {f"max_llm_calls ({limit}) is used up"}
        assert {score.score for score in skipped} == {None}
        # What was judged was judged as a whole.
        right = {"Right": 0.8, "contextual_precision": 0.8333}
        assert [score.id for score in scored if round(score.score or 0, 4) != right.get(score.id, 0.5)] == []
        assert sum((score.details or {})["llm_calls"] for score in scored) <= limit
        assert "the LLM budget is exhausted" in bench.text("summary.md")
        judged = {case.status for _, case in ran.results.cases()}
        # The budget ran out, so the run is unproven.
        assert (ran.status, judged) == (3, {"passed", "skipped"}) if limit else (1, {"skipped"})

    def test_a_limit_that_is_enough(self, bench: Bench) -> None:
        cases, answers = self.cases(10)
        bench.write(self.FIVE, cases=cases, answers=answers, llm={"cache": False, "max_calls": 10 * self.CALLS})
        ran = bench.run()

        assert len(bench.mock.requests()) == 10 * self.CALLS
        assert {score.status for score in ran.scores()} == {"scored"}
        assert "used up" not in bench.text("summary.md")

    @pytest.mark.parametrize("judge", [GPT, AZURE, CLAUDE], ids=lambda judge: judge.provider)
    def test_money_is_never_overspent(self, bench: Bench, judge: Judge) -> None:
        cases, answers = self.cases(60)
        bench.write(self.FIVE, judge, cases=cases, answers=answers, llm={"cache": False})
        ran = bench.run("--max-cost-usd", "0.02", "--concurrency", "8")

        cost = len(bench.mock.requests()) * (judge.cost_usd or 0.0)
        assert 0.015 < cost <= 0.02
        assert ran.results.summary.usage.cost_usd == pytest.approx(cost)
        skipped = {score.reason for score in ran.scores() if score.status == "skipped"}
        assert all((reason or "").startswith("max_cost_usd (0.02) is used up: ") for reason in skipped)
        assert skipped

    def test_what_is_cached_needs_no_budget(self, bench: Bench) -> None:
        cases, answers = self.cases(5)
        bench.write(self.FIVE, cases=cases, answers=answers)
        bench.run()
        bench.mock.forget()
        ran = bench.run("--max-llm-calls", "0", "--max-cost-usd", "0")

        assert bench.mock.requests() == []
        assert {score.status for score in ran.scores()} == {"scored"}


class TestCache:
    @pytest.mark.parametrize("judge", [GPT, REASONING, UNKNOWN, AZURE, CLAUDE, OLLAMA], ids=lambda judge: judge.label)
    def test_a_second_run_asks_nothing(self, bench: Bench, judge: Judge) -> None:
        bench.write(SIX, judge)
        first = bench.run()
        bench.mock.forget()
        second = bench.run()

        assert bench.mock.requests() == []
        assert [(s.score, s.reason, s.model) for s in second.scores()] == [
            (s.score, s.reason, s.model) for s in first.scores()
        ]
        assert [s.details for s in second.scores()] == [
            {"llm_calls": 0, "cached_calls": n} for n in (2, 4, 3, 4, 2, 2)
        ]
        usage = second.results.summary.usage
        assert (usage.llm_calls, usage.input_tokens, usage.cost_usd) == (0, 0, 0.0)
        assert {s.cost_usd for s in second.scores()} == {0.0}

    def test_unless_asked_to(self, bench: Bench) -> None:
        bench.write([GEVAL])
        bench.run()
        bench.run("--no-cache")
        bench.write([GEVAL], llm={"cache": False})
        bench.run()

        assert len(bench.mock.requests()) == 3

    def test_a_directory_of_ones_own(self, bench: Bench) -> None:
        bench.write([GEVAL], llm={"cache": "replies"})
        bench.run()
        bench.run()

        assert len(bench.mock.requests()) == 1
        assert len(list((bench.directory / "replies").rglob("*.json"))) == 1

    def test_iterations_do_not_share_answers(self, bench: Bench) -> None:
        bench.write([GEVAL])
        bench.run("--iterations", "2")
        assert len(bench.mock.requests()) == 2
        ran = bench.run("--iterations", "3")
        assert len(bench.mock.requests()) == 3
        assert [(score.details or {})["cached_calls"] for score in ran.scores()] == [1, 1, 0]

    @each_provider
    @pytest.mark.parametrize(
        "said", ["no idea", {"reason": "Great!", "score": 42}, {"score": 8}], ids=["prose", "scale", "schema"]
    )
    def test_a_broken_reply_is_not_kept(self, bench: Bench, judge: Judge, said: Any) -> None:
        bench.mock.play(fixture(said))
        bench.write([GEVAL], judge)
        assert bench.run().score().status == "error"
        bench.mock.play(GOOD)
        assert bench.run().score().score == 0.8

    def test_a_broken_file_is_no_answer(self, bench: Bench, tmp_path: Path) -> None:
        bench.write(SIX)
        bench.run()
        bench.mock.forget()
        files = sorted((tmp_path / "cache").rglob("*.json"))
        for number, file in enumerate(files):
            file.write_text(('{"text": "{}"', "", "[1]", '{"text": 5}')[number % 4], encoding="utf-8")
        ran = bench.run()

        assert len(bench.mock.requests()) == len(files)
        assert [round(score.score or 0, 4) for score in ran.scores()] == [0.8, 0.5, 0.5, 0.5, 0.8333, 0.5]

    def test_identical_questions_are_sent_once(self, bench: Bench) -> None:
        cases = [{**CASE, "name": f"case-{number}"} for number in range(20)]
        bench.write(SIX, cases=cases)
        ran = bench.run("--concurrency", "20")

        assert len(bench.mock.requests()) == 17
        assert {round(score.score or 0, 4) for score in ran.scores()} == {0.5, 0.8, 0.8333}
        assert sum(score.cost_usd or 0.0 for score in ran.scores()) == pytest.approx(17 * 0.00028)


class TestManyCases:
    @pytest.mark.parametrize("count", [2, 50])
    @each_provider
    def test_everyone_gets_their_own_score_and_reason(self, bench: Bench, judge: Judge, count: int) -> None:
        numbers = range(count)
        bench.mock.play(
            *(fixture({"reason": f"About {n}.", "score": n % 11}, f"The answer of case-{n:02}.") for n in numbers)
        )
        cases = [{**CASE, "name": f"case-{number:02}"} for number in numbers]
        answers = {case["name"]: f"The answer of {case['name']}." for case in cases}
        bench.write([GEVAL], judge, cases=cases, answers=answers)
        ran = bench.run("--concurrency", str(count))

        assert [(round((score.score or 0) * 10), score.reason) for score in ran.scores()] == [
            (number % 11, f"About {number}.") for number in numbers
        ]


class TestWhatCannotBeJudged:
    @each_provider
    @pytest.mark.parametrize("answer", ["", " \n "])
    def test_an_empty_answer(self, bench: Bench, judge: Judge, answer: str) -> None:
        bench.write(SIX, judge, answers={"capital": answer})
        ran = bench.run()

        assert [(score.status, score.score, score.reason) for score in ran.scores()] == [
            ("scored", 0.0, "empty response")
        ] * 6
        assert (ran.status, bench.mock.requests()) == (1, [])

    def test_fields_that_the_case_lacks(self, bench: Bench) -> None:
        bare = {"name": "bare", "input": "What is the capital of Portugal?"}
        bench.write(SIX, cases=[bare])
        ran = bench.run()

        assert {score.id: score.reason for score in ran.scores() if score.status == "skipped"} == {
            "Right": "the case has no ground_truth",
            "faithfulness": "the case has no retrieval_context",
            "contextual_relevancy": "the case has no retrieval_context",
            "contextual_precision": "the case has no ground_truth and retrieval_context",
            "contextual_recall": "the case has no ground_truth and retrieval_context",
        }
        assert [score.id for score in ran.scores() if score.status == "scored"] == ["answer_relevancy"]

    @pytest.mark.parametrize(
        "metric",
        [{"type": "rag", "metric_type": "faithfulness"}, {"type": "rag", "metric_type": "contextual_recall"}],
    )
    def test_fields_that_the_case_lacks_though_it_asks_itself(self, bench: Bench, metric: Mapping[str, Any]) -> None:
        own = {"name": "own", "input": "What is it?", "ground_truth": "It.", "evaluations": [metric]}
        bench.write([GEVAL], cases=[CASE, own], answers={"capital": ANSWER, "own": ANSWER})
        ran = bench.run()

        broken = ran.scores()[-1]
        assert (broken.status, broken.score) == ("error", None)
        assert broken.error == f"this case asks for {metric['metric_type']} but has no retrieval_context"


class TestSecrets:
    @each_provider
    @pytest.mark.parametrize("from_environment", [True, False])
    def test_the_key_is_nowhere(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch, judge: Judge, from_environment: bool
    ) -> None:
        model = bench.mock.model(judge.provider, judge.name)
        model["api_key"] = "${JUDGE_API_KEY}" if from_environment else KEY
        monkeypatch.setenv("JUDGE_API_KEY", KEY)
        echo = fixture({"reason": f"The key is {KEY}.", "score": 8}, "Look.")
        refused = refusing(401, f"Incorrect API key provided: {KEY}")
        bench.mock.play(echo, refused)
        bench.write([GEVAL, {**GEVAL, "name": "Refused", "evaluation_steps": ["Refuse."]}], model)
        ran = bench.run()

        first, second = ran.scores()
        assert (first.reason, first.status, second.status) == ("The key is ***.", "scored", "error")
        assert (second.error or "").endswith("answered 401: Incorrect API key provided: ***")
        assert KEY not in ran.shown
        report = [path for path in (bench.directory / "agenteval-report").rglob("*") if path.is_file()]
        assert len(report) >= 5
        assert [path.name for path in report if KEY in path.read_text(encoding="utf-8")] == []

    @each_provider
    def test_the_cache_does_not_hold_it(self, bench: Bench, judge: Judge, tmp_path: Path) -> None:
        bench.write(SIX, judge)
        bench.run()
        kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]

        assert len(kept) == 17
        assert [path.name for path in kept if KEY in path.read_text(encoding="utf-8")] == []
        assert [path.name for path in kept if KEY in str(path)] == []

    def test_another_key_is_no_other_question(self, bench: Bench) -> None:
        bench.write([GEVAL])
        bench.run()
        bench.write([GEVAL], {**bench.mock.model("openai", "gpt-4.1"), "api_key": "sk-another-key-0000000000"})
        bench.run()

        assert len(bench.mock.requests()) == 1


class TestHostile:
    @each_provider
    def test_marks_of_images_are_only_text(self, bench: Bench, judge: Judge) -> None:
        mark = "[DEEPEVAL:IMAGE:/etc/passwd] [DEEPEVAL:PDF:/etc/passwd]"
        case = {**CASE, "input": f"{CASE['input']} {mark}", "retrieval_context": [mark]}
        bench.write(SIX, judge, cases=[case], answers={"capital": f"{ANSWER} {mark}"})
        ran = bench.run()

        assert [score.status for score in ran.scores()] == ["scored"] * 6
        prompts = [request.prompt for request in bench.mock.requests()]
        assert [prompt for prompt in prompts if not isinstance(prompt, str) or "root:" in prompt] == []
        assert any(":IMAGE:/etc/passwd]" in prompt for prompt in prompts)
        turn = ran.results.cases()[0][1].iterations[0].turns[0]
        assert turn.response == f"{ANSWER} {mark}"

    @each_provider
    @pytest.mark.parametrize(
        "answer",
        ["{{ 7 * 7 }} {% for %} {# #}", "{input} %s %(x)s ${HOME}", "a\x00b\ud800c\u202e", "x" * 200_000],
        ids=["jinja", "formats", "characters", "long"],
    )
    def test_any_answer_is_judged(self, bench: Bench, judge: Judge, answer: str) -> None:
        bench.write([GEVAL], judge, answers={"capital": answer})
        ran = bench.run()

        assert (ran.status, ran.score().error, ran.score().score) == (0, None, 0.8)


# In a process of its own


WATCH = """
import os, socket

def note(kind, where):
    with open(os.environ["WATCHED"], "a") as file:
        print(kind, where, file=file)

_connect, _connect_ex, _look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

def foreign(address):
    return isinstance(address, tuple) and address[0] not in ("127.0.0.1", "localhost")

def connect(self, address):
    if foreign(address):
        note("connect", address)
        raise OSError("forbidden")
    return _connect(self, address)

def connect_ex(self, address):
    if foreign(address):
        note("connect", address)
        return 111
    return _connect_ex(self, address)

def look_up(host, *arguments, **options):
    if host not in (None, "127.0.0.1", "localhost", b"127.0.0.1"):
        note("look up", host)
        raise socket.gaierror("forbidden")
    return _look_up(host, *arguments, **options)

socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo = connect, connect_ex, look_up
"""


class TestProcess:
    @staticmethod
    def run(bench: Bench, tmp_path: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
        (tmp_path / "home").mkdir()
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=bench.directory,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path / "home"),
                "PYTHONPATH": str(tmp_path / "site"),
                "AGENTEVAL_CACHE": str(tmp_path / "cache"),
                "WATCHED": str(tmp_path / "watched"),
                **environment,
            },
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )

    #: Variables that would switch on what must stay off.
    WANTED: ClassVar[dict[str, str]] = {
        "DEEPEVAL_TELEMETRY_OPT_OUT": "0",
        "DEEPEVAL_TELEMETRY_ENABLED": "1",
        "DEEPEVAL_DISABLE_DOTENV": "0",
        "DEEPEVAL_DISABLE_LEGACY_KEYFILE": "0",
        "DEEPEVAL_UPDATE_WARNING_OPT_IN": "1",
        "CONFIDENT_TRACING_ENABLED": "YES",
    }

    RUN = (
        "import sys; from agenteval.cli.main import main; sys.exit(main(['run', 'agent.yaml', '--out', '../report']))"
    )

    @pytest.mark.parametrize("judge", [GPT, CLAUDE, OLLAMA], ids=lambda judge: judge.provider)
    def test_nobody_else_hears_of_it(self, bench: Bench, tmp_path: Path, judge: Judge) -> None:
        bench.write(SIX, judge)
        (bench.directory / ".env").write_text("DEEPEVAL_TELEMETRY_OPT_OUT=0\nCONFIDENT_API_KEY=x\n", encoding="utf-8")
        (bench.directory / ".deepeval").mkdir()
        keys = bench.directory / ".deepeval" / ".deepeval"
        keys.write_text('{"api_key": "confident-key", "USE_LOCAL_MODEL": "YES"}', encoding="utf-8")
        before = contents(bench.directory)
        ended = self.run(bench, tmp_path, self.RUN, CONFIDENT_API_KEY="confident-key", **self.WANTED)

        assert ended.returncode == 0, ended.stderr
        assert not (tmp_path / "watched").exists(), (tmp_path / "watched").read_text(encoding="utf-8")
        assert contents(bench.directory) == before
        assert contents(tmp_path / "home") == {}
        assert len(bench.mock.requests()) == 17
        assert [line for line in ended.stdout.splitlines() if "eepeval" in line or "onfident" in line] == []
        assert ended.stdout.startswith("passed ")
        assert "eepeval" not in ended.stderr
        assert "Traceback" not in ended.stderr

    def test_the_watch_sees_what_goes_elsewhere(self, bench: Bench, tmp_path: Path) -> None:
        code = "import socket\ntry: socket.create_connection(('example.org', 80))\nexcept OSError: pass"
        self.run(bench, tmp_path, code)

        assert (tmp_path / "watched").read_text(encoding="utf-8") == "look up example.org\n"

    MODULES = (
        "import sys; from agenteval.cli.main import main; main(['run', 'agent.yaml', '--quiet']); "
        "names = {'deepeval', 'openai', 'anthropic', 'ollama', 'genai_prices', 'pydantic_ai'}; "
        "print(*sorted(names & set(sys.modules)), file=sys.stderr)"
    )

    def test_without_judges_nothing_of_theirs_is_loaded(self, bench: Bench, tmp_path: Path) -> None:
        bench.write([{"type": "standard", "metric": "f1_score"}])
        ended = self.run(bench, tmp_path, self.MODULES)

        assert ended.stderr.split() == []
        assert bench.text("results.json")

    def test_with_one_deepeval_is(self, bench: Bench, tmp_path: Path) -> None:
        bench.write([GEVAL], OLLAMA)
        ended = self.run(bench, tmp_path, self.MODULES)

        loaded = set(ended.stderr.split())
        assert {"deepeval", "ollama"} <= loaded
        assert "anthropic" not in loaded


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
