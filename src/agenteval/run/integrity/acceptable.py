"""Finds what a run contains that somebody can accept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from agenteval.compare.integrity.accepted import Accepted, AcceptedChange
from agenteval.compare.integrity.pairs import digest_of
from agenteval.compare.pairing import own_cases
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.text.choices import did_you_mean, join_choices
from agenteval.results.comparison import ComparedCase
from agenteval.results.model import Results
from agenteval.run.integrity.versions import edited_id
from agenteval.suite.model import Fingerprints

_MOST_NAMED = 10


def acceptable(results: Results) -> list[Accepted]:
    """Return what somebody can accept of a run, without reason: cases in the order of the run, then means."""
    found = {entry.case: entry for entry in _failing(results)}
    # Somebody who accepts an edited case accepts its new version, which need not be compared with the old one.
    found |= {entry.case: entry for entry in _withdrawn(results)}
    return [*found.values(), *_means(results)]


def failed_cases(results: Results) -> Mapping[str, Accepted]:
    """Return the cases that did not pass, also those that a gate does not ask about, by id."""
    ids = {case.id for _, case in results.cases()}
    failed = (case for _, case in results.cases() if case.status in {"failed", "error"})
    versions = set(map(edited_id, ids))
    return {case.id: _entry("edited", case.id, "", None, None) for case in failed if case.id not in versions}


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


def chosen_of(names: Sequence[str], known: Sequence[Accepted], results: Results) -> Iterable[Accepted]:
    """Return the entries that the caller names.

    Raises:
        ConfigError: there is nothing to accept, or a name is not among the entries.
    """
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
    """Return the names of cases by id."""
    compared: list[ComparedCase] = results.comparison.cases if results.comparison else []
    named = {case.id: case.name for _, case in results.cases()} | {case.id: case.name for case in compared}
    removed = {item.case: item.before for item in results.run.integrity if item.kind == "removed" and item.before}
    return named | {case_id: name for case_id, name in removed.items() if case_id is not None and name is not None}
