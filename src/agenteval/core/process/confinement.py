"""As whom and within which limits users' code runs: agents, tools, graders, and what installs for them."""

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

# Not the PATH of the job: these run before the rights are given up.
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# These load foreign code into a program; setuid ones ignore them (glibc, sysdeps/generic/unsecvars.h), and `LD_*`.
_LOADER = frozenset(
    {"GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "LOCPATH", "MALLOC_TRACE", "NLSPATH", "RES_OPTIONS", "TZDIR"}
)

# A soft limit of processor time ends a program with a signal of its own name, the hard one with any kill.
_LIMITS = (
    'if [ -n "$1" ]; then ulimit -d "$1"; fi; if [ -n "$2" ]; then ulimit -St "$2"; ulimit -Ht $(($2 + 1)); fi; '
    'shift 2; exec "$@"'
)


@dataclass(frozen=True)
class Owner:
    """Whom users' code runs as."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Confinement:
    """What users' code gets.

    Attributes:
        owner: whom it runs as; ``None`` where agenteval has no rights to give up.
        pass_env: patterns of the secret-looking variables that reach it; ``None`` passes all but the runner's.
        variables: what its environment has besides, as a virtual environment of its own.
        memory_mb: data that one process may have, in MB (10^6 bytes); the kernel's ``RLIMIT_DATA``.
        cpu_s: seconds of processor time that one process may use.
    """

    owner: Owner | None = None
    pass_env: tuple[str, ...] | None = None
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    memory_mb: int | None = None
    cpu_s: int | None = None


@dataclass(frozen=True)
class Launch:
    """How a program is started.

    Attributes:
        argv: its arguments, behind what takes the rights away.
        environment: its variables.
        mark: the group by which everything that it starts is found again; ``None`` without an owner.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    mark: int | None = None


_IN_FORCE: ContextVar[Confinement] = ContextVar("confinement", default=Confinement())  # noqa: B039 - it is frozen


def confinement() -> Confinement:
    """What is in force here."""
    return _IN_FORCE.get()


@contextmanager
def confined(**changes: Any) -> Iterator[None]:
    """Puts a changed confinement in force for the length of the block.

    Args:
        **changes: fields of :class:`Confinement`.
    """
    token = _IN_FORCE.set(replace(_IN_FORCE.get(), **changes))
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def launch(argv: Sequence[str], environment: Mapping[str, str]) -> Launch:
    """How users' code is started under the confinement in force.

    Args:
        argv: the program, found already, and its arguments.
        environment: all of its variables.

    Raises:
        OSError: the program that gives up the rights of root is not there.
    """
    rules = confinement()
    argv = (*_limits(rules), *argv)
    if rules.owner is None:
        return Launch(argv, environment)
    # Variables that make the loader run foreign code come back when there are no rights left.
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
        raise FileNotFoundError(f"{name}, which takes the rights of root from users' code, is not on this machine")
    return program


# Inputs and state of the action; the runner's own services, OpenID Connect among them.
_PREFIXES = ("INPUT_", "STATE_", "ACTIONS_")

_NAMES = frozenset(
    {
        *("GITHUB_TOKEN", "GH_TOKEN"),
        # The files by which a step talks to the runner.
        *("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
    }
)

# Inside the action these come from the job and point at the host's files, not the container's.
_JOB_PATHS = frozenset({"PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD"})


def user_environment(
    extra: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables for a process that runs users' code.

    Tokens and inputs of the action are left out, so that an agent under test cannot act as the workflow; where
    ``pass_env`` says which secrets reach users' code, the others are, too.

    Args:
        extra: variables that the agent's definition adds; they win.
        environment: what to start from; the process environment if not given.
    """
    source = os.environ if environment is None else environment
    hidden = _NAMES | (_JOB_PATHS if source.get("GITHUB_ACTIONS") == "true" else frozenset())
    kept = {name: value for name, value in source.items() if name not in hidden and not name.startswith(_PREFIXES)}
    rules = confinement()
    if rules.pass_env is not None:
        kept = {name: value for name, value in kept.items() if _may_pass(name, rules.pass_env)}
    return {**kept, **rules.variables, **(extra or {})}


def is_private(name: str) -> bool:
    """Whether a variable is the runner's own, or may hold a secret."""
    return name in _NAMES or name.startswith(_PREFIXES) or is_secret_name(name)


def _may_pass(name: str, patterns: tuple[str, ...]) -> bool:
    return not is_secret_name(name) or any(fnmatchcase(name, pattern) for pattern in patterns)
