"""Detects by its content which tool wrote a file, and converts its run to results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from agenteval.core.errors import ConfigError, Problem
from agenteval.results.case import IterationResult, SuiteResult
from agenteval.results.comparison import PoolCase, PoolEntry
from agenteval.results.importers import files, fluxloop
from agenteval.results.importers.base import ImportedRun, Importer, KnownSuite
from agenteval.results.importers.files import FILES_IN_FOLDER, ImportedFile, wrong
from agenteval.results.model import Results, Run, Tool
from agenteval.results.rollup import summarise, turn_means
from agenteval.results.store import RESULTS_FILE, read_baseline
from agenteval.suite.model import OVERALL

__all__ = ["FILES_IN_FOLDER", "import_run", "read_run"]

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
        found = files.read_files(path)
        importer = _importer(found)
        if importer is None:
            raise error if found[0].is_ours else files.unknown(found[0].file) from None
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
    found = files.read_files(path)
    importer = _importer(found)
    if importer is None:
        raise files.unknown(found[0].file)
    return _imported(path, found, importer, suites)


def _importer(found: Sequence[ImportedFile]) -> Importer | None:
    if found[0].lines:
        return fluxloop.IMPORTER
    return next((importer for importer in files.IMPORTERS if importer.recognises(found[0].value)), None)


def _imported(path: Path, found: Sequence[ImportedFile], importer: Importer, suites: Sequence[KnownSuite]) -> Results:
    first = found[0]
    content = first.value
    if first.lines:
        content = {"traces": content, "summary": found[1].value if len(found) > 1 else None}
    try:
        recording = importer.read(content, suites)
    except ValidationError as error:
        raise ConfigError(list(_mistakes(error, found))) from None
    except RecursionError:
        raise ConfigError(wrong("nested too deeply", first.file)) from None
    except ConfigError as error:
        raise ConfigError([replace(problem, file=str(path)) for problem in error.problems]) from None
    digest = hashlib.sha256(b"\n".join(each.content for each in found)).hexdigest()
    return _results(importer.tool, recording, digest, datetime.fromtimestamp(first.file.stat().st_mtime, UTC))


def _mistakes(error: ValidationError, found: Sequence[ImportedFile]) -> Iterator[Problem]:
    first, last = found[0], found[-1]
    mistakes = error.errors(include_url=False, include_input=False, include_context=False)
    for mistake in mistakes[: files.MOST_NAMED]:
        place, message = mistake["loc"], _NO_OBJECT if mistake["type"] == "model_type" else mistake["msg"]
        if first.lines and place[0] == "traces":
            yield wrong(message, first.file, first.lines[int(place[1])], ".".join(map(str, place[2:])))
        else:
            # What both files of FluxLoop are called.
            inside = place[1:] if fluxloop.is_summary(last.value) else place
            yield wrong(message, last.file, path=".".join(map(str, inside)))
    if len(mistakes) > files.MOST_NAMED:
        yield wrong(f"{len(mistakes) - files.MOST_NAMED} more mistakes", first.file)


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
