"""Texts: their width, lists of choices, numbers, paths, patterns and JSON."""

from __future__ import annotations

import difflib
import json
import os
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path, PurePath
from re import _parser  # type: ignore[attr-defined] # the only way to the lengths of parts, in all Python versions
from typing import Any

from agenteval.core.errors import GONE, InfrastructureError

# The width of texts on a terminal, and lines of a given width.
#
# Characters of East Asian scripts and emoji take two cells; combining and invisible ones take none.


_WORD = re.compile(r"\S+")
_NO_CELL = frozenset({"Mn", "Me", "Cf"})
# The vowels and final consonants of decomposed Hangul, which join the syllable before them.
_JOINED_HANGUL = range(0x1160, 0x1200)


def width(text: str) -> int:
    """Return the number of cells that a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def wrapped(text: str, columns: int, *, first: int | None = None) -> list[str]:
    """Return a text in lines; see :func:`spans`."""
    return [text[start:end] for start, end in spans(text, columns, first=first)]


def spans(text: str, columns: int, *, first: int | None = None) -> list[tuple[int, int]]:
    """Return where the lines of a text begin and end.

    They break at blanks. Only a word that is wider than a line is broken inside. ``first``: cells left in the first.
    """
    found: list[tuple[int, int]] = []
    start, end, room = 0, 0, columns if first is None else first
    for word in _WORD.finditer(text):
        if width(text[start : word.end()]) <= room:
            end = word.end()
            continue
        if end > start or room < columns:
            found.append((start, end))
            start, room = word.start(), columns
        while (fits := _fitting(text, start, word.end(), room)) < word.end():
            found.append((start, fits))
            start = fits
        end = word.end()
    found.append((start, end))
    return found


def cut(text: str, columns: int) -> str:
    """Return the beginning of a text, with an ellipsis if something is missing, in a number of cells."""
    return text if width(text) <= columns else f"{text[: _fitting(text, 0, len(text), max(1, columns - 1))]}…"


def _fitting(text: str, start: int, end: int, columns: int) -> int:
    """Return the end of the part that fits from ``start`` on: at least one character with its combining ones."""
    taken = 0
    for index in range(start, end):
        cells = _cells(text[index])
        if taken + cells > columns and index > start:
            return index
        taken += cells
    return end


def _cells(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in _NO_CELL or ord(character) in _JOINED_HANGUL:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# Longer lists of names are not shown.
MOST_LISTED = 8
_MOST_NEAREST = 3


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` if an allowed name is similar, else an empty text."""
    meant = _meant(str(name), [str(item) for item in allowed])
    return f"; did you mean {meant!r}?" if meant is not None else ""


def choices(name: str, allowed: Iterable[str], word: str = "allowed") -> str:
    """Return what to write instead of a name: ``; did you mean 'x'?; allowed: x, y``.

    Of many names, only the one that was probably meant is shown, or the three nearest. ``word`` says what they are.
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


# Thousands separators: comma, underscore, no-break space, narrow no-break space.
_SEPARATORS = ",_\u00a0\u202f"
_NO_SEPARATORS = str.maketrans("", "", _SEPARATORS)


def parse_number(text: str, *, accept_percent: bool, accept_thousands_separators: bool) -> float:
    """Return the number in a text.

    Raises:
        ValueError: the text is not a number; the message continues "the text …".
    """
    number = text.strip()
    if not number:
        raise ValueError("is empty, not a number")
    divisor = 1.0
    if number.endswith("%"):
        if not accept_percent:
            raise ValueError("is a percentage, and accept_percent is off")
        number = number[:-1].strip()
        divisor = 100.0
    if any(character in number for character in _SEPARATORS):
        if not accept_thousands_separators:
            raise ValueError("has thousands separators, and accept_thousands_separators is off")
        number = number.translate(_NO_SEPARATORS)
    try:
        return float(number) / divisor
    except ValueError:
        raise ValueError("is not a number") from None


_FENCE = re.compile(r"```[\w-]*\s*")
_START = re.compile(r"[{\[]")
# Each attempt may read the rest of the text.
_MOST_STARTS = 200


def composed(text: str) -> str:
    """Return a text with its accents on the letters (NFC); in names of files, macOS has them beside the letters."""
    return unicodedata.normalize("NFC", text)


def text_of(value: Any) -> str:
    """Return a value as text: texts unchanged, ``None`` as an empty text, other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def json_in(text: str) -> Any:
    """Return the JSON value that is a text, or the longest object or list inside it, for instance in a code fence.

    Raises:
        ValueError, RecursionError: the text contains no JSON; the message is the one of the whole text.
    """
    try:
        return json.loads(unfenced(text))
    except ValueError:
        found = _longest_value(text)
        if found is None:
            raise
        return found


def _longest_value(text: str) -> Any:
    decoder = json.JSONDecoder()
    longest, found = 0, None
    start = _start_of_value(text, 0)
    for _ in range(_MOST_STARTS):
        if start is None:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = _start_of_value(text, start + 1)
            continue
        if end - start > longest:
            longest, found = end - start, value
        start = _start_of_value(text, end)
    return found


def _start_of_value(text: str, place: int) -> int | None:
    match = _START.search(text, place)
    return None if match is None else match.start()


def unfenced(text: str) -> str:
    """Return the content of the code fence (```) around a whole text; without a fence the text itself."""
    # Not a regular expression: its search for the end would take quadratic time.
    first, _, rest = text.strip().partition("\n")
    return rest[:-3].strip() if _FENCE.fullmatch(first) and rest.endswith("```") else text


#: Characters. Fixed repetitions multiply, and the engine writes their text out: 65,000 times 65,000 need all memory.
LONGEST_REQUIRED = 100_000
_BEGINNINGS = frozenset({"AT_BEGINNING", "AT_BEGINNING_STRING"})
_ENDS = frozenset({"AT_END", "AT_END_STRING"})
# Parts that an empty match depends on.
_CONDITIONS = frozenset({"ASSERT", "ASSERT_NOT", "GROUPREF", "GROUPREF_EXISTS", "AT_BOUNDARY", "AT_NON_BOUNDARY"})


def pattern_problem(pattern: str) -> str | None:
    """Return why a text cannot be used as a regular expression; ``None`` if it can."""
    try:
        with warnings.catch_warnings():
            # Warnings for patterns whose meaning may change in a later Python.
            warnings.simplefilter("ignore")
            re.compile(pattern)
            longest = max(_required(_parser.parse(pattern)))
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        return str(error) or type(error).__name__
    if longest > LONGEST_REQUIRED:
        return f"a part of it requires {longest:,} characters, at most {LONGEST_REQUIRED:,} are allowed"
    return None


def matches_everything(pattern: str, flags: int = 0) -> bool:
    """Return whether a valid pattern certainly matches at the start or at the end of every text, such as ``.*``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = _parser.parse(pattern, flags)
    names = set(_names(parsed))
    one_end = names.isdisjoint(_BEGINNINGS) or names.isdisjoint(_ENDS)
    return parsed.getwidth()[0] == 0 and one_end and names.isdisjoint(_CONDITIONS)


def _names(part: Any) -> Iterator[str]:
    if isinstance(part, _parser.SubPattern):
        part = part.data
    if isinstance(part, list | tuple):
        for item in part:
            yield from _names(item)
    elif isinstance(part, type(_parser.AT)):
        yield part.name


def _required(part: Any) -> Iterator[int]:
    """Yield the least length that each part of a parsed pattern matches; those of lookarounds included."""
    if isinstance(part, _parser.SubPattern):
        yield part.getwidth()[0]
        part = part.data
    if isinstance(part, list | tuple):
        for item in part:
            yield from _required(item)


# Limits of Linux, in bytes.
_LONGEST_PATH = 4095
_LONGEST_NAME = 255


def is_too_long(path: str) -> bool:
    """Return whether no file can have a path."""
    encoded = path.encode("utf-8", "surrogatepass")
    return len(encoded) > _LONGEST_PATH or any(len(name) > _LONGEST_NAME for name in encoded.split(b"/"))


def display_path(path: Path) -> str:
    """Return the path of a file for messages and case ids, with forward slashes.

    Relative to the repository of the working directory, so that the path is the same on every machine, and so that
    files of submodules differ; a file outside it relative to its repository, else to the working directory; else
    absolute.
    """
    absolute = real_path(path)
    here = working_directory()
    root = repository_of(here)
    if root is None or not absolute.is_relative_to(root):
        root = repository_of(absolute.parent) or here
    shown = absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else absolute.as_posix()
    # Names of files need not be UTF-8, and results are.
    return shown.encode("utf-8", "backslashreplace").decode()


def real_path(path: Path) -> Path:
    """Return a path without links; a part that cannot be resolved, such as a loop of links, stays as it is."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        # It contains a null character, so no file has it.
        return path


def repository_of(directory: Path) -> Path | None:
    """Return the root of the repository that contains a directory; ``None`` if none does."""
    return next((folder for folder in (directory, *directory.parents) if (folder / ".git").exists()), None)


def working_directory() -> Path:
    """Return the working directory."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise InfrastructureError(GONE) from None


def working_directory_beside(directory: Path, file: str) -> Path | None:
    """Return the working directory among the files of a checkout.

    Files of the base commit are in another checkout than the working directory, whose files belong to the change.

    Args:
        file: the file's name in messages, relative to the root of the checkout.

    Returns:
        ``None`` if the file has no such name, because it is not in a repository.
    """
    name = PurePath(file)
    folders = name.parent.parts
    if name.is_absolute() or directory.parts[len(directory.parts) - len(folders) :] != folders:
        return None
    root = directory.parents[len(folders) - 1] if folders else directory
    here = working_directory().resolve()
    repository = repository_of(here) or here
    return root / here.relative_to(repository)


def place_of(path: str) -> Path | None:
    """Return the file of a suite's path in results if it is on this machine; reverses ``display_path``."""
    here = working_directory()
    root = repository_of(here) or here
    try:
        file = real_path(root / path)
        inside = file.is_relative_to(real_path(root)) or Path(path).is_absolute()
        return file if inside and file.is_file() else None
    except (OSError, ValueError):
        # No file can have this path.
        return None
