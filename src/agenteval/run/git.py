"""Asks git about a repository: its history, its objects, and the commit of a run. Nothing that is in it runs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agenteval.core.confine import confined, run_confined_bytes, user_environment
from agenteval.core.errors import AgentEvalError
from agenteval.core.records import dataclass, field


class ControlError(AgentEvalError):
    """The control cannot run; the message contains the reason and the fix."""


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
    output = git_bytes(directory, *arguments, variables=variables, stdin=stdin)
    # Names of files need not be UTF-8.
    return output.decode(errors="surrogateescape").rstrip("\n")


def git_bytes(directory: Path, *arguments: str, variables: Mapping[str, str] | None = None, stdin: str = "") -> bytes:
    """Return the output of a git command that uses no network.

    git runs as the user of user code, because it reads files that this user can write.
    """
    inherited = {name: value for name, value in user_environment().items() if not name.startswith("GIT_")}
    environment = {**inherited, **_VARIABLES, "GIT_ALLOW_PROTOCOL": "none", **(variables or {})}
    return _output(arguments, directory, environment, _TIMEOUT_S, stdin)


def fetch(repository: Path, remote: Remote, commit: str) -> None:
    """Fetch one commit, without its history, into a repository that only agenteval writes.

    git runs with the rights of this process, because it gets credentials. It reads no setting of the workspace.
    """
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
    with confined(owner=None, apart=None):
        _output((*what, "--", remote.url, commit), repository, environment, _FETCH_TIMEOUT_S)


def _output(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str], timeout_s: float, stdin: str = ""
) -> bytes:
    program = shutil.which("git", path=environment.get("PATH"))
    if program is None:
        raise ControlError("git is not installed")
    name = f"git {arguments[0]}"
    try:
        with tempfile.TemporaryFile() as given:
            given.write(stdin.encode("utf-8", "surrogateescape"))
            given.seek(0)
            command = [program, *_OPTIONS, *arguments]
            done = run_confined_bytes(command, directory, timeout_s, given, environment)
    except subprocess.TimeoutExpired:
        raise ControlError(f"{name} took longer than {timeout_s:g} s") from None
    except OSError as error:
        raise ControlError(f"{name} cannot run: {error}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ControlError(f"{name}: {said[-1] if said else f'exit status {done.returncode}'}")
    return done.stdout


_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_PARENT = re.compile(r"^parent ([0-9a-f]{40,64})$", re.MULTILINE)
_OBJECT = re.compile(rb"[0-9a-f]{40,64} \w+ (\d+)\n")
# States of a branch that a search for a baseline reads from the clone.
_MOST_STATES = 2000
#: The mode of a submodule in a tree or an index.
SUBMODULE = "160000"


@dataclass(frozen=True)
class Head:
    """The commit that is checked out."""

    commit: str
    parents: tuple[str, ...] = ()

    def is_merge_into(self, commit: str | None) -> bool:
        """Return whether it merges something into a commit."""
        return len(self.parents) > 1 and self.parents[0] == commit


@dataclass(frozen=True)
class Clone:
    """The repository that contains the working directory.

    Attributes:
        is_shallow: whether parts of the history are missing.
    """

    root: Path
    head: Head
    is_shallow: bool

    @classmethod
    def find(cls, here: Path) -> Clone:
        """Return the repository that contains a directory."""
        try:
            root = Path(git(here, "rev-parse", "--show-toplevel"))
        except ControlError as error:
            raise ControlError(f"start agenteval in the git repository of the agent ({error})") from None
        try:
            commit = git(root, "rev-parse", "--verify", "HEAD")
        except ControlError:
            raise ControlError("this repository has no commit yet; commit the agent and its suites") from None
        # The parents are in the commit itself; in a shallow clone, the commands that show history omit them.
        content = git_bytes(root, "cat-file", "commit", commit)
        if _commit_id(content, commit) != commit:
            raise ControlError(f"commit {commit[:12]} was changed in this clone")
        return cls(root, Head(commit, _parents(content)), git(root, "rev-parse", "--is-shallow-repository") == "true")

    def is_ancestor(self, commit: str, descendant: str) -> bool | None:
        """Return whether a commit is an ancestor of another one; ``None`` if the clone is too shallow to know."""
        try:
            base = self.merge_base(commit, descendant)
        except ControlError:
            return None if self.is_shallow else False
        if base == git(self.root, "rev-parse", "--verify", f"{commit}^{{commit}}"):
            return True
        return None if self.is_shallow else False

    def distance(self, commit: str, descendant: str) -> int | None:
        """Return how many commits a commit has more than its ancestor; ``None`` if the other one is no ancestor."""
        older, newer = checked_commit(commit), checked_commit(descendant)
        for item in (older, newer):
            git(self.root, "cat-file", "-e", f"{item}^{{commit}}")
        try:
            is_ancestor = self.merge_base(older, newer) == older
        except ControlError:
            # They have no common commit.
            return None
        return int(git(self.root, "rev-list", "--count", newer, f"^{older}")) if is_ancestor else None

    def first_parents(self, commit: str) -> tuple[str, ...]:
        """Return a commit and its first parents, nearest first, as far as the clone contains them.

        Their contents must have their ids, so no earlier step can have put other commits between them.
        """
        limit = f"--max-count={_MOST_STATES}"
        try:
            listed = git(self.root, "rev-list", "--first-parent", limit, checked_commit(commit), "--").split()
            contents = git_bytes(self.root, "cat-file", "--batch", stdin="".join(f"{item}\n" for item in listed))
        except ControlError:
            return ()
        found: list[str] = []
        expected = commit
        for item, content in zip(listed, _contents(contents), strict=False):
            if item != expected or _commit_id(content, item) != item:
                break
            found.append(item)
            expected = next(iter(_parents(content)), "")
        return tuple(found)

    def fork(self, commit: str, branch: str) -> str | None:
        """Return where a commit left a branch of the remote, the commit itself if the branch contains it.

        Returns:
            ``None`` if the clone does not contain enough to know.
        """
        try:
            found = git(self.root, "merge-base", checked_commit(commit), f"refs/remotes/origin/{branch}")
        except ControlError:
            return None
        # In a shallow clone, a nearer one can be missing.
        return found if found == commit or not self.is_shallow else None

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits."""
        return git(self.root, "merge-base", checked_commit(one), checked_commit(other))

    def objects(self) -> Iterator[Path]:
        """Yield the directories with the objects of the repository and of its submodules that are checked out."""
        yield from _objects(self.root)


def _objects(root: Path) -> Iterator[Path]:
    yield Path(root, git(root, "rev-parse", "--git-path", "objects")).resolve()
    for path, _ in submodules(root, "HEAD"):
        if (root / path / ".git").exists():
            yield from _objects(root / path)


def submodules(root: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the commit of each submodule of a commit that a repository contains."""
    for entry in git(root, "ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
        about, _, path = entry.partition("\t")
        if about.startswith(f"{SUBMODULE} "):
            yield path, about.split(" ")[2]


def checked_commit(commit: str) -> str:
    """Return the id of a commit."""
    # The commit comes from a file or an event; text of another form could be read as an option of git.
    if not _COMMIT.fullmatch(commit):
        raise ControlError(f"{commit!r} is not a commit")
    return commit


def _commit_id(content: bytes, like: str) -> str:
    # The ids of SHA-256 repositories are longer.
    digest = hashlib.new("sha1" if len(like) == 40 else "sha256", usedforsecurity=False)
    digest.update(f"commit {len(content)}\0".encode() + content)
    return digest.hexdigest()


def _parents(content: bytes) -> tuple[str, ...]:
    return tuple(_PARENT.findall(content.partition(b"\n\n")[0].decode(errors="replace")))


def _contents(listed: bytes) -> Iterator[bytes]:
    place = 0
    while found := _OBJECT.match(listed, place):
        end = found.end() + int(found[1])
        yield listed[found.end() : end]
        place = end + 1


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
    place = directory.resolve()
    # To start git takes longer.
    if not any(os.path.lexists(folder / ".git") for folder in (place, *place.parents)):
        return Provenance()
    try:
        status = git_bytes(directory, "status", *_STATUS, variables=_without_filters(directory))
    except ControlError:
        return Provenance()
    # Names of branches need not be UTF-8, but results are.
    lines = status.decode(errors="replace").split("\n")[:-1]
    named = dict(line.removeprefix("# branch.").split(" ", 1) for line in lines if line.startswith("# branch."))
    commit, branch = named.get("oid"), named.get("head")
    return Provenance(
        commit=None if commit == "(initial)" else commit,
        ref=f"refs/heads/{branch}" if branch and branch != "(detached)" else None,
        uncommitted=any(not line.startswith("#") for line in lines),
    )


def _without_filters(directory: Path) -> dict[str, str]:
    try:
        found = git(directory, "config", "--null", "--name-only", "--get-regexp", _FILTERS).split("\0")[:-1]
    except ControlError:
        # It has none.
        return {}
    variables = {"GIT_CONFIG_COUNT": str(len(found))}
    for number, name in enumerate(found):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": ""}
    return variables
