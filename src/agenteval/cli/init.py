"""``agenteval init``: writes a suite, a configuration, a workflow and a small agent, and adds to ``.gitignore``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.cli.gitignore import GITIGNORE, missing_patterns, read_gitignore, with_patterns
from agenteval.cli.starter_workflow import SuitePlace, workflow, workflow_name
from agenteval.core.errors import ConfigError, InfrastructureError, Kind, Problem
from agenteval.core.files.writing import make_directory, remove_file, write_bytes, write_new_file
from agenteval.suite.agent_kinds import KINDS, AgentKind
from agenteval.suite.formats.registry import formats

_STARTERS = Path(__file__).parent / "starters"
_AGENT = "agent.py"
_TRACES = "traces"
_WORSEN = "sed -i.bak 's/FORGETFUL = False/FORGETFUL = True/' agent.py"
_BEFORE = "agenteval-report/before"
# What runs leave in the directory.
_IGNORED = ("agenteval-report/", ".agenteval-cache/")
_IGNORED_OF_PYTHON = ("__pycache__/",)


def starter_formats() -> Mapping[str, Path]:
    """List the formats that have a starting point, with the folder of its files."""
    return {item.name: item.starter for item in formats() if item.starter is not None}


def starter_agents() -> Mapping[str, AgentKind]:
    """List the agent kinds that have a starting point."""
    return {kind.name: kind for kind in KINDS if _definition(kind.name).is_file()}


def _definition(agent_kind: str) -> Path:
    return _STARTERS / "agents" / f"{agent_kind}.yaml"


@dataclass(frozen=True)
class NewFile:
    """A file to write.

    Attributes:
        directory: a directory that exists, or that of the starter.
        name: path of the file in it.
    """

    directory: Path
    name: str
    content: bytes

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.directory / self.name


def write_starter(directory: Path, suite_format: str, agent_kind: str) -> Sequence[str]:
    """Write a starter to a directory, and create the directory if it does not exist.

    The workflow is written to the root of the repository. Patterns that are missing in ``.gitignore`` are added.

    Args:
        directory: directory to write to.
        suite_format: one of ``starter_formats``.
        agent_kind: one of ``starter_agents``.

    Returns:
        A line for each written file.

    Raises:
        ConfigError: a file already exists, or no workflow can name the directory; nothing was written.
        InfrastructureError: a file cannot be written; files written before were removed.
    """
    files = starter_files(directory, suite_format, agent_kind)
    _refuse_existing(files)
    written: list[NewFile] = []
    try:
        make_directory(directory)
        for file in files:
            # A file created since the check is not overwritten either.
            write_new_file(file.directory, file.name, file.content)
            written.append(file)
        ignored = _ignore(directory, agent_kind)
    except (OSError, InfrastructureError) as error:
        for file in written:
            remove_file(file.directory, file.name)
        at = files[len(written)].path if len(written) < len(files) else directory / GITIGNORE
        why = f"cannot write {at}: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise InfrastructureError(f"{why}; nothing was written") from None
    return (*(f"wrote {file.path}" for file in files), *ignored)


def starter_files(directory: Path, suite_format: str, agent_kind: str) -> Sequence[NewFile]:
    """Return the files of a starter.

    Args:
        directory: directory of the starter.
        suite_format: one of ``starter_formats``.
        agent_kind: one of ``starter_agents``.

    Raises:
        ConfigError: no workflow can name the directory.
    """
    suite = starter_formats()[suite_format]
    kind = starter_agents()[agent_kind]
    files = {
        **{path.relative_to(suite).as_posix(): path.read_bytes() for path in _files(suite)},
        "agenteval.yaml": (_STARTERS / "settings.yaml").read_bytes() + _definition(agent_kind).read_bytes(),
        **({_AGENT: (_STARTERS / _AGENT).read_bytes()} if kind.is_local else {}),
    }
    place = SuitePlace.of(directory)
    workflow_file = NewFile(_shown_root(directory, place), workflow_name(place), workflow(place))
    return (*(NewFile(directory, name, content) for name, content in files.items()), workflow_file)


def _shown_root(directory: Path, place: SuitePlace) -> Path:
    """Return the root of the repository as its user would write it."""
    if not place.path:
        return directory
    return Path(os.path.relpath(place.root))


def _ignore(directory: Path, agent_kind: str) -> Sequence[str]:
    """Add the missing patterns to ``.gitignore``; return a line about them."""
    place = SuitePlace.of(directory)
    wanted = _IGNORED + (_IGNORED_OF_PYTHON if starter_agents()[agent_kind].is_local else ())
    missing = missing_patterns(wanted, place.directory, place.root)
    if not missing:
        return ()
    write_bytes(directory, GITIGNORE, with_patterns(read_gitignore(directory), missing))
    return (f"added {' '.join(missing)} to {directory / GITIGNORE}",)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def next_steps(directory: Path, suite_format: str, agent_kind: str) -> Sequence[str]:
    """Return the next commands for a starter, one per line, with comments after ``#``."""
    steps = [] if directory.resolve() == Path.cwd() else [f"cd {shlex.quote(str(directory))}"]
    is_local = starter_agents()[agent_kind].is_local
    steps.append(_commit_command(directory) if is_local else "agenteval validate")
    if (starter_formats()[suite_format] / _TRACES).is_dir():
        steps.append(f"agenteval run --traces {_TRACES}   # scores the recorded traces; no agent is called")
    if not is_local:
        return [*steps, "agenteval run   # once agenteval.yaml has the address of your agent"]
    return [
        *steps,
        f"agenteval run --out {_BEFORE}",
        f"{_WORSEN} && agenteval run --baseline {_BEFORE}   # a worse agent: the gate fails, see comment.md",
    ]


def _commit_command(directory: Path) -> str:
    """Return the command that commits a starter: the gate runs the committed agent beside the changed one."""
    place = SuitePlace.of(directory)
    begin = "" if place.is_in_repository else "git init --quiet && "
    root = os.path.relpath(place.root, place.directory)
    above = f" {shlex.quote(f'{root}/{workflow_name(place)}')}" if place.path else ""
    return f"{begin}git add --all .{above} && git commit --quiet --message 'Evaluate the agent'"


def _refuse_existing(files: Sequence[NewFile]) -> None:
    """Check that no file exists already and that every folder can be created.

    Raises:
        ConfigError: with every path that exists already or is not a directory.
    """
    existing = [file.path for file in files if os.path.lexists(file.path)]
    if existing:
        listed = ", ".join(map(str, existing))
        verb = "exists" if len(existing) == 1 else "exist"
        fix = "nothing was written; name another directory: agenteval init DIRECTORY"
        raise ConfigError(Problem(f"{listed} {verb} already; {fix}", kind=Kind.FILE))
    folders = dict.fromkeys(folder for file in files for folder in reversed(file.path.parents))
    blocked = [str(folder) for folder in folders if _blocks_directory(folder)]
    if blocked:
        raise ConfigError(Problem(f"not a directory: {', '.join(blocked)}; nothing was written", kind=Kind.FILE))


def _blocks_directory(path: Path) -> bool:
    """Return whether the path exists and is not a directory; a broken link counts, a link to a directory does not."""
    try:
        return os.path.lexists(path) and not path.is_dir()
    except OSError:
        return True
