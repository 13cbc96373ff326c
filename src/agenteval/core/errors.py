"""The errors that agenteval reports to users, each with its exit status."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file, printed as ``file:line: path.to.key: message``.

    Args:
        message: the mistake, and the allowed values or the fix.
        file: the path as messages show it; empty for the command line.
        line: 1-based line, if known.
        path: dotted path of the key inside the file; empty for the file as a whole.
    """

    message: str
    file: str = ""
    line: int | None = None
    path: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.path, self.message) if part)

    @property
    def place(self) -> str:
        """The file with the line, if they are known."""
        return f"{self.file}:{self.line}" if self.file and self.line else self.file


# Places that a joined problem lists.
_MOST_PLACES = 5
_INDEX = re.compile(r"\[\d+\]")


def joined(problems: Iterable[Problem]) -> list[Problem]:
    """Return each mistake once: one that is in several files has the first place, and lists the others."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in dict.fromkeys(problems):
        groups.setdefault((problem.message, _INDEX.sub("[]", problem.path)), []).append(problem)
    found: list[Problem] = []
    for group in groups.values():
        first, *others = group
        if len({problem.file for problem in group}) == 1:
            found += group
        else:
            found.append(replace(first, message=f"{first.message}{_elsewhere(first.message, others)}"))
    return found


def _elsewhere(message: str, others: Sequence[Problem]) -> str:
    places = [problem.place for problem in others]
    more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    noun = "place" if len(places) == 1 else "places"
    # A message of several lines ends with an example.
    start = "\n  " if "\n" in message else "; "
    return f"{start}the same in {len(places)} other {noun}: {', '.join(places[:_MOST_PLACES])}{more}"


class AgentEvalError(Exception):
    """Base of every error that is reported as a message, never as a traceback."""

    exit_status = 3


class ConfigError(AgentEvalError):
    """A suite, configuration file or option is invalid; no case was run (exit status 2).

    Args:
        problems: the mistakes.
        fine: paths of the valid suites, if other suites of the same command are invalid.
    """

    exit_status = 2

    def __init__(self, problems: Problem | Iterable[Problem], fine: Iterable[str] = ()) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.fine = tuple(fine)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class InfrastructureError(AgentEvalError):
    """Something outside the suite failed: disk, network, a service (exit status 3)."""


class UserCodeError(InfrastructureError):
    """The user's code cannot be loaded, so no case was run: its import fails or hangs (exit status 3).

    Args:
        problems: the failures, at the definitions that name the code.
    """

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def problems_of(error: AgentEvalError) -> Sequence[Problem]:
    """Return the problems of an error, each at its place if that is known."""
    return error.problems if isinstance(error, ConfigError | UserCodeError) else (Problem(str(error)),)


def raise_failures(failures: Sequence[ConfigError | UserCodeError]) -> None:
    """Raise the failures of several checks, if there are any, as one error.

    Raises:
        ConfigError: one of the failures is a wrong definition; the error contains the problems of all.
        UserCodeError: the definitions are correct, but the user's code cannot be loaded.
    """
    problems = [problem for failure in failures for problem in failure.problems]
    if any(isinstance(failure, ConfigError) for failure in failures):
        raise ConfigError(problems)
    if problems:
        raise UserCodeError(problems)


class AgentError(AgentEvalError):
    """The agent did not answer: it crashed, timed out or sent an unreadable reply."""


class TransientAgentError(AgentError):
    """The agent did not answer, and a retry may succeed.

    Args:
        message: the failure.
        retry_after_s: the wait that the agent requested, in seconds.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AgentImportError(AgentError):
    """The import of the user's code failed during a call."""


class AgentNotAskedError(AgentError):
    """The budget of the run did not allow a call that the agent's answer needs.

    Args:
        message: the failure.
        limit: the budget with its size, as a few words: ``budget of 50 calls``.
    """

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class ToolRaisedError(AgentError):
    """A tool under test refused with an exception: an error, or the expected refusal."""


#: The message where the working directory does not exist.
GONE = "the working directory is gone: something removed it"


def write_error(what: str, directory: Path, error: OSError) -> InfrastructureError:
    """Return the error for a failed write.

    Args:
        what: the action, such as ``cannot write to reports``.
        directory: the directory of the file; a relative one may fail because the working directory was removed.
        error: the error of the operating system.
    """
    return InfrastructureError(GONE if _is_gone(directory) else f"{what}: {error.strerror}")


def _is_gone(directory: Path) -> bool:
    if directory.is_absolute():
        return False
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def unexpected_error(error: Exception) -> AgentEvalError:
    """Return the error for an unexpected exception."""
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return ConfigError(Problem("the name of a file or directory is too long"))
    if _is_gone(Path()):
        return InfrastructureError(GONE)
    return AgentEvalError(f"internal error, please report it: {type(error).__name__}: {error}")


def agent_problem(where: str, message: str) -> Problem:
    """Return a problem with the definition of an agent at ``file:line``."""
    file, _, line = where.rpartition(":")
    return Problem(f"agent: {message}", file=file or where, line=int(line) if line.isdigit() else None)
