"""Starts programs of users: with which variables, as which user, within which limits, and what they may enter."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

from agenteval.core.errors import UserCodeError, agent_problem
from agenteval.core.files import Owner
from agenteval.core.process_groups import end_user
from agenteval.core.records import dataclass, field, replace
from agenteval.core.runtime import is_in_image
from agenteval.core.secrets import is_own_name, is_passed, is_runner_name, is_secret_name

#: The most that agenteval reads from a program as one line or reply, in bytes.
MOST_BYTES = 64 * 2**20

#: What a program with a longer line or reply did, for messages.
WROTE_TOO_MUCH = f"wrote more than {MOST_BYTES // 2**20} MiB"


class Lines:
    """Divides an output into lines, however it is divided into pieces.

    Args:
        on_excess: is called once if a line is longer than :data:`MOST_BYTES`; the rest of the output is discarded.
    """

    def __init__(self, on_line: Callable[[bytes], None], on_excess: Callable[[], None]) -> None:
        self._on_line = on_line
        self._on_excess = on_excess
        self._line = bytearray()
        self._is_discarding = False

    def add(self, data: bytes) -> None:
        """Add the next piece."""
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._extend(piece)
            if self._is_discarding:
                return
            self._on_line(bytes(self._line))
            self._line.clear()
        self._extend(rest)

    def _extend(self, piece: bytes) -> None:
        if self._is_discarding:
            return
        self._line += piece
        if len(self._line) > MOST_BYTES:
            self._is_discarding = True
            self._line.clear()
            self._on_excess()


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
class Apart:
    """A directory whose programs run as a separate user, so that no other user code can change its files.

    Attributes:
        variables: environment variables of the programs, which replace all others.
    """

    directory: Path
    owner: Owner
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class UserCodeRules:
    """The variables and resource limits of user code that a configuration sets.

    Attributes:
        pass_env: names and patterns of the variables that it receives in a CI run, besides those of all programs.
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
        variables: additional environment variables, such as those of a virtual environment.
    """

    owner: Owner | None = None
    apart: Apart | None = None
    pass_env: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    memory_mb: int | None = None
    cpu_s: int | None = None


@dataclass(frozen=True)
class Launch:
    """The command line and environment of a confined program.

    Attributes:
        argv: the program with its arguments, after the programs that drop root's rights.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)


_IN_FORCE: ContextVar[Confinement] = ContextVar("confinement", default=Confinement())  # noqa: B039 - it is frozen


def confinement() -> Confinement:
    """Return the current confinement."""
    return _IN_FORCE.get()


@contextmanager
def confined(**changes: Any) -> Iterator[None]:
    """Change the current confinement within the block."""
    token = _IN_FORCE.set(replace(_IN_FORCE.get(), **changes))
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def under_rules(rules: UserCodeRules) -> AbstractContextManager[None]:
    """Apply the rules of a configuration within the block."""
    now = _IN_FORCE.get()
    if (now.pass_env, now.memory_mb, now.cpu_s) == (rules.pass_env, rules.memory_mb, rules.cpu_s):
        return nullcontext()
    return confined(pass_env=rules.pass_env, memory_mb=rules.memory_mb, cpu_s=rules.cpu_s)


def owner_in(directory: Path) -> Owner | None:
    """Return the user that programs with a working directory run as; ``None`` for the current user."""
    apart = _apart_in(directory)
    return _IN_FORCE.get().owner if apart is None else apart.owner


def launch(argv: Sequence[str], environment: Mapping[str, str], directory: str | Path) -> Launch:
    """Return how to start user code under the current confinement."""
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
    return Launch((*_as_owner(owner.uid, owner.gid), *argv), rest)


def end_user_code(uid: int) -> bool:
    """End everything that runs as a user, and return whether all has ended; only for a container."""
    return end_user(uid, _as_owner(uid, uid))


def _apart_in(directory: Path) -> Apart | None:
    apart = _IN_FORCE.get().apart
    # Not resolved: with a link to this directory, the agent under test would become its user.
    absolute = Path(os.path.abspath(directory))  # noqa: PTH100
    return apart if apart is not None and absolute.is_relative_to(apart.directory) else None


def _as_owner(uid: int, gid: int) -> tuple[str, ...]:
    ids = ("--reuid", str(uid), "--regid", str(gid), "--clear-groups")
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


_MOST_NAMED = 5

# In the image these variables come from the job and refer to files of the host, not of the container.
_JOB_PATHS = frozenset({"PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD"})


def user_environment(
    extra: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a process that runs user code.

    In a CI run, these are the variables that programs need, and those that the configuration names: an agent under
    test cannot act as the workflow. On a person's machine, these are all.

    extra: variables of the agent's definition; they replace variables of the same name.
    environment: the variables to start from; by default those of this process.
    """
    source = os.environ if environment is None else environment
    hidden = _JOB_PATHS if is_in_image(source) else frozenset[str]()
    rules = confinement()
    kept = {name: text for name, text in source.items() if name not in hidden and is_passed(name, rules.pass_env)}
    return {**kept, **rules.variables, **(extra or {})}


def withheld_hint(config: str = "agenteval.yaml") -> str:
    """Return a sentence that names the variables that user code did not receive; empty without such variables."""
    passed = confinement().pass_env
    missed = (name for name, text in os.environ.items() if text and not is_passed(name, passed))
    found = [name for name in missed if not (is_runner_name(name) or is_own_name(name) or name == "GH_TOKEN")]
    if not found:
        return ""
    # What is missing is more often a key than a setting.
    names = sorted(found, key=lambda name: (not is_secret_name(name), name))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    shown = f"{', '.join(names[:_MOST_NAMED])}{more}"
    return f"not passed to agents, tools and graders: {shown}; list what they need in `pass_env` of {config}"


_PIECE = 2**16


def run_confined(
    argv: Sequence[str],
    directory: Path,
    timeout_s: float,
    errors: str = "strict",
    stdin: IO[bytes] | int = subprocess.DEVNULL,
) -> subprocess.CompletedProcess[str]:
    """Run a program as the user of user code, and return its output as text; see ``run_confined_bytes``.

    Args:
        errors: the handling of output that is not UTF-8, as in ``bytes.decode``.
    """
    done = run_confined_bytes(argv, directory, timeout_s, stdin)
    output, said = (
        text.decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n") for text in (done.stdout, done.stderr)
    )
    return subprocess.CompletedProcess(done.args, done.returncode, output, said)


def run_confined_bytes(
    argv: Sequence[str],
    directory: Path,
    timeout_s: float,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program as the user of user code, without its resource limits.

    A repository's configuration can make git run programs; they must not have more rights than the agent.

    Args:
        timeout_s: time limit in seconds; the program is killed at the limit.
        stdin: the standard input, an open file; by default empty.
        environment: all environment variables; by default those of user code.

    Raises:
        OSError: the program cannot be started, or writes too much.
        subprocess.TimeoutExpired: the program exceeded the time limit.
    """
    with confined(memory_mb=None, cpu_s=None):
        started = launch(argv, user_environment() if environment is None else environment, directory)
    process = subprocess.Popen(
        started.argv,
        cwd=directory,
        env=dict(started.environment),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    output, said = _outputs(process, timeout_s)
    if len(output) > MOST_BYTES or len(said) > MOST_BYTES:
        raise OSError(f"{Path(argv[0]).name} {WROTE_TOO_MUCH}")
    return subprocess.CompletedProcess(started.argv, process.returncode, output, said)


def _outputs(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bytes]:
    """Return what a program writes until it ends, its errors apart; the beginning if it writes too much."""
    output, said = bytearray(), bytearray()
    # A descendant can keep the pipes open for ever.
    threads = [
        threading.Thread(target=_read, args=(process, pipe, into), daemon=True)
        for pipe, into in ((process.stdout, output), (process.stderr, said))
    ]
    end = time.monotonic() + timeout_s
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            raise subprocess.TimeoutExpired(process.args, timeout_s)
        process.wait(max(0.0, end - time.monotonic()))
        return bytes(output), bytes(said)
    finally:
        _kill_group(process)
        process.wait()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _read(process: subprocess.Popen[bytes], pipe: IO[bytes], into: bytearray) -> None:
    with pipe:
        while len(into) <= MOST_BYTES and (piece := pipe.read(_PIECE)):
            into += piece
    if len(into) > MOST_BYTES:
        _kill_group(process)


_ENTERS, _EXECUTES = 41, 42
_SCRIPT = f'[ -x "$1" ] || exit {_ENTERS}; [ -x "$2" ] || exit {_EXECUTES}'
_TIMEOUT_S = 10.0


def check_access(program: str, directory: str, where: str) -> None:
    """Check that the user of user code can start a program in a directory."""
    owner = owner_in(Path(directory))
    refused = _refused_to_this_user(program, directory) if owner is None else _refused(program, directory)
    if not refused:
        return
    user = f"user {os.geteuid() if owner is None else owner.uid}"
    if refused == _ENTERS:
        advice = "give the user the right to enter it and the directories above it (chmod a+x)"
        raise UserCodeError(agent_problem(where, f"{user} cannot enter {directory}; {advice}"))
    advice = "give the user the right to execute it and to enter the directories above it (chmod a+x)"
    raise UserCodeError(agent_problem(where, f"{user} cannot execute {program}; {advice}, or name another program"))


def _refused_to_this_user(program: str, directory: str) -> int:
    if not os.access(directory, os.X_OK):
        return _ENTERS
    return 0 if os.access(program, os.X_OK) else _EXECUTES


def _refused(program: str, directory: str) -> int:
    argv = ("/bin/sh", "-c", _SCRIPT, "sh", directory, program)
    try:
        return run_confined(argv, Path(directory), _TIMEOUT_S, errors="replace").returncode
    except (OSError, subprocess.TimeoutExpired):
        # The start of the program will report the error.
        return 0
