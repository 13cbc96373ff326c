"""Reads the files of other tools, detects by their content which tool wrote them, and converts the run to results."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from pydantic import ValidationError

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import read_regular
from agenteval.core.records import dataclass, field, replace
from agenteval.results.comparison import BaselineCase, BaselineRun
from agenteval.results.importers import deepeval, fluxloop, holodeck, inspect, junit, promptfoo
from agenteval.results.importers.base import ImportedRun, Importer, KnownSuite, finite
from agenteval.results.importers.fluxloop import is_summary, is_trace
from agenteval.results.model import Results, Run, Tool
from agenteval.results.rollup import summarise, turn_means
from agenteval.results.store import LARGEST_OF_OTHERS, RESULTS_FILE, no_results, read_results
from agenteval.suite.model import OVERALL

_IMPORTERS = tuple(tool.IMPORTER for tool in (fluxloop, holodeck, promptfoo, deepeval, inspect, junit))
_UNDERSTOOD = ", ".join(("results.json of agenteval", *(importer.files for importer in _IMPORTERS)))
# Number of mistakes that a message lists.
_MOST_NAMED = 20
_TRACES, _SUMMARY = "per_trace.jsonl", "summary.json"
#: The files that are looked for in a folder without results.json. FluxLoop writes an evaluation into a folder of the
#: experiment. The experiment has another summary.json.
FILES_IN_FOLDER = (_TRACES, f"evaluation/{_TRACES}", f"evaluation/{_SUMMARY}", _SUMMARY, ".latest_test_run.json")
# Suites and configurations; results are JSON.
_SUITES = frozenset({".yaml", ".yml", ".toml"})
_NO_TRACE = "not a scored trace: it needs `scores`, `final_score` and `pass`"
_DIGITS = 16
# Inspect's own format is a zip archive.
_ARCHIVE = b"PK\x03\x04"
_CONVERT = "a zip archive; convert a log of Inspect: inspect log convert --to json --output-dir logs {}"
_NO_OBJECT = "Input should be a valid dictionary"


def read_run(path: Path, suites: Sequence[KnownSuite] = ()) -> tuple[Results, tuple[str, ...]]:
    """Read a run: a results file of agenteval, or one of another tool.

    Statuses, scores from 0 to 1, answers, times and costs are imported if the file contains them. The file does not
    record the configuration of the metrics, so the cases have no fingerprints.

    Args:
        path: the file or its folder; for FluxLoop also that of the experiment.
        suites: suites whose cases the run may have; its cases then have the same ids. Without suites, ids start with
            the file's name of its suite.

    Returns:
        The run, and notes about data that the file lacks.
    """
    if (path / RESULTS_FILE).is_file():
        path = path / RESULTS_FILE
    try:
        return read_results(path), ()
    except ConfigError as error:
        if not path.exists():
            raise
        found = _read_files(path)
        importer = _importer(found)
        if importer is None:
            raise error if found[0].is_ours else _unknown(found[0].file) from None
    results = _imported(path, found, importer, suites)
    notes = [f"{importer.title} does not record how it judged: cases with the same question are compared"]
    if not results.cases():
        notes.append("the baseline has totals but no cases, so there is nothing to compare case by case")
    return results, tuple(notes)


def _importer(found: Sequence[_File]) -> Importer | None:
    if found[0].lines:
        return fluxloop.IMPORTER
    return next((importer for importer in _IMPORTERS if importer.recognises(found[0].value)), None)


def _imported(path: Path, found: Sequence[_File], importer: Importer, suites: Sequence[KnownSuite]) -> Results:
    first = found[0]
    content = first.value
    if first.lines:
        content = {"traces": content, "summary": found[1].value if len(found) > 1 else None}
    try:
        recording = importer.read(content, suites)
    except ValidationError as error:
        raise ConfigError(list(_mistakes(error, found))) from None
    except RecursionError:
        raise ConfigError(_wrong("nested too deeply", first.file)) from None
    except ConfigError as error:
        raise ConfigError([replace(problem, file=str(path)) for problem in error.problems]) from None
    # One file is one run, wherever it lies.
    digest = hashlib.sha256(b"\n".join(each.content for each in found)).hexdigest()
    written = datetime.fromtimestamp(first.file.stat().st_mtime, UTC)
    return _results(importer.tool, recording, f"{importer.tool}-{digest[:_DIGITS]}", written)


def _mistakes(error: ValidationError, found: Sequence[_File]) -> Iterator[Problem]:
    first, last = found[0], found[-1]
    mistakes = error.errors(include_url=False, include_input=False, include_context=False)
    for mistake in mistakes[:_MOST_NAMED]:
        place, message = mistake["loc"], _NO_OBJECT if mistake["type"] == "model_type" else mistake["msg"]
        if first.lines and place[0] == "traces":
            yield _wrong(message, first.file, first.lines[int(place[1])], ".".join(map(str, place[2:])))
        else:
            # What both files of FluxLoop are called.
            inside = place[1:] if is_summary(last.value) else place
            yield _wrong(message, last.file, path=".".join(map(str, inside)))
    if len(mistakes) > _MOST_NAMED:
        yield _wrong(f"{len(mistakes) - _MOST_NAMED} more mistakes", first.file)


def _results(tool: str, recording: ImportedRun, run_id: str, written: datetime) -> Results:
    started, finished = _period(recording, written)
    run = Run(
        id=run_id,
        started_at=started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        finished_at=finished.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        duration_s=round((finished - started).total_seconds(), 3),
        complete=True,
        commit=recording.commit,
    )
    known: dict[str, BaselineCase] = {}
    for suite in recording.suites:
        for case in suite.cases:
            scores: dict[str, list[float]] = {}
            for iteration in case.iterations:
                overall = {} if suite.threshold is None or iteration.score is None else {OVERALL: iteration.score}
                for name, score in (turn_means(iteration.turns) | overall).items():
                    scores.setdefault(name, []).append(score)
            question = recording.questions.get(case.id)
            # The metrics are unknown. Only another question has a fingerprint, which differs from all known ones.
            asked = "" if question is None else f"asked:{_digest(question)}"
            known[case.id] = BaselineCase(fingerprint=asked, scores=scores)
    return Results(
        tool=Tool(name=tool, version=recording.version),
        run=run,
        summary=recording.summary or summarise(case for suite in recording.suites for case in suite.cases),
        suites=list(recording.suites),
        baseline_runs=[BaselineRun(commit=run.commit, run_id=run.id, created_at=run.started_at, cases=known)],
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _period(recording: ImportedRun, written: datetime) -> tuple[datetime, datetime]:
    started, finished = _time(recording.started_at), _time(recording.finished_at)
    try:
        duration = timedelta(seconds=recording.duration_s)
        if started is not None:
            return started, started + duration
        finished = finished or written
        return finished - duration, finished
    except OverflowError:
        # The duration exceeds the range of dates. The file is wrong, but its scores may be right.
        return written, written


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class _File:
    """A file."""

    file: Path
    content: bytes = field(repr=False)
    value: Any = field(repr=False)
    lines: tuple[int, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether it seems to be a file of agenteval, which is broken if nothing else can read it."""
        return isinstance(self.value, dict) and "schema_version" in self.value


def _wrong(message: str, file: Path, line: int | None = None, path: str = "") -> Problem:
    return Problem(message, file=str(file), line=line, path=path, kind=Kind.RESULTS)


def _unknown(file: Path) -> ConfigError:
    return ConfigError(_wrong(f"not the results of a run; understood are: {_UNDERSTOOD}", file))


def _read_files(path: Path) -> tuple[_File, ...]:
    if path.is_dir():
        found = next((path / name for name in FILES_IN_FOLDER if (path / name).is_file()), None)
        if found is None:
            names = ", ".join((RESULTS_FILE, *FILES_IN_FOLDER))
            raise ConfigError(_wrong(f"no run in this folder (looked for {names})", path))
        path = found
    first = _read(path)
    if not first.lines and not is_summary(first.value):
        return (first,)
    beside = path.with_name(_SUMMARY if first.lines else _TRACES)
    if not beside.is_file():
        return (first,)
    second = _read(beside)
    traces, summary = (first, second) if first.lines else (second, first)
    # A summary with another count belongs to another evaluation.
    fits = traces.lines and is_summary(summary.value) and summary.value["total_traces"] == len(traces.value)
    return (traces, summary) if fits else (first,)


def _read(file: Path) -> _File:
    try:
        content = read_regular(file, limit=LARGEST_OF_OTHERS)
        if content.startswith(_ARCHIVE):
            raise ConfigError(_wrong(_CONVERT.format(file), file))
        if content.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<"):
            return _File(file, content, junit.parse(content))
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(no_results(file)) from None
    except OSError as error:
        raise ConfigError(_wrong(f"cannot be read: {error.strerror}", file)) from None
    except UnicodeDecodeError:
        raise ConfigError(_wrong("not UTF-8 text", file)) from None
    except ParseError as error:
        line, _ = getattr(error, "position", (None, None))
        raise ConfigError(_wrong(f"not valid XML: {error}", file, line)) from None
    if file.suffix.lower() in _SUITES:
        raise ConfigError(_wrong(f"this is a suite, not results; run it: agenteval run {file}", file))
    try:
        value = _loads(text)
    except (ValueError, RecursionError) as error:
        return _lines(file, content, text, error)
    return _File(file, content, [value], (1,)) if is_trace(value) else _File(file, content, value)


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=lambda _: None, parse_float=lambda digits: finite(float(digits)))


def _lines(file: Path, content: bytes, text: str, error: Exception) -> _File:
    """Return the file as JSON Lines if its first line is one of FluxLoop's; ``error``: it is not one document."""
    lines = list(_parsed(text))
    problems = [_wrong(why, file, number) for number, _, why in lines if why]
    if not lines or lines[0][2]:
        # Lines of another tool, or not JSON Lines.
        if lines and isinstance(lines[0][1], dict):
            raise _unknown(file)
        why, line = (error.msg, error.lineno) if isinstance(error, json.JSONDecodeError) else (str(error), None)
        raise ConfigError(_wrong(f"not valid JSON: {why}; understood are: {_UNDERSTOOD}", file, line))
    if len(problems) > _MOST_NAMED:
        problems[_MOST_NAMED:] = [_wrong(f"{len(problems) - _MOST_NAMED} more lines are wrong", file)]
    if problems:
        raise ConfigError(problems)
    return _File(file, content, [value for _, value, _ in lines], tuple(number for number, _, _ in lines))


def _parsed(text: str) -> Iterator[tuple[int, Any, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = _loads(line)
            yield number, value, "" if is_trace(value) else _NO_TRACE
        except (ValueError, RecursionError) as error:
            yield number, None, f"not valid JSON: {error}"
