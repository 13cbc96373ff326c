"""The repository of the working directory: the commit that is checked out, its history, and its objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agenteval.core.errors import AgentEvalError
from agenteval.core.records import dataclass
from agenteval.run.git import (
    ControlCommit,
    ControlError,
    ControlHost,
    Head,
    control_commit,
    git,
    git_bytes,
    object_id,
)

_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_PARENT = re.compile(r"^parent ([0-9a-f]{40,64})$", re.MULTILINE)
_OBJECT = re.compile(rb"[0-9a-f]{40,64} \w+ (\d+)\n")
# States of a branch that a search for a baseline reads from the clone.
_MOST_STATES = 2000
_SUBMODULE = "160000"
_BRANCHES = ("refs/heads/", "refs/remotes/")
_FIX = "set `fetch-depth: 0` of actions/checkout, or fetch the history with `git fetch --unshallow`"


@dataclass(frozen=True)
class Clone:
    """The repository that contains the working directory.

    Attributes:
        is_shallow: whether parts of the history are missing.
        host: knows more about the commits than a shallow clone.
    """

    root: Path
    head: Head
    is_shallow: bool
    host: ControlHost

    @classmethod
    def find(cls, here: Path, host: ControlHost) -> Clone:
        """Return the repository that contains a directory.

        Raises:
            ControlError: there is no repository, or it has no commit.
        """
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
        if object_id("commit", content, commit) != commit:
            raise ControlError(f"commit {commit[:12]} was changed in this clone")
        head = Head(commit, _parents(content))
        return cls(root, head, git(root, "rev-parse", "--is-shallow-repository") == "true", host)

    def control(self, baseline: str | None) -> ControlCommit:
        """Return the control of the commit that is checked out.

        Raises:
            ControlError: it does not exist, or is unknown.
        """
        return control_commit(self.host.rule, self.head, baseline, self)

    def is_ancestor(self, commit: str, descendant: str) -> bool | None:
        """Return whether a commit is an ancestor of another one; ``None`` if the clone is too shallow to know."""
        try:
            base = git(self.root, "merge-base", checked_commit(commit), checked_commit(descendant))
        except ControlError:
            return None if self.is_shallow else False
        if base == git(self.root, "rev-parse", "--verify", f"{commit}^{{commit}}"):
            return True
        return None if self.is_shallow else False

    def distance(self, commit: str, descendant: str) -> int | None:
        """Return how many commits a commit has more than its ancestor; ``None`` if the other one is no ancestor.

        Raises:
            ControlError: the clone does not contain both.
        """
        older, newer = checked_commit(commit), checked_commit(descendant)
        for item in (older, newer):
            git(self.root, "cat-file", "-e", f"{item}^{{commit}}")
        try:
            is_ancestor = git(self.root, "merge-base", older, newer) == older
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
            if item != expected or object_id("commit", content, item) != item:
                break
            found.append(item)
            expected = next(iter(_parents(content)), "")
        return tuple(found)

    def fork(self, commit: str, branch: str) -> str | None:
        """Return where a commit left a branch of the remote, the commit itself if the branch contains it.

        Returns:
            ``None`` if the clone does not contain enough to know.
        """
        ref = f"refs/remotes/origin/{branch}"
        try:
            found = git(self.root, "merge-base", checked_commit(commit), ref)
        except ControlError:
            return None
        # In a shallow clone, a nearer one can be missing.
        return found if found == commit or not self.is_shallow else None

    def is_on(self, commit: str, branch: str) -> bool:
        """Return whether a branch, of this clone or of a remote, contains a commit."""
        try:
            containing = ("--contains", checked_commit(commit))
            listed = git(self.root, "for-each-ref", "--format=%(refname)", *containing, *_BRANCHES)
        except ControlError:
            # A shallow clone need not contain the commit.
            return False
        return any(_branch_of(ref) == branch for ref in listed.splitlines())

    def merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits, from the clone or else from its host.

        Raises:
            ControlError: it is unknown.
        """
        try:
            return git(self.root, "merge-base", checked_commit(one), checked_commit(other))
        except ControlError as error:
            try:
                return self.host.merge_base(other, one)
            except AgentEvalError:
                message = f"the merge base of {one[:12]} and {other[:12]} is not in this clone ({error}); {_FIX}"
                raise ControlError(message) from None

    def objects(self) -> Iterator[Path]:
        """Yield the directories with the objects of the repository and of its submodules that are checked out."""
        yield from _objects(self.root)


def submodules(root: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the commit of each submodule of a commit.

    Args:
        root: the working tree of a repository that contains the commit.
    """
    for entry in git(root, "ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
        about, _, path = entry.partition("\t")
        if about.startswith(f"{_SUBMODULE} "):
            yield path, about.split(" ")[2]


def _objects(root: Path) -> Iterator[Path]:
    yield Path(root, git(root, "rev-parse", "--git-path", "objects")).resolve()
    for path, _ in submodules(root, "HEAD"):
        if (root / path / ".git").exists():
            yield from _objects(root / path)


def _parents(content: bytes) -> tuple[str, ...]:
    return tuple(_PARENT.findall(content.partition(b"\n\n")[0].decode(errors="replace")))


def _contents(listed: bytes) -> Iterator[bytes]:
    """Yield the contents of objects in the output of ``git cat-file --batch``, up to a missing one."""
    place = 0
    while found := _OBJECT.match(listed, place):
        end = found.end() + int(found[1])
        yield listed[found.end() : end]
        place = end + 1


def _branch_of(ref: str) -> str:
    place, _, name = ref.removeprefix("refs/").partition("/")
    return name if place == "heads" else name.partition("/")[2]


def checked_commit(commit: str) -> str:
    """Return the id of a commit.

    Raises:
        ControlError: the text is no such id.
    """
    # The commit comes from a file or an event; text of another form could be read as an option of git.
    if not _COMMIT.fullmatch(commit):
        raise ControlError(f"{commit!r} is not a commit")
    return commit
