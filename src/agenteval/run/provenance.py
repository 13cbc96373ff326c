"""The repository and commit that a run evaluates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agenteval.run.control_commit import ControlError
from agenteval.run.git import git, git_bytes

# Files that are not tracked are no change: reports are often among them. The state of a submodule would be asked with
# its own settings.
_STATUS = ("--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=dirty")
_FILTERS = r"^filter\..*\.(clean|process|required)$"


@dataclass(frozen=True)
class Provenance:
    """The repository, commit and environment of a run; ``None`` is unknown.

    Attributes:
        artifact: name of the artifact that will contain the results; ``None`` also for the default name.
        uncommitted: whether tracked files differ from the commit.
    """

    commit: str | None = None
    ref: str | None = None
    repository: str | None = None
    workflow_run_id: str | None = None
    artifact: str | None = None
    uncommitted: bool = False


def provenance(environment: Mapping[str, str], directory: Path) -> Provenance:
    """Return the provenance: in a workflow from GitHub's variables, else from git in the directory."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return Provenance(
            commit=environment.get("GITHUB_SHA") or None,
            ref=environment.get("GITHUB_REF") or None,
            repository=environment.get("GITHUB_REPOSITORY") or None,
            workflow_run_id=environment.get("GITHUB_RUN_ID") or None,
        )
    if not _in_repository(directory):
        return Provenance()
    try:
        status = git_bytes(directory, "status", *_STATUS, variables=_without_filters(directory))
    except ControlError:
        return Provenance()
    # Names of branches need not be UTF-8, but results are.
    return _of_status(status.decode(errors="replace"))


def _in_repository(directory: Path) -> bool:
    """Return whether git would find a repository; to start it takes longer."""
    place = directory.resolve()
    return any(os.path.lexists(folder / ".git") for folder in (place, *place.parents))


def _without_filters(directory: Path) -> dict[str, str]:
    """Return the variables without which git would run programs that the repository names as filters of files."""
    try:
        found = git(directory, "config", "--null", "--name-only", "--get-regexp", _FILTERS).split("\0")[:-1]
    except ControlError:
        # It has none.
        return {}
    variables = {"GIT_CONFIG_COUNT": str(len(found))}
    for number, name in enumerate(found):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": ""}
    return variables


def _of_status(status: str) -> Provenance:
    lines = status.split("\n")[:-1]
    named = dict(line.removeprefix("# branch.").split(" ", 1) for line in lines if line.startswith("# branch."))
    commit, branch = named.get("oid"), named.get("head")
    return Provenance(
        commit=None if commit == "(initial)" else commit,
        ref=f"refs/heads/{branch}" if branch and branch != "(detached)" else None,
        uncommitted=any(not line.startswith("#") for line in lines),
    )
