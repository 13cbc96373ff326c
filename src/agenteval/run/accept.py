"""Accepts what a run found: in ``.agenteval/accepted.yaml``, and in the expected answers of suites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from agenteval.core import escape
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, replace
from agenteval.core.text import did_you_mean, join_choices, working_directory
from agenteval.gate.integrity import Accepted, AcceptedChange, digest_of
from agenteval.gate.pairing import own_cases
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import Results
from agenteval.run.answers import Answers, ChangedFile, changed_files, new_answers, written
from agenteval.run.resolve.configurations import Sources, files_of
from agenteval.run.resolve.control import read_control_files
from agenteval.run.rules.accepted_file import accepted_path, latest_day, read_accepted, write_accepted
from agenteval.run.rules.versions import edited_id
from agenteval.suite.model import Case, Fingerprints, Suite

_MOST_NAMED = 10


def acceptable(results: Results) -> list[Accepted]:
    """Return what somebody can accept of a run, without reason: cases in the order of the run, then means."""
    found = {entry.case: entry for entry in _failing(results)}
    # Somebody who accepts an edited case accepts its new version, which need not be compared with the old one.
    found |= {entry.case: entry for entry in _withdrawn(results)}
    return [*found.values(), *_means(results)]


def failed_cases(results: Results) -> dict[tuple[str, str], Accepted]:
    """Return the cases that did not pass, also those that a gate does not ask about."""
    ids = {case.id for _, case in results.cases()}
    failed = (case for _, case in results.cases() if case.status in {"failed", "error"})
    versions = set(map(edited_id, ids))
    return {(case.id, ""): _entry("edited", case.id) for case in failed if case.id not in versions}


def _withdrawn(results: Results) -> Iterator[Accepted]:
    for item in results.run.integrity:
        is_open = item.kind == "edited" or (item.kind == "removed" and item.effect == "unproven")
        if is_open and item.case is not None and item.fingerprint and item.accepted_by is None:
            change: AcceptedChange = "edited" if item.kind == "edited" else "removed"
            yield _entry(change, item.case, item.fingerprint, item.before, item.after)


def _entry(
    change: AcceptedChange, case_id: str, digest: str = "", before: str | None = None, after: str | None = None
) -> Accepted:
    return Accepted(change, "", date.max, case_id, "", digest, before or "", after or "")


def _failing(results: Results) -> Iterator[Accepted]:
    if results.comparison is None:
        return
    own = own_cases(results)
    for case in results.comparison.cases:
        fell = case.status_before == "passed" and case.status_after == "failed"
        if (case.change == "broke" or fell) and case.id in own and "accepted" not in case.notes:
            fingerprints = Fingerprints(own[case.id].fingerprint, own[case.id].metrics)
            # The scores that reports show, not their mean.
            worse = [item for item in case.metrics if (item.before or 0.0) > (item.after or 0.0)]
            before = ", ".join([str(case.status_before), *(_score(item.id, item.before) for item in worse)])
            after = ", ".join([str(case.status_after), *(_score(item.id, item.after) for item in worse)])
            yield _entry("worse", case.id, digest_of(fingerprints), before, after)


def _score(metric: str, score: float | None) -> str:
    return f"{metric} {'–' if score is None else f'{score:.2f}'}"


def _means(results: Results) -> Iterator[Accepted]:
    for metric in results.comparison.open_means if results.comparison else ():
        before, after = f"{metric.baseline:.4f}", f"{metric.current:.4f}"
        yield Accepted("worse", "", date.max, metric=metric.id, before=before, after=after)


def chosen_of(names: Sequence[str], known: Sequence[Accepted], results: Results) -> Iterable[Accepted]:
    """Return the entries that the caller names."""
    if not known:
        compared = results.comparison is not None
        why = "nothing broke, fell or is missing" if compared else "it was not compared with a baseline"
        raise ConfigError(Problem(f"this run contains nothing to accept: {why}", kind=Kind.RESULTS))
    if not names:
        return known
    titles = _titles(results)
    by_name: dict[str, list[Accepted]] = {}
    for entry in known:
        for name in {entry.case or entry.metric, titles.get(entry.case, entry.case or entry.metric)}:
            by_name.setdefault(name, []).append(entry)
    listed = [entry.case or entry.metric for entry in known]
    shown = join_choices(listed[:_MOST_NAMED]) + (" …" if len(listed) > _MOST_NAMED else "")
    problems = [
        Problem(
            f"{name!r} is nothing that can be accepted{did_you_mean(name, list(by_name))}; there is {shown}",
            kind=Kind.RESULTS,
        )
        for name in names
        if name not in by_name
    ]
    problems += [
        Problem(f"{name!r} names {len(by_name[name])} cases; give the id of one", kind=Kind.RESULTS)
        for name in names
        if len(by_name.get(name, ())) > 1
    ]
    if problems:
        raise ConfigError(problems)
    return list({id(entry): entry for name in names for entry in by_name[name]}.values())


def _titles(results: Results) -> dict[str, str]:
    compared: list[ComparedCase] = results.comparison.cases if results.comparison else []
    named = {case.id: case.name for _, case in results.cases()} | {case.id: case.name for case in compared}
    removed = {item.case: item.before for item in results.run.integrity if item.kind == "removed" and item.before}
    return named | {case_id: name for case_id, name in removed.items() if case_id is not None and name is not None}


#: Days until an entry ends, if the caller does not say.
DAYS = 30
# Characters of an expected answer in an entry.
_LONGEST_ANSWER = 80


@dataclass(frozen=True)
class AcceptRequest:
    """What the caller accepts.

    Attributes:
        names: ids or names of cases, or ids of metrics; empty for everything that the run's gate asks about.
        until: the last day of the entries; ``None`` for 30 days.
        update: the answers of the run become the expected ones; then every failed case can be named.
    """

    names: Sequence[str]
    reason: str
    until: date | None = None
    update: bool = False


@dataclass(frozen=True)
class PlannedAcceptance:
    """What would be written.

    Attributes:
        entries: its new entries; those of cases with a new expected answer are complete only once that is written.
        files: the suite files with new expected answers.
    """

    path: Path
    entries: Sequence[Accepted]
    files: Sequence[ChangedFile] = ()

    def write(self) -> None:
        """Write everything, or nothing."""
        with written(self.files):
            cases = _cases_here([file.path for file in self.files]) if self.files else {}
            entries = [_completed(entry, cases) for entry in self.entries]
            replaced = {(entry.case, entry.metric) for entry in entries}
            today = datetime.now(UTC).date()
            known = read_accepted(working_directory())
            kept = (entry for entry in known if (entry.case, entry.metric) not in replaced and entry.until >= today)
            write_accepted(self.path, [*kept, *entries])


def accept(request: AcceptRequest, results: Results) -> PlannedAcceptance:
    """Return the entries for what a run found, and the suite files in which its answers are expected."""
    last = _last_day(request)
    known = {(entry.case, entry.metric): entry for entry in acceptable(results)}
    if request.update and (request.names or not known):
        known = failed_cases(results) | known
    chosen = chosen_of(request.names, list(known.values()), results)
    files: Sequence[ChangedFile] = ()
    if request.update:
        cases = [entry.case for entry in chosen if entry.case and entry.change != "removed"]
        suites = _suites_here(files_of(results.suites))
        answers = new_answers(cases, results, suites)
        files = changed_files(answers)
        chosen = [_updated(entry, answers, suites) if entry.case in cases else entry for entry in chosen]
    entries = [replace(entry, reason=request.reason.strip(), until=last) for entry in chosen]
    return PlannedAcceptance(accepted_path(working_directory()), entries, files)


def _last_day(request: AcceptRequest) -> date:
    today = datetime.now(UTC).date()
    last = request.until or today + timedelta(days=DAYS)
    problems = (
        []
        if re.search(r"\w", request.reason)
        else [Problem("--reason: contains no word; say why the change is right", kind=Kind.OPTION)]
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
    """Check that results from elsewhere are of suites in this repository."""
    paths = [suite.path for suite in results.suites]
    if not files_of(results.suites):
        listed = join_choices(paths[:_MOST_NAMED])
        message = f"these are results of other suites: {listed} is not in this repository"
        raise ConfigError(
            Problem(f"{message}; start agenteval in the repository that was evaluated", kind=Kind.OPTION)
        )


def _suites_here(files: Sequence[Path]) -> Sequence[Suite]:
    sources = Sources(working_directory(), tuple(files))
    try:
        return read_control_files(sources).suites
    except ConfigError:
        # The agent of a run can be an option of the command line.
        return read_control_files(sources, agents=False).suites


def _cases_here(files: Sequence[Path]) -> Mapping[str, Case]:
    return {case.id: case for suite in _suites_here(files) for case in suite.cases}


def _updated(entry: Accepted, answers: Answers, suites: Iterable[Suite]) -> Accepted:
    turns = next(case.turns for suite in suites for case in suite.cases if case.id == entry.case)
    places = (turn.answer_at for turn in turns if turn.answer_at is not None)
    place = next(place for place in places if place in answers)
    before, after = (escape.one_line(text, _LONGEST_ANSWER) for text in (place.text, answers[place]))
    return replace(entry, change="edited", fingerprint="", before=before, after=after)


def _completed(entry: Accepted, cases: Mapping[str, Case]) -> Accepted:
    if entry.metric or entry.fingerprint:
        return entry
    return replace(entry, fingerprint=digest_of(cases[entry.case].fingerprints))
