"""Turns a follow-up such as "And for 5 days?" into a question that stands on its own."""

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product

from search import NUMBER_WORDS, stem, terms

FOLLOW_UP = re.compile(r"(and|but|what about|how about|what if|then)\b[\s,]*", re.IGNORECASE)
PRONOUN = re.compile(r"\b(it|its|they|them|that one|this one)\b", re.IGNORECASE)
OWN_QUESTION = re.compile(r"(how|what|when|where|which|who|why|can|do|does|is|are|may|must)\b", re.IGNORECASE)
QUANTITY = re.compile(rf"\b(\d+(?:\.\d+)?|an?|{'|'.join(NUMBER_WORDS)}) ([a-z-]+)", re.IGNORECASE)
AMOUNT = re.compile(r"\b(how much (is|are|do|does|for|will|would)|costs?|price|total|what deposit)\b", re.IGNORECASE)


def standalone(messages: Sequence[str], names: Mapping[str, str]) -> str:
    """Fold the user's messages, oldest first, into one question.

    `names` are what the help pages speak of, each with its kind.
    A follow-up takes over what it does not say itself:

    * "How much is a city bike for 3 days?", "And for 5 days?" replaces the number of days;
    * "What about the cargo bike?" replaces the name of the same kind;
    * "And a helmet?" adds to a question about an amount;
    * "And how long does it take to charge?" is searched together with the names mentioned before.
    """
    known = dict(sorted(names.items(), key=lambda item: (len(terms(item[0])), item[0])))
    return reduce(lambda earlier, message: _carry_over(earlier, message, known), messages)


def asks_amount(question: str) -> bool:
    """Whether the question wants a sum of money."""
    return AMOUNT.search(question) is not None


def _carry_over(earlier: str, message: str, known: Mapping[str, str]) -> str:
    opening = FOLLOW_UP.match(message)
    if opening is None and not PRONOUN.search(message):
        return message
    rest = message[opening.end() :] if opening else message
    if not OWN_QUESTION.match(rest):
        replaced = _replace_name(_replace_quantities(earlier, rest), rest, known)
        if replaced != earlier:
            return replaced
        if asks_amount(earlier):
            return f"{earlier} plus {rest}"
    return f"{rest} ({', '.join(_mentioned(earlier, known))})"


def _mentioned(text: str, known: Mapping[str, str]) -> list[str]:
    words = set(terms(text))
    return [name for name in known if words.issuperset(terms(name))]


def _replace_quantities(earlier: str, rest: str) -> str:
    new = {stem(noun.lower()): f"{amount} {noun}" for amount, noun in QUANTITY.findall(rest)}
    return QUANTITY.sub(lambda found: new.get(stem(found[2].lower()), found[0]), earlier)


def _replace_name(earlier: str, rest: str, known: Mapping[str, str]) -> str:
    """Put a name of `rest` where `earlier` has one of the same kind; short names first.

    "Deposit for an e-bike" followed by "cargo bike" is still about the deposit.
    """
    pairs = product(_mentioned(rest, known), _mentioned(earlier, known))
    for new, old in pairs:
        written = re.compile(rf"\b{re.escape(old)}s?\b", re.IGNORECASE)
        if known[old] == known[new] and old != new and written.search(earlier):
            return written.sub(new.lower(), earlier, count=1)
    return earlier
