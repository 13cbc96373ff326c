"""What AgentCI's guides show of performance, safety, consistency, llm and custom evaluations, run as a whole.

Each suite is answered once as it wants it and once as it does not. The judge gives the score that the answer asks
for, and the embedding model finds texts alike that share words.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.integration.model_server import KEY, Answer, ModelServer, RecordedQuestion, embeds, says, serving, words
from tests.support import results_in

from agenteval.results.case import CaseResult

_REPORT_TOKENS = "the reply of the agent needs usage.input_tokens and usage.output_tokens"
GUIDES = Path(__file__).parents[1] / "data" / "agentci" / "guides"
TOOL = """
import json
def call(**context):
    with open("replies.json", encoding="utf-8") as file:
        reply = json.load(file)[json.dumps(context)]
    if isinstance(reply, dict) and "raise" in reply:
        raise PermissionError(reply["raise"])
    return reply
"""
RULES = """
import re

def check_offer(output: str, parameters: dict, **kwargs) -> dict:
    found = re.search(r"(\\d+) % off", output)
    discount = float(found.group(1)) / 100 if found else 0.0
    if discount > parameters["most_discount"]:
        return {"passed": False, "message": f"{discount:.0%} is too much for {kwargs['prompt']}"}
    missing = [word for word in parameters.get("needs", []) if word not in output]
    if missing:
        message = "lacks " + ", ".join(missing)
        return {"passed": False, "score": 0.5, "message": message, "metadata": {"missing": missing}}
    return {"passed": True, "message": "fine"}
"""
FIGURES = """
import json
from shop import rules  # modules of the repository import each other

async def in_range(output, parameters, context=None, prompt=None):
    low, high = parameters["range"]
    value = json.loads(output)["value"]
    assert context == {"data": "sales", "operation": "mean"} and prompt is None
    return {"passed": low <= value <= high, "score": 1.0 if low <= value <= high else 0.0, "message": f"got {value}"}
"""


@dataclass(frozen=True)
class Guide:
    """One suite.

    Attributes:
        name: its file.
        good: what each of its cases is answered: a text, a whole reply, or one of these for each iteration.
        bad: the same, wrong.
        why: a part of what is said about each wrong answer.
        broken: the wrong answers make errors, not failures.
    """

    name: str
    good: Sequence[Any]
    bad: Sequence[Any]
    why: Sequence[str]
    broken: bool = False


def after(milliseconds: float, tokens: tuple[int, int] | None = None, text: str = "Done.") -> dict[str, Any]:
    """A reply that took so long, and so many tokens."""
    usage = None if tokens is None else {"input_tokens": tokens[0], "output_tokens": tokens[1]}
    return {"response": text, "latency_ms": milliseconds, "usage": usage}


REFUSAL = "I'm sorry, but I can't help with that."
ALL = [
    Guide(
        "performance-latency",
        [after(800), after(20_000), after(50)],
        [after(801), after(20_500), after(49)],
        [
            "expected at most 0.8 s, got 0.801",
            "expected at most 20 s, got 20.5",
            "expected at least 0.05 s, got 0.049",
        ],
    ),
    Guide(
        "performance-tokens",
        [after(1, (48, 12)), after(1, (300, 600))],
        [after(1, (40, 13)), after(1, (301, 99))],
        [
            "expected at most 12 output tokens, got 13",
            "expected at most 300 input tokens, got 301; expected at least 100 output tokens, got 99",
        ],
    ),
    Guide(
        "performance-tokens",
        [after(1, (48, 12)), after(1, (300, 600))],
        [after(1), after(1)],
        [f"1 of 1 answer without {kind}: {_REPORT_TOKENS}" for kind in ("output tokens", "input tokens")],
        broken=True,
    ),
    Guide(
        "performance-both",
        [after(1500, (10, 10))],
        [after(1600, (100, 21))],
        ["expected at most 1.5 s, got 1.6; mean 1.6 s; expected at most 120 tokens, got 121"],
    ),
    Guide(
        "performance-load",
        # One slow answer does not spoil the mean.
        [[*[after(100, (1, 1))] * 9, after(39_000, (1, 3981))]],
        [[*[after(100, (1, 1))] * 9, after(40_000, (1, 1))]],
        ["expected at most 4 s, got 4.09; mean 4.09 s, p95 40 s"],
    ),
    Guide(
        "safety-own",
        [REFUSAL, "It will."],
        ["It is hunter2.", "I can't tell you that."],
        ["expected a refusal; the answer does not refuse", "expected an answer, not a refusal"],
    ),
    Guide(
        "safety-database",
        [{"raise": "not allowed"}, {"total": 12}, {"blocked": True}],
        [[{"id": 9}, {"id": 10}], {"raise": "offline"}, {"dropped": True}],
        ["expected a refusal", "expected an answer, not a refusal; the tool refused", "expected a refusal"],
    ),
    Guide(
        "consistency-arithmetic",
        [["144", "144", "144"], "13"],
        [["144", "144", "12 * 12 is 144"], ["13", "13.", "fourteen"]],
        ["the least similar of 3 answers is 0.", "the least similar of 3 answers is 0."],
    ),
    Guide(
        "consistency-facts",
        [["Oslo lies in Norway", "oslo lies in Norway!", "In Norway lies Oslo"]],
        [["Oslo lies in Norway", "Oslo lies in Norway", "I do not know"]],
        ["the least similar of 3 answers is 0."],
    ),
    Guide(
        "llm-support",
        ["(7 points) Reset it.", "(9 points) Write to us."],
        ["(6 points) No.", "(10 points) Write to us."],
        ["scored 6, expected at least 7; Because.", "scored 10, expected at most 9; Because."],
    ),
    Guide(
        "llm-support", ["(7 points)", "(6 points)"], ["(11 points)"] * 2, ["does not follow output_schema"] * 2, True
    ),
    Guide("llm-support", ["(7 points)", "(6 points)"], ["  "] * 2, ["empty response"] * 2),
    Guide("llm-dimensions", ["(7 points)"], ["(6 points)"], ["scored 6, expected at least 7; Because."]),
    Guide(
        "llm-plain",
        ["(8 points)", "(10 points)", "(3 points)"],
        ["(7.5 points)", "(9 points)", "(4 points)"],
        ["scored 7.5, expected at least 8", "scored 9, expected 10", "scored 4, expected at most 3"],
    ),
    Guide(
        "custom-rules",
        ["20 % off with delivery", "The same as all."],
        ["15 % off", "5 % off for firms"],
        ["lacks delivery", "5% is too much for What do firms pay?"],
    ),
    Guide("custom-tool", [{"value": 1500}], [{"value": 2001}], ["got 2001"]),
    Guide("custom-tool", [{"value": 1000}], ["no JSON"], ["JSONDecodeError"], broken=True),
]
# Only a judge sees which kind of a refusal it is.
JUDGED = Guide(
    "safety-kinds",
    ["(blocked) No.", "(redirect) Ask a doctor.", "(warning) Cruelly."],
    ["(redirect) Ask one.", "(blocked) No.", "(blocked) No."],
    ["of the kind 'blocked', got 'redirect'", "of the kind 'redirect', got 'blocked'", "of the kind 'warning', got"],
)


def respond(asked: RecordedQuestion) -> Answer:
    """Vectors by words; and from judges what the answer asks for, in the form that is wanted."""
    if asked.embedded is not None:
        return embeds(asked, words(asked.embedded))
    openai = asked.body.get("response_format")
    schema = openai["json_schema"]["schema"] if openai else asked.body["output_config"]["format"]["schema"]
    points = re.search(r"\(([\d.]+) points\)", asked.prompt)
    kind = re.search(r"\((blocked|redirect|warning)\)", asked.prompt)
    values: dict[str, Any] = {
        "boolean": kind is not None and kind.group(1) != "warning",
        "integer": json.loads(points.group(1)) if points else 0,
        "number": json.loads(points.group(1)) if points else 0,
        "array": [],
        "string": "Because.",
    }
    reply = {name: values[field["type"]] for name, field in schema["properties"].items()}
    return says(asked, json.dumps(reply | ({"response_type": kind.group(1)} if kind else {})))


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with serving() as server:
        server.respond = respond
        yield server


@pytest.fixture
def folder(tmp_path: Path, models: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with tools and functions, and the models that suites name by name alone."""
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{models.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", models.url)
    monkeypatch.setenv("AGENTEVAL_CACHE", str(tmp_path / "cache"))
    for name, text in {"tools.py": TOOL, "shop/rules.py": RULES, "shop/figures.py": FIGURES}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / ".agentci" / "evals").mkdir(parents=True)
    return tmp_path


def run(folder: Path, command: Command, name: str, replies: Sequence[Any], **config: Any) -> list[CaseResult]:
    """The results of a suite whose cases are answered so."""
    text = (GUIDES / f"{name}.toml").read_text(encoding="utf-8")
    (folder / ".agentci" / "evals" / f"{name}.toml").write_text(text, encoding="utf-8")
    suite = tomllib.loads(text)["eval"]
    targets = suite["targets"]
    agents = [name if name != "*" else "default" for name in targets["agents"]]
    settings = {
        "agents": {name: {"replay": "answers.jsonl"} for name in agents},
        "tools": {name: {"python": "tools:call"} for name in targets["tools"]},
        "llm": {"backoff": 0},
        **config,
    }
    (folder / "agenteval.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    asked = list(zip(suite["cases"], replies, strict=True))
    if agents:
        lines = [line for case, said in asked for line in _recorded(case["prompt"], said, suite.get("iterations", 1))]
        (folder / "answers.jsonl").write_text("".join(lines), encoding="utf-8")
    else:
        said = {json.dumps(case["context"]): reply for case, reply in asked}
        (folder / "replies.json").write_text(json.dumps(said), encoding="utf-8")
    ended = command("run", "--quiet")
    assert ended.status in {0, 1, 3}, ended.text
    assert "internal error" not in ended.text, ended.text
    return [case for _, case in results_in(folder).cases()]


def _recorded(prompt: str, said: Any, iterations: int) -> Iterator[str]:
    for index, reply in enumerate(said if isinstance(said, list) else [said] * iterations):
        record: Mapping[str, Any] = reply if isinstance(reply, dict) else {"response": reply}
        yield json.dumps({"case": prompt, "iteration": index, **record}) + "\n"


def reason(case: CaseResult) -> str:
    """Why a case has the status that it has."""
    (turn,) = case.iterations[0].turns
    return "; ".join(filter(None, [turn.error, *(score.reason or score.error for score in turn.scores)]))


def named(guide: Guide) -> str:
    return guide.name


@pytest.mark.parametrize("guide", ALL, ids=named)
def test_good_answers_pass(folder: Path, command: Command, guide: Guide) -> None:
    cases = run(folder, command, guide.name, guide.good)

    assert [(case.status, reason(case)) for case in cases if case.status != "passed"] == []
    assert len(cases) == len(guide.good)


@pytest.mark.parametrize("guide", ALL, ids=named)
def test_wrong_answers_do_not_and_it_says_why(folder: Path, command: Command, guide: Guide) -> None:
    cases = run(folder, command, guide.name, guide.bad)

    assert [case.status for case in cases] == ["error" if guide.broken else "failed"] * len(guide.bad)
    for case, part in zip(cases, guide.why, strict=True):
        assert part in reason(case)


def test_a_judge_tells_refusals_apart(folder: Path, command: Command) -> None:
    good = run(folder, command, JUDGED.name, JUDGED.good, judge="gpt-4.1")
    assert [(case.status, reason(case)) for case in good] == [("passed", "Because.")] * 3
    bad = run(folder, command, JUDGED.name, JUDGED.bad, judge="gpt-4.1")
    assert [case.status for case in bad] == ["failed"] * 3
    for case, part in zip(bad, JUDGED.why, strict=True):
        assert part in reason(case)


def test_without_a_judge_only_refusals_count(folder: Path, command: Command) -> None:
    cases = run(folder, command, JUDGED.name, [REFUSAL, REFUSAL, "Cruelly."])
    assert [case.status for case in cases] == ["passed"] * 3
    warned = command("validate").out
    assert "cases[1].response_type: that the answer is a 'redirect' is checked only with a judge" in warned


def test_every_guide_is_looked_at() -> None:
    assert {path.stem for path in GUIDES.iterdir()} == {guide.name for guide in (*ALL, JUDGED)}
