"""The end of a message about a wrong name: the name that was probably meant, and the possible ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import chain

# Longer lists of names are not shown.
MOST_LISTED = 8
_MOST_NEAREST = 3


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` if an allowed name is similar, else an empty text."""
    meant = _meant(str(name), [str(item) for item in allowed])
    return f"; did you mean {meant!r}?" if meant is not None else ""


def choices(name: str, allowed: Iterable[str], word: str = "allowed") -> str:
    """Return what to write instead of a name: ``; did you mean 'x'?; allowed: x, y``.

    Of many names, only the one that was probably meant is shown, or the three nearest.

    Args:
        name: the wrong name.
        allowed: the possible names.
        word: what they are: ``allowed``, ``known`` or ``installed``.
    """
    names = list(dict.fromkeys(map(str, allowed)))
    guess = did_you_mean(name, names)
    if len(names) <= MOST_LISTED:
        return f"{guess}; {word}: {join_choices(names) or 'none'}"
    return guess or f"; nearest: {join_choices(_nearest(str(name), names))}"


def join_choices(names: Iterable[str]) -> str:
    """Return the allowed names as a list for a message."""
    return ", ".join(names)


def _meant(name: str, allowed: Iterable[str]) -> str | None:
    by_form = {_form(item): item for item in reversed(list(allowed))}
    form = _form(name)
    close = difflib.get_close_matches(form, by_form, n=1)
    if close:
        return by_form[close[0]]
    # The beginning of one name only: f1 of f1_score.
    longer = [item for other, item in by_form.items() if len(form) > 1 and other.startswith(f"{form}_")]
    return longer[0] if len(longer) == 1 else None


def _nearest(name: str, allowed: list[str]) -> list[str]:
    by_form = {_form(item): item for item in allowed}
    close = [by_form[item] for item in difflib.get_close_matches(_form(name), by_form, n=_MOST_NEAREST, cutoff=0.0)]
    return list(dict.fromkeys(chain(close, allowed)))[:_MOST_NEAREST]


def _form(name: str) -> str:
    # The dashes before every option make no two options similar.
    return name.strip().lstrip("-").casefold().replace("-", "_").replace(" ", "_")
