"""Detects by its content which tool wrote a file, and reads the file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import read_regular
from agenteval.results.importers.base import ImportedRun, KnownSuite, loads, results_of
from agenteval.results.importers.fluxloop import belong_together, is_summary, is_trace, read_fluxloop
from agenteval.results.importers.holodeck import is_holodeck, read_holodeck
from agenteval.results.importers.promptfoo import is_promptfoo, read_promptfoo
from agenteval.results.model import Results
from agenteval.results.store import LARGEST_OF_OTHERS, RESULTS_FILE, no_results, read_baseline

# Number of mistakes that a message lists.
_NAMED = 20
_TRACES, _SUMMARY = "per_trace.jsonl", "summary.json"
#: The files that are looked for in a folder without results.json. FluxLoop writes an evaluation into a folder of the
#: experiment. The experiment has another summary.json.
FILES_IN_FOLDER = (_TRACES, f"evaluation/{_TRACES}", f"evaluation/{_SUMMARY}", _SUMMARY)


@dataclass(frozen=True)
class _ImportedFile:
    """A file.

    Attributes:
        value: its JSON; for JSON Lines a list of all lines.
    """

    file: Path
    content: bytes = field(repr=False)
    value: Any = field(repr=False)
    lines: tuple[int, ...] = ()

    @property
    def is_traces(self) -> bool:
        return bool(self.lines)


@dataclass(frozen=True)
class _Importer:
    """A tool whose results can be read.

    Attributes:
        tool: its name in ``results.tool.name``.
        content: returns the input of ``read`` from files that belong together; ``None`` for another tool's files.
        read: converts this input to a recording.
    """

    tool: str
    title: str
    files: str
    content: Callable[[Sequence[_ImportedFile]], Mapping[str, Any] | None]
    read: Callable[[Mapping[str, Any], Sequence[KnownSuite]], ImportedRun]


def _one_file(is_of_tool: Callable[[Any], bool]) -> Callable[[Sequence[_ImportedFile]], Mapping[str, Any] | None]:
    def content(documents: Sequence[_ImportedFile]) -> Mapping[str, Any] | None:
        first = documents[0]
        found: Mapping[str, Any] | None = first.value if not first.is_traces and is_of_tool(first.value) else None
        return found

    return content


def _fluxloop(documents: Sequence[_ImportedFile]) -> Mapping[str, Any] | None:
    value = documents[0].value
    if documents[0].is_traces:
        return {"traces": value, "summary": documents[1].value if len(documents) > 1 else None}
    return {"summary": value} if is_summary(value) else None


IMPORTERS = (
    _Importer(
        "fluxloop",
        "FluxLoop",
        f"an evaluation of FluxLoop ({_SUMMARY}, {_TRACES} or their folder)",
        _fluxloop,
        read_fluxloop,
    ),
    _Importer(
        "holodeck",
        "HoloDeck",
        "a test report of HoloDeck (holodeck test --output report.json)",
        _one_file(is_holodeck),
        read_holodeck,
    ),
    _Importer(
        "promptfoo",
        "promptfoo",
        "results of promptfoo (promptfoo eval --output results.json)",
        _one_file(is_promptfoo),
        read_promptfoo,
    ),
)
_UNDERSTOOD = ", ".join(("results.json of agenteval", *(importer.files for importer in IMPORTERS)))


def read_run(path: Path, suites: Sequence[KnownSuite] = ()) -> tuple[Results, tuple[str, ...]]:
    """Read a run to compare with: a results file of agenteval or of another tool.

    Args:
        suites: suites of the run to compare with it; see ``import_run``.

    Returns:
        The run, and notes about data that the file lacks.

    Raises:
        ConfigError: the file does not exist, or its format is unknown.
    """
    if (path / RESULTS_FILE).is_file():
        path = path / RESULTS_FILE
    try:
        return read_baseline(path)
    except ConfigError as error:
        if not path.exists():
            raise
        try:
            results = import_run(path, suites)
        except _UnknownError as unknown:
            # A file with a schema_version of agenteval is broken, not unknown.
            raise error if unknown.claims_to_be_ours else unknown from None
    return results, tuple(_lacking(results))


def _lacking(results: Results) -> Iterator[str]:
    title = next(importer.title for importer in IMPORTERS if importer.tool == results.tool.name)
    yield f"{title} does not record how it judged: cases with the same question are compared"
    if not results.cases():
        yield "the baseline has totals but no cases, so there is nothing to compare case by case"


def import_run(path: Path, suites: Sequence[KnownSuite] = ()) -> Results:
    """Read a run that HoloDeck, FluxLoop or promptfoo recorded.

    Statuses, scores from 0 to 1, answers, times and costs are imported if the file contains them. The file does not
    record the configuration of the metrics, so the cases have no fingerprints.

    Args:
        path: the file; for FluxLoop also the folder of an evaluation, or of the experiment that contains it.
        suites: suites whose cases the run may have; its cases then have the same ids. Without suites, ids start with
            the file's name of its suite.

    Raises:
        ConfigError: the file does not exist, is broken or too large, or belongs to another tool.
    """
    documents = _documents(path)
    content, importer = _understood(documents)
    try:
        recording = importer.read(content, suites)
    except ValidationError as error:
        raise ConfigError(_mistakes(error, documents)) from None
    except RecursionError:
        raise ConfigError(Problem("nested too deeply", file=str(documents[0].file), kind=Kind.RESULTS)) from None
    except ConfigError as error:
        raise ConfigError([replace(problem, file=str(path)) for problem in error.problems]) from None
    digest = hashlib.sha256(b"\n".join(document.content for document in documents)).hexdigest()
    modified = datetime.fromtimestamp(documents[0].file.stat().st_mtime, UTC)
    return results_of(recording, digest, modified)


class _UnknownError(ConfigError):
    """JSON of an unknown tool."""

    def __init__(self, file: Path, *, claims_to_be_ours: bool = False) -> None:
        super().__init__(
            Problem(f"not the results of a run; understood are: {_UNDERSTOOD}", file=str(file), kind=Kind.RESULTS)
        )
        self.claims_to_be_ours = claims_to_be_ours


def _documents(path: Path) -> list[_ImportedFile]:
    """Return the file; for FluxLoop both files, the traces first."""
    if not path.is_dir():
        first = _document(path)
    else:
        found = next((path / name for name in FILES_IN_FOLDER if (path / name).is_file()), None)
        if found is None:
            looked_for = ", ".join((RESULTS_FILE, *FILES_IN_FOLDER))
            raise ConfigError(
                Problem(f"no run in this folder (looked for {looked_for})", file=str(path), kind=Kind.RESULTS)
            )
        first = _document(found)
    if not first.is_traces and not is_summary(first.value):
        return [first]
    beside = first.file.with_name(_SUMMARY if first.is_traces else _TRACES)
    if not beside.is_file():
        return [first]
    second = _document(beside)
    traces, summary = (first, second) if first.is_traces else (second, first)
    if traces.is_traces and is_summary(summary.value) and belong_together(summary.value, traces.value):
        return [traces, summary]
    return [first]


def _understood(documents: Sequence[_ImportedFile]) -> tuple[Mapping[str, Any], _Importer]:
    for importer in IMPORTERS:
        content = importer.content(documents)
        if content is not None:
            return content, importer
    value = documents[0].value
    ours = isinstance(value, dict) and "schema_version" in value
    raise _UnknownError(documents[0].file, claims_to_be_ours=ours)


def _document(file: Path) -> _ImportedFile:
    try:
        content = read_regular(file, limit=LARGEST_OF_OTHERS)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(no_results(file)) from None
    except OSError as error:
        raise ConfigError(Problem(f"cannot be read: {error.strerror}", file=str(file), kind=Kind.RESULTS)) from None
    except UnicodeDecodeError:
        raise ConfigError(Problem("not UTF-8 text", file=str(file), kind=Kind.RESULTS)) from None
    if file.suffix.lower() in _SUITES:
        raise ConfigError(
            Problem(f"this is a suite, not results; run it: agenteval run {file}", file=str(file), kind=Kind.RESULTS)
        )
    try:
        value = loads(text)
    except (ValueError, RecursionError) as error:
        return _lines(file, content, text, error)
    if is_trace(value):
        return _ImportedFile(file, content, [value], (1,))
    return _ImportedFile(file, content, value)


# Suites and configurations; results are JSON.
_SUITES = frozenset({".yaml", ".yml", ".toml"})


def _lines(file: Path, content: bytes, text: str, error: Exception) -> _ImportedFile:
    """Return the document as JSON Lines if its first line is one of FluxLoop's.

    Args:
        error: why the file is not one JSON document.
    """
    found: list[Any] = []
    lines: list[int] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = loads(line)
            wrong = "" if is_trace(value) else "not a scored trace: it needs `scores`, `final_score` and `pass`"
        except (ValueError, RecursionError) as broken:
            value, wrong = None, f"not valid JSON: {broken}"
        if wrong and not found:
            # Lines of another tool, or not JSON Lines.
            raise _UnknownError(file) if isinstance(value, dict) else ConfigError(_broken(file, error))
        if wrong:
            problems.append(Problem(wrong, file=str(file), line=number, kind=Kind.RESULTS))
        found.append(value)
        lines.append(number)
    if not found:
        raise ConfigError(_broken(file, error))
    if problems:
        more = [Problem(f"{len(problems) - _NAMED} more lines are wrong", file=str(file), kind=Kind.RESULTS)]
        raise ConfigError(problems[:_NAMED] + (more if len(problems) > _NAMED else []))
    return _ImportedFile(file, content, found, tuple(lines))


def _broken(file: Path, error: Exception) -> Problem:
    why, line = (error.msg, error.lineno) if isinstance(error, json.JSONDecodeError) else (str(error), None)
    return Problem(
        f"not valid JSON: {why}; understood are: {_UNDERSTOOD}", file=str(file), line=line, kind=Kind.RESULTS
    )


def _mistakes(error: ValidationError, documents: Sequence[_ImportedFile]) -> list[Problem]:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    problems = [_mistake(mistake["loc"], mistake["msg"], documents) for mistake in found[:_NAMED]]
    if len(found) > _NAMED:
        problems.append(
            Problem(f"{len(found) - _NAMED} more mistakes", file=str(documents[0].file), kind=Kind.RESULTS)
        )
    return problems


def _mistake(place: Sequence[int | str], message: str, documents: Sequence[_ImportedFile]) -> Problem:
    first = documents[0]
    if first.is_traces and place[0] == "traces":
        return Problem(message, str(first.file), first.lines[int(place[1])], _dotted(place[2:]), kind=Kind.RESULTS)
    if is_summary(documents[-1].value):
        return Problem(message, str(documents[-1].file), path=_dotted(place[1:]), kind=Kind.RESULTS)
    return Problem(message, str(first.file), path=_dotted(place), kind=Kind.RESULTS)


def _dotted(place: Sequence[int | str]) -> str:
    return ".".join(map(str, place))
