"""Counts the word sequences that two texts share, for BLEU and ROUGE.

In the libraries, counting takes most of the time. These counts are equal, so the scores are equal to the last bit;
tests compare both on arbitrary texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rapidfuzz.distance import LCSseq


def shared(left: Sequence[str], right: Sequence[str], order: int) -> int:
    """Return the number of common sequences of ``order`` words, with multiplicity."""
    unlike, other_unlike = set(_ngrams(left, order)), set(_ngrams(right, order))
    common = unlike & other_unlike
    if len(unlike) == count(left, order) or len(other_unlike) == count(right, order):
        # One text has no repeated sequence, so each common sequence counts once.
        return len(common)
    counts, other_counts = Counter(_ngrams(left, order)), Counter(_ngrams(right, order))
    repeated = [ngram for ngram in common if counts[ngram] > 1]
    return len(common) + sum([min(counts[ngram], other_counts[ngram]) - 1 for ngram in repeated])


def count(words: Sequence[str], order: int) -> int:
    """Return the number of sequences of ``order`` words."""
    return max(0, len(words) - order + 1)


def _ngrams(words: Sequence[str], order: int) -> Iterable[str | tuple[str, ...]]:
    return words if order == 1 else zip(*[words[start:] for start in range(order)], strict=False)


def longest_common_subsequence(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of words."""
    # As numbers, because rapidfuzz compares other items by their hashes.
    numbers = {word: number for number, word in enumerate(dict.fromkeys((*left, *right)))}
    return LCSseq.similarity([numbers[word] for word in left], [numbers[word] for word in right])
