"""The errors that agenteval reports to users, each with its exit status, and the signals that end a run."""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """The kinds of problems. Each has a section in ``docs/troubleshooting.md``, with its value as anchor."""

    AGENT_DEFINITION = "agent-definition"
    AGENT_FAILS = "agent-fails"
    AGENT_MISSING = "no-agent"
    CASE_SELECTION = "no-case"
    FILE = "file-cannot-be-used"
    GITHUB = "github-job"
    GROUND_TRUTH = "nothing-to-check"
    INFRASTRUCTURE = "infrastructure"
    INTERNAL = "internal-error"
    JUDGE = "no-judge"
    MERGE = "merge"
    MISSING_KEY = "missing-key"
    NOT_UNIQUE = "not-unique"
    OPTION = "wrong-option"
    PLUGIN = "package-cannot-be-used"
    REQUIREMENT = "missing-requirement"
    RESULTS = "results-cannot-be-used"
    SUITE_MISSING = "no-suite"
    SYNTAX = "syntax"
    THRESHOLD = "threshold"
    UNKNOWN_KEY = "unknown-key"
    UNKNOWN_NAME = "unknown-name"
    USER_CODE = "code-cannot-be-used"
    VALUE = "wrong-value"
    VARIABLE = "variable"


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file, an option or the environment.

    As one line it is ``file:line: path.to.key: message``; ``core.mistakes`` shows it with its source line.

    Args:
        message: ``problem; fix``; the fix may be several clauses.
        file: the path as messages show it; empty for the command line.
        line: 1-based line, if known.
        path: dotted path of the key inside the file; empty for the file as a whole.
        kind: where the documentation explains it.
        mark: the wrong text in the line; default: the key.
    """

    message: str
    file: str = ""
    line: int | None = None
    path: str = ""
    kind: Kind = Kind.VALUE
    mark: str = field(default="", compare=False)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.path, self.message) if part)

    @property
    def place(self) -> str:
        """The file with the line, if they are known."""
        return f"{self.file}:{self.line}" if self.file and self.line else self.file


class AgentEvalError(Exception):
    """Base of every error that is reported as a message, never as a traceback."""

    exit_status = 3
    #: Whether the error is a defect of agenteval.
    is_defect = False


class InternalError(AgentEvalError):
    """A defect of agenteval."""

    is_defect = True


class ConfigError(AgentEvalError):
    """A suite, configuration file or option is invalid; no case was run (exit status 2).

    Args:
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
    """The user's code cannot be loaded, so no case was run: its import fails or hangs (exit status 3)."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def problems_of(error: AgentEvalError) -> Sequence[Problem]:
    """Return the problems of an error, each at its place if that is known."""
    if isinstance(error, ConfigError | UserCodeError):
        return error.problems
    return (Problem(str(error), kind=Kind.INTERNAL if error.is_defect else Kind.INFRASTRUCTURE),)


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
        limit: the budget with its size, as a few words: ``budget of 50 calls``.
    """

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class ToolRaisedError(AgentError):
    """A tool under test refused with an exception: an error, or the expected refusal."""


#: After this many failures of one kind and no answer, an agent or a judge is not asked again.
MOST_ALIKE = 10


@dataclass
class SameFailure:
    """Finds out that an agent or a judge cannot work at all: its first calls, and no others, fail in one way."""

    is_final: bool = False
    error: str | None = None
    _count: int = 0
    _is_over: bool = False

    @property
    def is_dead(self) -> bool:
        """Whether all calls so far failed in one way."""
        return self.error is not None and self.is_final == self._is_over

    def add(self, error: str | None) -> None:
        """Record the failure of a call; ``None`` for a success."""
        if self._is_over:
            return
        if error is None or (self.error is not None and error != self.error):
            self._is_over = True
            return
        self.error = error
        self._count += 1
        self.is_final = self._is_over = self._count >= MOST_ALIKE


#: The message where the working directory does not exist.
GONE = "the working directory is gone: something removed it"


def write_error(what: str, directory: Path, error: OSError) -> InfrastructureError:
    """Return the error for a failed write.

    Args:
        directory: the directory of the file; a relative one may fail because the working directory was removed.
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
        return ConfigError(Problem("the name of a file or directory is too long", kind=Kind.FILE))
    if isinstance(error, PermissionError) and isinstance(error.filename, str | Path):
        # Before Python 3.14, `Path.is_file` and its relatives raise it in a directory that may not be entered.
        return ConfigError(Problem(f"cannot be used: {error.strerror}", file=str(error.filename), kind=Kind.FILE))
    if _is_gone(Path()):
        return InfrastructureError(GONE)
    return InternalError(f"internal error, please report it: {type(error).__name__}: {error}")


def agent_problem(where: str, message: str, kind: Kind = Kind.AGENT_DEFINITION) -> Problem:
    """Return a problem with the definition of an agent at ``file:line``."""
    file, _, line = where.rpartition(":")
    return Problem(f"agent: {message}", file=file or where, line=int(line) if line.isdigit() else None, kind=kind)


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end a run: that of Ctrl-C, that of ``kill``, and that of a terminal's end.

    ``nohup`` ignores the last one, so that a run continues without its terminal.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return numbers
