"""The user that user code runs as: the owner of the workspace, and never root."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agenteval.core.errors import ConfigError, InfrastructureError, Kind, Problem
from agenteval.core.files.boundary import FileOwner
from agenteval.core.files.ownership import change_owner_of
from agenteval.core.process.confinement import Owner
from agenteval.core.process.process_groups import end_all_marked

# Access to one of these sockets controls the machine that runs the container.
SOCKETS = (Path("/var/run/docker.sock"), Path("/run/podman/podman.sock"))
# Owns the files of root's workspace during the run; systemd reserves this id, and nobody uses it.
_STAND_IN = 65533
_NOBODY = 65534
_KEPT = -1


def owner_of(workspace: str) -> Owner | None:
    """Return the user for user code: the owner of the workspace; ``None`` without the rights to change users.

    If the runner's group can open the container engine's socket, another group is used.
    """
    if os.geteuid() != 0 or not Path(workspace or os.devnull).is_dir():
        return None
    found = Path(workspace).stat()
    avoided = {0, *(socket.stat().st_gid for socket in SOCKETS if socket.exists())}
    groups = (found.st_gid, found.st_uid, _NOBODY)
    return Owner(found.st_uid or _STAND_IN, next((gid for gid in groups if gid not in avoided), _NOBODY))


@contextmanager
def workspace_of_user(environment: Mapping[str, str]) -> Iterator[None]:
    """Give a workspace of root to an unprivileged user inside the block, so that user code does not run as root.

    At the end of the block, root gets everything back that belongs to this user.

    Args:
        environment: environment variables of the container, as the runner set them.

    Raises:
        ConfigError: there is no workspace, so that no user is known.
        InfrastructureError: the workspace's owner cannot be changed, or processes of user code do not end.
    """
    is_on_a_runner = environment.get("GITHUB_ACTIONS") == "true" or environment.get("GITHUB_WORKSPACE")
    if os.geteuid() != 0 or not is_on_a_runner:
        yield
        return
    workspace = _workspace(environment)
    if workspace.stat().st_uid not in {0, _STAND_IN}:
        yield
        return
    try:
        change_owner_of(workspace, FileOwner(_STAND_IN, _KEPT), of=0)
        changed = workspace.stat().st_uid
    except OSError:
        changed = 0
    if changed == 0:
        raise InfrastructureError(
            f"the workspace {workspace} belongs to root, and its owner cannot be changed; user code does not run as "
            'root: give the workspace to another user before this step, for example with `chown -R 1000 "$PWD"`'
        )
    try:
        yield
    finally:
        # A program that still ran could put a link in the place of a file.
        check_that_user_code_ended()
        _give_back(workspace)


def give_back(environment: Mapping[str, str]) -> None:
    """Give root's workspace back, after a run that was killed."""
    workspace = Path(environment.get("GITHUB_WORKSPACE") or os.devnull)
    if os.geteuid() == 0 and workspace.is_dir() and workspace.stat().st_uid in {0, _STAND_IN}:
        _give_back(workspace)


def check_that_user_code_ended() -> None:
    """End all programs of user code that still run.

    Raises:
        InfrastructureError: a program does not end.
    """
    if not end_all_marked():
        raise InfrastructureError(
            "programs that the agent or a grader started cannot be ended; the results are not written, because these "
            "programs could change them"
        )


def _give_back(workspace: Path) -> None:
    change_owner_of(workspace, FileOwner(0, _KEPT), of=_STAND_IN)


def _workspace(environment: Mapping[str, str]) -> Path:
    named = environment.get("GITHUB_WORKSPACE", "")
    path = Path(named or os.devnull).resolve()
    if not path.is_dir() or path == Path(path.root):
        raise ConfigError(
            Problem(
                f"GITHUB_WORKSPACE is {named!r}, not the directory of a checkout; run the action in a workflow",
                kind=Kind.GITHUB,
            )
        )
    return path
