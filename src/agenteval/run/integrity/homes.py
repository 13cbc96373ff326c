"""Cases that the change moves between suites keep the rules of the suite that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agenteval.compare.integrity.pairs import Pairs
from agenteval.run.integrity.versions import Versions, suite_of_base, suite_version
from agenteval.suite.model import Case, Suite


@dataclass(frozen=True)
class Homes:
    """The suites of a run: those of the change, with the rules of the base commit.

    Attributes:
        suites: the suites with the versions of their cases that run, by path. A suite of the base commit is among
            them if cases come from it and no suite of the change continues it.
        base: the base commit's version of each; ``None`` for a new suite.
        moved: id of a case → path of the suite whose rules it keeps, if the change has it in another suite.
    """

    suites: Mapping[str, Suite]
    base: Mapping[str, Suite | None]
    moved: Mapping[str, str] = field(default_factory=dict)

    def suite_of(self, path: str, case_id: str) -> Suite:
        """Return the suite by whose rules a case runs.

        Args:
            path: of the suite of the change that contains it.
            case_id: its id.
        """
        return self.suites[self.moved.get(case_id, path)]


def homes(ours: Mapping[str, Suite], theirs: Mapping[str, Suite], pairs: Pairs, versions: Versions) -> Homes:
    """Return the suites of a run.

    Args:
        ours: the suites of the change, by path.
        theirs: those of the base commit.
        pairs: the cases of the change with their versions in the base commit.
        versions: the versions of cases that run.
    """
    base = {path: suite_of_base(suite, theirs, pairs) for path, suite in ours.items()}
    home_of = {suite.path: path for path, suite in reversed(base.items()) if suite is not None}
    from_suite = {case.id: suite.path for suite in theirs.values() for case in suite.cases}
    moved: dict[str, str] = {}
    for path, suite in ours.items():
        for case in (case for case in suite.cases if case.id in pairs.base):
            origin = from_suite[pairs.base[case.id].id]
            continued = base[path]
            if continued is None or continued.path != origin:
                moved[case.id] = home_of.get(origin, origin)
    cases: dict[str, list[Case]] = {}
    for path, suite in ours.items():
        for case in suite.cases:
            # A line would be one of another file.
            cases.setdefault(moved.get(case.id, path), []).append(
                replace(case, line=None) if case.id in moved else case
            )
    found = {}
    for path in (*ours, *(path for path in dict.fromkeys(moved.values()) if path not in ours)):
        start = ours[path] if path in ours else theirs[path]
        base.setdefault(path, theirs.get(path))
        found[path] = suite_version(replace(start, cases=tuple(cases.get(path, ()))), base[path], versions)
    return Homes(found, base, moved)
