"""Counts of word sequences that two texts share, which BLEU and ROUGE are made of.

The libraries' own counting takes most of their time. What is counted here is the same, so the scores are, to the last
bit; tests compare them with the libraries on any text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def shared(left: Sequence[str], right: Sequence[str], order: int) -> int:
    """How many sequences of ``order`` words both have, each as often as it stands in both."""
    counts, others = Counter(_ngrams(left, order)), Counter(_ngrams(right, order))
    return sum([min(counts[ngram], others[ngram]) for ngram in counts.keys() & others.keys()])


def count(words: Sequence[str], order: int) -> int:
    """How many sequences of ``order`` words there are."""
    return max(0, len(words) - order + 1)


def _ngrams(words: Sequence[str], order: int) -> Iterable[str | tuple[str, ...]]:
    return words if order == 1 else zip(*(words[start:] for start in range(order)), strict=False)
