"""The control: its agent, in a worktree, for runs beside the agent under test."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agenteval.core.confine import Apart, confined, confinement, user_environment
from agenteval.core.errors import AgentEvalError, ConfigError
from agenteval.core.files import Owner, also_inside
from agenteval.core.records import dataclass, field, replace
from agenteval.core.writing import change_owner_of
from agenteval.run.confirm.clone import Clone, checked_commit
from agenteval.run.confirm.control_tree import ControlTree, FileStates
from agenteval.run.git import ControlCommit, ControlError
from agenteval.run.plan import PlannedCase
from agenteval.run.resolve.control import ControlCase, read_control_cases
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.setup import SetupError, provisioned
from agenteval.suite.model import AgentSpec

# Agents of these kinds are deployed elsewhere or live in this process, so every commit uses the same one.
_SAME = {
    "http": "an agent that is called over http",
    "http_tool": "a tool that is called over http",
    "callable": "a function of the calling program",
}
_DEPLOY = "deploy the base commit's agent too, and name it with `control:` in agenteval.yaml or with --control"
# User ids that systemd reserves and nobody uses; the second one is for a workspace that belongs to the first one.
CONTROL_USERS = (65532, 65531)
# Variables with a directory that programs share, such as the caches of package managers.
_SHARED = re.compile(r"^XDG_\w+_HOME$|CACHE|^PYTHONUSERBASE$|^(?:TMPDIR|TEMP|TMP)$", re.IGNORECASE)


@dataclass(frozen=True)
class Control:
    """The agents that run beside the agent under test.

    Attributes:
        cases: suite, case and agent by case id; a case that the control does not contain is missing.
        files: the control's files before its agent ran; ``None`` without a checkout.
        commit: id of the commit; ``None`` without a checkout.
    """

    cases: Mapping[str, ControlCase] = field(default_factory=dict)
    files: FileStates | None = None
    notes: tuple[str, ...] = ()
    commit: str | None = None

    def warnings(self) -> tuple[str, ...]:
        """Return the notes, and warnings about changes of the control's files since its agent started."""
        return (*self.notes, *(self.files.warnings() if self.files is not None else ()))


@dataclass(frozen=True)
class PreparedControl:
    """The control before a confirmation needs it.

    Attributes:
        tree: its files; ``None`` if every agent has a deployment of the base commit.
        place: the place of its files; ``None`` without files.
        unrelated: commits of earlier runs that are not in its history, for instance after a forced push.
        anchor: the anchor commit of the base branch, for a long look; or why it cannot run.
    """

    tree: ControlTree | None = None
    place: ControlPlace | None = None
    unrelated: frozenset[str] = frozenset()
    anchor: PreparedControl | AgentEvalError | None = None


@dataclass(frozen=True)
class ControlPlace:
    """A directory for the worktree of the control.

    Attributes:
        folder: contains the worktree and the home directory of its user.
        apart: the user of the programs in it; ``None`` for the user of all user code.
    """

    folder: Path
    apart: Apart | None = None

    @property
    def worktree(self) -> Path:
        """The directory of the files."""
        return self.folder / "worktree"


@contextmanager
def prepared_control(
    spec: RunSpec, baseline: str | None, earlier: Collection[str] = (), anchor: str | None = None
) -> Iterator[PreparedControl | AgentEvalError]:
    """Find the control and name its files; the block contains the whole run.

    User code can change the repository, so the block begins before any of it runs.

    Args:
        baseline: the commit that the baseline evaluated; ``None`` if it is unknown.
        anchor: the commit of the base branch that a long look runs beside; ``None`` if none is due.

    Yields:
        The control, or why it cannot be used.
    """
    known = spec.integrity.base_cases
    # The control does not run what the base commit does not have.
    if all(item.case.id in spec.control.agents for item in spec.cases if known is None or item.case.id in known):
        yield PreparedControl()
        return
    with new_place() as place:
        try:
            clone = Clone.find(spec.control.sources.here, spec.control.host)
            with confined(apart=place.apart):
                tree = _whole(ControlTree.prepare(clone, clone.control(baseline), place.worktree))
                prepared = PreparedControl(
                    tree,
                    place,
                    frozenset(commit for commit in earlier if clone.is_ancestor(commit, tree.commit) is False),
                )
        except AgentEvalError as error:
            # Most runs need no confirmation.
            yield error
            return
        with ExitStack() as entered:
            found = None if anchor is None else _prepared_anchor(clone, anchor, entered)
            yield replace(prepared, anchor=found)


def _prepared_anchor(clone: Clone, commit: str, entered: ExitStack) -> PreparedControl | AgentEvalError:
    """Return the anchor commit of the branch in a separate place, or why it cannot be used."""
    place = entered.enter_context(new_place())
    try:
        if clone.is_ancestor(checked_commit(commit), clone.head.commit) is False:
            return ControlError(f"commit {commit[:12]} is not in the history of the branch any more")
        with confined(apart=place.apart):
            tree = _whole(ControlTree.prepare(clone, ControlCommit(commit), place.worktree))
            return PreparedControl(tree, place)
    except AgentEvalError as error:
        return error


@contextmanager
def opened_control(
    prepared: PreparedControl, spec: RunSpec, controls: Mapping[str, AgentSpec] | None = None
) -> Iterator[Control]:
    """Check the control out and install its requirements for the duration of the block.

    Its suites, configuration and agents are used; judges, limits and secrets are those of the run. If user code runs
    as another user, the control runs as a third user with another home directory. So the agent under test cannot
    change the files, packages and caches of the control.

    Args:
        controls: deployments of its agents, by case id; by default those of the run.

    Raises:
        ControlError: the files cannot be checked out, the agent is the same for every commit, or its requirements
            cannot be installed.
    """
    controls = spec.control.agents if controls is None else controls
    named = {
        item.case.id: ControlCase(item.suite, item.case, controls[item.case.id])
        for item in spec.cases
        if item.case.id in controls
    }
    if prepared.tree is None or prepared.place is None:
        yield Control(named)
        return
    tree, place = prepared.tree, prepared.place
    with ExitStack() as entered:
        entered.enter_context(also_inside(place.folder))
        entered.enter_context(confined(apart=place.apart))
        tree.check_out()
        paths = Paths(tree.root, tree.worktree)
        cases = _checked(_cases(spec, paths), named, spec.cases, paths)
        variables = entered.enter_context(_installed(spec, paths))
        notes = (tree.control.note,) if tree.control.note else ()
        yield Control({**_with_variables(cases, variables), **named}, FileStates.read(tree), notes, tree.commit)


@contextmanager
def _installed(spec: RunSpec, paths: Paths) -> Iterator[Mapping[str, str]]:
    """Install the requirements of the control for the duration of the block; yield the variables of its agents."""
    with ExitStack() as entered:
        try:
            there = paths.there(spec.control.sources.here)
            variables = entered.enter_context(provisioned(spec.setup.commands, there, spec.redact))
        except SetupError as error:
            what = str(error).splitlines()[0].rstrip(":")
            raise ControlError(f"the requirements of the base commit cannot be installed: {what}") from None
        yield variables


def _whole(tree: ControlTree) -> ControlTree:
    """Return the control, if its agent would find all files.

    Raises:
        ControlError: the content of a file is missing.
    """
    for why in tree.gaps.values():
        raise ControlError(why)
    return tree


@contextmanager
def new_place() -> Iterator[ControlPlace]:
    """Yield a new place for the control, with a separate user if user code runs as another user."""
    folder = Path(tempfile.mkdtemp(prefix="agenteval-control-")).resolve()
    try:
        worktree, home = folder / "worktree", folder / "home"
        worktree.mkdir()
        owner = confinement().owner
        if owner is None:
            yield ControlPlace(folder)
            return
        folder.chmod(0o755)
        shared = (
            name for name, value in user_environment().items() if _SHARED.search(name) and value.startswith("/")
        )
        variables = {"HOME": str(home), **{name: str(home / name) for name in shared}}
        for made in variables.values():
            Path(made).mkdir(mode=0o700)
        uid = next(number for number in CONTROL_USERS if number != owner.uid)
        for directory in (home, worktree):
            change_owner_of(directory, Owner(uid, uid))
        yield ControlPlace(folder, Apart(folder, Owner(uid, uid), variables))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Paths:
    """The repository, and the worktree of the control."""

    root: Path
    worktree: Path

    def there(self, path: Path) -> Path:
        """Return the corresponding path in the worktree; a path outside the repository is returned unchanged."""
        # Not resolved if possible: user code can put links in the place of folders.
        absolute = Path(os.path.abspath(path))  # noqa: PTH100
        absolute = absolute if absolute.is_relative_to(self.root) else path.resolve()
        if absolute.is_relative_to(self.worktree) or not absolute.is_relative_to(self.root):
            return absolute
        return self.worktree / absolute.relative_to(self.root)

    def here(self, path: Path) -> Path:
        """Return the corresponding path in the repository of a path in the worktree; another path unchanged."""
        return self.root / path.relative_to(self.worktree) if path.is_relative_to(self.worktree) else path

    def are_of_control(self, agent: AgentSpec) -> bool:
        """Return whether an agent is in the worktree."""
        return Path(agent.directory).is_relative_to(self.worktree)


def _cases(spec: RunSpec, paths: Paths) -> Mapping[str, ControlCase]:
    """Read the suites and the configuration of the control, which can be elsewhere in the change."""
    known = tuple(path for path in spec.control.suites if paths.there(path).is_file())
    ours = spec.control.sources
    sources = replace(ours, suites=known or ours.suites).moved(paths.there)
    try:
        found = read_control_cases(sources)
    except ConfigError as error:
        raise ControlError(f"the suite of the base commit cannot be read: {error}") from None
    new_ids = {case_id: spec.integrity.renamed.get(case_id, case_id) for case_id in found}
    return {new: replace(found[old], case=replace(found[old].case, id=new)) for old, new in new_ids.items()}


def _checked(
    cases: Mapping[str, ControlCase], named: Mapping[str, ControlCase], wanted: Sequence[PlannedCase], paths: Paths
) -> Mapping[str, ControlCase]:
    """Return the cases that the run needs, with agents of the worktree.

    Raises:
        ControlError: an agent is the same for every commit.
    """
    asked = {item.case.id for item in wanted} - named.keys()
    found = {case_id: case for case_id, case in cases.items() if case_id in asked}
    # Cases that share an agent must still share it, because each agent object is started once.
    unlike = {id(case.agent): case.agent for case in found.values()}
    there = {key: replace(agent, directory=str(paths.there(Path(agent.directory)))) for key, agent in unlike.items()}
    for agent in there.values():
        if agent.kind in _SAME:
            raise ControlError(f"{_SAME[agent.kind]} is the same for every commit; {_DEPLOY}")
        if not paths.are_of_control(agent):
            raise ControlError(
                f"{agent.where or agent.directory} is not in the repository of the working directory, so it is the "
                "same for every commit; start agenteval in its repository"
            )
    return {case_id: replace(case, agent=there[id(case.agent)]) for case_id, case in found.items()}


def _with_variables(cases: Mapping[str, ControlCase], variables: Mapping[str, str]) -> Mapping[str, ControlCase]:
    """Return the cases with additional environment variables; cases that share an agent still share it."""
    unlike = {id(case.agent): case.agent for case in cases.values()}
    changed = {key: replace(agent, env={**variables, **agent.env}) for key, agent in unlike.items()}
    return {case_id: replace(case, agent=changed[id(case.agent)]) for case_id, case in cases.items()}
