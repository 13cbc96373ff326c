"""Word-level differences of two answers, with some of the common words."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from agenteval.core.text.escape import visible

# Number of words that are shown on either side of a change in a long answer.
_CONTEXT = 12
# Below this share of common characters, the words of two answers are not compared.
_LEAST_IN_COMMON = 0.3
# In longer answers, the text between the first and the last change counts as one change.
_MOST_WORDS = 800
_MOST_CHARACTERS = 8_000

# A number or word with its inner signs (42.49, don't, foo_bar), one character of a script without blanks, or one
# other character; with the white space after it.
_WORD = (
    r"(?: [\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"  | [^\W_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
    r"    (?: [.,'’_-] [^\W_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+ )*"
    r"  | \S ) \s* | \s+"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer; ``changed`` if the other answer does not have it."""

    text: str
    changed: bool = False


Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    """Words that both answers have, or the words of each in one place."""

    same: bool
    before: tuple[str, ...]
    after: tuple[str, ...]


def difference(before: str, after: str, limit: int) -> tuple[Pieces, Pieces] | None:
    """Return both answers in pieces, each answer at most about ``limit`` characters long.

    Of longer answers, only the surroundings of changes are shown.

    Returns:
        The older and the newer answer; ``None`` if they have too little in common for a comparison of words.
    """
    runs = _runs(before[:_MOST_CHARACTERS], after[:_MOST_CHARACTERS])
    if runs is None:
        return None
    if max(len(before), len(after)) > limit:
        runs = tuple(_around_changes(runs))
    return _pieces([(run.before, not run.same) for run in runs], limit), _pieces(
        [(run.after, not run.same) for run in runs], limit
    )


@functools.lru_cache(maxsize=256)
def _runs(before: str, after: str) -> tuple[_Run, ...] | None:
    # Every level of detail compares the same answers again.
    old, new = _words(visible(before)), _words(visible(after))
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    runs = [_Run(True, tuple(old[:head]), tuple(new[:head]))]
    runs += _between(old[head : len(old) - tail], new[head : len(new) - tail])
    runs.append(_Run(True, tuple(old[len(old) - tail :]), tuple(new[len(new) - tail :])))
    merged = tuple(_merged([run for run in runs if run.before or run.after]))
    common = sum(len("".join(run.before)) for run in merged if run.same)
    longest = max(len(before), len(after))
    return merged if longest and common >= _LEAST_IN_COMMON * longest else None


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of common words at the beginning."""
    pairs = zip(old, new, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a.strip() != b.strip()), min(len(old), len(new)))


def _words(text: str) -> list[str]:
    # Compiled (5 ms) when answers differ for the first time; most runs never need it.
    found: list[str] = re.findall(_WORD, text, re.VERBOSE)
    return found


def _between(old: Sequence[str], new: Sequence[str]) -> list[_Run]:
    if max(len(old), len(new)) > _MOST_WORDS or not old or not new:
        return [_Run(False, tuple(old), tuple(new))]
    matcher = SequenceMatcher(None, [word.strip() for word in old], [word.strip() for word in new])
    return [_Run(kind == "equal", tuple(old[a:b]), tuple(new[c:d])) for kind, a, b, c, d in matcher.get_opcodes()]


def _merged(runs: Sequence[_Run]) -> list[_Run]:
    """Merge changes that are separated by punctuation only."""
    merged: list[_Run] = []
    for index, run in enumerate(runs):
        inner = 0 < index < len(runs) - 1
        says_nothing = run.same and inner and not any(character.isalnum() for character in "".join(run.before))
        same = run.same and not says_nothing
        if merged and merged[-1].same == same:
            last = merged.pop()
            merged.append(_Run(same, last.before + run.before, last.after + run.after))
        else:
            merged.append(_Run(same, run.before, run.after))
    return merged


def _around_changes(runs: Sequence[_Run]) -> list[_Run]:
    """Return the changes with a few words before and after each."""
    kept: list[_Run] = []
    for index, run in enumerate(runs):
        first = _CONTEXT if index else 0
        last = _CONTEXT if index < len(runs) - 1 else 0
        if not run.same or len(run.before) <= first + last + 1:
            kept.append(run)
            continue
        kept.append(_Run(True, _ends(run.before, first, last), _ends(run.after, first, last)))
    return kept


def _ends(words: tuple[str, ...], first: int, last: int) -> tuple[str, ...]:
    """Return the first and last words, with an ellipsis for the rest."""
    return (*words[:first], "… ", *words[len(words) - last :])


def _pieces(runs: Sequence[tuple[tuple[str, ...], bool]], limit: int) -> Pieces:
    pieces: list[Piece] = []
    room = limit
    for words, changed in runs:
        text = "".join(words)
        if len(text) > room:
            rest = sum(len("".join(others)) for others, _ in runs) - limit
            return (*pieces, Piece(text[:room], changed), Piece(f"… ({rest:,} more characters)"))
        if text:
            pieces.append(Piece(text, changed))
        room -= len(text)
    return tuple(pieces)
