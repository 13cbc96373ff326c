"""Runs git without the settings of users and repositories that start programs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from agenteval.core.process.confinement import confined, user_environment
from agenteval.core.process.run_confined import run_confined_bytes
from agenteval.run.control_commit import ControlError, Remote

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

    Args:
        directory: the working directory.
        *arguments: the command.
        variables: additional environment variables.
        stdin: standard input.

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

    Args:
        repository: the working tree.
        remote: the repository that contains the commit.
        commit: the id of the commit.

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
