"""The longest common subsequence of words, which ROUGE-L is made of, without a table of all their pairs."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import LCSseq


def longest_common_subsequence(left: Sequence[str], right: Sequence[str]) -> int:
    """How many words stand in both in the same order, with others between them or not."""
    # Numbers, as rapidfuzz compares the hashes of anything longer than a character.
    numbers = {word: number for number, word in enumerate(dict.fromkeys((*left, *right)))}
    return LCSseq.similarity([numbers[word] for word in left], [numbers[word] for word in right])
