"""Finds the run to compare with: in a file, or by a search for a run of the same cases."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.text.redact import Redactor
from agenteval.results.masking import redacted
from agenteval.results.model import OWN_NAME, Results
from agenteval.suite.model import Case, Suite

if TYPE_CHECKING:
    from agenteval.results.importers.known_cases import KnownSuite


@dataclass(frozen=True)
class FoundBaseline:
    """The run to compare with.

    Attributes:
        results: the run.
        notes: messages about omitted parts.
        distance: number of commits between the evaluated one and the start of the search.
    """

    results: Results
    notes: tuple[str, ...] = ()
    distance: int | None = None


@dataclass(frozen=True)
class Search:
    """The result of a search for a baseline; ``warnings`` list what prevented a result."""

    found: FoundBaseline | None = None
    warnings: tuple[str, ...] = ()


class BaselineSource(Protocol):
    """Searches for a baseline outside files."""

    def search(self, cases: Collection[str]) -> Search:
        """Find the latest run that has at least one of these cases.

        Raises:
            ConfigError: no run was found, and a baseline is required.
        """
        ...


def read_baseline(path: Path, suites: Iterable[KnownSuite]) -> FoundBaseline:
    """Read the run to compare with.

    Args:
        path: results.json, a report directory, or a file of HoloDeck, FluxLoop or promptfoo.
        suites: the suites of this run, which identify the cases of other tools.

    Raises:
        ConfigError: the file cannot be read, or contains only a shard of a run.
    """
    from agenteval.results.importers.detect import read_run

    try:
        results, notes = read_run(path, tuple(suites))
        _check_whole(results, path)
    except ConfigError as error:
        raise ConfigError(
            replace(problem, message=f"--baseline: {problem.message}") for problem in error.problems
        ) from None
    return FoundBaseline(results, notes)


def search_baseline(source: BaselineSource, cases: Collection[str]) -> Search:
    """Find the run to compare with.

    Args:
        source: the source to search.
        cases: ids of the cases of this run.

    Raises:
        ConfigError: there is no baseline and one is required, or the one found is only a shard of a run.
    """
    search = source.search(cases)
    if search.found is not None:
        _check_whole(search.found.results, None)
    return search


def _check_whole(results: Results, file: Path | None) -> None:
    """Check that a baseline is a whole run.

    Raises:
        ConfigError: it is a shard.
    """
    part = results.run.shard
    if part is not None:
        message = f"this is shard {part.index} of {part.count} of a run; merge them first, with agenteval merge"
        raise ConfigError(Problem(message, file=str(file or "")))


def known_suites(suites: Iterable[Suite]) -> list[KnownSuite]:
    """Return the identities of the suites' cases in the results of other tools."""
    from agenteval.results.importers.known_cases import KnownCase, KnownSuite

    def known(case: Case) -> KnownCase:
        return KnownCase(
            case.id,
            case.name,
            tuple(turn.input for turn in case.turns),
            tuple(turn.ground_truth for turn in case.turns),
            case.persona,
        )

    return [
        KnownSuite(
            suite.path,
            suite.name,
            suite.format,
            tuple(map(known, suite.cases)),
            frozenset(metric.id for metric in suite.metrics),
        )
        for suite in suites
    ]


def masked(found: FoundBaseline, redact: Redactor) -> FoundBaseline:
    """Return a baseline without secrets; agenteval writes none into its own results."""
    results = found.results
    if results.tool.name == OWN_NAME:
        return found
    suites = [
        suite.model_copy(update={"cases": [redacted(case, redact)[0] for case in suite.cases]})
        for suite in results.suites
    ]
    return replace(found, results=results.model_copy(update={"suites": suites}))
