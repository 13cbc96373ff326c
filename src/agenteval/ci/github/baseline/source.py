"""The baseline from the artifacts of the base branch's workflow runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.baseline import model as wanted
from agenteval.ci.github.baseline.search import find_baseline
from agenteval.ci.github.event import Lineage
from agenteval.core.text.escape import terminal
from agenteval.results.model import Results
from agenteval.run.baseline import FoundBaseline, MissingBaseline, Search
from agenteval.run.resolve.suites import place_of

OnMissing = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class RemoteBaseline:
    """Searches the artifacts of a workflow.

    Args:
        client: connection to GitHub.
        looked_for: parameters of the search.
        on_missing: action without a baseline.
        tell: writes a line to the log.
    """

    client: Client
    looked_for: wanted.Search
    on_missing: OnMissing
    tell: Callable[[str], None]

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

        found = find_baseline(self.client, self.looked_for, accept)
        if isinstance(found, wanted.Found):
            self.tell(terminal(wanted.describe(found)))
            return Search(FoundBaseline(found.results, distance=found.distance), found.notes)
        return self._missing(found)

    def _missing(self, missing: wanted.Missing) -> Search:
        message = f"there is no baseline to compare with: {missing.reason}"
        if self.on_missing == "pass":
            for line in (*missing.notes, message):
                self.tell(terminal(line))
            return Search(missing=MissingBaseline())
        return Search(missing=MissingBaseline((*missing.notes, message), is_required=self.on_missing == "fail"))


def search_for(
    repository: str, workflow: str, artifact: str, lineage: Lineage | None, run_id: int | None
) -> wanted.Search | None:
    """Return the parameters of the search; ``None`` if the event has no history and no run is named.

    Args:
        repository: ``owner/name``.
        workflow: name of the workflow file.
        artifact: name of the artifact.
        lineage: start of the event's history.
        run_id: the run that the user named, if any.
    """
    if run_id is not None:
        branch = lineage.branch if lineage else ""
        return wanted.Search(repository, workflow, artifact, branch, wanted.GivenRun(run_id))
    if lineage is None:
        return None
    return wanted.Search(repository, workflow, artifact, lineage.branch, _start(lineage))


def _start(lineage: Lineage) -> wanted.ChangeTo | wanted.Before | wanted.At:
    match lineage.start:
        case "merge-base":
            return wanted.ChangeTo(lineage.commit)
        case "parent":
            return wanted.Before(lineage.commit)
        case "commit":
            return wanted.At(lineage.commit)
