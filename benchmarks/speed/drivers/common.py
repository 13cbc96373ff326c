"""Code that the drivers share: reads the cases, calls the agents, computes scores, and writes the outcome.

A driver runs in the environment of its peer as ``python -m benchmarks.speed.drivers.NAME KIND [URL]``, in a folder
that contains ``cases.jsonl``. It writes ``outcome.json`` there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

AT_ONCE = 50
SCORES = ("bleu", "rougeL", "f1")


@dataclass(frozen=True, slots=True)
class Case:
    """One line of ``cases.jsonl``."""

    question: str
    answer: str
    expected: str


def arguments() -> tuple[str, str]:
    """Return the kind of the workload, and the address of the HTTP agent (empty without one)."""
    return sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""


def read_cases() -> list[Case]:
    """Return all cases, in order."""
    with Path("cases.jsonl").open(encoding="utf-8") as file:
        return [Case(**json.loads(line)) for line in file]


def reply(question: str) -> str:
    """Answer as the instant local agent."""
    return question.replace("question", "answer")


async def ask(client: Any, url: str, question: str) -> str:
    """Ask the HTTP agent with an ``httpx.AsyncClient``."""
    answer = await client.post(url, json={"input": question})
    answer.raise_for_status()
    return str(answer.json()["response"])


def open_client() -> Any:
    """Return an ``httpx.AsyncClient`` that keeps as many connections open as there are simultaneous calls."""
    import httpx

    return httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=AT_ONCE))


async def ask_all(cases: list[Case], url: str) -> list[str]:
    """Return the answers of the HTTP agent, with as many simultaneous calls as the other programs."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> str:
        async with gate:
            return await ask(client, url, case.question)

    async with open_client() as client:
        return await asyncio.gather(*(one(case) for case in cases))


def overlap_scores(answer: str, expected: str) -> dict[str, float]:
    """Return BLEU and ROUGE-L by direct library calls, and token F1 as SQuAD defines it; 0..1."""
    return {"bleu": bleu(answer, expected), "rougeL": rouge_l(answer, expected), "f1": token_f1(answer, expected)}


def bleu(answer: str, expected: str) -> float:
    """Return sentence BLEU by sacrebleu, 0..1."""
    import sacrebleu

    return float(sacrebleu.sentence_bleu(answer, [expected]).score) / 100


def rouge_l(answer: str, expected: str) -> float:
    """Return the ROUGE-L F-measure by rouge-score, without stemming."""
    return float(_rouge().score(expected, answer)["rougeL"].fmeasure)


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=False)


def token_f1(answer: str, expected: str) -> float:
    """Return token F1 as SQuAD defines it: lower case, no punctuation, no articles."""
    from collections import Counter

    actual, wanted = Counter(_tokens(answer)), Counter(_tokens(expected))
    overlap = (actual & wanted).total()
    return 2 * overlap / (actual.total() + wanted.total()) if overlap else 0.0


def _tokens(text: str) -> list[str]:
    import string

    words = text.lower().translate(str.maketrans("", "", string.punctuation)).split()
    return [word for word in words if word not in ("a", "an", "the")]


def write_outcome(results: int, passed: int, scores: Iterable[Mapping[str, float]] = ()) -> None:
    """Write the number of results, the number of passed ones, and the mean of each score."""
    rows = list(scores)
    means = {name: sum(row[name] for row in rows) / len(rows) for name in SCORES} if rows else {}
    outcome = {"results": results, "passed": passed, "means": means}
    Path("outcome.json").write_text(json.dumps(outcome), encoding="utf-8")
