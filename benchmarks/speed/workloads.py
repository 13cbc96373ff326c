"""The workloads: the same work for every program, and its input files."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

Kind = Literal["version", "exact", "overlap", "http"]

LATENCY_S = 0.2
AT_ONCE = 50
_LARGE = 10_000
_WORDS, _VOCABULARY, _CHANGED = 60, 2_000, 0.3
_SEED = 20


@dataclass(frozen=True, slots=True)
class Workload:
    """One column of the table.

    ``kind``: ``version`` only starts the program; ``exact`` asks an instant local agent and compares texts;
    ``overlap`` scores pairs of about 60 words with BLEU, ROUGE-L and token F1; ``http`` asks an agent behind HTTP
    that takes 200 ms, 50 at once.
    """

    key: str
    title: str
    kind: Kind
    cases: int

    @property
    def runs(self) -> int:
        """Number of measurements."""
        return 3 if self.cases >= _LARGE else 5

    @property
    def ideal_s(self) -> float:
        """The lowest possible wall time (s), which is the agent's time."""
        return self.cases / AT_ONCE * LATENCY_S if self.kind == "http" else 0.0


@dataclass(frozen=True, slots=True)
class Pair:
    """One case: the question, the agent's answer, and the expected answer."""

    name: str
    question: str
    answer: str
    expected: str


VERSION = Workload("version", "`--version`", "version", 0)
ONE = Workload("one", "one case", "exact", 1)
W1_SMALL = Workload("w1-1000", "W1 1,000", "exact", 1_000)
W1_LARGE = Workload("w1-10000", "W1 10,000", "exact", _LARGE)
W2 = Workload("w2", "W2 10,000", "overlap", _LARGE)
W3 = Workload("w3", "W3 500", "http", 500)
W1_HUGE = Workload("w1-100000", "W1 100,000", "exact", 100_000)

USUAL = (VERSION, ONE, W1_SMALL, W1_LARGE, W2, W3)

_HEAD = """\
name: speed
model: {provider: ollama, name: none}
instructions: {inline: none}
evaluations:
  metrics:
"""
_METRICS = {
    "version": (),
    "exact": ("{type: standard, metric: equality}",),
    "http": ("{type: standard, metric: equality}",),
    # Without thresholds nothing would decide, and no run without a decision is green.
    "overlap": (
        "{type: standard, metric: bleu, threshold: 0.01}",
        "{type: standard, metric: rouge, variant: rougeL, threshold: 0.01}",
        "{type: standard, metric: f1_score, threshold: 0.01}",
    ),
}
_AGENT = """\
def reply(request):
    return request["input"].replace("question", "answer")
"""


def pairs(workload: Workload) -> Iterator[Pair]:
    """Return the cases of a workload; they are the same every time."""
    if workload.kind == "overlap":
        yield from _texts(workload.cases)
        return
    for number in range(workload.cases):
        yield Pair(f"case-{number}", f"question {number}", f"answer {number}", f"answer {number}")


def write_inputs(workload: Workload, folder: Path, url: str) -> None:
    """Writes what the programs read; ``url`` is the address of the agent behind HTTP.

    agenteval gets a suite, its cases, recorded answers and an agent; promptfoo a configuration and tests; the drivers
    of the other peers ``cases.jsonl``.
    """
    metrics = "".join(f"    - {metric}\n" for metric in _METRICS[workload.kind])
    (folder / "agent.yaml").write_text(f"{_HEAD}{metrics}test_cases_file: cases.yaml\n", encoding="utf-8")
    (folder / "agent.py").write_text(_AGENT, encoding="utf-8")
    (folder / "promptfoo.yaml").write_text(json.dumps(_promptfoo(workload, url)), encoding="utf-8")
    with (
        (folder / "cases.yaml").open("w", encoding="utf-8") as cases,
        (folder / "answers.jsonl").open("w", encoding="utf-8") as answers,
        (folder / "cases.jsonl").open("w", encoding="utf-8") as peers,
        (folder / "promptfoo.jsonl").open("w", encoding="utf-8") as promptfoo,
    ):
        for pair in pairs(workload):
            cases.write(f"- name: {pair.name}\n")
            cases.write(f"  input: {json.dumps(pair.question)}\n  ground_truth: {json.dumps(pair.expected)}\n")
            _line(answers, {"case": pair.name, "response": pair.answer})
            _line(peers, {"question": pair.question, "answer": pair.answer, "expected": pair.expected})
            _line(promptfoo, _promptfoo_test(workload, pair))


def _line(file: TextIO, entry: dict[str, object]) -> None:
    file.write(json.dumps(entry) + "\n")


def _promptfoo(workload: Workload, url: str) -> dict[str, object]:
    provider: object = "echo"
    if workload.kind == "http":
        body = {"input": "{{prompt}}"}
        config = {"url": url, "method": "POST", "body": body, "transformResponse": "json.response"}
        provider = {"id": "http", "config": {**config, "headers": {"Content-Type": "application/json"}}}
    prompt = "{{question}}" if workload.kind == "http" else "{{answer}}"
    return {"prompts": [prompt], "providers": [provider], "tests": "file://promptfoo.jsonl"}


def _promptfoo_test(workload: Workload, pair: Pair) -> dict[str, object]:
    if workload.kind == "overlap":
        # ROUGE-L and token F1 are not built in.
        kinds = ("bleu", "rouge-n")
        checks = [{"type": kind, "value": pair.expected, "threshold": 0} for kind in kinds]
    else:
        checks = [{"type": "equals", "value": pair.expected}]
    return {"vars": {"question": pair.question, "answer": pair.answer}, "assert": checks}


def _texts(count: int) -> Iterator[Pair]:
    chance = random.Random(_SEED)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(_VOCABULARY)]
    for number in range(count):
        expected = [chance.choice(words) for _ in range(chance.randint(_WORDS - 10, _WORDS + 10))]
        answer = [chance.choice(words) if chance.random() < _CHANGED else word for word in expected]
        yield Pair(f"case-{number}", f"question {number}", _sentence(answer), _sentence(expected))


def _sentence(words: list[str]) -> str:
    return " ".join(words).capitalize() + "."
