"""The user that user code runs as, and the report directory, which is out of its reach."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path

from agenteval.core.confine import end_user_code
from agenteval.core.errors import AgentEvalError, ConfigError, InfrastructureError, Kind, Problem, write_error
from agenteval.core.files import (
    LARGEST_RECORDING,
    Owner,
    also_inside,
    below,
    boundary,
    bounded,
    open_regular,
    outside_problem,
)
from agenteval.core.runtime import finished_first, is_in_image
from agenteval.core.shared_files import locked, safe_directory
from agenteval.core.text import real_path
from agenteval.core.writing import change_owner_of, give_to_owner, make_directory, write_file
from agenteval.github.inputs import given_text
from agenteval.report.report import remove_reports, results_identity
from agenteval.run.outcome import refuse_files
from agenteval.run.store import remove_confirmations

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
        change_owner_of(workspace, Owner(_STAND_IN, _KEPT), of=0)
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
        check_that_user_code_ended(_STAND_IN)
        _give_back(workspace)


def give_back(environment: Mapping[str, str]) -> None:
    """Give root's workspace back, after a run that was killed."""
    workspace = Path(environment.get("GITHUB_WORKSPACE") or os.devnull)
    if os.geteuid() == 0 and workspace.is_dir() and workspace.stat().st_uid in {0, _STAND_IN}:
        _give_back(workspace)


def check_that_user_code_ended(uid: int) -> None:
    """End all programs of user code that still run in the container; elsewhere, others may run as its user."""
    from agenteval.run.base_commit import CONTROL_USERS

    if is_in_image(os.environ) and not all(map(end_user_code, {uid, *CONTROL_USERS})):
        raise InfrastructureError(
            "programs that the agent or a grader started cannot be ended; the results are not written, because these "
            "programs could change them"
        )


def _give_back(workspace: Path) -> None:
    change_owner_of(workspace, Owner(0, _KEPT), of=_STAND_IN)


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


_PIECE = 1 << 20
# Inputs of the action that name files.
_PATHS = ("suite", "config", "baseline")


@contextmanager
def within_workspace(environment: Mapping[str, str]) -> Iterator[None]:
    """Limit all file access inside the block to the workspace and the runner's temporary directory."""
    named = [environment.get(name) for name in ("GITHUB_WORKSPACE", "RUNNER_TEMP")]
    workspace = environment.get("GITHUB_WORKSPACE", "")
    owner = None
    if owner_of(workspace) is not None:
        found = Path(workspace).stat()
        owner = Owner(found.st_uid, found.st_gid)
    with bounded([Path(name) for name in named if name], owner):
        yield


def check_report_directory(directory: Path) -> None:
    """Check that a report directory is inside the workspace, and that no part of its path is a file."""
    if problem := outside_problem(directory):
        raise ConfigError(Problem(problem, path="report-dir", kind=Kind.GITHUB))
    refuse_files(directory)


def named_report_directory(environment: Mapping[str, str]) -> Path | None:
    """Return the report directory that the inputs of a run name, even if other inputs are wrong.

    ``None`` if it is outside of the workspace, or inputs are in it, such as the results of the other modes.
    """
    mode = given_text(environment, "mode")
    folder, reports = (given_text(environment, name) for name in ("working-directory", "report-dir"))
    workspace = real_path(Path(environment.get("GITHUB_WORKSPACE") or "."))
    directory = workspace / folder / reports
    is_inside = real_path(directory).is_relative_to(workspace)
    named = [
        real_path(workspace / folder / word) for name in _PATHS for word in given_text(environment, name).split()
    ]
    has_inputs = mode in {"gate", "prove", "publish"} or any(
        path.is_relative_to(real_path(directory)) for path in named
    )
    # The checkout itself has files of the same names.
    is_checkout = real_path(directory) == workspace
    return directory if is_inside and not has_inputs and not is_checkout else None


@contextmanager
def without_earlier_reports(directory: Path | None, environment: Mapping[str, str]) -> Iterator[None]:
    """Remove the reports of an earlier run if the block fails before a run replaces them.

    Steps that follow a failed step would take them for its reports: a self-hosted runner keeps its workspace.
    """
    earlier = None if directory is None else results_identity(directory)
    try:
        yield
    except BaseException as error:
        if directory is not None and earlier is not None and results_identity(directory) == earlier:
            # Inputs in the directory, which are a mistake, stay.
            is_option = isinstance(error, ConfigError) and any(item.kind is Kind.OPTION for item in error.problems)
            # The error of the run is the one to report.
            with contextlib.suppress(AgentEvalError, OSError), within_workspace(environment):
                if not is_option:
                    remove_reports(directory)
        raise


@contextmanager
def out_of_reach(directory: Path) -> Iterator[Path]:
    """Yield the directory to write reports to while user code runs.

    If user code runs as another user, this is a directory that only root can enter. Its files are written to the
    report directory at the end of the block, when all user code has ended.
    """
    owner = boundary().owner
    # Before the run, so that a directory that cannot be written costs nothing.
    make_directory(directory)
    if owner is None or owner.uid == os.geteuid():
        yield directory
        return
    with (
        tempfile.TemporaryDirectory(prefix="agenteval-", dir=safe_directory(), ignore_cleanup_errors=True) as folder,
        also_inside(Path(folder)),
    ):
        private = Path(folder)
        try:
            yield private
        finally:
            check_that_user_code_ended(owner.uid)
            _hand_over(private, directory)


def _hand_over(private: Path, directory: Path) -> None:
    make_directory(directory)
    try:
        # A signal must not mix the reports of two runs.
        with finished_first(), locked(directory):
            remove_confirmations(directory)
            if results_identity(private) is not None:
                remove_reports(directory)
            for folder, _, names in below(private):
                for path in (folder / name for name in names):
                    with open_regular(path, limit=LARGEST_RECORDING) as file:
                        text = TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="")
                        name = path.relative_to(private).as_posix()
                        write_file(directory, name, iter(partial(text.read, _PIECE), ""))
    except OSError as error:
        raise write_error(f"cannot write to {directory}", directory, error) from None
    finally:
        give_to_owner(directory)
