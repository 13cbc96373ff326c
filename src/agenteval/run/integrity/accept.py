"""Accepts what a run found: writes it into ``.agenteval/accepted.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from agenteval.compare.integrity.accepted import Accepted, AcceptedChange
from agenteval.compare.integrity.pairs import digest_of
from agenteval.compare.pairing import own_cases
from agenteval.core.documents.validation import did_you_mean, join_choices
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.paths import display_path, working_directory
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import Results
from agenteval.results.store import read_results
from agenteval.run.integrity.accepted_file import accepted_path, read_accepted, write_accepted
from agenteval.suite.model import Fingerprints

#: Days until an entry ends, if the caller does not say.
DAYS = 30
_MOST_NAMED = 10


def accept(names: Sequence[str], reason: str, results: Path, until: date | None = None) -> tuple[str, list[Accepted]]:
    """Write entries for what a run found into the file.

    Args:
        names: ids or names of cases, or ids of metrics; empty for everything that the run's gate asks about.
        reason: why it is right.
        results: results.json of the run, or its report directory.
        until: the last day of the entries; default: in 30 days.

    Returns:
        The path of the file, and the new entries.

    Raises:
        ConfigError: the results cannot be read or contain nothing to accept, a name is none of them, or the file is
            not valid.
        InfrastructureError: the file cannot be written.
    """
    today = datetime.now(UTC).date()
    last = until or today + timedelta(days=DAYS)
    problems = [] if reason.strip() else [Problem("--reason: is empty; say why the change is right")]
    if last < today:
        problems.append(Problem(f"--until: {last} is over"))
    problems += [Problem(f"{name!r}: wildcards are not allowed; name each case") for name in names if "*" in name]
    if problems:
        raise ConfigError(problems)
    found = read_results(results)
    chosen = [replace(entry, reason=reason.strip(), until=last) for entry in _chosen(names, acceptable(found), found)]
    here = working_directory()
    path = accepted_path(here)
    replaced = {(entry.case, entry.metric) for entry in chosen}
    kept = (
        entry for entry in read_accepted(here) if (entry.case, entry.metric) not in replaced and entry.until >= today
    )
    write_accepted(path, [*kept, *chosen])
    return display_path(path), chosen


def acceptable(results: Results) -> list[Accepted]:
    """Return what somebody can accept of a run, without reason: cases in the order of the run, then means."""
    found = {entry.case: entry for entry in _failing(results)}
    # Somebody who accepts an edited case accepts its new version, which need not be compared with the old one.
    found |= {entry.case: entry for entry in _withdrawn(results)}
    return [*found.values(), *_means(results)]


def _withdrawn(results: Results) -> Iterator[Accepted]:
    """Yield the removed and the edited cases."""
    for item in results.run.integrity:
        if item.case is not None and item.fingerprint and item.accepted_by is None:
            if item.kind == "removed" and item.effect == "unproven":
                yield _entry("removed", item.case, item.fingerprint, item.before, item.after)
            elif item.kind == "edited":
                yield _entry("edited", item.case, item.fingerprint, item.before, item.after)


def _entry(change: AcceptedChange, case_id: str, digest: str, before: str | None, after: str | None) -> Accepted:
    return Accepted(
        change=change,
        reason="",
        until=date.max,
        case=case_id,
        fingerprint=digest,
        before=before or "",
        after=after or "",
    )


def _failing(results: Results) -> Iterator[Accepted]:
    """Yield the cases that passed before and fail now, and those that regressed in another way."""
    if results.comparison is None:
        return
    own = own_cases(results)
    for case in results.comparison.cases:
        fell = case.status_before == "passed" and case.status_after == "failed"
        if (case.change == "regressed" or fell) and case.id in own and "accepted" not in case.notes:
            fingerprints = Fingerprints(own[case.id].fingerprint, own[case.id].metrics)
            before, after = (
                _result(case.status_before, case.score_before),
                _result(case.status_after, case.score_after),
            )
            yield _entry("regressed", case.id, digest_of(fingerprints), before, after)


def _result(status: str | None, score: float | None) -> str:
    return f"{status}, score {score:.2f}" if score is not None else str(status)


def _means(results: Results) -> Iterator[Accepted]:
    for metric in results.comparison.metrics if results.comparison else ():
        if metric.verdict == "regressed" and metric.gating:
            yield Accepted(
                change="regressed",
                reason="",
                until=date.max,
                metric=metric.id,
                before=f"{metric.baseline:.4f}",
                after=f"{metric.current:.4f}",
            )


def _chosen(names: Sequence[str], known: Sequence[Accepted], results: Results) -> Iterable[Accepted]:
    """Return the entries that the caller names.

    Raises:
        ConfigError: there is nothing to accept, or a name is not among the entries.
    """
    if not known:
        why = (
            "it was not compared with a baseline" if results.comparison is None else "nothing got worse or is missing"
        )
        raise ConfigError(Problem(f"this run contains nothing to accept: {why}"))
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
        Problem(f"{name!r} is nothing that can be accepted{did_you_mean(name, list(by_name))}; there is {shown}")
        for name in names
        if name not in by_name
    ]
    problems += [
        Problem(f"{name!r} names {len(by_name[name])} cases; give the id of one")
        for name in names
        if len(by_name.get(name, ())) > 1
    ]
    if problems:
        raise ConfigError(problems)
    return list({id(entry): entry for name in names for entry in by_name[name]}.values())


def _titles(results: Results) -> dict[str, str]:
    """Return the names of cases by id."""
    compared: list[ComparedCase] = results.comparison.cases if results.comparison else []
    named = {case.id: case.name for case in compared}
    removed = {item.case: item.before for item in results.run.integrity if item.kind == "removed" and item.before}
    return named | {case_id: name for case_id, name in removed.items() if case_id is not None and name is not None}
