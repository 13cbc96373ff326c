"""The baseline of a run: searched, read, checked and masked."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, replace
from agenteval.core.redact import Redactor
from agenteval.results.case import CaseResult
from agenteval.results.history import why_no_baseline, why_partial
from agenteval.results.masking import MAX_ANSWER_BYTES, redacted, shortened
from agenteval.results.model import OWN_NAME, Results
from agenteval.results.rollup import check_counts
from agenteval.suite.model import Case, Suite

if TYPE_CHECKING:
    from agenteval.gate.pairing import Rescored

if TYPE_CHECKING:
    from agenteval.results.importers.base import KnownSuite


@dataclass(frozen=True)
class FoundBaseline:
    """The baseline, and how it was found.

    Attributes:
        notes: messages about omitted parts.
        distance: number of commits between the evaluated commit and the start of the search.
        between: these commits, newest first, as far as they are known.
        rescored: what the run was before metrics scored its stored answers again; ``None`` if none did.
    """

    results: Results
    notes: tuple[str, ...] = ()
    distance: int | None = None
    between: tuple[str, ...] = ()
    rescored: Rescored | None = None


@dataclass(frozen=True)
class MissingBaseline:
    """A baseline that was searched for and does not exist.

    Attributes:
        reasons: why, as warnings; empty if the caller wants no warning.
    """

    reasons: tuple[str, ...] = ()

    def warnings(self, *further: str) -> tuple[str, ...]:
        """Return the warnings of a run that is compared with nothing.

        Args:
            *further: why the base commit's agent could not make a baseline either.
        """
        return (*self.reasons, *further) if self.reasons else ()


@dataclass(frozen=True)
class Search:
    """The result of a search for a baseline: ``found``, or else why it is ``missing``, or warnings."""

    found: FoundBaseline | None = None
    warnings: tuple[str, ...] = ()
    missing: MissingBaseline | None = None

    def accepted(self) -> Search:
        """Return the result of a search after which nothing else can make a baseline."""
        return self if self.missing is None else Search(warnings=(*self.warnings, *self.missing.warnings()))


class BaselineSource(Protocol):
    """A place outside files that can be searched for a baseline, such as a CI host's artifacts."""

    def search(self, cases: Collection[str]) -> Search:
        """Find the latest run that has at least one of these cases."""
        ...


def baseline_of(results: Results, notes: tuple[str, ...] = ()) -> FoundBaseline:
    """Return a given run as the baseline.

    A run with changes that were not committed is a run of no commit and of no branch.

    Args:
        notes: messages about omitted parts.
    """
    if not results.run.uncommitted:
        return FoundBaseline(results, notes)
    run = results.run.model_copy(update={"commit": None, "ref": None})
    note = "the baseline is of files that were not committed, so it is a run of no commit and no branch"
    return FoundBaseline(results.model_copy(update={"run": run}), (*notes, note))


def read_baseline(path: Path, suites: Iterable[KnownSuite]) -> FoundBaseline:
    """Read the baseline from a file.

    Args:
        path: results.json, a report directory, or a file of HoloDeck, FluxLoop or promptfoo.
        suites: the suites of this run, which identify the cases of other tools.

    Raises:
        ConfigError: the file cannot be read, or its run cannot be a baseline.
    """
    from agenteval.results.importers.detect import read_run

    try:
        results, notes = read_run(path, tuple(suites))
        check_baseline(results, path)
    except ConfigError as error:
        raise ConfigError(
            replace(problem, message=f"--baseline: {problem.message}") for problem in error.problems
        ) from None
    return baseline_of(results, notes)


def search_baseline(source: BaselineSource, cases: Collection[str]) -> Search:
    """Search for a baseline.

    Raises:
        ConfigError: the run cannot be a baseline.
    """
    search = source.search(cases)
    if search.found is not None:
        check_baseline(search.found.results, None)
    return search


def check_baseline(results: Results, file: Path | None) -> None:
    """Check that a run can be a baseline.

    Raises:
        ConfigError: it covers only a part of its suites (a shard, a selection, or a run that ended early), most of
            its cases were not evaluated, or it has other cases than its summary says.
    """
    if why := why_no_baseline(results):
        raise ConfigError(Problem(f"this run cannot be a baseline: {why}", file=str(file or ""), kind=Kind.RESULTS))
    check_counts(results, file or "")


def check_not_shard(results: Results, file: Path | None) -> None:
    """Check that a run to compare is not a shard.

    Raises:
        ConfigError: it is a shard.
    """
    if results.run.shard is not None:
        message = f"this run cannot be compared: {why_partial(results.run)}"
        raise ConfigError(Problem(message, file=str(file or ""), kind=Kind.RESULTS))


def known_suites(suites: Iterable[Suite]) -> list[KnownSuite]:
    """Return the identities of the suites' cases in the results of other tools."""
    from agenteval.results.importers.base import KnownCase, KnownSuite

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


def masked(found: FoundBaseline, redact: Redactor, max_answer_bytes: int = MAX_ANSWER_BYTES) -> FoundBaseline:
    """Return a baseline with its secrets masked and its texts shortened, which results of other tools are not.

    Args:
        redact: masks secrets; files of agenteval are already masked.
        max_answer_bytes: bytes of one text that are kept.
    """
    results = found.results
    own = results.tool.name == OWN_NAME

    def kept(case: CaseResult) -> CaseResult:
        clean, text = (case, case.model_dump_json()) if own else redacted(case, redact)
        return shortened(clean, text, max_answer_bytes)[0]

    suites = [suite.model_copy(update={"cases": list(map(kept, suite.cases))}) for suite in results.suites]
    # Anybody can name a branch.
    run = results.run.model_copy(update={"ref": redact.data(results.run.ref)})
    notes = tuple(map(redact, found.notes))
    return replace(found, results=results.model_copy(update={"run": run, "suites": suites}), notes=notes)
