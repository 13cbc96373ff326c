"""Which cases of the suites run: by name, tag, text, or because they failed in an earlier run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, replace
from agenteval.core.text import choices
from agenteval.results.store import RESULTS_FILE, read_results
from agenteval.suite.model import Case


def failed_cases(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the file of a run, and the ids of its cases that broke, failed or could not be run."""
    file = path / RESULTS_FILE if path.is_dir() else path
    try:
        results = read_results(file)
    except ConfigError as error:
        hint = "--failed and --failed-in take the cases of an earlier run"
        raise ConfigError(replace(item, message=f"{item.message}; {hint}") for item in error.problems) from None
    if results.unfinished:
        message = f"the run was interrupted before {results.unfinished} of its cases had finished; --resume runs them"
        raise ConfigError(Problem(message, file=str(file), kind=Kind.RESULTS))
    compared = results.comparison.cases if results.comparison else []
    broke = {case.id for case in compared if case.change == "broke"}
    found = (case for _, case in results.cases() if case.id in broke or case.is_open or not case.is_fully_evaluated)
    ids = tuple(case.id for case in found)
    if not ids:
        message = "no case failed in this run, so none is to be run again"
        raise ConfigError(Problem(message, file=str(file), kind=Kind.RESULTS))
    return str(file), ids


# Ids that a message lists.
_LISTED = 3


@dataclass(frozen=True)
class Selection:
    """The cases that match every option that selects cases; by default all cases.

    Attributes:
        text: part of the name or id; upper and lower case are equal.
        tags: a case needs one of these tags; empty selects every case.
        names: a case needs one of these names or ids; empty selects every case.
        failed: a case must have one of these ids; ``None`` selects every case.
        failed_in: the file of the run in which they failed.
    """

    text: str = ""
    tags: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    failed: tuple[str, ...] | None = None
    failed_in: str = ""

    def selects(self, case: Case) -> bool:
        """Return whether a case is selected."""
        return self.includes(case.id, case.name, case.tags)

    def includes(self, case_id: str, name: str, tags: Iterable[str]) -> bool:
        """Return whether a case is selected."""
        return (
            self.text.casefold() in f"{case_id}\n{name}".casefold()
            and (not self.tags or not set(self.tags).isdisjoint(tags))
            and (not self.names or case_id in self.names or name in self.names)
            and (self.failed is None or case_id in self.failed)
        )

    def problems(self, cases: Collection[Case]) -> list[Problem]:
        """Return the problems of a selection from these cases: each unknown name, else that no case is selected."""
        return list(self._unknown(cases)) or list(self._none_of(cases))

    def warnings(self, cases: Iterable[Case]) -> tuple[str, ...]:
        """Return a warning if some of the failed cases are not among these."""
        if self.failed is None or not (absent := self._absent(cases)):
            return ()
        which = "case that failed there is" if len(absent) == 1 else "cases that failed there are"
        return (f"{self.failed_in}: {len(absent)} {which} not in the suites of this run: {_some(absent)}",)

    def _unknown(self, cases: Collection[Case]) -> Iterator[Problem]:
        names = dict.fromkeys(case.name for case in cases)
        known = names | dict.fromkeys(case.id for case in cases)
        for name in dict.fromkeys(self.names):
            if name not in known:
                yield Problem(
                    f"--case: no case is named {name!r}{choices(name, names, 'known')}", kind=Kind.CASE_SELECTION
                )

    def _none_of(self, cases: Collection[Case]) -> Iterator[Problem]:
        if any(map(self.selects, cases)):
            return
        if self.failed is not None and len(absent := self._absent(cases)) == len(self.failed):
            message = "none of the cases that failed there is in the suites of this run"
            yield Problem(
                f"{message}: {_some(absent)}; name their suites", file=self.failed_in, kind=Kind.CASE_SELECTION
            )
            return
        asked = [f"--filter {self.text!r}"] if self.text else []
        asked += [f"--tag {tag}" for tag in self.tags]
        asked += [f"--case {name!r}" for name in self.names]
        asked += [f"failed in {self.failed_in}"] if self.failed else []
        number = "there is 1 case" if len(cases) == 1 else f"there are {len(cases):,} cases"
        told = self._nearest(cases) or f"; {number}"
        yield Problem(f"no case matches {' and '.join(asked)}{told}", kind=Kind.CASE_SELECTION)

    def _nearest(self, cases: Collection[Case]) -> str:
        tags = dict.fromkeys(tag for case in cases for tag in case.tags)
        if self.tags and not any(tag in tags for tag in self.tags):
            return choices(self.tags[0], tags, "known") if tags else "; no case has a tag"
        if not self.text or any(map(Selection(self.text).selects, cases)):
            return ""
        return choices(self.text, (case.name for case in cases), "known")

    def _absent(self, cases: Iterable[Case]) -> list[str]:
        here = {case.id for case in cases}
        return [case_id for case_id in self.failed if case_id not in here] if self.failed else []


def _some(ids: Collection[str]) -> str:
    shown = ", ".join(islice(ids, _LISTED))
    return f"{shown} and {len(ids) - _LISTED} more" if len(ids) > _LISTED else shown
