"""What surrounds a run: the base commit, the baseline, what was accepted, and earlier attempts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, field, replace
from agenteval.core.redact import Redactor
from agenteval.core.text import display_path
from agenteval.gate.integrity import Accepted, AcceptedChange
from agenteval.results.case import CaseResult
from agenteval.results.history import why_no_baseline, why_partial
from agenteval.results.masking import MAX_ANSWER_BYTES, redacted, shortened
from agenteval.results.model import OWN_NAME, Memory, Proven, Results
from agenteval.results.rollup import check_counts
from agenteval.run.base_commit import ControlHost, ControlRule, LocalHost
from agenteval.run.base_commit import Kind as ControlKind
from agenteval.suite.model import Case, Suite

if TYPE_CHECKING:
    from agenteval.gate.pairing import Rescored
    from agenteval.results.importers.base import KnownSuite
    from agenteval.run.git import Provenance


@dataclass(frozen=True)
class FoundBaseline:
    """The baseline, and how it was found.

    Attributes:
        notes: messages about omitted parts.
        file: that the caller named; empty if it was searched.
        distance: number of commits between the evaluated commit and the start of the search.
        between: these commits, newest first, as far as they are known.
        rescored: what the run was before metrics scored its stored answers again; ``None`` if none did.
    """

    results: Results
    notes: tuple[str, ...] = ()
    file: str = ""
    distance: int | None = None
    between: tuple[str, ...] = ()
    rescored: Rescored | None = None


@dataclass(frozen=True)
class Search:
    """The result of a search for a baseline.

    Attributes:
        missing: why nothing was found, as warnings, if the base commit's agent may make one; empty to tell nothing.
    """

    found: FoundBaseline | None = None
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] | None = None

    def accepted(self) -> Search:
        """Return the result of a search after which nothing else can make a baseline."""
        return self if self.missing is None else Search(warnings=(*self.warnings, *self.missing))


def baseline_of(results: Results, notes: tuple[str, ...] = ()) -> FoundBaseline:
    """Return a given run as the baseline.

    A run with changes that were not committed is a run of no commit and of no branch.
    """
    if not results.run.uncommitted:
        return FoundBaseline(results, notes)
    run = results.run.model_copy(update={"commit": None, "ref": None})
    note = "the baseline is of files that were not committed, so it is a run of no commit and no branch"
    return FoundBaseline(results.model_copy(update={"run": run}), (*notes, note))


def read_baseline(path: Path, suites: Iterable[KnownSuite]) -> FoundBaseline:
    """Read the baseline from a file."""
    from agenteval.results.importers.detect import read_run

    try:
        results, notes = read_run(path, tuple(suites))
        check_baseline(results, path)
    except ConfigError as error:
        first = "" if path.exists() else "; the first run of all has none: leave the option out"
        raise ConfigError(
            replace(problem, message=f"--baseline: {problem.message}{first}") for problem in error.problems
        ) from None
    return replace(baseline_of(results, notes), file=display_path(path))


def search_baseline(source: Callable[[Collection[str]], Search], cases: Collection[str]) -> Search:
    """Search for a baseline."""
    search = source(cases)
    if search.found is not None:
        check_baseline(search.found.results, None)
    return search


def check_baseline(results: Results, file: Path | None) -> None:
    """Check that a run can be a baseline."""
    if why := why_no_baseline(results):
        raise ConfigError(Problem(f"this run cannot be a baseline: {why}", file=str(file or ""), kind=Kind.RESULTS))
    check_counts(results, file or "")


def check_not_shard(results: Results, file: Path | None) -> None:
    """Check that a run to compare is not a shard."""
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
    """Return a baseline with its secrets masked and its texts shortened, which results of other tools are not."""
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


@dataclass(frozen=True)
class Recollection:
    """What is known of the earlier attempts.

    Attributes:
        results: those of the newest one; untrusted, but validated. ``None`` for the first one, and if they were
            forgotten.
        restore: writes its journals into an empty report directory; returns false if it left none.
        stays: whether its verdict stays: since then, only the text of the pull request was edited.
    """

    results: Results | None = None
    restore: Callable[[Path], bool] | None = field(default=None, repr=False)
    stays: bool = False
    forgotten_by: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """An attempt that begins.

    Attributes:
        shown: decided results of the same key, which are shown again instead of a run.
        restore: writes the journals of an attempt of the same key; see ``Recollection``.
    """

    memory: Memory
    shown: Results | None = None
    restore: Callable[[Path], bool] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    def recorded(self, results: Results) -> Memory:
        """Return the record of this attempt in its results, for the next one."""
        return self.memory.model_copy(update={"proven": self._proven(results)})

    def _proven(self, results: Results) -> list[Proven]:
        comparison = results.comparison
        if comparison is not None and comparison.state in {"clear", "cleared", "suspicious"}:
            return []
        found = [
            Proven(metric=proof.metric, case=proof.case, fall=-proof.difference)
            for proof in (comparison.worse if comparison is not None else ())
            if proof.difference < 0
        ]
        return found or list(self.memory.proven)


_CHANGES: tuple[AcceptedChange, ...] = ("edited", "removed", "worse")
_BY_LABEL = "by a label of the pull request"
# The lowest mean that somebody accepts, and the reason.
_LOWEST = re.compile(r"0(?:\.[0-9]{1,9})?|1(?:\.0{1,9})?|\.[0-9]{1,9}")


@dataclass(frozen=True)
class GivenAcceptance:
    """What one person accepted; the host has checked that this person may write to the repository.

    Attributes:
        words: id or name of a case, or id of a metric and the lowest mean.
    """

    words: str
    author: str


@dataclass(frozen=True)
class Given:
    """Everything that was accepted, who asked for a proof of an improvement, and what does not count, as warnings."""

    entries: tuple[GivenAcceptance, ...] = ()
    warnings: tuple[str, ...] = ()
    asked_by: str = ""


def named(
    given: Given, cases: Iterable[Case | CaseResult], baseline: Results | None, redact: Redactor
) -> tuple[list[Accepted], list[str]]:
    """Return the entries for what was accepted, each change of a case and the drop of a mean, and warnings."""
    ids: dict[str, set[str]] = {}
    for case in (*cases, *(case for _, case in (baseline.cases() if baseline and given.entries else ()))):
        for name in (case.id, case.name):
            ids.setdefault(name, set()).add(case.id)
    metrics = frozenset(baseline.summary.metrics) if baseline else frozenset[str]()
    entries: list[Accepted] = []
    warnings = list(given.warnings)
    for item in given.entries:
        try:
            entries += _entries(item, ids.get(item.words, ()), metrics, redact(item.author))
        except ValueError as error:
            warnings.append(f"`{item.words}`, which {item.author} accepted, does not count: {error}")
    return entries, list(map(redact, warnings))


def _entries(item: GivenAcceptance, ids: Collection[str], metrics: Collection[str], author: str) -> list[Accepted]:
    given = Accepted(change="worse", reason=_BY_LABEL, until=date.max, author=author, for_commit=True)
    if len(ids) > 1:
        raise ValueError(f"{len(ids)} cases have this name; give the id of one")
    if ids:
        return [replace(given, change=change, case=next(iter(ids))) for change in _CHANGES]
    metric, _, lowest = item.words.rpartition(" ")
    if metric in metrics and _LOWEST.fullmatch(lowest):
        return [replace(given, metric=metric, after=lowest)]
    # Without a limit any drop would be accepted, also one that nobody has seen.
    for known in metrics:
        if item.words == known or item.words.startswith(f"{known} "):
            raise ValueError(f"write the lowest mean that is right after the metric, from 0 to 1: `{known} 0.85`")
    raise ValueError("it is no id or name of a case, and no id of a metric with its lowest mean")


_QUEUE = "refs/heads/gh-readonly-queue/"


def is_judged_by_base(kind: ControlKind, ref: str | None, baseline: Results | None) -> bool:
    """Return whether a run is judged by a base commit.

    A pull request and a merge group always are. A run of the base branch is not, because the merge has accepted the
    change. Other runs are if they have a baseline, from whose commit the base commit follows.
    """
    if kind == "pull-request" or is_merge_group(kind, ref):
        return True
    if baseline is None or baseline.run.commit is None or baseline.tool.name != OWN_NAME:
        return False
    return kind == "merge-base"


def is_merge_group(kind: ControlKind, ref: str | None) -> bool:
    """Return whether a run is of a merge queue."""
    return kind == "previous" and (ref or "").startswith(_QUEUE)


def is_judged_by_base_alone(rule: ControlRule, ref: str | None) -> bool:
    """Return whether an event proposes a change and names its base commit, so that the change may not judge itself.

    Args:
        rule: how the base commit follows from the event.
        ref: the branch or pull request of the run.
    """
    if rule.kind == "pull-request":
        return rule.base is not None
    return rule.before is not None and is_merge_group(rule.kind, ref)


@dataclass(frozen=True)
class RunContext:
    """Additions of a CI host or a program to a run; the command line adds nothing.

    Attributes:
        provenance: the evaluated commit; detected if ``None``.
        setup: shell commands that install the requirements of user code; empty for none.
        scratch: directory of the journal if no reports are written.
        published: directory to which the reports are copied after the run; ``None`` for none.
        control: what the host knows about the control commit.
        baseline: finds the latest run that has at least one of some cases; ``None`` if none is searched.
        attempts: returns what is known of the earlier attempts of the pull request; ``None`` for no pull request.
        acceptances: returns what people accepted in the pull request; ``None`` likewise. None of the three fails.
    """

    provenance: Provenance | None = None
    baseline: Callable[[Collection[str]], Search] | None = None
    setup: str = field(default="", repr=False)
    warnings: tuple[str, ...] = ()
    scratch: Path = Path()
    published: Path | None = None
    control: ControlHost = field(default_factory=LocalHost)
    attempts: Callable[[], Recollection] | None = None
    acceptances: Callable[[], Given] | None = None

    def given(self) -> Given:
        """Return what people accepted on the host."""
        return self.acceptances() if self.acceptances is not None else Given()
