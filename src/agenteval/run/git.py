"""The commits of a run: of the working tree, of the control, and in the words of reports."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from agenteval.core.confine import confined, run_confined_bytes, user_environment
from agenteval.core.errors import AgentEvalError
from agenteval.core.records import dataclass, field, replace

Kind = Literal["local", "merge-base", "first-parent", "previous", "pull-request"]


class ControlError(AgentEvalError):
    """The control cannot run; the message contains the reason and the fix."""


@dataclass(frozen=True)
class ControlRule:
    """How the control follows from the commit that is checked out.

    Attributes:
        kind: ``first-parent``: the first parent. ``previous``: the state of the branch before a push or a merge
            group. ``pull-request``: the first parent of the merge commit, or the merge base if the pull request's own
            branch is checked out. ``merge-base``: the merge base with the baseline's commit. ``local``: the same,
            unless a merge of a change into the branch of the baseline is checked out, outside of this branch.
        merge: the merge commit of the pull request, as the event names it.
        branch: the target branch; of a clone without a CI host the branch of the baseline.
        before: the branch's commit before a push or a merge group; ``None`` if the push did not continue from it.
        fork: where the commit that is checked out left the branch, if the CI host knows it.
    """

    kind: Kind = "local"
    merge: str | None = None
    base: str | None = None
    branch: str | None = None
    before: str | None = None
    fork: str | None = None


@dataclass(frozen=True)
class Head:
    """The commit that is checked out."""

    commit: str
    parents: tuple[str, ...] = ()

    def is_merge_into(self, commit: str | None) -> bool:
        """Return whether it merges something into a commit."""
        return len(self.parents) > 1 and self.parents[0] == commit


@dataclass(frozen=True)
class ControlCommit:
    """The control.

    Attributes:
        note: what the comparison with this commit leaves out; empty if nothing.
    """

    commit: str
    note: str = ""


@dataclass(frozen=True)
class Remote:
    """A repository that single commits can be fetched from.

    Attributes:
        header: HTTP header with the credentials; empty for none.
        variables: environment variables of the connection, such as proxies and certificates.
    """

    url: str
    header: str = field(default="", repr=False)
    variables: dict[str, str] = field(default_factory=dict, repr=False)


class ControlHost(Protocol):
    """What a CI host knows about the control."""

    @property
    def rule(self) -> ControlRule:
        """How the control follows from the commit that is checked out."""
        ...

    @property
    def remote(self) -> Remote | None:
        """The repository to fetch the control from, if the checkout does not contain it."""
        ...

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits.

        Raises:
            AgentEvalError: it is unknown.
        """
        ...


class CommitHistory(Protocol):
    """The history of the commit that is checked out."""

    def is_ancestor(self, commit: str, descendant: str) -> bool | None:
        """Return whether a commit is an ancestor of another one; ``None`` if the clone is too shallow to know."""
        ...

    def is_on(self, commit: str, branch: str) -> bool:
        """Return whether a branch, of this clone or of a remote, contains a commit."""
        ...

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits.

        Raises:
            ControlError: it is unknown.
        """
        ...


@dataclass(frozen=True)
class LocalHost:
    """No CI host: the control follows from the clone alone, and nothing is fetched."""

    rule: ControlRule = field(default_factory=ControlRule)
    remote: Remote | None = None

    def merge_base(self, one: str, other: str) -> str:
        """Raise, because only the clone is known."""
        raise ControlError(f"the history between {one[:12]} and {other[:12]} is not in this clone")


def of_baseline(host: ControlHost, ref: str | None) -> ControlHost:
    """Return what is known without a CI host, with the branch of the baseline; a CI host names its branches."""
    if not isinstance(host, LocalHost) or ref is None:
        return host
    return replace(host, rule=replace(host.rule, branch=ref.removeprefix("refs/heads/")))


def control_commit(rule: ControlRule, head: Head, baseline: str | None, history: CommitHistory) -> ControlCommit:
    """Return the control of a commit.

    Args:
        rule: how it follows from the event.
        history: answers the questions that the commit alone does not.

    Raises:
        ControlError: there is no such commit, or the clone does not contain the history to find it.
    """
    match rule.kind:
        case "first-parent":
            return _first_parent(head)
        case "previous":
            continues = rule.before is not None and history.is_ancestor(rule.before, head.commit) is not False
            if rule.before and continues:
                return ControlCommit(rule.before)
            return _first_parent(head)
        case "pull-request":
            return _of_pull_request(rule, head, history)
        case "merge-base":
            return ControlCommit(rule.fork or history.merge_base(head.commit, _baseline(baseline)))
        case "local":
            return _of_clone(rule, head, _baseline(baseline), history)


def _of_pull_request(rule: ControlRule, head: Head, history: CommitHistory) -> ControlCommit:
    # Another merge commit can be one of the pull request, whose author chose its first parent.
    if len(head.parents) > 1 and head.commit == rule.merge:
        return ControlCommit(head.parents[0])
    if rule.fork is not None and head.is_merge_into(rule.fork):
        return ControlCommit(rule.fork)
    if rule.base is None and rule.fork is None:
        raise ControlError("the event of the pull request does not name its base commit")
    note = (
        f"compared with the merge base: what happened on {rule.branch or 'the base branch'} since is not in the pull "
        "request's run; check out the merge commit, which is the default of actions/checkout"
    )
    found = rule.fork or history.merge_base(head.commit, rule.base or "")
    return ControlCommit(found, note)


def _of_clone(rule: ControlRule, head: Head, baseline: str, history: CommitHistory) -> ControlCommit:
    # Merging anything into the change makes the change itself the first parent, so the base branch must have it.
    if rule.branch and len(head.parents) > 1 and history.is_ancestor(baseline, head.parents[0]) is not False:
        is_into_base = history.is_on(head.parents[0], rule.branch) and not history.is_on(head.commit, rule.branch)
        if is_into_base:
            return _first_parent(head)
    return ControlCommit(history.merge_base(head.commit, baseline))


def _first_parent(head: Head) -> ControlCommit:
    if not head.parents:
        raise ControlError(f"commit {head.commit[:12]} has no parent to compare with")
    return ControlCommit(head.parents[0])


def _baseline(commit: str | None) -> str:
    if commit is None:
        raise ControlError("the baseline names no commit; commit its files before the run that makes it")
    return commit


_TIMEOUT_S = 120
_FETCH_TIMEOUT_S = 300
# Of a connection with credentials only the system's git is used: the job's PATH can begin with directories that
# earlier steps wrote.
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
# Settings in a repository override those of the user, and these override both. Hooks, filters, monitors of the file
# system and helpers of connections are programs; references that replace an object by another change a commit.
_OPTIONS = (
    "--no-replace-objects",
    *("-c", "safe.directory=*"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.sshCommand=false"),
    *("-c", "credential.helper="),
    *("-c", "http.followRedirects=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
)
_VARIABLES = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def git(directory: Path, *arguments: str, variables: Mapping[str, str] | None = None, stdin: str = "") -> str:
    """Return the output of a git command as text, without the line break at its end; see ``git_bytes``."""
    # Names of files need not be UTF-8.
    return (
        git_bytes(directory, *arguments, variables=variables, stdin=stdin)
        .decode(errors="surrogateescape")
        .rstrip("\n")
    )


def git_bytes(directory: Path, *arguments: str, variables: Mapping[str, str] | None = None, stdin: str = "") -> bytes:
    """Return the output of a git command that uses no network.

    git runs as the user of user code, because it reads files that this user can write.

    Raises:
        ControlError: git is not installed, or the command fails.
    """
    inherited = {name: value for name, value in user_environment().items() if not name.startswith("GIT_")}
    environment = {**inherited, **_VARIABLES, "GIT_ALLOW_PROTOCOL": "none", **(variables or {})}
    program = shutil.which("git", path=environment.get("PATH"))
    if program is None:
        raise ControlError("git is not installed")
    return _output([program, *_OPTIONS, *arguments], directory, environment, _TIMEOUT_S, stdin)


def object_id(kind: str, content: bytes, like: str) -> str:
    """Return the id of an object of git, as long as another one: the ids of SHA-256 repositories are longer."""
    digest = hashlib.new("sha1" if len(like) == 40 else "sha256", usedforsecurity=False)
    digest.update(f"{kind} {len(content)}\0".encode() + content)
    return digest.hexdigest()


def fetch(repository: Path, remote: Remote, commit: str) -> None:
    """Fetch one commit, without its history, into a repository that only agenteval writes.

    git runs with the rights of this process, because it gets credentials. It reads no setting of the workspace.

    Raises:
        ControlError: the commit cannot be fetched.
    """
    program = shutil.which("git", path=_SYSTEM_PATH)
    if program is None:
        raise ControlError("git is not installed")
    # Variables, because every user can read the arguments of a program.
    settings = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": remote.header}
    environment = {
        "PATH": _SYSTEM_PATH,
        "HOME": "/dev/null",
        "GIT_ALLOW_PROTOCOL": "file:http:https",
        **_VARIABLES,
        **remote.variables,
        **(settings if remote.header else {}),
    }
    what = ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
    command = [program, *_OPTIONS, *what, "--", remote.url, commit]
    with confined(owner=None, apart=None):
        _output(command, repository, environment, _FETCH_TIMEOUT_S)


def _output(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], timeout_s: float, stdin: str = ""
) -> bytes:
    name = f"git {command[1 + len(_OPTIONS)]}"
    try:
        with tempfile.TemporaryFile() as given:
            given.write(stdin.encode("utf-8", "surrogateescape"))
            given.seek(0)
            done = run_confined_bytes(command, directory, timeout_s, given, environment)
    except subprocess.TimeoutExpired:
        raise ControlError(f"{name} took longer than {timeout_s:g} s") from None
    except OSError as error:
        raise ControlError(f"{name} cannot run: {error}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ControlError(f"{name}: {said[-1] if said else f'exit status {done.returncode}'}")
    return done.stdout


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
        base_ref: the branch that a pull request is to be merged into.
    """

    commit: str | None = None
    ref: str | None = None
    repository: str | None = None
    workflow_run_id: str | None = None
    artifact: str | None = None
    uncommitted: bool = False
    base_ref: str | None = None


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
