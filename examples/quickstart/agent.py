"""A support assistant for a bicycle rental shop; it needs no network and no model.

It searches the help pages in `docs/`, works out prices with a calculator, and follows a conversation.
Asked for an amount it answers with the bare number in EUR, or with JSON when the question asks for it; asked
anything else, with the sentence of the help pages that fits best.

`reply` is what an evaluation calls. As a program it reads one JSON request on standard input and writes
one JSON reply on standard output.
"""

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from calculator import Number, calculate
from conversation import asks_amount, standalone
from quote import days_of, discount_percent, expression, matching_offers, priced_names
from search import NUMBER_WORDS, Hit, Index, Passage, terms, topics

DOCS = Path(__file__).parent / "docs"
TOP_K = 6
MIN_CONFIDENCE = 0.35  # below it a passage shares too little with the question
NOT_FOUND = "I could not find that on our help pages."
CURRENCY = "EUR"

WANTS_NUMBER = re.compile(r"\b(how (far|heavy|late|long|many|much|old|tall)|until|what time|when)\b", re.IGNORECASE)
NUMBER = re.compile(rf"\d|\b({'|'.join(NUMBER_WORDS)})\b")
NUMBER_BONUS = 1.25


class Tools:
    """The two tools of the assistant; every call is recorded."""

    def __init__(self, ranking: str, overlooked: int = 0) -> None:
        self.ranking = ranking
        self.overlooked = overlooked  # how many of the best hits every search misses
        self.calls: list[dict[str, Any]] = []
        self.retrieved: dict[Passage, None] = {}  # in order, each once

    def search_docs(self, query: str, top_k: int = TOP_K) -> list[Hit]:
        """Find passages of the help pages."""
        started = time.perf_counter()
        hits = index().search(query, top_k + self.overlooked, self.ranking)[self.overlooked :]
        self.retrieved.update((hit.passage, None) for hit in hits)
        args = {"query": query, "top_k": top_k}
        self._record("search_docs", args, [str(hit.passage) for hit in hits], started)
        return hits

    def calculator(self, formula: str) -> Number:
        """Compute a formula."""
        started = time.perf_counter()
        result = calculate(formula)
        self._record("calculator", {"expression": formula}, result, started)
        return result

    def _record(self, name: str, args: dict[str, Any], result: object, started: float) -> None:
        duration_ms = round((time.perf_counter() - started) * 1000, 3)
        self.calls.append({"name": name, "args": args, "result": result, "duration_ms": duration_ms})


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of a conversation."""
    earlier = [message["content"] for message in request.get("history") or [] if message["role"] == "user"]
    tools = Tools(ranking_of(request), overlooked=1 if is_unlucky(request) else 0)
    question = standalone([*earlier, request["input"]], known_names())
    return {
        "response": answer(question, tools),
        "tool_calls": tools.calls,
        "retrieval_context": [str(passage) for passage in tools.retrieved],
        "metadata": {"question": question, "ranking": tools.ranking},
    }


def ranking_of(request: dict[str, Any]) -> str:
    """Return which ranking to use: the environment wins over the suite's `config`."""
    config = request.get("config") or {}
    return os.environ.get("QUICKSTART_RANKING") or str(config.get("ranking", "bm25"))


def is_unlucky(request: dict[str, Any]) -> bool:
    """Whether this answer misses the best passage, as a model now and then would: `QUICKSTART_NOISE` says how often.

    Chance is a hash of `QUICKSTART_SEED`, the session and the question, so that the same run can be had again.
    """
    noise = float(os.environ.get("QUICKSTART_NOISE") or 0)
    drawn = "\n".join([os.environ.get("QUICKSTART_SEED", ""), str(request.get("session", "")), request["input"]])
    return int.from_bytes(hashlib.sha256(drawn.encode()).digest()[:8], "big") < noise * 2**64


def answer(question: str, tools: Tools) -> str:
    """Answer with an amount when the question asks for one that can be computed, else with a sentence."""
    if asks_amount(question) and (formula := price_formula(question, tools)):
        return written_amount(tools.calculator(formula), as_json="json" in question.lower())
    sentence = best_sentence(question, tools.search_docs(question))
    percentage = re.search(r"\d+(?:\.\d+)? ?%", sentence)
    wants_percentage = re.search(r"\b(discount|percent|percentage)\b", question, re.IGNORECASE)
    return percentage[0] if percentage and wants_percentage else sentence


def price_formula(question: str, tools: Tools) -> str | None:
    """Look up the unit prices, and the discount for long rentals; None when no price was found."""
    parts = re.split(r"\b(?:plus|and|with)\b", question)
    passages = [hit.passage for part in parts for hit in tools.search_docs(f"price {part.strip()}")]
    offers = matching_offers(question, passages)
    if not offers:
        return None
    days = days_of(question)
    rules = tools.search_docs(f"discount for rentals of {days:g} days or more") if days > 1 else []
    return expression(question, offers, discount_percent(days, (hit.passage for hit in rules)))


def written_amount(amount: Number, *, as_json: bool) -> str:
    """Write an amount in EUR, rounded to cents."""
    cents = Decimal(f"{amount:.6f}").quantize(Decimal("0.01"), ROUND_HALF_UP)
    return json.dumps({"total": float(cents), "currency": CURRENCY}) if as_json else f"{cents:,}"


def best_sentence(question: str, hits: Iterable[Hit]) -> str:
    """Pick the sentence that fits the question best, the earlier hit when two fit equally well."""
    likely = [hit.passage for hit in hits if hit.confidence >= MIN_CONFIDENCE]
    candidates = [(passage, sentence) for passage in likely for sentence in passage.sentences]
    best = max(candidates, key=lambda candidate: _fit(question, *candidate), default=None)
    return best[1] if best else NOT_FOUND


def _fit(question: str, passage: Passage, sentence: str) -> float:
    """Weigh what a sentence shares with the question: rare words count more, its headings half."""
    wanted = topics(question)
    said = wanted.intersection(terms(sentence))
    implied = wanted.intersection(terms(f"{passage.title} {passage.section}")) - said
    fit = index().weight(said) + index().weight(implied) / 2
    return fit * NUMBER_BONUS if WANTS_NUMBER.search(question) and NUMBER.search(sentence) else fit


@lru_cache
def index() -> Index:
    """Read the help pages once per process."""
    return Index.of_folder(DOCS)


@lru_cache
def known_names() -> dict[str, str]:
    """Return what the help pages speak of, each with its kind.

    Sections of one page are of one kind (summer, winter), and so are priced things that end in the same word
    (city bike, e-bike).
    """
    kinds: dict[str, str] = {}
    for passage in index().passages:
        kinds |= {passage.title: passage.title, passage.section: passage.title}
        kinds |= {name: re.split(r"\W", name)[-1] for name in priced_names([passage])}
    return kinds


def main() -> None:
    """Answer the JSON request on standard input."""
    json.dump(reply(json.load(sys.stdin)), sys.stdout, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
