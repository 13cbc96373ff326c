"""The cases that a run selects: by a text, tags, names, and by how they ended in an earlier run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from agenteval.core.errors import Kind, Problem
from agenteval.core.text.choices import choices
from agenteval.run.resolve.failed import FailedCases
from agenteval.suite.model import Case

# Ids that a message lists.
_LISTED = 3


@dataclass(frozen=True)
class Selection:
    """The cases that match every option that selects cases; by default all cases.

    Attributes:
        text: part of the name or id; upper and lower case are equal.
        tags: a case needs one of these tags; empty selects every case.
        names: a case needs one of these names or ids; empty selects every case.
        failed: a case must be one of these; ``None`` selects every case.
    """

    text: str = ""
    tags: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    failed: FailedCases | None = None

    def selects(self, case: Case) -> bool:
        """Return whether a case is selected."""
        return self.includes(case.id, case.name, case.tags)

    def includes(self, case_id: str, name: str, tags: Iterable[str]) -> bool:
        """Return whether a case is selected."""
        return (
            self.text.casefold() in f"{case_id}\n{name}".casefold()
            and (not self.tags or not set(self.tags).isdisjoint(tags))
            and (not self.names or case_id in self.names or name in self.names)
            and (self.failed is None or case_id in self.failed.ids)
        )

    def problems(self, cases: Collection[Case]) -> list[Problem]:
        """Return the problems of a selection from these cases: each unknown name, else that no case is selected."""
        return list(self._unknown(cases)) or list(self._none_of(cases))

    def warnings(self, cases: Iterable[Case]) -> tuple[str, ...]:
        """Return a warning if some of the failed cases are not among these."""
        if self.failed is None or not (absent := self._absent(cases)):
            return ()
        which = "case that failed there is" if len(absent) == 1 else "cases that failed there are"
        return (f"{self.failed.file}: {len(absent)} {which} not in the suites of this run: {_some(absent)}",)

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
        if self.failed is not None and len(absent := self._absent(cases)) == len(self.failed.ids):
            message = "none of the cases that failed there is in the suites of this run"
            yield Problem(
                f"{message}: {_some(absent)}; name their suites", file=self.failed.file, kind=Kind.CASE_SELECTION
            )
            return
        asked = [f"--filter {self.text!r}"] if self.text else []
        asked += [f"--tag {tag}" for tag in self.tags]
        asked += [f"--case {name!r}" for name in self.names]
        asked += [f"failed in {self.failed.file}"] if self.failed else []
        number = "there is 1 case" if len(cases) == 1 else f"there are {len(cases):,} cases"
        told = self._nearest(cases) or f"; {number}"
        yield Problem(f"no case matches {' and '.join(asked)}{told}", kind=Kind.CASE_SELECTION)

    def _nearest(self, cases: Collection[Case]) -> str:
        """Return what could be selected instead."""
        tags = dict.fromkeys(tag for case in cases for tag in case.tags)
        if self.tags and not any(tag in tags for tag in self.tags):
            return choices(self.tags[0], tags, "known") if tags else "; no case has a tag"
        if not self.text or any(map(Selection(self.text).selects, cases)):
            return ""
        return choices(self.text, (case.name for case in cases), "known")

    def _absent(self, cases: Iterable[Case]) -> list[str]:
        here = {case.id for case in cases}
        return [case_id for case_id in self.failed.ids if case_id not in here] if self.failed else []


def _some(ids: Collection[str]) -> str:
    shown = ", ".join(islice(ids, _LISTED))
    return f"{shown} and {len(ids) - _LISTED} more" if len(ids) > _LISTED else shown
