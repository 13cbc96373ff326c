"""Checks the ``files`` of a HoloDeck case: they exist, have the declared kind, and can be read here."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.core.documents.document import Document, KeyPath
from agenteval.core.errors import Problem
from agenteval.core.extras import missing_extra
from agenteval.core.files.reading import LARGEST_ATTACHMENT, read_regular
from agenteval.core.urls import display_url, is_http_url
from agenteval.suite.files import PLAIN, content_problem, decode_text, is_old_office
from agenteval.suite.formats.holodeck.schema import Execution, FileInput
from agenteval.suite.model import FileKind, FileRef

# Parts of a file that can be selected, by kind.
_PARTS: Mapping[str, tuple[FileKind, ...]] = {
    "pages": ("pdf", "powerpoint"),
    "sheet": ("excel",),
    "range": ("excel",),
}
_CELL = r"\$?[A-Z]{1,3}\$?[1-9][0-9]{0,6}"
_RANGE = re.compile(
    rf"{_CELL}(:{_CELL})?|[A-Z]{{1,3}}:[A-Z]{{1,3}}|[1-9][0-9]{{0,6}}:[1-9][0-9]{{0,6}}", re.IGNORECASE
)
# HoloDeck's default, for a download and for reading a file.
_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class _Looked:
    """Result of checking a file's bytes."""

    digest: str = ""
    problem: str | None = None
    warning: str | None = None
    is_old: bool = False


@dataclass
class FileReader:
    """Files of one suite, each checked once.

    Args:
        execution: the suite's limits.
        warnings: receives warnings.
    """

    execution: Execution | None
    warnings: list[str]
    _looked: dict[tuple[Path, FileKind], _Looked] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)

    def read(
        self, entries: Sequence[FileInput], source: Document, at: KeyPath
    ) -> tuple[tuple[FileRef, ...], list[Problem]]:
        """Return the files of a case or turn.

        Args:
            entries: as written.
            source: the document that lists them; paths start in its directory.
            at: their position in the document.

        Returns:
            The usable files, and the problems of the others.
        """
        files: list[FileRef] = []
        problems: list[Problem] = []
        for index, entry in enumerate(entries):
            place = (*at, index)
            found = self._problems(entry, source)
            problems += [source.problem((*place, key), message) for key, message in found]
            if not found:
                files.append(self._file(entry, source))
                warning = self._warning(entry, source)
                self.warnings += [str(source.problem(place, warning))] if warning else []
        return tuple(files), problems

    def _problems(self, entry: FileInput, source: Document) -> list[tuple[str, str]]:
        """Return key and message of each problem of an entry."""
        found = [
            (key, f"can be chosen in {' and '.join(kinds)} files, not in {entry.type}")
            for key, kinds in _PARTS.items()
            if getattr(entry, key) and entry.type not in kinds
        ]
        if entry.range and not _RANGE.fullmatch(entry.range):
            found.append(("range", f"{entry.range!r} is not a range of cells; write it like A1:E100"))
        if entry.type not in PLAIN and self._first("extra"):
            install = missing_extra("files")
            if install:
                message = f"reading {entry.type} files needs an extra that is not installed: {install}"
                found.append(("type", message))
        if entry.url:
            if not is_http_url(entry.url):
                found.append(("url", f"{display_url(entry.url)!r} is not an http:// or https:// address"))
            return found
        looked = self._look(entry, source)
        if looked.problem:
            found.append(("path", looked.problem))
        elif looked.is_old and (entry.sheet or entry.range):
            found.append(("path", f"{entry.path}: a sheet or range can be chosen in .xlsx files, not in .xls"))
        return found

    def _warning(self, entry: FileInput, source: Document) -> str | None:
        if entry.path and (warning := self._look(entry, source).warning):
            return warning if self._first(entry.path) else None
        if entry.type == "image" and not shutil.which("tesseract") and self._first("image"):
            return "reading text in images needs tesseract, which is not installed: agents get only the path"
        return None

    def _first(self, what: str) -> bool:
        """Return whether a message is new."""
        if what in self._said:
            return False
        self._said.add(what)
        return True

    def _look(self, entry: FileInput, source: Document) -> _Looked:
        name = entry.path or ""
        path = source.directory / name
        found = self._looked.get((path, entry.type))
        if found is None:
            found = self._looked[path, entry.type] = _look(path, name, entry.type, source.file)
        return found

    def _file(self, entry: FileInput, source: Document) -> FileRef:
        limits = self.execution or Execution()
        cached = limits.cache_enabled is not False
        return FileRef(
            name=display_url(entry.url) if entry.url else entry.path or "",
            kind=entry.type,
            path=str((source.directory / entry.path).resolve()) if entry.path else None,
            url=entry.url or None,
            description=entry.description,
            pages=tuple(entry.pages) if entry.pages else None,
            sheet=entry.sheet,
            range=entry.range,
            digest=self._look(entry, source).digest if entry.path else None,
            cache=cached if entry.cache is None else entry.cache,
            download_s=limits.download_timeout or _LIMIT_S,
            convert_s=limits.file_timeout or _LIMIT_S,
        )


def _look(path: Path, name: str, kind: FileKind, named_in: str) -> _Looked:
    try:
        data = read_regular(path, limit=LARGEST_ATTACHMENT)
    except FileNotFoundError:
        return _Looked(problem=f"there is no file {name}; paths start in the directory of {named_in}")
    except OSError as error:
        return _Looked(problem=f"{name} cannot be read: {error.strerror}")
    except ValueError as error:
        return _Looked(problem=f"{name!r} is no path: {error}")
    problem = content_problem(kind, data)
    warning = None
    if kind in PLAIN and problem is None and decode_text(data)[1] == "cp1252":
        warning = f"{name} is not UTF-8; it is read as Windows-1252"
    return _Looked(
        digest=hashlib.sha256(data).hexdigest(),
        problem=f"{name} {problem}" if problem else None,
        warning=warning,
        is_old=is_old_office(data),
    )
