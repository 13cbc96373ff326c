"""The user and resource limits that user code (agents, tools, graders, setup) runs under."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from agenteval.core.process.process_groups import new_mark
from agenteval.core.secrets import is_secret_name

# Not the job's PATH: these programs run with root's rights.
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# Like `LD_*`, these load code into a program; setuid programs ignore them (glibc, sysdeps/generic/unsecvars.h).
_LOADER = frozenset(
    {"GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "LOCPATH", "MALLOC_TRACE", "NLSPATH", "RES_OPTIONS", "TZDIR"}
)

# The soft limit of processor time sends SIGXCPU, which messages can name; the hard limit sends SIGKILL.
_LIMITS = (
    'if [ -n "$1" ]; then ulimit -d "$1"; fi; if [ -n "$2" ]; then ulimit -St "$2"; ulimit -Ht $(($2 + 1)); fi; '
    'shift 2; exec "$@"'
)


@dataclass(frozen=True)
class Owner:
    """The user and group that user code runs as."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Confinement:
    """The rights, variables and limits of user code.

    Attributes:
        owner: the user it runs as; ``None`` for the current one.
        pass_env: patterns of the secret-like variables that it receives; ``None`` passes all but the runner's.
        variables: further environment variables, such as those of a virtual environment.
        memory_mb: limit of data per process in MB (10^6 bytes); the kernel's ``RLIMIT_DATA``.
        cpu_s: limit of processor time per process in seconds.
    """

    owner: Owner | None = None
    pass_env: tuple[str, ...] | None = None
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    memory_mb: int | None = None
    cpu_s: int | None = None


@dataclass(frozen=True)
class Launch:
    """The command line and environment of a confined program.

    Attributes:
        argv: the program with its arguments, after the programs that drop the rights.
        environment: the environment variables.
        mark: the supplementary group of all its descendants; ``None`` without an owner.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    mark: int | None = None


_IN_FORCE: ContextVar[Confinement] = ContextVar("confinement", default=Confinement())  # noqa: B039 - it is frozen


def confinement() -> Confinement:
    """Return the confinement in force."""
    return _IN_FORCE.get()


@contextmanager
def confined(**changes: Any) -> Iterator[None]:
    """Change the confinement in force within the block.

    Args:
        **changes: fields of :class:`Confinement`.
    """
    token = _IN_FORCE.set(replace(_IN_FORCE.get(), **changes))
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def launch(argv: Sequence[str], environment: Mapping[str, str]) -> Launch:
    """Return how to start user code under the confinement in force.

    Args:
        argv: the program's path and its arguments.
        environment: all of its variables.

    Raises:
        OSError: the program that drops root's rights is not installed.
    """
    rules = confinement()
    argv = (*_limits(rules), *argv)
    if rules.owner is None:
        return Launch(argv, environment)
    # Variables that make the loader run code are set after the rights are dropped.
    late = {name: value for name, value in environment.items() if name in _LOADER or name.startswith("LD_")}
    rest = {name: value for name, value in environment.items() if name not in late}
    if late:
        argv = (_system_program("env"), *(f"{name}={value}" for name, value in late.items()), *argv)
    mark = new_mark()
    return Launch((*_as_owner(rules.owner, mark), *argv), rest, mark)


def _as_owner(owner: Owner, mark: int) -> tuple[str, ...]:
    ids = ("--reuid", str(owner.uid), "--regid", str(owner.gid), "--groups", str(mark))
    return (_system_program("setpriv"), *ids, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--")


def _limits(rules: Confinement) -> tuple[str, ...]:
    if rules.memory_mb is None and rules.cpu_s is None:
        return ()
    kibibytes = "" if rules.memory_mb is None else str(rules.memory_mb * 10**6 // 1024)
    return ("/bin/sh", "-euc", _LIMITS, "sh", kibibytes, "" if rules.cpu_s is None else str(rules.cpu_s))


def _system_program(name: str) -> str:
    program = shutil.which(name, path=_SYSTEM_PATH)
    if program is None:
        raise FileNotFoundError(f"{name} is not installed; it drops root's rights before user code runs")
    return program


# Inputs and state of the action; services of the runner, such as OpenID Connect.
_PREFIXES = ("INPUT_", "STATE_", "ACTIONS_")

_NAMES = frozenset(
    {
        *("GITHUB_TOKEN", "GH_TOKEN"),
        # Files by which a step sends commands to the runner.
        *("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
    }
)

# In the action these come from the job and name files of the host, not of the container.
_JOB_PATHS = frozenset({"PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD"})


def user_environment(
    extra: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a process that runs user code.

    The action's tokens and inputs are removed, so that an agent under test cannot act as the workflow. With
    ``pass_env``, secret-like variables that it does not name are removed too.

    Args:
        extra: variables of the agent's definition; they replace others.
        environment: the variables to start from; by default those of this process.
    """
    source = os.environ if environment is None else environment
    hidden = _NAMES | (_JOB_PATHS if source.get("GITHUB_ACTIONS") == "true" else frozenset())
    kept = {name: value for name, value in source.items() if name not in hidden and not name.startswith(_PREFIXES)}
    rules = confinement()
    if rules.pass_env is not None:
        kept = {name: value for name, value in kept.items() if _may_pass(name, rules.pass_env)}
    return {**kept, **rules.variables, **(extra or {})}


def is_private(name: str) -> bool:
    """Return whether a variable belongs to the runner or may contain a secret."""
    return name in _NAMES or name.startswith(_PREFIXES) or is_secret_name(name)


def _may_pass(name: str, patterns: tuple[str, ...]) -> bool:
    return not is_secret_name(name) or any(fnmatchcase(name, pattern) for pattern in patterns)
