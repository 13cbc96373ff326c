"""Judges in whole runs: deepeval, and the providers' own clients, against an independent mock of their APIs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.peers.aimock import KEY, Fixture, offer
from tests.peers.model_bench import AZURE, CLAUDE, GPT, JUDGES, Bench, Model, refuses, says
from tests.support import PATIENCE_S

from agenteval.results.case import Score

pytestmark = pytest.mark.peer

GOOD = {"reason": "Fine.", "score": 8}
# The mock counts no tokens in Ollama's form.
OLLAMA = Model("ollama", "gpt-oss:20b", 0.0, (0, 0))
REASONING = Model("openai", "gpt-5-mini", 0.000045)
UNKNOWN = Model("openai", "our-own-model", None)
PROVIDERS = (GPT, AZURE, CLAUDE, OLLAMA)

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
CALLS = [2, 4, 3, 4, 2, 2]
CASE: Mapping[str, Any] = {
    "name": "capital",
    "input": "What is the capital of Portugal?",
    "ground_truth": "Lisbon. It lies on the Tagus.",
    "retrieval_context": ["Lisbon is the capital of Portugal.", "Tiles are blue.", "The bridge opened in 1966."],
}
ANSWER = "Lisbon is the capital, and its bridge opened in 1999."


def geval(name: str = "Right", **fields: Any) -> dict[str, Any]:
    """A judge that takes one call, whose prompt contains its name."""
    steps = [f"Look at {name}."]
    return {"type": "geval", "name": name, "criteria": "Is it right?", "evaluation_steps": steps, **fields}


def write(
    bench: Bench,
    metrics: Sequence[Mapping[str, Any]],
    judge: Model | None = GPT,
    answers: Mapping[str, str] | None = None,
    case: Mapping[str, Any] = CASE,
    **llm: Any,
) -> None:
    """A suite with a case for each answer."""
    named = {"capital": ANSWER} if answers is None else answers
    model = {"model": bench.model(judge)} if judge else {}
    suite = {
        "name": "judged",
        "agent": "replay:answers.jsonl",
        "evaluations": {"metrics": [*metrics], **model},
        "test_cases": [{**case, "name": name} for name in named],
    }
    bench.file("agent.yaml", suite)
    bench.file("agenteval.yaml", {"llm": {"backoff": 0, **llm}})
    bench.answers(named)


@pytest.fixture(autouse=True)
def played(bench: Bench) -> None:
    bench.mock.play(*JUDGES)


@pytest.mark.parametrize("judge", [*PROVIDERS, REASONING, UNKNOWN], ids=lambda judge: judge.label)
def test_scores_reasons_and_what_they_took(bench: Bench, judge: Model, tmp_path: Path) -> None:
    write(bench, SIX, judge)
    ran = bench.run()

    assert (ran.status, ran.statuses) == (0, ["passed"])
    assert [(score.id, score.score and round(score.score, 4), score.reason) for score in ran.scores] == [
        ("Right", 0.8, "The city is right, the year is not."),
        ("faithfulness", 0.5, "One of two claims contradicts the passages."),
        ("answer_relevancy", 0.5, "Nobody asked about the bridge."),
        ("contextual_relevancy", 0.5, "Half of what was found is about tiles."),
        ("contextual_precision", 0.8333, "The passage about tiles comes second."),
        ("contextual_recall", 0.5, "One of two sentences stands in the passages."),
    ]
    assert {(score.status, score.threshold, score.passed, score.model) for score in ran.scores} == {
        ("scored", 0.5, True, judge.label)
    }
    tokens_in, tokens_out = judge.tokens
    assert [score.details for score in ran.scores] == [
        {"llm_calls": n, "cached_calls": 0, "input_tokens": n * tokens_in, "output_tokens": n * tokens_out}
        for n in CALLS
    ]
    costs = [None if judge.cost_usd is None else pytest.approx(n * judge.cost_usd) for n in CALLS]
    assert [score.cost_usd for score in ran.scores] == costs
    usage = ran.results.summary.usage
    asked = bench.mock.requests()
    assert usage.llm_calls == sum(CALLS) == len(asked)
    assert (usage.input_tokens, usage.output_tokens) == (17 * tokens_in, 17 * tokens_out)
    assert usage.cost_usd == pytest.approx(17 * (judge.cost_usd or 0.0))
    # What thinks takes none, and Claude has its own.
    assert {request.body.get("temperature") for request in asked} == {None if judge in {REASONING, CLAUDE} else 0}

    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert len(kept) == 17
    assert [path for path in kept if KEY in path.read_text(encoding="utf-8") or KEY in str(path)] == []
    bench.mock.forget()
    again = bench.run()
    assert bench.mock.requests() == []
    assert [(s.score, s.reason, s.model) for s in again.scores] == [(s.score, s.reason, s.model) for s in ran.scores]
    assert [(s.details, s.cost_usd) for s in again.scores] == [
        ({"llm_calls": 0, "cached_calls": n}, 0.0) for n in CALLS
    ]


def test_each_metric_has_its_judge(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own, then the suite's, then the agent's, and Ollama's where none is named."""
    own, agents = (Model("openai", name, None) for name in ("gpt-4o", "gpt-4.1-mini"))
    metrics = [geval(model=bench.model(own)), geval("Other")]
    write(bench, metrics, GPT)
    assert [score.model for score in bench.run().scores] == ["openai/gpt-4o", "openai/gpt-4.1"]

    write(bench, metrics, None)
    suite = (bench.directory / "agent.yaml").read_text(encoding="utf-8")
    bench.file("agent.yaml", suite + f"model: {bench.model(agents, temperature=0.9)}\n")
    assert [score.model for score in bench.run().scores] == ["openai/gpt-4o", "openai/gpt-4.1-mini"]
    # The agent's temperature is not the judge's.
    assert {(request.body["model"], request.body["temperature"]) for request in bench.mock.requests()} == {
        ("gpt-4o", 0),
        ("gpt-4.1", 0),
        ("gpt-4.1-mini", 0),
    }

    monkeypatch.setenv("OLLAMA_HOST", bench.mock.url)
    bench.mock.play(*JUDGES, offer("gpt-oss:20b"))
    write(bench, SIX, None)
    assert {score.model for score in bench.run().scores} == {"ollama/gpt-oss:20b"}
    assert {request.path for request in bench.mock.requests()} == {"/api/chat"}


FIRE = "The server is on fire"
CALL: Fixture = {"match": {}, "response": {"toolCalls": [{"name": "search", "arguments": {}}]}}
QUOTA = "You exceeded your current quota, please check your plan and billing details."
# What the provider says to a judge, what the score says, and the number of requests.
FAILURES: Mapping[str, tuple[Fixture, str, int]] = {
    "broken server": (refuses(500, FIRE), f"answered 500: {FIRE} (after 3 attempts)", 3),
    "wrong key": (refuses(401, f"Bad key {KEY}", type="authentication_error"), "answered 401: Bad key ***", 1),
    "quota": (refuses(429, QUOTA, type="insufficient_quota", code="insufficient_quota"), f"answered 429: {QUOTA}", 1),
    "disconnect": ({**says(GOOD), "chaos": {"disconnectRate": 1}}, "cannot be reached: ", 3),
    "malformed": ({**says(GOOD), "chaos": {"malformedRate": 1}}, "sent a reply that is not JSON", 3),
    "tool call": (CALL, "gave no answer: ", 1),
    "prose": (says("Eight of ten."), "the judge's reply is not JSON: 'Eight of ten.'", 2),
    "scale": (says({"reason": "Great!", "score": 42}), "the judge's score is 42, outside its scale of 0 to 10", 2),
    "missing": (says({"score": 8}), "the judge's reply does not fit ReasonScore: reason: Field required", 2),
}  # fmt: skip
PASSING: Mapping[str, tuple[Fixture, int]] = {
    "fence": (says('```json\n{"reason": "Fine.", "score": 8}\n```'), 1),
    "comma": (says('{"reason": "Fine.", "score": 8.0,}'), 1),
    "overloaded": (refuses(529, "Oops", sequence=0), 2),
    "slow down": (refuses(429, "Slow down", sequence=0, retry_after=0), 2),
    "echo": (says({"reason": f"The key is {KEY}.", "score": 8}), 1),
}


def heard(fixture: Fixture, match: str) -> Fixture:
    """The fixture for the prompts with a text."""
    return {**fixture, "match": {**fixture["match"], "userMessage": match}}


def test_failures_of_every_provider(bench: Bench) -> None:
    """What is not judged has no score and says why, and no other judgement suffers from it."""
    rows = {f"{row} of {judge.provider}": (judge, row) for judge in PROVIDERS for row in (*FAILURES, *PASSING)}
    known = {name: row[0] for name, row in FAILURES.items()} | {name: row[0] for name, row in PASSING.items()}
    bench.mock.play(*(heard(known[row], f"Look at {name}.") for name, (_, row) in rows.items()), says(GOOD))
    write(bench, [geval(name, model=bench.model(judge)) for name, (judge, _) in rows.items()], None, retries=2)
    ran = bench.run()

    assert (ran.status, ran.statuses) == (3, ["passed"])
    prompts = [request.prompt for request in bench.mock.requests()]
    asked = Counter(name for prompt in prompts for name in rows if f"Look at {name}." in prompt)
    wrong = [
        (name, score.error, asked[name])
        for score, (name, (judge, row)) in zip(ran.scores, rows.items(), strict=True)
        if not _is_as_expected(score, judge, row, asked[name])
    ]
    assert wrong == []
    assert KEY not in ran.shown
    assert bench.files_with(KEY) == []
    # A broken reply is not kept.
    bench.mock.play(says(GOOD))
    assert {score.score for score in bench.run().scores} == {0.8}


def _is_as_expected(score: Score, judge: Model, row: str, asked: int) -> bool:
    if row in PASSING:
        reason = "The key is ***." if row == "echo" else "Fine."
        return (score.score, score.error, score.reason, asked) == (0.8, None, reason, PASSING[row][1])
    _, said, requests = FAILURES[row]
    start = "" if said.startswith("the judge") else f"{judge.label} "
    is_named = (score.error or "").startswith(f"{start}{said}")
    return (score.status, score.score, score.reason, is_named, asked) == ("error", None, None, True, requests)


@pytest.mark.parametrize(
    ("judge", "option"),
    [(GPT, "temperature"), (AZURE, "temperature"), (UNKNOWN, "response_format"), (CLAUDE, "output_config")],
)
def test_an_option_is_left_out(bench: Bench, judge: Model, option: str) -> None:
    told = f"Unsupported parameter: '{option}' is not supported with this model."
    bench.mock.play(refuses(400, told, sequence=0, param=option, code="unsupported_parameter"), says(GOOD))
    write(bench, [geval()], judge, retries=0)

    assert [score.score for score in bench.run().scores] == [0.8]
    first, second = bench.mock.requests()
    # The mock's list does not keep what only Anthropic has.
    assert judge is CLAUDE or (option in first.body) > (option in second.body)


# What the judge is asked, and the verdicts that it gives.
VERDICTS: Mapping[str, list[str]] = {
    "EACH claim contradicts": [],
    "each statement is relevant": [],
    "each statement found in": [],
    "remotely useful": [],
    "can be attributed": ["maybe"],
}


def test_verdicts_on_nothing_are_no_scores(bench: Bench) -> None:
    replies = {
        match: {"verdicts": [{"verdict": verdict, "reason": "So."} for verdict in said]}
        for match, said in VERDICTS.items()
    }
    bench.mock.play(*(says(reply, match) for match, reply in replies.items()), *JUDGES)
    write(bench, SIX[1:])
    errors = dict.fromkeys(RAG, "the judge gave no verdict, so there is no score")
    assert {score.id: score.error for score in bench.run().scores} == errors

    bench.mock.play(says({"claims": []}, "actual AI output"), *JUDGES)
    write(bench, SIX[1:2], cache=False)
    ran = bench.run()
    (score,) = ran.scores
    assert (ran.status, ran.statuses, score.status) == (1, ["skipped"], "skipped")
    assert score.reason == "the judge found nothing in the answer to give a verdict on"


@pytest.mark.parametrize(("fail_on_error", "case"), [(False, "passed"), (True, "error")])
def test_a_broken_judge_decides_about_the_case_on_request(bench: Bench, fail_on_error: bool, case: str) -> None:
    bench.mock.play(says("no idea", "Look at Broken."), says(GOOD))
    write(bench, [geval(), geval("Broken", fail_on_error=fail_on_error)])
    ran = bench.run()

    assert [(score.status, score.score) for score in ran.scores] == [("scored", 0.8), ("error", None)]
    # Either way the metric has no score at all, so the run is never green.
    assert (ran.statuses, ran.status) == ([case], 3)
    assert ("Broken could not be computed in 1 case: the judge's reply" in ran.shown) == (not fail_on_error)
    assert "summary.md" in bench.files_with("the judge's reply is not JSON: 'no idea'")


def test_what_was_judged_within_the_budget_was_judged_as_a_whole(bench: Bench) -> None:
    write(bench, SIX, answers={f"case-{n}": f"Answer {n}: {ANSWER}" for n in range(12)}, cache=False)
    ran = bench.run("--max-llm-calls", "60", "--concurrency", "8")

    assert len(bench.mock.requests()) == ran.results.summary.usage.llm_calls == 60
    scored = [score for score in ran.scores if score.status == "scored"]
    skipped = [score for score in ran.scores if score.status == "skipped"]
    assert (len(scored) + len(skipped), {score.score for score in skipped}) == (72, {None})
    assert {score.reason for score in skipped} == {"max_llm_calls (60) is used up"}
    right = {"Right": 0.8, "contextual_precision": 0.8333}
    assert [score.id for score in scored if round(score.score or 0, 4) != right.get(score.id, 0.5)] == []
    assert ran.status == 3
    assert "summary.md" in bench.files_with("the LLM budget is exhausted")


def test_identical_questions_are_sent_once_and_each_answer_gets_its_own_score(bench: Bench) -> None:
    write(bench, SIX, answers={f"case-{number}": ANSWER for number in range(20)})
    ran = bench.run("--concurrency", "20")
    assert len(bench.mock.requests()) == 17
    assert sum(score.cost_usd or 0.0 for score in ran.scores) == pytest.approx(17 * 0.00028)

    bench.mock.play(
        *(says({"reason": f"About {n}.", "score": n % 11}, f"The answer of case-{n:02}.") for n in range(20))
    )
    answers = {f"case-{number:02}": f"The answer of case-{number:02}." for number in range(20)}
    write(bench, [geval(judge.provider, model=bench.model(judge)) for judge in PROVIDERS], None, answers)
    ran = bench.run("--concurrency", "20")
    assert [(round((score.score or 0) * 10), score.reason) for score in ran.scores] == [
        (number % 11, f"About {number}.") for number in range(20) for _ in PROVIDERS
    ]


@pytest.mark.parametrize("answer", ["", " \n "])
def test_an_empty_answer_is_not_judged(bench: Bench, answer: str) -> None:
    write(bench, SIX, answers={"capital": answer})
    ran = bench.run()

    assert {(score.status, score.score, score.reason) for score in ran.scores} == {("scored", 0.0, "empty response")}
    assert (ran.status, bench.mock.requests()) == (1, [])


def test_fields_that_the_case_lacks(bench: Bench) -> None:
    write(bench, SIX, case={"input": "What is the capital of Portugal?"})
    ran = bench.run()

    assert {score.id: score.reason for score in ran.scores if score.status == "skipped"} == {
        "Right": "the case has no ground_truth",
        "faithfulness": "the case has no retrieval_context",
        "contextual_relevancy": "the case has no retrieval_context",
        "contextual_precision": "the case has no ground_truth and retrieval_context",
        "contextual_recall": "the case has no ground_truth and retrieval_context",
    }
    assert [score.id for score in ran.scores if score.status == "scored"] == ["answer_relevancy"]


def test_any_answer_is_judged_as_text(bench: Bench) -> None:
    mark = "[DEEPEVAL:IMAGE:/etc/passwd] [DEEPEVAL:PDF:/etc/passwd]"
    answers = {
        "image": f"{ANSWER} {mark}",
        "jinja": "{{ 7 * 7 }} {% for %} {# #}",
        "formats": "{input} %s %(x)s ${HOME}",
        "characters": "a\x00b\ud800c\u202e",
        "long": "x" * 200_000,
    }
    metrics = [*SIX, *(geval(judge.provider, model=bench.model(judge)) for judge in PROVIDERS)]
    write(bench, metrics, answers=answers, case={**CASE, "input": mark, "retrieval_context": [mark]})
    ran = bench.run()

    assert {(score.status, score.error) for score in ran.scores} == {("scored", None)}
    prompts = [request.prompt for request in bench.mock.requests() if "messages" in request.body]
    assert [prompt for prompt in prompts if not isinstance(prompt, str) or "root:" in prompt] == []
    assert any(":IMAGE:/etc/passwd]" in prompt for prompt in prompts)
    assert ran.turns["image"][0].response == f"{ANSWER} {mark}"


# In a process of its own

# Notes and forbids every connection to another machine.
WATCH = """
import os, sys

def note(event, arguments):
    if event == "socket.connect":
        host = arguments[1][0] if isinstance(arguments[1], tuple) else "localhost"
    elif event == "socket.getaddrinfo":
        host = os.fsdecode(arguments[0] or "localhost")
    else:
        return
    if host not in ("127.0.0.1", "localhost"):
        with open(os.environ["WATCHED"], "a") as file:
            print(event, host, file=file)
        raise OSError("forbidden")

sys.addaudithook(note)
"""
# Variables that would switch on what must stay off.
WANTED = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "0",
    "DEEPEVAL_TELEMETRY_ENABLED": "1",
    "DEEPEVAL_DISABLE_DOTENV": "0",
    "DEEPEVAL_DISABLE_LEGACY_KEYFILE": "0",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "1",
    "CONFIDENT_TRACING_ENABLED": "YES",
    "CONFIDENT_API_KEY": "confident-key",
}
RUN = (
    "import sys; from agenteval.cli.main import main; status = main(['run', '--out', '../report']); "
    "names = {'deepeval', 'openai', 'anthropic', 'ollama', 'genai_prices', 'pydantic_ai'}; "
    "print(*sorted(names & set(sys.modules)), file=sys.stderr); sys.exit(status)"
)


ELSEWHERE = """
import contextlib, socket
with contextlib.suppress(OSError):
    socket.create_connection(("example.org", 80))
with contextlib.suppress(OSError):
    socket.socket().connect(("192.0.2.1", 80))
"""


def started(bench: Bench, folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that is watched."""
    for name in ("site", "home"):
        (folder / name).mkdir()
    (folder / "site" / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "PYTHONPATH": str(folder / "site"),
        "AGENTEVAL_CACHE": str(folder / "cache"),
        "WATCHED": str(folder / "watched"),
        **WANTED,
    }
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=bench.directory,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_nobody_else_hears_of_it(bench: Bench, tmp_path: Path) -> None:
    others = [geval(judge.provider, model=bench.model(judge)) for judge in (CLAUDE, OLLAMA)]
    write(bench, [*SIX, *others])
    bench.file(".env", "DEEPEVAL_TELEMETRY_OPT_OUT=0\nCONFIDENT_API_KEY=x\n")
    bench.file(".deepeval/.deepeval", '{"api_key": "confident-key", "USE_LOCAL_MODEL": "YES"}')
    before = contents(bench.directory)
    ended = started(bench, tmp_path, RUN)

    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "watched").exists(), (tmp_path / "watched").read_text(encoding="utf-8")
    assert contents(bench.directory) == before
    assert contents(tmp_path / "home") == {}
    assert len(bench.mock.requests()) == 17 + len(others)
    assert [line for line in ended.stdout.splitlines() if "eepeval" in line or "onfident" in line] == []
    assert ended.stdout.startswith("passed ")
    loaded = ended.stderr.splitlines()[-1].split()
    assert {"deepeval", "openai", "anthropic", "ollama"} <= set(loaded)
    assert "Traceback" not in ended.stderr


def test_the_watch_sees_what_goes_elsewhere(bench: Bench, tmp_path: Path) -> None:
    started(bench, tmp_path, ELSEWHERE)

    watched = (tmp_path / "watched").read_text(encoding="utf-8")
    assert watched.splitlines() == ["socket.getaddrinfo example.org", "socket.connect 192.0.2.1"]


def test_without_judges_nothing_of_theirs_is_loaded(bench: Bench, tmp_path: Path) -> None:
    write(bench, [{"type": "standard", "metric": "f1_score"}])
    ended = started(bench, tmp_path, RUN)

    assert ended.stderr.splitlines()[-1] == ""
    assert (tmp_path / "report" / "results.json").exists()
