"""Reads the cases of a HoloDeck suite."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from agenteval.core.document import Document, KeyPath, dotted
from agenteval.core.errors import Kind, Problem
from agenteval.core.escape import display_url, is_http_url
from agenteval.core.files import LARGEST_ATTACHMENT, read_regular
from agenteval.core.records import dataclass, field, replace
from agenteval.core.runtime import missing_extra
from agenteval.core.text import parse_number
from agenteval.core.validation import validate
from agenteval.suite.cases import PLAIN, content_problem, decode_text, excerpt, is_old_office, turns_id
from agenteval.suite.formats.holodeck.metrics import NEED_GROUND_TRUTH, expected_tools
from agenteval.suite.formats.holodeck.schema import MATCHERS, AnyMetric, CaseEntry, Execution, FileInput, TurnEntry
from agenteval.suite.model import AnswerPlace, Case, FileKind, FileRef, MetricConfig, Place, Scope, Turn

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


@dataclass(frozen=True)
class _Looked:
    digest: str = ""
    problem: str | None = None
    warning: str | None = None
    is_old: bool = False


@dataclass
class FileReader:
    """Files of one suite, each checked once."""

    execution: Execution | None
    warnings: list[str]
    _looked: dict[tuple[Path, FileKind], _Looked] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)

    def read(
        self, entries: Sequence[FileInput], source: Document, at: KeyPath
    ) -> tuple[tuple[FileRef, ...], list[Problem]]:
        """Return the files of a case or turn.

        Args:
            source: the document that lists them; paths start in its directory.
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


# Keys whose YAML numbers and booleans are read as text, as written.
_TEXT_KEYS = ("name", "input", "ground_truth")


class CaseLoader(Protocol):
    """The loader of a suite, as far as its cases need it."""

    problems: list[Problem]

    @property
    def document(self) -> Document:
        """The suite's file."""
        ...

    def metrics(
        self, entries: Iterable[AnyMetric], scope: Scope, document: Document, at: KeyPath, *, report: bool = False
    ) -> tuple[MetricConfig, ...]:
        """Return metric configurations."""
        ...


@dataclass
class CaseReader:
    """Reads the entries of a case list.

    Attributes:
        without_tools: where ``expected_tools`` is an empty list.
    """

    loader: CaseLoader
    source: Document
    shared: tuple[MetricConfig, ...]
    files: FileReader
    without_tools: list[KeyPath] = field(default_factory=list)

    def read(self, at: KeyPath) -> Case | None:
        """Return the case at a place of the document; ``None`` if it has problems."""
        written = _written_case(self.source, at)
        entry, problems = validate(CaseEntry, written, self.source, at)
        self.loader.problems += map(_hinted, problems)
        if entry is None:
            return None
        case_metrics = self._own_metrics(entry, at)
        if entry.turns is None:
            turns = [self._turn(entry, at, self.shared if case_metrics is None else case_metrics)]
        else:
            turns = [
                self._multi_turn(turn, (*at, "turns", index), case_metrics) for index, turn in enumerate(entry.turns)
            ]
        self._require_ground_truth(turns, at)
        own_id = entry.name or turns_id([turn.input for turn in turns])
        return Case(
            id=f"{self.loader.document.file}::{own_id}",
            name=entry.name or excerpt(turns[0].input),
            turns=tuple(turns),
            line=self.source.line(at),
        )

    def _own_metrics(self, entry: CaseEntry, at: KeyPath) -> tuple[MetricConfig, ...] | None:
        if not entry.evaluations:
            return None
        return self.loader.metrics(entry.evaluations, "case", self.source, (*at, "evaluations"), report=True)

    def _multi_turn(self, entry: TurnEntry, at: KeyPath, case_metrics: tuple[MetricConfig, ...] | None) -> Turn:
        metrics = case_metrics if case_metrics is not None else self.shared
        if entry.evaluations:
            metrics = self.loader.metrics(entry.evaluations, "turn", self.source, (*at, "evaluations"), report=True)
        return self._turn(entry, at, metrics)

    def _turn(self, entry: CaseEntry | TurnEntry, at: KeyPath, metrics: tuple[MetricConfig, ...]) -> Turn:
        files, problems = self.files.read(entry.files or (), self.source, (*at, "files"))
        self.loader.problems += problems
        self._require_numbers(entry.ground_truth, metrics, (*at, "ground_truth"))
        if entry.expected_tools:
            where = Place(line=self.source.line((*at, "expected_tools")), file=self.source.file)
            metrics = (*metrics, expected_tools(entry.expected_tools, metrics, where))
        elif entry.expected_tools is not None:
            self.without_tools.append((*at, "expected_tools"))
        return Turn(
            input=entry.input or "",
            ground_truth=entry.ground_truth,
            retrieval_context=None if entry.retrieval_context is None else tuple(entry.retrieval_context),
            files=files,
            config=(entry.turn_config or {}) if isinstance(entry, TurnEntry) else {},
            metrics=metrics,
            answer_at=_answer_place(entry.ground_truth, self.source, at),
        )

    def _require_numbers(self, text: str | None, metrics: Iterable[MetricConfig], at: KeyPath) -> None:
        """Check that a number is given where ``numeric`` compares with it."""
        for metric in metrics:
            if text is None or metric.type != "numeric":
                continue
            options = {name: metric.options[name] for name in ("accept_percent", "accept_thousands_separators")}
            try:
                parse_number(text, **options)
            except ValueError as error:
                message = f"{metric.id} compares numbers, and {excerpt(text)!r} {error}; write a number"
                self.loader.problems.append(self.source.problem(at, message))

    def _require_ground_truth(self, turns: Sequence[Turn], at: KeyPath) -> None:
        """Check that a case that lists a comparison metric has a ground truth."""
        for turn, metric in [(asked, metric) for asked in turns for metric in asked.metrics]:
            if metric.requested_by == "suite" or metric.type not in NEED_GROUND_TRUTH:
                continue
            asked = turns if metric.requested_by == "case" else (turn,)
            if any(candidate.ground_truth is not None for candidate in asked):
                continue
            problem = Problem(
                f"{metric.id} compares with `ground_truth`, and this {metric.requested_by} has none; "
                "add one, or drop the metric",
                file=self.source.file,
                line=metric.where.line or self.source.line(at),
                path=dotted(at),
                kind=Kind.GROUND_TRUTH,
            )
            if problem not in self.loader.problems:
                self.loader.problems.append(problem)


def _hinted(problem: Problem) -> Problem:
    """Return a problem of a case; that HoloDeck has no tags is worth a hint."""
    if problem.kind is not Kind.UNKNOWN_KEY or not problem.path.endswith("].tags"):
        return problem
    hint = "delete the key, and give tags in agenteval.yaml: `tags: {TAG: [CASE]}`"
    return replace(problem, message=f"unknown key, HoloDeck cases have no tags; {hint}")


def _answer_place(text: str | None, source: Document, at: KeyPath) -> AnswerPlace | None:
    return None if text is None else AnswerPlace(source.file, (*at, "ground_truth"), text)


def _written_case(source: Document, at: KeyPath) -> Any:
    written = named_as_written(source, at)
    if isinstance(written, dict) and isinstance(written.get("turns"), list):
        turns = [named_as_written(source, (*at, "turns", index)) for index in range(len(written["turns"]))]
        written = {**written, "turns": turns}
    return written


def named_as_written(source: Document, at: KeyPath) -> Any:
    """Return a mapping with the written form of texts that YAML read as numbers or booleans."""
    value = source.data
    for step in at:
        value = value[step]
    if not isinstance(value, dict):
        return value
    value = source.texts_as_written(value, at, _TEXT_KEYS)
    tools = value.get("expected_tools")
    if not isinstance(tools, list):
        return value
    place = (*at, "expected_tools")
    return {
        **value,
        "expected_tools": [_patterns_as_written(source, tool, (*place, index)) for index, tool in enumerate(tools)],
    }


def _patterns_as_written(source: Document, tool: Any, at: KeyPath) -> Any:
    """Return an expected tool with the written form of patterns that YAML read as numbers (``fuzzy: 60.940``)."""
    args = tool.get("args") if isinstance(tool, dict) else None
    if not isinstance(args, dict):
        return tool
    patterns = {
        key: source.as_written(matcher, (*at, "args", key))
        for key, matcher in args.items()
        if isinstance(matcher, dict) and not MATCHERS.isdisjoint(matcher)
    }
    return {**tool, "args": {**args, **patterns}}
