"""The user and resource limits that user code (agents, tools, graders, setup) runs under."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agenteval.core.authentic import CACHE_KEY
from agenteval.core.image import is_in_image
from agenteval.core.process.process_groups import new_mark
from agenteval.core.secrets import is_reserved_name, is_secret, is_secret_name

# Not the job's PATH, because these programs run as root.
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
class Apart:
    """A directory whose programs run as a separate user, so that no other user code can change its files.

    Attributes:
        directory: the directory, without links.
        owner: the user.
        variables: environment variables of the programs, which replace all others.
    """

    directory: Path
    owner: Owner
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class UserCodeRules:
    """The variables and resource limits of user code that a configuration sets.

    Attributes:
        pass_env: patterns of the secret-like variables that it receives.
        memory_mb: limit of data per process in MB (10^6 bytes); ``None`` is no limit.
        cpu_s: limit of processor time per process in seconds; ``None`` is no limit.
    """

    pass_env: tuple[str, ...] = ()
    memory_mb: int | None = None
    cpu_s: int | None = None


@dataclass(frozen=True)
class Confinement:
    """The user, variables and limits of user code.

    Attributes:
        owner: the user that it runs as; ``None`` for the current user.
        apart: a directory whose programs run as another user; used with ``owner`` only.
        pass_env: patterns of the secret-like variables that it receives; ``None`` passes all except the runner's.
        variables: additional environment variables, such as those of a virtual environment.
        memory_mb: limit of data per process in MB (10^6 bytes); the kernel's ``RLIMIT_DATA``.
        cpu_s: limit of processor time per process in seconds.
    """

    owner: Owner | None = None
    apart: Apart | None = None
    pass_env: tuple[str, ...] | None = None
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    memory_mb: int | None = None
    cpu_s: int | None = None


@dataclass(frozen=True)
class Launch:
    """The command line and environment of a confined program.

    Attributes:
        argv: the program with its arguments, after the programs that drop root's rights.
        environment: the environment variables.
        mark: the supplementary group of all its descendants; ``None`` without an owner.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    mark: int | None = None


_IN_FORCE: ContextVar[Confinement] = ContextVar("confinement", default=Confinement())  # noqa: B039 - it is frozen


def confinement() -> Confinement:
    """Return the current confinement."""
    return _IN_FORCE.get()


@contextmanager
def confined(**changes: Any) -> Iterator[None]:
    """Change the current confinement within the block.

    Args:
        **changes: fields of :class:`Confinement`.
    """
    token = _IN_FORCE.set(replace(_IN_FORCE.get(), **changes))
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def under_rules(rules: UserCodeRules) -> AbstractContextManager[None]:
    """Apply the rules of a configuration within the block."""
    return confined(pass_env=rules.pass_env, memory_mb=rules.memory_mb, cpu_s=rules.cpu_s)


def owner_in(directory: Path) -> Owner | None:
    """Return the user that programs with a working directory run as; ``None`` for the current user."""
    apart = _apart_in(directory)
    return _IN_FORCE.get().owner if apart is None else apart.owner


def launch(argv: Sequence[str], environment: Mapping[str, str], directory: str | Path) -> Launch:
    """Return how to start user code under the current confinement.

    Args:
        argv: the program's path and its arguments.
        environment: all of its environment variables.
        directory: its working directory.

    Raises:
        OSError: the program that drops root's rights is not installed, or too many programs are running.
    """
    rules, apart = confinement(), _apart_in(Path(directory))
    owner = rules.owner if apart is None else apart.owner
    argv = (*_limits(rules), *argv)
    if owner is None:
        return Launch(argv, environment)
    environment = environment if apart is None else {**environment, **apart.variables}
    # Variables that make the loader run code are set only after the rights are dropped.
    late = {name: value for name, value in environment.items() if name in _LOADER or name.startswith("LD_")}
    rest = {name: value for name, value in environment.items() if name not in late}
    if late:
        argv = (_system_program("env"), *(f"{name}={value}" for name, value in late.items()), *argv)
    setpriv = _system_program("setpriv")
    mark = new_mark()
    return Launch((setpriv, *_as_owner(owner, mark), *argv), rest, mark)


def _apart_in(directory: Path) -> Apart | None:
    apart = _IN_FORCE.get().apart
    # Not resolved: with a link to this directory, the agent under test would become its user.
    absolute = Path(os.path.abspath(directory))  # noqa: PTH100
    return apart if apart is not None and absolute.is_relative_to(apart.directory) else None


def _as_owner(owner: Owner, mark: int) -> tuple[str, ...]:
    ids = ("--reuid", str(owner.uid), "--regid", str(owner.gid), "--groups", str(mark))
    return (*ids, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--")


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


# A process with the key of the caches can write entries that are believed.
_TOKENS = frozenset({"GITHUB_TOKEN", "GH_TOKEN", CACHE_KEY})

# Settings of git in variables: GIT_CONFIG_COUNT, GIT_CONFIG_KEY_0, GIT_CONFIG_VALUE_0.
_GIT_SETTING = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")

_MOST_NAMED = 10

# In the image these variables come from the job and refer to files of the host, not of the container.
_JOB_PATHS = frozenset({"PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD"})


def user_environment(
    extra: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a process that runs user code.

    The action's tokens and inputs are removed, so that an agent under test cannot act as the workflow. With
    ``pass_env``, secret-like variables that it does not name are removed too.

    extra: variables of the agent's definition; they replace variables of the same name.
    environment: the variables to start from; by default those of this process.
    """
    source = os.environ if environment is None else environment
    hidden = _TOKENS | (_JOB_PATHS if is_in_image(source) else frozenset())
    kept = {name: value for name, value in source.items() if name not in hidden and not is_reserved_name(name)}
    rules = confinement()
    if rules.pass_env is not None:
        secrets = set(withheld(kept))
        kept = {name: value for name, value in kept.items() if name not in secrets}
    return {**kept, **rules.variables, **(extra or {})}


def is_private(name: str) -> bool:
    """Return whether a variable belongs to the runner or may contain a secret."""
    return name in _TOKENS or is_reserved_name(name) or is_secret_name(name)


def withheld(environment: Mapping[str, str]) -> list[str]:
    """Return the names of the secret-like variables that user code does not receive, in order."""
    patterns = confinement().pass_env
    if patterns is None:
        return []
    names = {
        name
        for name, value in environment.items()
        if is_secret(name, value) and not any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    if any(name.startswith(_GIT_SETTING) for name in names):
        # git refuses to start if a setting that it was told the number of is missing.
        names |= {name for name in environment if name.startswith(_GIT_SETTING)}
    return sorted(names)


def withheld_hint(config: str = "agenteval.yaml") -> str:
    """Return a sentence that names the variables that user code did not receive; empty without such variables.

    Args:
        config: the configuration that can pass them.
    """
    missed = (name for name in withheld(os.environ) if name not in _TOKENS and not is_reserved_name(name))
    names = [name for name in missed if os.environ[name]]
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    shown = f"{', '.join(names[:_MOST_NAMED])}{more}"
    return f"not passed to agents, tools and graders: {shown}; list what they need in `pass_env` of {config}"
