"""The file of accepted changes: ``.agenteval/accepted.yaml``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from agenteval.core.document import read_text
from agenteval.core.errors import AgentEvalError, ConfigError
from agenteval.core.escape import one_line
from agenteval.core.records import replace
from agenteval.core.redact import Redactor
from agenteval.core.text import display_path, repository_of
from agenteval.core.validation import validate
from agenteval.core.writing import make_directory, write_file
from agenteval.core.yaml import parse_yaml
from agenteval.gate.integrity import Accepted, AcceptedChange
from agenteval.gate.verdict import DEFAULT_FAIL_ON, FailOn
from agenteval.results.model import Difference
from agenteval.run.base_commit import ControlRule
from agenteval.run.context import is_judged_by_base_alone
from agenteval.run.git import ControlError, git
from agenteval.run.resolve.spec import RunSpec

FOLDER, FILE = ".agenteval", "accepted.yaml"
_MOST_DAYS = 366
_HEAD = """\
# Changes that were accepted with `agenteval accept`. Review this file like code.
# An entry counts until the base branch's results have it, or until its case changes again.
"""
_BLAMED = re.compile(r"^\^?([0-9a-f]{40,64}) ")
_Name = Annotated[str, StringConstraints(pattern=r"^[^*]+$")]


class AcceptedEntry(BaseModel):
    """One accepted change, of a case or of the mean of a metric."""

    model_config = ConfigDict(extra="forbid")

    case: _Name | None = Field(None, description="id of the case; it contains no *")
    metric: _Name | None = Field(None, description="id of the metric whose mean fell")
    change: AcceptedChange = Field(description="what happened: removed, edited or worse")
    fingerprint: str = Field(
        "", description="of the case; the entry does not count if the case changes again", pattern=r"^[0-9a-f]*$"
    )
    before: str = Field("", description="what it was in the base")
    after: str = Field("", description="what it is in the change; of a metric the accepted mean")
    reason: str = Field(min_length=1, description="why the change is right")
    until: date = Field(description="last day (YYYY-MM-DD, UTC)")

    @model_validator(mode="after")
    def _is_complete(self) -> AcceptedEntry:
        if (self.case is None) == (self.metric is None):
            raise ValueError("needs exactly one of `case` and `metric`")
        if self.case is not None and not self.fingerprint:
            raise ValueError("a case needs its `fingerprint`; write the entry with `agenteval accept`")
        if self.metric is not None and self.change != "worse":
            raise ValueError("a metric can only have `change: worse`")
        return self


class AcceptedFile(BaseModel):
    """``.agenteval/accepted.yaml``."""

    model_config = ConfigDict(extra="forbid")

    accepted: list[AcceptedEntry] = Field(default_factory=list, description="the accepted changes")


def accepted_path(here: Path) -> Path:
    """Return the file for a working directory: at the root of its repository, if it is in one."""
    return (repository_of(here) or here) / FOLDER / FILE


def read_accepted(here: Path, redact: Redactor | None = None) -> tuple[Accepted, ...]:
    """Return the entries of the file, each with its author in git; empty without a file.

    Args:
        redact: masks secrets in texts that reports show.
    """
    path = accepted_path(here)
    if not path.is_file() and not path.is_symlink():
        return ()
    name = display_path(path)
    # Variables are not replaced: the entries are compared with those of other runs.
    document = parse_yaml(read_text(path, name), name, path.parent, environment={}, unset=[])
    file, problems = validate(AcceptedFile, {} if document.data is None else document.data, document)
    if file is None:
        raise ConfigError(problems)
    latest = latest_day()
    problems = [
        document.problem(
            ("accepted", place, "until"), f"{entry.until} is more than a year ahead; write {latest} or earlier"
        )
        for place, entry in enumerate(file.accepted)
        if entry.until > latest
    ]
    if problems:
        raise ConfigError(problems)
    masked = redact or (lambda text: text)
    authors = _authors(path) if file.accepted else {}
    found = []
    for place, entry in enumerate(file.accepted):
        line = document.line(("accepted", place))
        content = {key: value for key, value in entry if value is not None}
        content |= {"author": masked(authors.get(line or 0, "")), "reason": masked(entry.reason)}
        found.append(Accepted(**content, line=line))
    return tuple(found)


def ended_notes(entries: Iterable[Accepted], merged: Collection[str], today: date) -> Iterator[str]:
    """Yield a warning for each entry whose last day is over, unless the base branch has caught up."""
    for entry in entries:
        if entry.until < today and entry.key not in merged:
            yield f"{_where(entry)} ended on {entry.until} and does not count"


def changed_notes(entries: Iterable[Accepted], differences: Collection[Difference]) -> Iterator[str]:
    """Yield a warning for each entry in force whose case has another content now than was accepted."""
    open_changes = {(item.kind, item.case) for item in differences if item.accepted_by is None}
    for entry in entries:
        if not entry.for_commit and (entry.change, entry.case) in open_changes:
            yield f"{_where(entry)} does not count: the case has changed since"


def _where(entry: Accepted) -> str:
    return f"{FOLDER}/{FILE}:{entry.line}: the entry for {entry.case or entry.metric}"


def latest_day() -> date:
    """Return the latest day that an entry may end on."""
    return datetime.now(UTC).date() + timedelta(days=_MOST_DAYS)


def _authors(path: Path) -> dict[int, str]:
    """Return the author of each line of a file in git; empty for lines that are not committed, or without git.

    In a shallow checkout the author of older lines is unknown.
    """
    try:
        blamed = git(path.parent, "blame", "--line-porcelain", "--no-textconv", "HEAD", "--", path.name)
    except ControlError:
        return {}
    found: dict[int, str] = {}
    author, number, is_boundary = "", 0, False
    for line in blamed.splitlines():
        if _BLAMED.match(line):
            number, author, is_boundary = number + 1, "", False
        elif line.startswith("author "):
            author = line.removeprefix("author ")
        elif line == "boundary":
            is_boundary = True
        elif line.startswith("\t") and not is_boundary:
            found[number] = author.encode("utf-8", "surrogateescape").decode(errors="replace")
    return found


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _: object) -> bool:
        return True


def write_accepted(path: Path, entries: Iterable[Accepted]) -> None:
    """Write the entries into the file."""
    found = ({name: getattr(entry, name) for name in AcceptedEntry.model_fields} for entry in entries)
    content = [{name: value for name, value in fields.items() if value != ""} for fields in found]
    text = yaml.dump({"accepted": content}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    make_directory(path.parent)
    write_file(path.parent, path.name, _HEAD + text)


#: The difference of a change that brings the first suite.
NO_RULES = Difference(kind="rules", after="there are none", effect="absolute")


def rules_without_base(
    own: RunSpec,
    why: AgentEvalError,
    rule: ControlRule,
    ref: str | None,
    *,
    fail_on: frozenset[FailOn] | None,
    is_compared: bool,
) -> RunSpec:
    """Return the rules of a run whose base commit cannot be read: its own.

    If the event proposes a change and names its base commit, the run is unproven: the change could have chosen these
    rules. Its own setting of what fails the job does not count.

    Args:
        why: why the base commit cannot be read, and the fix.
        rule: how the base commit follows from the event.
        ref: the branch or pull request of the run.
        fail_on: what fails the job, by the caller's settings; ``None`` without one.
        is_compared: whether this run, or the merge of its shards, is compared with a baseline.
    """
    if not is_compared or not is_judged_by_base_alone(rule, ref):
        text = f"the suites and rules of the base commit cannot be read, so this run uses its own: {why}"
        return replace(own, warnings=(*own.warnings, own.redact(text)))
    reason = own.redact(one_line(f"cannot be read: {why}"))
    rules = Difference(kind="rules", after=reason, effect="unproven")
    return replace(
        own,
        gate=replace(own.gate, fail_on=DEFAULT_FAIL_ON if fail_on is None else fail_on),
        # A template of the change could show another verdict.
        presentation=replace(own.presentation, comment_template=None, summary_template=None),
        integrity=replace(own.integrity, differences=with_rules(own.integrity.differences, rules)),
    )


def with_rules(differences: tuple[Difference, ...], rules: Difference) -> tuple[Difference, ...]:
    """Return differences with one of the rules themselves; the first one counts."""
    return differences if any(item.kind == "rules" for item in differences) else (*differences, rules)
