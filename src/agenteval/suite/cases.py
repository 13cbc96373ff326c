"""Ids, names, tags and files of cases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.core.redact import Redactor
from agenteval.core.secrets import mask
from agenteval.suite.model import Case, FileKind, Suite

#: What the tag of a persona starts with.
PERSONA_TAG = "persona:"

_NAME_LENGTH = 60
_DIGITS = 12


def content_id(asked: Any) -> str:
    """Return a short hash of what a case asks, as JSON: the same on every machine."""
    return _digest(json.dumps(asked, sort_keys=True, ensure_ascii=False, default=str))


def turns_id(inputs: Sequence[str]) -> str:
    """Return the id of a HoloDeck case without a name, from the inputs of its turns."""
    return _digest("\x1f".join(inputs))


def persona_tag(persona: str) -> str:
    """Return the tag of the cases that a persona asks."""
    return f"{PERSONA_TAG}{persona}"


def asked_by(name: str, persona: str | None) -> str:
    """Return the name of a case that a persona asks; a name that ends with the persona stays as it is."""
    suffix = f" [{persona}]"
    return name if not persona or name.endswith(suffix) else name + suffix


def with_unique_ids(
    cases: Iterable[Case], renamed: Callable[[Case, int | None, int], str] = lambda case, _first, _number: case.name
) -> tuple[Case, ...]:
    """Return the cases with a number in the ids of repeated ones; their order distinguishes them.

    ``renamed`` makes the name of a repeated case, from it, the line of the first one and the number.
    """
    lines: dict[str, int | None] = {}
    numbers: dict[str, int] = {}
    result = []
    for case in cases:
        unique = case
        if case.id in lines:
            number = numbers.get(case.id, 1) + 1
            while f"{case.id}#{number}" in lines:
                number += 1
            numbers[case.id] = number
            unique = replace(case, id=f"{case.id}#{number}", name=renamed(case, lines[case.id], number))
        lines[unique.id] = case.line
        result.append(unique)
    return tuple(result)


class DistinctNames:
    """Makes names distinguishable: a second ``name`` becomes ``name (2)``."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def distinct(self, name: str) -> str:
        """Return the name, with a number if it was given before."""
        number = self._seen[name] = self._seen.get(name, 0) + 1
        return name if number == 1 else f"{name} ({number})"


def excerpt(text: str) -> str:
    """Return a text as a name: one line, cut if it is long, with masked secrets: half a secret is not recognised."""
    line = " ".join(text.split())
    return line if len(line) <= _NAME_LENGTH else mask(line)[: _NAME_LENGTH - 1] + "…"


def _digest(text: str) -> str:
    return f"#{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


# Read directly; all other kinds need a converter.
PLAIN: frozenset[FileKind] = frozenset({"text", "csv"})

_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# A PDF may have a short prefix.
_PDF_HEAD = 1024
_OFFICE: Mapping[FileKind, str] = {"word": ".docx", "excel": ".xlsx", "powerpoint": ".pptx"}


def is_file(path: Path) -> bool:
    """Return whether a file exists; false for a path that the system rejects, for instance as too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Return whether a folder exists; false for a path that the system rejects."""
    try:
        return path.is_dir()
    except OSError:
        return False


def exists(path: Path) -> bool:
    """Return whether a file or folder exists; false for a path that the system rejects."""
    try:
        return path.exists()
    except OSError:
        return False


def content_problem(kind: FileKind, data: bytes) -> str | None:
    """Return why bytes do not have the declared kind; ``None`` if they may have it."""
    if kind in PLAIN:
        try:
            decode_text(data)
        except ValueError as error:
            return str(error)
        return None
    if kind == "pdf":
        return None if b"%PDF-" in data[:_PDF_HEAD] else "is no PDF file"
    if kind not in _OFFICE or data.startswith(_ZIP) or (kind == "excel" and is_old_office(data)):
        return None
    if is_old_office(data):
        return f"has the old binary format, or a password; save it as {_OFFICE[kind]} without one"
    return f"is no {_OFFICE[kind]} file"


def is_old_office(data: bytes) -> bool:
    """Return whether bytes are a file of Office 97 to 2003, or an encrypted newer one."""
    return data.startswith(_OLE)


def decode_text(data: bytes) -> tuple[str, str]:
    """Return the text of a file, and its encoding: UTF-8, UTF-16 with a byte order mark, else Windows-1252."""
    if data.startswith(_UTF_16):
        return data.decode("utf-16"), "utf-16"
    if b"\0" in data:
        raise ValueError("is not a text file")
    try:
        return data.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        raise ValueError("is neither UTF-8 nor Windows-1252 text") from None


# Masks secrets in the names and ids of suites and cases.
#
# They are masked before anything is run, so every report, journal, message and comparison has the same ones. Two ids
# that differ only in their secrets become equal, which is a problem of the suite.


def masked_suite(suite: Suite, redact: Redactor) -> Suite:
    """Return the suite with masked secrets in its path and name, and in the ids, names and tags of its cases."""
    texts = (suite.path, suite.name, *(text for case in suite.cases for text in _texts(case)))
    # One search is faster than many.
    if not redact.finds("\n".join(texts)):
        return suite
    cases = tuple(masked_case(case, redact) for case in suite.cases)
    return replace(suite, path=redact(suite.path), name=redact(suite.name), cases=cases)


def masked_case(case: Case, redact: Redactor) -> Case:
    """Return the case with masked secrets in its id, name, tags, cluster and persona."""
    if not redact.finds("\n".join(_texts(case))):
        return case
    return replace(
        case,
        id=redact(case.id),
        name=redact(case.name),
        tags=tuple(map(redact, case.tags)),
        cluster=None if case.cluster is None else redact(case.cluster),
        persona=None if case.persona is None else redact(case.persona),
    )


def _texts(case: Case) -> Iterator[str]:
    yield from (case.id, case.name, *case.tags, case.cluster or "", case.persona or "")
