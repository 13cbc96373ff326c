"""Reads what people with write access accepted in a pull request by labels.

The event of a label tells who set it and when: after the commit that is evaluated was pushed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cached_property
from typing import Final

from pydantic import ValidationError

from agenteval.core.errors import AgentEvalError
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import shortened
from agenteval.github.client import (
    PULL_REQUEST_PERMISSIONS,
    GitHubClient,
    LabelEvent,
    label_key,
    may_write,
    newest_label_events,
)
from agenteval.github.workflow_runs import Workflow
from agenteval.run.context import Given, GivenAcceptance

#: A label that names a case begins with this.
LABEL: Final = "agenteval: accept "
#: The label that accepts the results of a fork's job. It names no case.
RESULTS_LABEL: Final = f"{LABEL}results"
#: The label that asks for the proof of an improvement too.
PROVE_LABEL: Final = "agenteval: prove"
# Characters.
_LONGEST_WARNING = 500
_LONGEST_LINE = 300
# A pull request can have many labels.
_MOST_WARNINGS = 5
_MOST_PEOPLE = 20
_UNREAD = "it is unknown whether somebody accepted changes of this pull request"


@dataclass(frozen=True)
class RemoteAcceptances:
    """Reads the labels of one pull request.

    Args:
        client: returns the connection to GitHub; raises ``ConfigError`` without a token.
        repository: ``owner/name``.
        new_label: the label that was set and started this run; empty for none.
    """

    client: Callable[[], GitHubClient]
    repository: str
    workflow: str
    pull_request: int
    commit: str
    new_label: str = ""

    def read(self) -> Given:
        """Return what was accepted for the commit; a failure of GitHub is a warning."""
        try:
            client = self.client()
            with client.open(
                f"read what was accepted in pull request #{self.pull_request}", PULL_REQUEST_PERMISSIONS
            ) as api:
                found = _Reading(self, client, newest_label_events(api, self.repository, self.pull_request))
            entries = tuple(found.of_labels())
            asked_by = found.asking
        except ValidationError:
            return Given(warnings=(f"{_UNREAD}: GitHub's response is invalid",))
        except AgentEvalError as error:
            return Given(warnings=(f"{_UNREAD}: {error}",))
        return Given(entries, tuple(dict.fromkeys(found.warnings))[:_MOST_WARNINGS], asked_by)

    def results_accepted(self, made_by: datetime | None) -> Given:
        """Return who accepted the results of the commit as a whole, by a label; nobody if GitHub does not tell it.

        Args:
            made_by: when the run ended that made the results; ``None`` if it is unknown. Nobody can have accepted
                results before: a fork can push a commit whose run takes hours, another one, and the first one again.
        """
        if made_by is None:
            return Given(warnings=("it is unknown when the run ended that made the results, so no label counts",))
        try:
            with self.client().open(
                f"read the labels of pull request #{self.pull_request}", PULL_REQUEST_PERMISSIONS
            ) as api:
                labels = newest_label_events(api, self.repository, self.pull_request)
                found = _Reading(self, self.client(), labels)
            entries = tuple(found.of_results(made_by))
        except ValidationError:
            return Given(warnings=(f"{_UNREAD}: GitHub's response is invalid",))
        except AgentEvalError as error:
            return Given(warnings=(f"{_UNREAD}: {error}",))
        return Given(entries, tuple(found.warnings))


@dataclass
class _Reading:
    """What GitHub recorded, and the warnings about what does not count."""

    asked: RemoteAcceptances
    client: GitHubClient
    labels: dict[str, LabelEvent]
    warnings: list[str] = field(default_factory=list)
    _known: dict[str, bool] = field(default_factory=dict)

    def of_labels(self) -> Iterator[GivenAcceptance]:
        """Yield the labels that somebody with write access set after the commit was pushed."""
        start = len(LABEL)
        for name, event in self.labels.items():
            if name.startswith(LABEL) and name != RESULTS_LABEL and self._counts(event):
                yield GivenAcceptance(_short(event.label_name[start:]), event.by)

    def of_results(self, made_by: datetime) -> Iterator[GivenAcceptance]:
        """Yield the label that accepts all results, if somebody with write access set it for the commit."""
        event = self.labels.get(RESULTS_LABEL)
        if event is None or not self._counts(event):
            return
        if event.created_at < made_by:
            self._warn(f"the label, which {event.by} set, is older than the results and does not count; set it again")
        else:
            yield GivenAcceptance(RESULTS_LABEL, event.by)

    @property
    def asking(self) -> str:
        """Who asked for the proof of an improvement of the commit, with write access; empty for nobody."""
        event = self.labels.get(PROVE_LABEL)
        return event.by if event is not None and self._counts(event) else ""

    def _counts(self, event: LabelEvent) -> bool:
        """Return whether somebody with write access set a label after the commit was pushed."""
        if not event.is_set:
            return False
        name = event.label_name
        what = f"the label `{_short(name)}`, which {event.by or 'an unknown user'} set,"
        if not self._may_write(event.by):
            self._warn(f"{what} does not count: {self._no_access}")
            return False
        if not self._is_of_head(name, event):
            self._warn(f"{what} is older than this commit and does not count; set it again")
            return False
        return True

    def _is_of_head(self, name: str, event: LabelEvent) -> bool:
        if label_key(name) == label_key(self.asked.new_label):
            return True
        return self._since is not None and event.created_at >= self._since

    @cached_property
    def _since(self) -> datetime | None:
        """When the commit was the head for the last time that a run began for it."""
        asked = self.asked
        with self.client.open(f"read the workflow runs of commit {asked.commit}", ("actions: read",)) as api:
            runs = Workflow(api, asked.repository, asked.workflow, "").runs_proposing(asked.commit)
        return max((run.created_at for run in runs), default=None)

    def _may_write(self, login: str) -> bool:
        if login not in self._known:
            can_ask = len(self._known) < _MOST_PEOPLE
            self._known[login] = can_ask and may_write(self.client, self.asked.repository, login)
        return self._known[login]

    @property
    def _no_access(self) -> str:
        return f"this needs write access to {self.asked.repository}"

    def _warn(self, text: str) -> None:
        self.warnings.append(shortened(text, _LONGEST_WARNING))


def _short(text: str) -> str:
    return shortened(text, _LONGEST_LINE)
