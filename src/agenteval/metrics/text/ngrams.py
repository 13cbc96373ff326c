"""Counts of word sequences that two texts share, which BLEU and ROUGE are made of.

The libraries' own counting takes most of their time. What is counted here is the same, so the scores are, to the last
bit; tests compare them with the libraries on any text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rapidfuzz.distance import LCSseq


def shared(left: Sequence[str], right: Sequence[str], order: int) -> int:
    """How many sequences of ``order`` words both have, each as often as it stands in both."""
    unlike, other_unlike = set(_ngrams(left, order)), set(_ngrams(right, order))
    common = unlike & other_unlike
    if len(unlike) == count(left, order) or len(other_unlike) == count(right, order):
        # One text repeats none: no sequence stands in both more than once.
        return len(common)
    counts, other_counts = Counter(_ngrams(left, order)), Counter(_ngrams(right, order))
    repeated = [ngram for ngram in common if counts[ngram] > 1]
    return len(common) + sum([min(counts[ngram], other_counts[ngram]) - 1 for ngram in repeated])


def count(words: Sequence[str], order: int) -> int:
    """How many sequences of ``order`` words there are."""
    return max(0, len(words) - order + 1)


def _ngrams(words: Sequence[str], order: int) -> Iterable[str | tuple[str, ...]]:
    return words if order == 1 else zip(*[words[start:] for start in range(order)], strict=False)


def longest_common_subsequence(left: Sequence[str], right: Sequence[str]) -> int:
    """How many words stand in both in the same order, with others between them or not."""
    # Numbers, as rapidfuzz compares the hashes of anything longer than a character.
    numbers = {word: number for number, word in enumerate(dict.fromkeys((*left, *right)))}
    return LCSseq.similarity([numbers[word] for word in left], [numbers[word] for word in right])
