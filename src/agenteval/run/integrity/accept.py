"""Accepts what a run found: in ``.agenteval/accepted.yaml``, and in the expected answers of suites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from agenteval.compare.integrity.accepted import Accepted
from agenteval.compare.integrity.pairs import digest_of
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.paths import working_directory
from agenteval.core.text import escape
from agenteval.core.text.choices import join_choices
from agenteval.results.model import Results
from agenteval.run.integrity.acceptable import acceptable, chosen_of, failed_cases
from agenteval.run.integrity.accepted_file import accepted_path, latest_day, read_accepted, write_accepted
from agenteval.run.integrity.answers import Answers, new_answers
from agenteval.run.integrity.suite_files import ChangedFile, changed_files, written
from agenteval.run.resolve.control import read_control_files, read_control_suites
from agenteval.run.resolve.saved import files_of
from agenteval.run.resolve.sources import Sources
from agenteval.suite.model import Case, Suite

#: Days until an entry ends, if the caller does not say.
DAYS = 30
_MOST_NAMED = 10
# Characters of an expected answer in an entry.
_LONGEST_ANSWER = 80


@dataclass(frozen=True)
class Request:
    """What the caller accepts.

    Attributes:
        names: ids or names of cases, or ids of metrics; empty for everything that the run's gate asks about.
        reason: why it is right.
        until: the last day of the entries; ``None`` for 30 days.
    """

    names: Sequence[str]
    reason: str
    until: date | None = None


@dataclass(frozen=True)
class Acceptance:
    """What would be written.

    Attributes:
        path: the file of accepted changes.
        entries: its new entries; those of cases with a new expected answer are complete only once that is written.
        files: the suite files with new expected answers.
    """

    path: Path
    entries: Sequence[Accepted]
    files: Sequence[ChangedFile] = ()

    def write(self) -> None:
        """Write everything, or nothing.

        Raises:
            ConfigError: a file is not valid, or a suite is not valid any more.
            InfrastructureError: a file cannot be written.
        """
        with written(self.files):
            cases = _cases_here([file.path for file in self.files]) if self.files else {}
            entries = [_completed(entry, cases) for entry in self.entries]
            replaced = {(entry.case, entry.metric) for entry in entries}
            today = datetime.now(UTC).date()
            known = read_accepted(working_directory())
            kept = (entry for entry in known if (entry.case, entry.metric) not in replaced and entry.until >= today)
            write_accepted(self.path, [*kept, *entries])


def accept(request: Request, results: Results) -> Acceptance:
    """Return the entries for what a run found.

    Args:
        request: what the caller accepts.
        results: the run.

    Raises:
        ConfigError: the results contain nothing to accept, or a name is none of them.
    """
    last = _last_day(request)
    chosen = chosen_of(request.names, acceptable(results), results)
    entries = [replace(entry, reason=request.reason.strip(), until=last) for entry in chosen]
    return Acceptance(accepted_path(working_directory()), entries)


def accept_answers(request: Request, results: Results) -> Acceptance:
    """Return the entries for what a run found, and the suite files in which the answers of the run are expected.

    Args:
        request: what the caller accepts; every failed case of the run can be named.
        results: the run.

    Raises:
        ConfigError: as for ``accept``, or an answer cannot become the expected one; the error contains every problem.
    """
    last = _last_day(request)
    known = {entry.case or entry.metric: entry for entry in acceptable(results)}
    failed = {} if known and not request.names else failed_cases(results)
    chosen = list(chosen_of(request.names, list({**failed, **known}.values()), results))
    cases = [entry.case for entry in chosen if entry.case and entry.change != "removed"]
    suites = _suites_here(files_of(results.suites))
    answers = new_answers(cases, results, suites) if cases else {}
    edited = {entry.case: _updated(entry, answers, suites) for entry in chosen if entry.case in cases}
    entries = [replace(edited.get(entry.case, entry), reason=request.reason.strip(), until=last) for entry in chosen]
    return Acceptance(accepted_path(working_directory()), entries, changed_files(answers) if answers else [])


def _last_day(request: Request) -> date:
    """Return the last day of the entries.

    Raises:
        ConfigError: the reason, the last day or a name is invalid.
    """
    today = datetime.now(UTC).date()
    last = request.until or today + timedelta(days=DAYS)
    problems = (
        []
        if request.reason.strip()
        else [Problem("--reason: is empty; say why the change is right", kind=Kind.OPTION)]
    )
    if last < today:
        problems.append(Problem(f"--until: {last} is over", kind=Kind.OPTION))
    if last > latest_day():
        message = f"--until: {last} is more than a year ahead; use {latest_day()} or earlier"
        problems.append(Problem(message, kind=Kind.OPTION))
    problems += [
        Problem(f"{name!r}: wildcards are not allowed; name each case", kind=Kind.OPTION)
        for name in request.names
        if "*" in name
    ]
    if problems:
        raise ConfigError(problems)
    return last


def check_suites_here(results: Results) -> None:
    """Check that results from elsewhere are of suites in this repository.

    Raises:
        ConfigError: none of the suites is here.
    """
    paths = [suite.path for suite in results.suites]
    if not files_of(results.suites):
        listed = join_choices(paths[:_MOST_NAMED])
        message = f"these are results of other suites: {listed} is not in this repository"
        raise ConfigError(
            Problem(f"{message}; start agenteval in the repository that was evaluated", kind=Kind.OPTION)
        )


def _suites_here(files: Sequence[Path]) -> Sequence[Suite]:
    """Return suites as a run reads them.

    Raises:
        ConfigError: a suite or its configuration is not valid.
    """
    sources = Sources(working_directory(), tuple(files))
    try:
        return read_control_files(sources).suites
    except ConfigError:
        # The agent of a run can be an option of the command line.
        return read_control_suites(sources).suites


def _cases_here(files: Sequence[Path]) -> Mapping[str, Case]:
    return {case.id: case for suite in _suites_here(files) for case in suite.cases}


def _updated(entry: Accepted, answers: Answers, suites: Iterable[Suite]) -> Accepted:
    """Return the entry of a case whose expected answer changes: its new version decides."""
    turns = next(case.turns for suite in suites for case in suite.cases if case.id == entry.case)
    places = (turn.answer_at for turn in turns if turn.answer_at is not None)
    place = next(place for place in places if place in answers)
    before, after = (escape.one_line(text, _LONGEST_ANSWER) for text in (place.text, answers[place]))
    return replace(entry, change="edited", fingerprint="", before=before, after=after)


def _completed(entry: Accepted, cases: Mapping[str, Case]) -> Accepted:
    """Return the entry of a case with the fingerprint of its new version."""
    if entry.metric or entry.fingerprint:
        return entry
    return replace(entry, fingerprint=digest_of(cases[entry.case].fingerprints))
