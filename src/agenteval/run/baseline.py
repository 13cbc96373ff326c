"""Where the run to compare with comes from: a file, or a search that needs to know which cases there are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agenteval.core.text.redact import Redactor
from agenteval.results.masking import redacted
from agenteval.results.model import OWN_NAME, Results
from agenteval.suite.model import Case, Suite


@dataclass(frozen=True)
class FoundBaseline:
    """The run to compare with.

    Attributes:
        results: the run.
        notes: what was left out of it.
        distance: commits between the one it evaluated and the one at which the search began.
    """

    results: Results
    notes: tuple[str, ...] = ()
    distance: int | None = None


@dataclass(frozen=True)
class Search:
    """What a search for a baseline led to; ``warnings`` say what stood in its way."""

    found: FoundBaseline | None = None
    warnings: tuple[str, ...] = ()


class BaselineSource(Protocol):
    """Looks for a baseline somewhere else than in a file."""

    def search(self, cases: Collection[str]) -> Search:
        """The latest run that has at least one of these cases.

        Raises:
            ConfigError: there is none, and that is to fail.
        """
        ...


def read_baseline_file(path: Path, suites: Sequence[Suite], *, by_trace: bool) -> FoundBaseline:
    """The run in a file, whoever wrote it.

    Args:
        path: results.json, a report directory, or a file of HoloDeck, FluxLoop or promptfoo.
        suites: what is evaluated now, by which foreign cases are recognised.
        by_trace: recorded traces are scored, which are no cases of the suites.

    Raises:
        ConfigError: it cannot be read.
    """
    from agenteval.results.importers.detect import read_run
    from agenteval.results.importers.known_cases import KnownCase, KnownSuite

    def known(case: Case) -> KnownCase:
        return KnownCase(
            case.id,
            case.name,
            tuple(turn.input for turn in case.turns),
            tuple(turn.ground_truth for turn in case.turns),
            case.persona,
        )

    results, notes = read_run(
        path,
        [
            KnownSuite(
                suite.path,
                suite.name,
                suite.format,
                () if by_trace else tuple(map(known, suite.cases)),
                frozenset(metric.id for metric in suite.metrics),
            )
            for suite in suites
        ],
    )
    return FoundBaseline(results, notes)


def masked(results: Results, redact: Redactor) -> Results:
    """A baseline without secrets; in results of our own there are none."""
    if results.tool.name == OWN_NAME:
        return results
    suites = [
        suite.model_copy(update={"cases": [redacted(case, redact)[0] for case in suite.cases]})
        for suite in results.suites
    ]
    return results.model_copy(update={"suites": suites})
