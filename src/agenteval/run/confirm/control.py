"""The control: the base commit's agents, in a checkout, for runs beside the agents under test."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

from agenteval.core.confine import confined
from agenteval.core.errors import AgentEvalError, ConfigError
from agenteval.core.records import dataclass, field, replace
from agenteval.core.runtime import is_in_image
from agenteval.core.secrets import is_in_ci
from agenteval.run.base_commit import BaseCommit, Checkout
from agenteval.run.git import ControlError, git
from agenteval.run.resolve.control import DEPLOY, ControlCase, read_control_cases
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.setup import SetupError, provisioned
from agenteval.suite.model import AgentSpec

# Agents of these kinds are deployed elsewhere or live in this process, so every commit uses the same one.
_SAME = {
    "http": "an agent that is called over http",
    "http_tool": "a tool that is called over http",
    "callable": "a function of the calling program",
}
# Where package managers install what an agent needs, beside its files.
_DEPENDENCIES = (".venv", "venv", "node_modules")


@dataclass(frozen=True)
class Control:
    """The agents that run beside the agent under test.

    Attributes:
        cases: suite, case and agent by case id; a case that the control does not contain is missing.
        commit: id of the commit; ``None`` without a checkout.
        note: what a comparison with the commit leaves out; empty if nothing.
    """

    cases: Mapping[str, ControlCase] = field(default_factory=dict)
    commit: str | None = None
    note: str = ""


@contextmanager
def opened_control(
    base: BaseCommit | AgentEvalError | None, spec: RunSpec, controls: Mapping[str, AgentSpec] | None = None
) -> Iterator[Control]:
    """Check the base commit out and install its requirements for the duration of the block.

    Its suites, configuration and agents are used; judges, limits and secrets are those of the run. If user code runs
    as another user, the control runs as a third user with another home directory. So the agent under test cannot
    change the files, packages and caches of the control.

    Args:
        controls: deployments of its agents, by case id; by default those of the run.
    """
    controls = spec.control.agents if controls is None else controls
    named = {
        item.case.id: ControlCase(item.suite, item.case, controls[item.case.id])
        for item in spec.cases
        if item.case.id in controls
    }
    known = spec.integrity.base_cases
    # The control does not run what the base commit does not have.
    wanted = {item.case.id for item in spec.cases if known is None or item.case.id in known} - named.keys()
    if not wanted:
        yield Control(named)
        return
    if not isinstance(base, BaseCommit):
        for item in spec.cases:
            # Not even a base commit would help.
            if item.case.id in wanted:
                _check_differs(item.agent)
        raise base or ControlError("this run has no base commit")
    for why in base.gaps.values():
        # Its agent would not find all files.
        raise ControlError(why)
    place = base.check_out("worktree")
    with confined(apart=place.apart), ExitStack() as entered:
        cases = {case_id: case for case_id, case in _cases(spec, place).items() if case_id in wanted}
        agents = _agents(cases.values(), place)
        if not (is_in_ci() or is_in_image(os.environ)):
            _link_dependencies({agent.directory for agent in agents.values()}, place)
        try:
            here = place.there(spec.control.sources.here)
            variables = entered.enter_context(provisioned(spec.setup.commands, here, spec.redact))
        except SetupError as error:
            what = str(error).splitlines()[0].rstrip(":")
            raise ControlError(f"the requirements of the base commit cannot be installed: {what}") from None
        agents = {key: replace(agent, env={**variables, **agent.env}) for key, agent in agents.items()}
        cases = {case_id: replace(case, agent=agents[id(case.agent)]) for case_id, case in cases.items()}
        yield Control({**cases, **named}, base.commit, base.note)


def _check_differs(agent: AgentSpec) -> None:
    if agent.kind in _SAME:
        raise ControlError(f"{_SAME[agent.kind]} is the same for every commit; {DEPLOY}")


def _cases(spec: RunSpec, place: Checkout) -> Mapping[str, ControlCase]:
    known = tuple(path for path in spec.control.suites if place.there(path).is_file())
    ours = spec.control.sources
    sources = replace(ours, suites=known or ours.suites).moved(place.there)
    try:
        found = read_control_cases(sources)
    except ConfigError as error:
        raise ControlError(f"the suite of the base commit cannot be read: {error}") from None
    new_ids = {case_id: spec.integrity.renamed.get(case_id, case_id) for case_id in found}
    return {new: replace(found[old], case=replace(found[old].case, id=new)) for old, new in new_ids.items()}


def _link_dependencies(directories: Iterable[str], place: Checkout) -> None:
    """Link what git does not track: in CI, where the change could put anything there, ``setup`` installs it."""
    beside = {folder for each in map(Path, directories) for folder in (each, *each.parents)}
    for folder, name in product(beside, _DEPENDENCIES):
        own, there = place.here(folder) / name, folder / name
        if not folder.is_relative_to(place.worktree) or there.is_symlink() or there.exists() or not own.is_dir():
            continue
        if folder.is_dir() and not git(own.parent, "ls-files", "--", name):
            there.symlink_to(own)


def _agents(cases: Iterable[ControlCase], place: Checkout) -> dict[int, AgentSpec]:
    unlike = {id(case.agent): case.agent for case in cases}
    there = {key: replace(agent, directory=str(place.there(Path(agent.directory)))) for key, agent in unlike.items()}
    for agent in there.values():
        _check_differs(agent)
        if not Path(agent.directory).is_relative_to(place.worktree):
            raise ControlError(
                f"{agent.where or agent.directory} is not in the repository of the working directory, so it is the "
                "same for every commit; start agenteval in its repository"
            )
    return there
