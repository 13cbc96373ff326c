"""Works out what a rental costs: quantities from the question, unit prices from retrieved passages."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from search import NUMBERS, Passage, stem, terms

DAYS_PER_WEEK = 7
UNITS = {stem(unit) for unit in ("day", "hour", "kilometre", "person")}

PRICE = re.compile(r"(?P<name>[^:]+): (?P<price>\d+(?:\.\d+)?) EUR per (?P<unit>\w+)")
DISCOUNT = re.compile(r"(?P<days>\d+) days or more\b.*?\b(?P<percent>\d+) ?%")


@dataclass(frozen=True)
class Offer:
    """A priced thing, e.g. `Helmet: 3 EUR per day`."""

    name: frozenset[str]
    price: str
    unit: str


@dataclass(frozen=True)
class Quantity:
    """A number in a question and the word after it, e.g. 3 and `day`."""

    amount: float
    noun: str


def quantities(question: str) -> list[Quantity]:
    """Find "3 days", "two helmets", "12.5 km"; "a week" and "2 weeks" become days."""
    words = [NUMBERS.get(word, word) for word in terms(question)]
    found = []
    for before, noun in pairwise(["", *words]):
        counted = re.fullmatch(r"\d+(?:\.\d+)?", before)
        if noun == "week":
            found.append(Quantity((float(before) if counted else 1) * DAYS_PER_WEEK, "day"))
        elif counted:
            found.append(Quantity(float(before), noun))
    return found


def matching_offers(question: str, passages: Iterable[Passage]) -> list[Offer]:
    """Return the offers the question names in full; the better passage and the longer name win.

    "Deposit for an e-bike" wins over "E-bike" when the question speaks of a deposit.
    """
    asked = set(terms(question))
    by_name: dict[frozenset[str], Offer] = {}
    for line in _price_lines(passages):
        offer = Offer(frozenset(terms(line["name"])), line["price"], stem(line["unit"]))
        if offer.name <= asked:
            by_name.setdefault(offer.name, offer)
    return [offer for name, offer in by_name.items() if not any(name < other for other in by_name)]


def priced_names(passages: Iterable[Passage]) -> list[str]:
    """Return the names of everything the passages give a price for, as written."""
    return [found["name"] for found in _price_lines(passages)]


def days_of(question: str) -> float:
    """Return for how many days the question wants to rent; one when it does not say."""
    return math.prod(_amounts(quantities(question), {"day"}))


def discount_percent(days: float, passages: Iterable[Passage]) -> str | None:
    """Return the percentage off for a rental of that length, as the passages state it."""
    rules = (DISCOUNT.search(sentence) for passage in passages for sentence in passage.sentences)
    return next((rule["percent"] for rule in rules if rule and days >= float(rule["days"])), None)


def expression(question: str, offers: Iterable[Offer], discount: str | None) -> str:
    """Write the sum for the calculator; the discount applies to what is charged per day."""
    asked = quantities(question)
    by_day: list[str] = []
    other: list[str] = []
    for offer in offers:
        factors = [f"{amount:.10g}" for amount in _factors(offer, asked)]
        (by_day if offer.unit == "day" else other).append(" * ".join([offer.price, *factors]))
    if by_day and discount:
        by_day = [f"({' + '.join(by_day)}) * (1 - {discount} / 100)"]
    return " + ".join(by_day + other)


def _price_lines(passages: Iterable[Passage]) -> Iterator[re.Match[str]]:
    lines = (PRICE.fullmatch(sentence) for passage in passages for sentence in passage.sentences)
    return (line for line in lines if line)


def _factors(offer: Offer, asked: list[Quantity]) -> list[float]:
    """Return how many of it, and for how many units ("per bike" counts the bikes once)."""
    return _amounts(asked, offer.name | ({offer.unit} & UNITS))


def _amounts(asked: Iterable[Quantity], nouns: Iterable[str]) -> list[float]:
    return [quantity.amount for quantity in asked if quantity.noun in nouns]
