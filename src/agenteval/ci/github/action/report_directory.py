"""Keeps the report directory out of reach of user code while the action runs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path

from agenteval.ci.github.action.inputs import given_text
from agenteval.ci.github.action.workspace import check_that_user_code_ended, owner_of
from agenteval.core.errors import AgentEvalError, ConfigError, InfrastructureError, Kind, Problem, write_error
from agenteval.core.files.boundary import FileOwner, also_inside, boundary, bounded, outside_problem
from agenteval.core.files.lock import locked
from agenteval.core.files.reading import LARGEST_RECORDING, below, noting_reads, open_regular
from agenteval.core.files.safe_directory import safe_directory
from agenteval.core.files.writing import give_to_owner, make_directory, write_file
from agenteval.core.paths import real_path
from agenteval.core.process.interrupt import finished_first
from agenteval.report.earlier import remove_reports, report_files, results_identity
from agenteval.run.journal.journal import remove_confirmations
from agenteval.run.outcome import refuse_files

_PIECE = 1 << 20
# Inputs of the action that name files.
_PATHS = ("suite", "config", "baseline", "comment-template", "summary-template")


@contextmanager
def within_workspace(environment: Mapping[str, str]) -> Iterator[None]:
    """Limit all file access inside the block to the workspace and the runner's temporary directory.

    Args:
        environment: environment variables of the container, as the runner set them.
    """
    named = [environment.get(name) for name in ("GITHUB_WORKSPACE", "RUNNER_TEMP")]
    workspace = environment.get("GITHUB_WORKSPACE", "")
    owner = None
    if owner_of(workspace) is not None:
        found = Path(workspace).stat()
        owner = FileOwner(found.st_uid, found.st_gid)
    with bounded([Path(name) for name in named if name], owner):
        yield


def check_report_directory(directory: Path) -> None:
    """Check that a report directory is inside the workspace, and that no part of its path is a file.

    Raises:
        ConfigError: it is outside, or a file.
    """
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
    has_inputs = mode in {"gate", "publish"} or any(path.is_relative_to(real_path(directory)) for path in named)
    # The checkout itself has files of the same names.
    is_checkout = real_path(directory) == workspace
    return directory if is_inside and not has_inputs and not is_checkout else None


@contextmanager
def without_earlier_reports(directory: Path | None, environment: Mapping[str, str]) -> Iterator[None]:
    """Remove the reports of an earlier run if the block fails before a run replaces them.

    Steps that follow a failed step would take them for its reports: a self-hosted runner keeps its workspace.

    Args:
        directory: the report directory; ``None`` to do nothing.
        environment: environment variables of the container, as the runner set them.
    """
    earlier = None if directory is None else results_identity(directory)
    with noting_reads() as opened:
        try:
            yield
        except BaseException as error:
            if directory is not None and earlier is not None and results_identity(directory) == earlier:
                # The error of the run is the one to report.
                with contextlib.suppress(AgentEvalError, OSError), within_workspace(environment):
                    read = opened.intersection(real_path(path) for path in report_files(directory))
                    # An input among the files stays: it may be the mistake, unless the infrastructure failed.
                    if not read or isinstance(error, InfrastructureError):
                        remove_reports(directory)
            raise


@contextmanager
def out_of_reach(directory: Path) -> Iterator[Path]:
    """Yield the directory to write reports to while user code runs.

    If user code runs as another user, this is a directory that only root can enter. Its files are written to the
    report directory at the end of the block, when all user code has ended.

    Args:
        directory: the report directory.

    Raises:
        InfrastructureError: the report directory cannot be written, or is refused, or user code does not end.
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
            check_that_user_code_ended()
            _hand_over(private, directory)


def _hand_over(private: Path, directory: Path) -> None:
    """Write all files of a directory to another one, and give that to the owner of the workspace.

    Raises:
        InfrastructureError: a file cannot be written, for instance because the disk is full.
    """
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
