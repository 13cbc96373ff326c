"""The errors that users see, each with its exit status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in one file, printed as ``file:line: path.to.key: message``.

    Args:
        message: the mistake, and what is allowed.
        file: the path as messages show it; empty for the command line.
        line: 1-based line, if known.
        path: dotted path of the key inside the file; empty for the file as a whole.
    """

    message: str
    file: str = ""
    line: int | None = None
    path: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return ": ".join(part for part in (place, self.path, self.message) if part)


class AgentEvalError(Exception):
    """Base of every error that is reported as a message, never as a traceback."""

    exit_status = 3


class ConfigError(AgentEvalError):
    """A suite, configuration file or option is wrong; nothing was run (exit status 2).

    Args:
        problems: what is wrong.
        fine: suites without mistakes that were read beside broken ones.
    """

    exit_status = 2

    def __init__(self, problems: Problem | Iterable[Problem], fine: Iterable[str] = ()) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.fine = tuple(fine)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class InfrastructureError(AgentEvalError):
    """Something outside the suite broke: disk, network, a service (exit status 3)."""


class AgentError(AgentEvalError):
    """The agent did not answer: it crashed, timed out or replied with something unreadable."""


class TransientAgentError(AgentError):
    """The agent did not answer, and a retry may succeed.

    Args:
        message: what happened.
        retry_after_s: seconds to wait that the agent asked for.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ToolRaisedError(AgentError):
    """A tool under test raised an exception: an error, or the expected refusal."""


_GONE = "the working directory is gone: something removed it during the run"


def write_error(what: str, directory: Path, error: OSError) -> InfrastructureError:
    """Return the error that users see if something cannot be written.

    Args:
        what: the action, such as ``cannot write to reports``.
        directory: the directory of the file; if it is relative and the working directory is gone, that is the reason.
        error: the error of the operating system.
    """
    return InfrastructureError(_GONE if _is_gone(directory) else f"{what}: {error.strerror}")


def _is_gone(directory: Path) -> bool:
    if directory.is_absolute():
        return False
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def unexpected_error(error: Exception) -> AgentEvalError:
    """Return the error that users see for an unexpected exception."""
    if _is_gone(Path()):
        return InfrastructureError(_GONE)
    return AgentEvalError(f"internal error, please report it: {type(error).__name__}: {error}")


def agent_problem(where: str, message: str) -> Problem:
    """Return a problem with the definition of an agent at ``file:line``."""
    file, _, line = where.rpartition(":")
    return Problem(f"agent: {message}", file=file or where, line=int(line) if line.isdigit() else None)
