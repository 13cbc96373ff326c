"""The agent of the base commit, in a git worktree beside the workspace."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agenteval.core.errors import AgentEvalError, ConfigError
from agenteval.core.process.run_confined import run_confined
from agenteval.core.text.redact import Redactor
from agenteval.run.resolve.sources import Sources
from agenteval.run.resolve.suites import read_agents
from agenteval.run.setup import SetupError, give_to_user, provisioned
from agenteval.suite.model import AgentSpec

_TIMEOUT_S = 120
# A container's user need not be the owner of the workspace, and hooks of the repository have no business here.
_OPTIONS = ("-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null")
_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
# Agents of these kinds run elsewhere, and are the same for every commit.
_ELSEWHERE = frozenset({"http", "http_tool"})


class ControlError(AgentEvalError):
    """The base commit's agent cannot run; the message has the reason and what to do."""


@contextmanager
def base_agents(
    sources: Sources, baseline_commit: str | None, setup: str, redact: Redactor
) -> Iterator[Mapping[str, AgentSpec]]:
    """Check out the base commit for the length of the block, and yield its agents by case id.

    The base commit is the merge base of the current commit and the baseline's. Suites and configuration are read
    there as well; a case that does not exist there has no agent.

    Args:
        sources: the suites, configuration and agent of the run.
        baseline_commit: the commit that the baseline evaluated.
        setup: commands that install what user code needs; empty for none.
        redact: masks secrets in the output of the commands.

    Raises:
        ControlError: the commit is not in this clone, its agent is the same for every commit, or what it needs
            cannot be installed.
    """
    root = Path(_git(sources.here, "rev-parse", "--show-toplevel"))
    commit = _merge_base(root, baseline_commit)
    folder = Path(tempfile.mkdtemp(prefix="agenteval-base-")).resolve()
    worktree = folder / "worktree"
    try:
        give_to_user(folder)
        _git(root, "worktree", "add", "--detach", "--force", str(worktree), commit)
        places = _Places(root, worktree)
        agents = _agents(sources, places)
        with ExitStack() as installed:
            try:
                variables = installed.enter_context(provisioned(setup, places.there(sources.here), redact))
            except SetupError as error:
                what = str(error).splitlines()[0].rstrip(":")
                raise ControlError(f"confirm: base cannot install what the base commit needs: {what}") from None
            yield _with_variables(agents, variables)
    finally:
        _remove(root, worktree)
        shutil.rmtree(folder, ignore_errors=True)


def _merge_base(root: Path, baseline_commit: str | None) -> str:
    if baseline_commit is None:
        raise ControlError("confirm: base needs a baseline that says of which commit it was made")
    try:
        # A commit comes from a file: anything else might be an option.
        if not _COMMIT.fullmatch(baseline_commit):
            raise ControlError("it is no commit")
        return _git(root, "merge-base", "HEAD", baseline_commit)
    except ControlError as error:
        raise ControlError(
            f"confirm: base cannot find where this commit left the baseline's, {baseline_commit}, in this clone "
            f"({error}); actions/checkout needs `fetch-depth: 0`"
        ) from None


def _remove(root: Path, worktree: Path) -> None:
    """Remove the worktree from git's list; the caller removes the temporary folder that its files are in."""
    try:
        _git(root, "worktree", "remove", "--force", str(worktree))
    except ControlError:
        # The worktree was not made.
        return


@dataclass(frozen=True)
class _Places:
    """The repository, and the worktree of its base commit."""

    root: Path
    worktree: Path

    def there(self, path: Path) -> Path:
        """Return the same path in the worktree; a path outside of the repository is returned as it is."""
        absolute = path.resolve()
        if absolute.is_relative_to(self.worktree) or not absolute.is_relative_to(self.root):
            return absolute
        return self.worktree / absolute.relative_to(self.root)


def _agents(sources: Sources, places: _Places) -> Mapping[str, AgentSpec]:
    try:
        agents = read_agents(sources.moved(places.there))
    except ConfigError as error:
        raise ControlError(f"confirm: base cannot use the suite as it was at the base commit: {error}") from None
    if any(agent.kind in _ELSEWHERE for agent in agents.values()):
        raise ControlError(
            "confirm: base cannot run the base commit's agent: one that is reached over http is the same for every "
            "commit; deploy that of the base commit too, and name it with --control"
        )
    # Cases that share an agent still share it, so that each agent is started once.
    unlike = {id(agent): agent for agent in agents.values()}
    there = {key: replace(agent, directory=str(places.there(Path(agent.directory)))) for key, agent in unlike.items()}
    return {case_id: there[id(agent)] for case_id, agent in agents.items()}


def _with_variables(agents: Mapping[str, AgentSpec], variables: Mapping[str, str]) -> Mapping[str, AgentSpec]:
    """Return the agents with more environment variables; cases that share an agent still share it."""
    unlike = {id(agent): agent for agent in agents.values()}
    changed = {key: replace(agent, env={**variables, **agent.env}) for key, agent in unlike.items()}
    return {case_id: changed[id(agent)] for case_id, agent in agents.items()}


def _git(directory: Path, *arguments: str) -> str:
    """Return the output of a git command.

    Raises:
        ControlError: git is not installed, or the command fails.
    """
    program = shutil.which("git")
    if program is None:
        raise ControlError("confirm: base needs git")
    command = [program, *_OPTIONS, *arguments]
    try:
        done = run_confined(command, directory, _TIMEOUT_S, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ControlError(f"confirm: base cannot use git: {error}") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise ControlError(f"git {arguments[0]}: {said[-1] if said else f'exit status {done.returncode}'}")
    return done.stdout.strip()
