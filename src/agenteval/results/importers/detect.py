"""Reads the files of other tools, detects by their content which tool wrote them, and converts the run to results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import read_regular
from agenteval.core.records import dataclass, field, replace
from agenteval.results.case import IterationResult, SuiteResult
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.importers import fluxloop, holodeck, promptfoo
from agenteval.results.importers.base import ImportedRun, Importer, KnownSuite, finite
from agenteval.results.importers.fluxloop import is_summary, is_trace
from agenteval.results.model import Results, Run, Tool
from agenteval.results.rollup import summarise, turn_means
from agenteval.results.store import LARGEST_OF_OTHERS, RESULTS_FILE, no_results, read_baseline
from agenteval.suite.model import OVERALL

_IMPORTERS = (fluxloop.IMPORTER, holodeck.IMPORTER, promptfoo.IMPORTER)
_UNDERSTOOD = ", ".join(("results.json of agenteval", *(importer.files for importer in _IMPORTERS)))
# Number of mistakes that a message lists.
_MOST_NAMED = 20
_TRACES, _SUMMARY = "per_trace.jsonl", "summary.json"
#: The files that are looked for in a folder without results.json. FluxLoop writes an evaluation into a folder of the
#: experiment. The experiment has another summary.json.
FILES_IN_FOLDER = (_TRACES, f"evaluation/{_TRACES}", f"evaluation/{_SUMMARY}", _SUMMARY)
# Suites and configurations; results are JSON.
_SUITES = frozenset({".yaml", ".yml", ".toml"})
_NO_TRACE = "not a scored trace: it needs `scores`, `final_score` and `pass`"
_DIGITS = 16
_NO_OBJECT = "Input should be a valid dictionary"


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
        found = _read_files(path)
        importer = _importer(found)
        if importer is None:
            raise error if found[0].is_ours else _unknown(found[0].file) from None
    results = _imported(path, found, importer, suites)
    notes = [f"{importer.title} does not record how it judged: cases with the same question are compared"]
    if not results.cases():
        notes.append("the baseline has totals but no cases, so there is nothing to compare case by case")
    return results, tuple(notes)


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
    found = _read_files(path)
    importer = _importer(found)
    if importer is None:
        raise _unknown(found[0].file)
    return _imported(path, found, importer, suites)


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
    digest = hashlib.sha256(b"\n".join(each.content for each in found)).hexdigest()
    return _results(importer.tool, recording, digest, datetime.fromtimestamp(first.file.stat().st_mtime, UTC))


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


def _results(tool: str, recording: ImportedRun, digest: str, modified: datetime) -> Results:
    """Return a run as results.

    Args:
        digest: hash of the files' content; it becomes the run's id, so that one file is one run.
        modified: time when the file was written; used if the file contains no time.
    """
    started, finished = _period(recording, modified)
    run = Run(
        id=f"{tool}-{digest[:_DIGITS]}",
        started_at=_timestamp(started),
        finished_at=_timestamp(finished),
        duration_s=round((finished - started).total_seconds(), 3),
        complete=True,
        commit=recording.commit,
    )
    cases = {
        case.id: PoolCase(
            fingerprint=_fingerprint(recording.questions.get(case.id)),
            scores=_pooled(_scores(suite, iteration) for iteration in case.iterations),
        )
        for suite in recording.suites
        for case in suite.cases
    }
    return Results(
        tool=Tool(name=tool, version=recording.version),
        run=run,
        summary=recording.summary or summarise(case for suite in recording.suites for case in suite.cases),
        suites=list(recording.suites),
        pool=[PoolEntry(commit=run.commit, run_id=run.id, created_at=run.started_at, cases=cases)],
    )


def _fingerprint(question: str | None) -> str:
    """Return the fingerprint of a case. Only one with another question has one: the metrics are unknown."""
    if question is None:
        return ""
    # The question differs, so this value differs from the fingerprints of all known cases.
    return f"asked:{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


def _scores(suite: SuiteResult, iteration: IterationResult) -> Mapping[str, float]:
    overall = {OVERALL: iteration.score} if suite.threshold is not None and iteration.score is not None else {}
    return turn_means(iteration.turns) | overall


def _pooled(iterations: Iterator[Mapping[str, float]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name, score in ((name, score) for scores in iterations for name, score in scores.items()):
        found.setdefault(name, []).append(score)
    return found


def _period(recording: ImportedRun, modified: datetime) -> tuple[datetime, datetime]:
    started, finished = _time(recording.started_at), _time(recording.finished_at)
    try:
        duration = timedelta(seconds=recording.duration_s)
        if started is not None:
            return started, started + duration
        finished = finished or modified
        return finished - duration, finished
    except OverflowError:
        # The duration exceeds the range of dates. The file is wrong, but its scores may be right.
        return modified, modified


def _time(written: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(written or "")
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class _File:
    """A file.

    Attributes:
        value: its JSON; for JSON Lines a list of all lines.
        lines: the numbers of these lines; empty for other files.
    """

    file: Path
    content: bytes = field(repr=False)
    value: Any = field(repr=False)
    lines: tuple[int, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether it seems to be a file of agenteval, which is broken if nothing else can read it."""
        return isinstance(self.value, dict) and "schema_version" in self.value


def _wrong(message: str, file: Path, line: int | None = None, path: str = "") -> Problem:
    """Return a problem of a file."""
    return Problem(message, file=str(file), line=line, path=path, kind=Kind.RESULTS)


def _unknown(file: Path) -> ConfigError:
    """Return the error of a file of no known tool."""
    return ConfigError(_wrong(f"not the results of a run; understood are: {_UNDERSTOOD}", file))


def _read_files(path: Path) -> tuple[_File, ...]:
    """Return the file; for FluxLoop both files, the traces first.

    Raises:
        ConfigError: a file does not exist, is too large, or is not JSON.
    """
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
    if not traces.lines or not is_summary(summary.value):
        return (first,)
    # A summary with another count belongs to another evaluation.
    return (traces, summary) if summary.value["total_traces"] == len(traces.value) else (first,)


def _read(file: Path) -> _File:
    try:
        content = read_regular(file, limit=LARGEST_OF_OTHERS)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(no_results(file)) from None
    except OSError as error:
        raise ConfigError(_wrong(f"cannot be read: {error.strerror}", file)) from None
    except UnicodeDecodeError:
        raise ConfigError(_wrong("not UTF-8 text", file)) from None
    if file.suffix.lower() in _SUITES:
        raise ConfigError(_wrong(f"this is a suite, not results; run it: agenteval run {file}", file))
    try:
        value = _loads(text)
    except (ValueError, RecursionError) as error:
        return _lines(file, content, text, error)
    return _File(file, content, [value], (1,)) if is_trace(value) else _File(file, content, value)


def _loads(text: str) -> Any:
    """Parse JSON; NaN, infinity and numbers like ``1e999`` become ``None``."""
    return json.loads(text, parse_constant=lambda _: None, parse_float=lambda digits: finite(float(digits)))


def _lines(file: Path, content: bytes, text: str, error: Exception) -> _File:
    """Return the file as JSON Lines if its first line is one of FluxLoop's.

    Args:
        error: why the file is not one JSON document.
    """
    lines = list(_parsed(text))
    problems = [_wrong(why, file, number) for number, _, why in lines if why]
    if not lines or lines[0][2]:
        # Lines of another tool, or not JSON Lines.
        raise _unknown(file) if lines and isinstance(lines[0][1], dict) else _no_json(file, error)
    if len(problems) > _MOST_NAMED:
        problems[_MOST_NAMED:] = [_wrong(f"{len(problems) - _MOST_NAMED} more lines are wrong", file)]
    if problems:
        raise ConfigError(problems)
    return _File(file, content, [value for _, value, _ in lines], tuple(number for number, _, _ in lines))


def _parsed(text: str) -> Iterator[tuple[int, Any, str]]:
    """Yield number and value of each line that is not blank, and the reason if it is not a trace."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = _loads(line)
            yield number, value, "" if is_trace(value) else _NO_TRACE
        except (ValueError, RecursionError) as error:
            yield number, None, f"not valid JSON: {error}"


def _no_json(file: Path, error: Exception) -> ConfigError:
    why, line = (error.msg, error.lineno) if isinstance(error, json.JSONDecodeError) else (str(error), None)
    return ConfigError(_wrong(f"not valid JSON: {why}; understood are: {_UNDERSTOOD}", file, line))
