"""Reads what people with write access accepted in a pull request: by a review, a label, or an approved commit.

Everything here is bound to a person by GitHub, and to the commit that is evaluated:

* a review records its author and the commit that was the head; it counts unless it asks for changes;
* the event of a label records who set it and when, which must be after the commit was pushed;
* a commit's message proves nobody, because anybody can choose its author. It counts if somebody approved this head.

The description of a pull request belongs to no commit, so it does not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from agenteval.core.errors import AgentEvalError
from agenteval.core.secrets import shortened
from agenteval.github.client import (
    PULL_REQUEST_PERMISSIONS,
    Commit,
    GitHubClient,
    LabelEvent,
    Review,
    commits_of,
    label_key,
    may_write,
    newest_label_events,
    reviews_of,
)
from agenteval.github.workflow_runs import Workflow
from agenteval.run.context import Given, GivenAcceptance

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


_LINE: Final = re.compile(r"[ \t]*Agenteval-Accept:[ \t]*(\S.*)", re.IGNORECASE)
_ANYWHERE: Final = re.compile(f"^{_LINE.pattern}$", re.IGNORECASE | re.MULTILINE)
_COMMENT: Final = "<!--"
_STRUCK: Final = "~~"


def written_lines(text: str) -> list[str]:
    """Return what follows ``Agenteval-Accept:`` in all lines of a text, also in those that say nothing."""
    return [found.strip() for found in _ANYWHERE.findall(text)]


def accepting_lines(text: str) -> list[str]:
    """Return what follows ``Agenteval-Accept:`` in the lines of a text in Markdown that its author says.

    These are lines of paragraphs. Lines in code, quotes, lists, comments and struck text are left out. After an
    HTML element nothing counts, because the element may hide, quote or strike what follows.

    Args:
        text: Markdown, as people write it on GitHub.
    """
    # Most texts have no such line, and strangers can write long ones.
    if not written_lines(text):
        return []
    tokens = _parser().parse(text)
    found: list[str] = []
    for place, token in enumerate(tokens):
        if token.type == "html_block" and not token.content.lstrip().startswith(_COMMENT):
            break
        if token.type == "inline" and token.level == 1 and tokens[place - 1].type == "paragraph_open":
            lines, is_plain = _of_paragraph(token.children or ())
            found += lines
            if not is_plain:
                break
    return found


def _of_paragraph(parts: Sequence[Token]) -> tuple[list[str], bool]:
    """Return the accepting lines of a paragraph, and whether what follows is still plain text."""
    found: list[str] = []
    for line in _split(parts):
        match = _LINE.fullmatch("".join(_source(part) for part in line))
        if match and line[0].type == "text":
            found.append(match[1].strip())
        elif any(part.type == "html_inline" and not part.content.startswith(_COMMENT) for part in line):
            return found, False
        elif any(part.type == "text" and _STRUCK in part.content for part in line):
            # Nobody strikes more than a paragraph.
            break
    return found, True


def _split(parts: Sequence[Token]) -> Iterator[list[Token]]:
    line: list[Token] = []
    for part in parts:
        if part.type in {"softbreak", "hardbreak"}:
            yield line
            line = []
        else:
            line.append(part)
    yield line


def _source(part: Token) -> str:
    return f"{part.markup}{part.content}{part.markup}" if part.type == "code_inline" else part.content


@cache
def _parser() -> MarkdownIt:
    """Return a parser of blocks, code and HTML; names of cases may contain other marks."""
    # Imported here: most runs read no such text.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.inline.ruler.enableOnly(["text", "newline", "backticks", "html_inline"])
    return parser


#: A label that names a case begins with this.
LABEL: Final = "agenteval: accept "
#: The label that accepts the results of a fork's job. It names no case.
RESULTS_LABEL: Final = f"{LABEL}results"
#: The label that asks for the proof of an improvement too.
PROVE_LABEL: Final = "agenteval: prove"
_BY_LABEL = "by a label of the pull request"
_OBJECTING = "CHANGES_REQUESTED"
_COUNTING = frozenset({"APPROVED", "COMMENTED", _OBJECTING})
_DECIDING = frozenset({"APPROVED", "CHANGES_REQUESTED", "DISMISSED"})
_SHORT = 7
# Characters.
_LONGEST_WARNING = 500
_LONGEST_LINE = 300
# Strangers can write reviews.
_MOST_WARNINGS = 5
_MOST_PEOPLE = 20
# GitHub lists no more commits of a pull request.
_MOST_COMMITS = 250
_UNREAD = "it is unknown whether somebody accepted changes of this pull request"
_INSTEAD = f"set the label `{LABEL}CASE`, or write a review with the line `Agenteval-Accept: CASE REASON`"


@dataclass(frozen=True)
class RemoteAcceptances:
    """Reads the labels, reviews and commits of one pull request.

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
                found = _Reading(
                    self,
                    client,
                    newest_label_events(api, self.repository, self.pull_request),
                    reviews_of(api, self.repository, self.pull_request),
                    commits_of(api, self.repository, self.pull_request),
                )
            entries = (*found.of_reviews(), *found.of_commits(), *found.of_labels())
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
                found = _Reading(self, self.client(), labels, (), ())
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
    reviews: Sequence[Review]
    commits: Sequence[Commit]
    warnings: list[str] = field(default_factory=list)
    _known: dict[str, bool] = field(default_factory=dict)

    def of_reviews(self) -> Iterator[GivenAcceptance]:
        """Yield the lines of reviews of the commit by people with write access."""
        for review in self.reviews:
            written = written_lines(review.body or "") if review.state in _COUNTING else []
            if not written:
                continue
            what = f"`{_short(written[0])}` in a review by {review.by or 'an unknown user'}"
            if review.commit_id != self.asked.commit:
                self._warn(f"{what} is of an earlier commit and does not count; write it again for this one")
            elif not self._may_write(review.by):
                self._warn(f"{what} does not count: {self._no_access}")
            elif review.state == _OBJECTING:
                self._warn(f"{what} does not count: the review asks for changes; write it in a review that does not")
            else:
                for words in self._said(review.body or "", f"in a review by {review.by}"):
                    yield GivenAcceptance(words, review.by)

    def of_commits(self) -> Iterator[GivenAcceptance]:
        """Yield the lines of commit messages, if somebody with write access approved the commit that is evaluated."""
        for commit in self._until_head():
            for words in self._said(commit.commit.message, f"in commit {commit.sha[:_SHORT]}"):
                if self._approver:
                    yield GivenAcceptance(words, self._approver)
                else:
                    what = f"`{words}` in commit {commit.sha[:_SHORT]}"
                    missing = "the message of a commit proves nobody, and nobody with write access approved this head"
                    self._warn(f"{what} does not count: {missing}; approve it, {_INSTEAD}")

    def of_labels(self) -> Iterator[GivenAcceptance]:
        """Yield the labels that somebody with write access set after the commit was pushed."""
        start = len(LABEL)
        for name, event in self.labels.items():
            if name.startswith(LABEL) and name != RESULTS_LABEL and self._counts(event):
                yield GivenAcceptance(_short(event.label_name[start:]), event.by, _BY_LABEL)

    def of_results(self, made_by: datetime) -> Iterator[GivenAcceptance]:
        """Yield the label that accepts all results, if somebody with write access set it for the commit."""
        event = self.labels.get(RESULTS_LABEL)
        if event is None or not self._counts(event):
            return
        if event.created_at < made_by:
            self._warn(f"the label, which {event.by} set, is older than the results and does not count; set it again")
        else:
            yield GivenAcceptance(RESULTS_LABEL, event.by, _BY_LABEL)

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

    def _said(self, text: str, where: str) -> Sequence[str]:
        """Return the lines that the author of a text says, and warn about the others."""
        said = accepting_lines(text)
        for words in written_lines(text):
            if words not in said:
                why = "it is in code, a comment or a quote; write it as a line of text"
                self._warn(f"`{_short(words)}` {where} does not count: {why}")
        return list(map(_short, said))

    def _until_head(self) -> Sequence[Commit]:
        """Return the commits up to the one that is evaluated; none if it is gone."""
        shas = [commit.sha for commit in self.commits]
        if self.asked.commit not in shas and len(shas) >= _MOST_COMMITS:
            self._warn(
                f"the pull request has more than {len(shas)} commits, so their messages accept nothing; {_INSTEAD}"
            )
        return self.commits[: shas.index(self.asked.commit) + 1] if self.asked.commit in shas else ()

    @cached_property
    def _approver(self) -> str:
        """Login of somebody with write access who approved the commit; empty for nobody."""
        last = {review.by: review for review in self.reviews if review.state in _DECIDING}
        approved = (
            login
            for login, review in last.items()
            if review.state == "APPROVED" and review.commit_id == self.asked.commit
        )
        return next((login for login in approved if self._may_write(login)), "")

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
