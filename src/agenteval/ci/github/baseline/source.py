"""The baseline from the artifacts of the base branch's workflow runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.baseline import model as wanted
from agenteval.ci.github.baseline.search import Accept, find_baseline
from agenteval.core.errors import ConfigError
from agenteval.core.paths import place_of
from agenteval.core.text.escape import terminal
from agenteval.results.model import Results
from agenteval.run.baseline import FoundBaseline, MissingBaseline, Search
from agenteval.run.confirm.clone import Clone

OnMissing = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class Absence:
    """The action if there is no baseline.

    Args:
        on_missing: the choice of the user.
        tell: writes a line to the log.
    """

    on_missing: OnMissing
    tell: Callable[[str], None]

    def of(self, missing: wanted.Missing) -> Search:
        """Return the result of a search that found nothing."""
        message = f"there is no baseline to compare with: {missing.reason}"
        if self.on_missing == "pass":
            for line in (*missing.notes, message):
                self.tell(terminal(line))
            return Search(missing=MissingBaseline())
        return Search(missing=MissingBaseline((*missing.notes, message)))


@dataclass(frozen=True)
class RemoteBaseline:
    """Searches the artifacts of a workflow.

    Args:
        client: returns the connection to GitHub; raises ``ConfigError`` without a token.
        looked_for: parameters of the search.
        absence: the action if nothing is found.
        clone: the checkout, which may know the history.
    """

    client: Callable[[], Client]
    looked_for: wanted.Search
    absence: Absence
    clone: Clone | None = None

    def search(self, cases: Collection[str]) -> Search:
        """Return the nearest run of the suites with these cases; any run without cases.

        A change can rename all cases and move its suites, and is still compared: a run counts if it has one of the
        cases, a suite with the same path, or a suite that does not exist any more.
        """
        known = frozenset(cases)

        def is_known(path: str) -> bool:
            # Ids of cases begin with the path of their suite.
            return any(case_id.startswith(f"{path}::") for case_id in known)

        def accept(results: Results) -> str | None:
            if not known or any(case.id in known for _, case in results.cases()):
                return None
            if any(place_of(suite.path) is None or is_known(suite.path) for suite in results.suites):
                return None
            return "it is of other suites"

        found = self._found(accept)
        if isinstance(found, wanted.Missing):
            return self.absence.of(found)
        self.absence.tell(terminal(wanted.describe(found)))
        return Search(FoundBaseline(found.results, distance=found.distance, between=found.between), found.notes)

    def _found(self, accept: Accept) -> wanted.Found | wanted.Missing:
        start = self.looked_for.start
        if isinstance(start, wanted.Unknown):
            # Without a search, no token is needed.
            return wanted.Missing(start.why)
        try:
            return find_baseline(self.client(), self.looked_for, accept, self.clone)
        except ConfigError as error:
            return wanted.Missing(str(error))
