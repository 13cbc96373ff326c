"""What surrounds a run: the base commit, what was accepted, and earlier attempts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agenteval.core.records import dataclass, field, replace
from agenteval.core.redact import Redactor
from agenteval.gate.integrity import Accepted, AcceptedChange
from agenteval.results.case import CaseResult
from agenteval.results.model import OWN_NAME, Memory, Proven, Results
from agenteval.run.base_commit import ControlHost, ControlRule, Kind, LocalHost
from agenteval.suite.model import Case

if TYPE_CHECKING:
    from agenteval.run.baseline import BaselineSource
    from agenteval.run.git import Provenance


@dataclass(frozen=True)
class EarlierAttempt:
    """The newest attempt before this run.

    Attributes:
        results: its results; untrusted, but validated.
        restore: writes its journals into an empty report directory; returns false if it left none.
        stays: whether its verdict stays: since then, only the text of the pull request was edited.
    """

    results: Results
    memory: Memory
    restore: Callable[[Path], bool] = field(repr=False)
    stays: bool = False


@dataclass(frozen=True)
class Recollection:
    """What is known of the earlier attempts.

    Attributes:
        newest: the newest one; ``None`` for the first one, and if they were forgotten.
    """

    newest: EarlierAttempt | None = None
    forgotten_by: str | None = None
    warnings: tuple[str, ...] = ()


class AttemptSource(Protocol):
    """A place that keeps the results of earlier attempts, such as the artifacts of a CI host."""

    def recall(self) -> Recollection:
        """Return what is known of the earlier attempts; a failure is a warning."""
        ...


@dataclass(frozen=True)
class Attempt:
    """An attempt that begins.

    Attributes:
        shown: decided results of the same key, which are shown again instead of a run.
        restore: writes the journals of an attempt of the same key; see ``EarlierAttempt``.
    """

    memory: Memory
    shown: Results | None = None
    restore: Callable[[Path], bool] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    def recorded(self, results: Results) -> Memory:
        """Return the record of this attempt in its results, for the next one."""
        return self.memory.model_copy(update={"proven": self._proven(results)})

    def _proven(self, results: Results) -> list[Proven]:
        """Return what the next attempt must refute: what is proven now, or else what was not looked at again."""
        comparison = results.comparison
        if comparison is None:
            return list(self.memory.proven)
        if comparison.word in {"clear", "cleared", "suspicious"}:
            return []
        found = [
            Proven(metric=proof.metric, case=proof.case, fall=-proof.difference)
            for proof in comparison.worse
            if proof.difference < 0
        ]
        return found or list(self.memory.proven)


_CHANGES: tuple[AcceptedChange, ...] = ("edited", "removed", "regressed")
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


class AcceptanceSource(Protocol):
    """Reads what was accepted on a CI host."""

    def read(self) -> Given:
        """Return what was accepted for the commit that is evaluated; it never fails."""
        ...


@dataclass(frozen=True)
class Named:
    """Entries for the changes of one commit, who asked for a proof of an improvement, and warnings about names."""

    entries: tuple[Accepted, ...] = ()
    warnings: tuple[str, ...] = ()
    asked_by: str = ""


def named(given: Given, cases: Iterable[Case | CaseResult], baseline: Results | None, redact: Redactor) -> Named:
    """Return the entries for what was accepted: each change of a case, and the drop of a mean to a limit.

    Args:
        baseline: the run to compare with, whose cases can be gone.
    """
    asked_by = redact(given.asked_by)
    if not given.entries:
        return Named(warnings=tuple(map(redact, given.warnings)), asked_by=asked_by)
    subjects = _Subjects.of(cases, baseline)
    entries: list[Accepted] = []
    warnings = list(given.warnings)
    for item in given.entries:
        try:
            entries += subjects.entries(item, redact)
        except ValueError as error:
            warnings.append(f"`{item.words}`, which {item.author} accepted, does not count: {error}")
    return Named(tuple(entries), tuple(map(redact, warnings)), asked_by)


@dataclass(frozen=True)
class _Subjects:
    cases: Mapping[str, frozenset[str]]
    metrics: frozenset[str]

    @classmethod
    def of(cls, cases: Iterable[Case | CaseResult], baseline: Results | None) -> _Subjects:
        ids: dict[str, set[str]] = {}
        before = (case for _, case in baseline.cases()) if baseline else ()
        for case in (*cases, *before):
            for name in (case.id, case.name):
                ids.setdefault(name, set()).add(case.id)
        metrics = frozenset(baseline.summary.metrics) if baseline else frozenset()
        return cls({name: frozenset(found) for name, found in ids.items()}, metrics)

    def entries(self, item: GivenAcceptance, redact: Redactor) -> list[Accepted]:
        """Return the entries for one acceptance.

        Raises:
            ValueError: it names nothing, several cases, or a metric without a limit.
        """
        author = redact(item.author)
        given = Accepted(change="regressed", reason=_BY_LABEL, until=date.max, author=author, for_commit=True)
        ids = self.cases.get(item.words, frozenset())
        if len(ids) > 1:
            raise ValueError(f"{len(ids)} cases have this name; give the id of one")
        if ids:
            return [replace(given, change=change, case=next(iter(ids))) for change in _CHANGES]
        metric, _, lowest = item.words.rpartition(" ")
        if metric in self.metrics and _LOWEST.fullmatch(lowest):
            return [replace(given, metric=metric, after=lowest)]
        # Without a limit any drop would be accepted, also one that nobody has seen.
        for known in self.metrics:
            if item.words == known or item.words.startswith(f"{known} "):
                raise ValueError(f"write the lowest mean that is right after the metric, from 0 to 1: `{known} 0.85`")
        raise ValueError("it is no id or name of a case, and no id of a metric with its lowest mean")


_QUEUE = "refs/heads/gh-readonly-queue/"


def is_judged_by_base(kind: Kind, ref: str | None, baseline: Results | None) -> bool:
    """Return whether a run is judged by a base commit.

    A pull request and a merge group always are. A run of the base branch is not, because the merge has accepted the
    change. Other runs are if they have a baseline, from whose commit the base commit follows.

    Args:
        kind: how the base commit follows from the event.
        ref: the branch or pull request of the run.
        baseline: the run to compare with; ``None`` without one.
    """
    if kind == "pull-request" or is_merge_group(kind, ref):
        return True
    if baseline is None or baseline.run.commit is None or baseline.tool.name != OWN_NAME:
        return False
    return kind == "merge-base"


def is_merge_group(kind: Kind, ref: str | None) -> bool:
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
        attempts: finds the earlier attempts of the pull request; ``None`` if the run is for no pull request.
        acceptances: reads what people accepted in the pull request; ``None`` likewise.
    """

    provenance: Provenance | None = None
    baseline: BaselineSource | None = None
    setup: str = field(default="", repr=False)
    warnings: tuple[str, ...] = ()
    scratch: Path = Path()
    published: Path | None = None
    control: ControlHost = field(default_factory=LocalHost)
    attempts: AttemptSource | None = None
    acceptances: AcceptanceSource | None = None
