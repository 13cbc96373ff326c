"""``agenteval init``: writes a suite, a configuration, a workflow and a small agent."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from agenteval.core.errors import ConfigError, InfrastructureError, Problem
from agenteval.core.files.writing import make_directory, remove_file, write_new_file
from agenteval.suite.agent_kinds import KINDS, AgentKind
from agenteval.suite.formats.registry import formats

_STARTERS = Path(__file__).parent / "starters"
_AGENT = "agent.py"
_TRACES = "traces"
_WORSEN = "sed -i.bak 's/FORGETFUL = False/FORGETFUL = True/' agent.py"
_WORKFLOW = ".github/workflows/agenteval.yml"


def starter_formats() -> Mapping[str, Path]:
    """List the formats that have a starting point, with the folder of its files."""
    return {item.name: item.starter for item in formats() if item.starter is not None}


def starter_agents() -> Mapping[str, AgentKind]:
    """List the agent kinds that have a starting point."""
    return {kind.name: kind for kind in KINDS if _definition(kind.name).is_file()}


def _definition(agent_kind: str) -> Path:
    return _STARTERS / "agents" / f"{agent_kind}.yaml"


def write_starter(directory: Path, suite_format: str, agent_kind: str) -> Sequence[str]:
    """Write a starter to a directory, and create the directory if it does not exist.

    Args:
        directory: directory to write to.
        suite_format: one of ``starter_formats``.
        agent_kind: one of ``starter_agents``.

    Returns:
        Paths of the written files, relative to the directory.

    Raises:
        ConfigError: a file already exists; nothing was written.
        InfrastructureError: a file cannot be written; files written before were removed.
    """
    files = starter_files(suite_format, agent_kind)
    _refuse_existing(directory, files)
    written: list[str] = []
    try:
        make_directory(directory)
    except InfrastructureError as error:
        raise InfrastructureError(f"{error}; nothing was written") from None
    for name, content in files.items():
        try:
            # A file created since the check is not overwritten either.
            write_new_file(directory, name, content)
            written.append(name)
        except (OSError, InfrastructureError) as error:
            for file in written:
                remove_file(directory, file)
            why = f"cannot write {directory / name}: {error.strerror}" if isinstance(error, OSError) else str(error)
            raise InfrastructureError(f"{why}; nothing was written") from None
    return tuple(files)


def starter_files(suite_format: str, agent_kind: str) -> Mapping[str, bytes]:
    """Return the files of a starter.

    Args:
        suite_format: one of ``starter_formats``.
        agent_kind: one of ``starter_agents``.

    Returns:
        Path relative to the directory → content.
    """
    suite = starter_formats()[suite_format]
    kind = starter_agents()[agent_kind]
    return {
        **{path.relative_to(suite).as_posix(): path.read_bytes() for path in _files(suite)},
        "agenteval.yaml": (_STARTERS / "settings.yaml").read_bytes() + _definition(agent_kind).read_bytes(),
        **({_AGENT: (_STARTERS / _AGENT).read_bytes()} if kind.is_local else {}),
        _WORKFLOW: (_STARTERS / "workflow.yml").read_bytes(),
    }


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
        "agenteval run --out before",
        f"{_WORSEN} && agenteval run --baseline before   # a worse agent: the gate fails, see comment.md",
    ]


def _commit_command(directory: Path) -> str:
    """Return the command that commits a starter: the gate runs the committed agent beside the changed one."""
    begin = "" if _repository(directory.resolve()) else "git init --quiet && "
    return f"{begin}git add --all . && git commit --quiet --message 'Evaluate the agent'"


def _repository(directory: Path) -> Path | None:
    return next((place for place in (directory, *directory.parents) if (place / ".git").exists()), None)


def workflow_warning(directory: Path) -> str | None:
    """Return a warning if GitHub will not find the workflow, because the directory is not the repository's root."""
    here = directory.resolve()
    root = _repository(here) or here
    if root == here:
        return None
    return (
        f"GitHub reads workflows only at the root of a repository: move {_WORKFLOW} to {root}, "
        f"set `working-directory: {here.relative_to(root).as_posix()}` for the action, "
        "and adapt the path of the uploaded report"
    )


def _refuse_existing(directory: Path, names: Mapping[str, bytes]) -> None:
    """Check that no file exists already and that every folder can be created.

    Raises:
        ConfigError: with every path that exists already or is not a directory.
    """
    existing = [directory / name for name in names if os.path.lexists(directory / name)]
    if existing:
        listed = ", ".join(map(str, existing))
        verb = "exists" if len(existing) == 1 else "exist"
        raise ConfigError(Problem(f"{listed} {verb} already; nothing was written"))
    folders = dict.fromkeys(folder for name in names for folder in reversed((directory / name).parents))
    blocked = [str(folder) for folder in folders if _blocks_directory(folder)]
    if blocked:
        raise ConfigError(Problem(f"not a directory: {', '.join(blocked)}; nothing was written"))


def _blocks_directory(path: Path) -> bool:
    """Return whether the path exists and is not a directory; a broken link counts, a link to a directory does not."""
    try:
        return os.path.lexists(path) and not path.is_dir()
    except OSError:
        return True
