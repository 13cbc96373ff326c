"""Puts the base commit's cases and rules in the place of those of the change, and lists what differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import Problem
from agenteval.core.files import below, read_regular
from agenteval.core.records import fields, replace
from agenteval.core.redact import Redactor
from agenteval.core.secrets import add_secrets
from agenteval.gate.integrity import Accepted, Integrity, accepted_of, acknowledged, digest_of
from agenteval.gate.verdict import GatePolicy, quarantined
from agenteval.results.model import Difference
from agenteval.run.base_commit import Checkout
from agenteval.run.config import Config, Settings
from agenteval.run.plan import PlannedCase
from agenteval.run.resolve.agents import interpreters_of
from agenteval.run.resolve.control import named_controls
from agenteval.run.resolve.draft import Draft
from agenteval.run.resolve.spec import RunSpec, SuiteSpec, compare_policy, covered_by, gate_policy, llm_settings
from agenteval.run.rules.base import file_differences, presented_by_base, template_differences
from agenteval.run.rules.differences import Document, Pairs, case_differences, case_document, diff, grouped
from agenteval.run.rules.versions import Versions, pair_suites, suite_version
from agenteval.suite.agents import REPLAY
from agenteval.suite.model import AgentSpec, Case, Suite

if TYPE_CHECKING:
    from agenteval.run.rules.base import BaseRules


def rules_of_base(draft: Draft, settings: Settings, base: BaseRules, accepted: Sequence[Accepted]) -> RunSpec:
    """Return the cases and rules of the base commit, with the agents of the change.

    Args:
        settings: the caller's settings, which override those of files.
        accepted: the changes that people accepted.
    """
    files, config = base.files, base.files.of_run
    add_secrets(frozenset[str]().union(*(suite.secrets for suite in files.suites)))
    pairs, continued = pair_suites(draft.spec.suites, files.suites)
    draft = also_selected_by_base(draft, pairs)
    own = draft.spec
    versions = Versions(pairs, [case_id for case_id in pairs.edited if _is_accepted(accepted, pairs.ours[case_id])])
    config_of = {
        path: files.config_of.get(suite.path, config) if suite else draft.config_of[path]
        for path, suite in continued.items()
    }
    agents = _by_new_id(pairs, files.agents)
    suites = {suite.path: suite_version(suite, continued[suite.path], versions) for suite in own.suites}
    ours = _iterations(own.suites, draft.config_of, own.coverage.iterations)
    theirs = _iterations(files.suites, files.config_of, own.coverage.iterations)
    cases = []
    for item in limited(own.cases, agents):
        for version in versions.of(item.case.id):
            is_base = version.id == item.case.id and item.case.id not in versions.accepted
            number, follows = ours[item.case.id]
            if is_base and item.case.id in pairs.base:
                number, follows = theirs[pairs.base[item.case.id].id]
            suite = suites[item.suite.path]
            cases.append(replace(item, suite=suite, case=version, iterations=number, follow_recording=follows))
    names = {
        version.id: (before.id, before.name)
        for case_id, before in pairs.base.items()
        for version in versions.of(case_id)
        if (version.id, version.name) != (before.id, before.name)
    }
    gate = gate_policy(settings, config).knowing(names)
    shown = presented_by_base(own.presentation, config, base.place)
    problems: list[Problem] = []
    with_config = [(suite, files.config_of[suite.path]) for suite in files.suites]
    controls = named_controls(settings.control, with_config, files.agents, problems)
    left = {item.case.id for item in draft.left_out}
    counts = [{case_id: number for case_id, (number, _) in found.items()} for found in (ours, theirs)]
    differences = (
        # What does not run is not compared.
        *(
            item.model_copy(update={"effect": "listed"}) if item.kind == "renamed" and item.case in left else item
            for item in case_differences(pairs, _passing(draft, gate), *counts)
        ),
        *agent_differences(
            own.cases, agents, base.place, is_compared=own.baseline is not None or own.shard is not None
        ),
        *dict.fromkeys(_suite_differences(draft, continued, config_of)),
        *setting_differences(config, draft.of_run, of_run=True),
        *template_differences(own.presentation, shown),
        *file_differences(
            _graders(files.suites, base.place.worktree), _graders(own.suites, base.place.root), "setting", "base"
        ),
        *workflow_differences(base.place),
    )
    shard, added = own.shard, len(cases) - len(own.cases)
    if shard is not None:
        # The edited versions of cases run in the same shard.
        ids = [version.id for case_id in shard.cases for version in versions.of(case_id)]
        added = len(ids) - len(shard.cases)
        shard = shard.model_copy(update={"cases": ids})
    covered = own.coverage
    number_of_cases = None if covered.cases is None else covered.cases + added
    llm = llm_settings(settings, replace(config.llm, cache=draft.of_run.llm.cache))
    selected = {"selected": covered.selected + added, "cases": number_of_cases}
    return replace(
        own,
        suites=tuple(suites.values()),
        cases=tuple(cases),
        settings=_settings(draft, config_of, base),
        gate=gate,
        compare=replace(compare_policy(config.compare, cases, own.traces), base_names=names),
        presentation=shown,
        llm=llm,
        shard=shard,
        coverage=covered.model_copy(update={**selected, **covered_by(llm)}),
        control=replace(
            own.control,
            agents=_by_new_id(pairs, controls),
            suites=tuple(base.place.root / suite.path for suite in files.suites),
        ),
        integrity=Integrity(
            differences=tuple(_masked(acknowledged(item, accepted), own.redact) for item in differences),
            base_cases=frozenset((*pairs.base, *pairs.removed)),
            renamed={old: new for new, old in pairs.renamed.items()},
        ),
        warnings=(
            *own.warnings,
            *(
                own.redact(f"the base commit does not define the control: {text}")
                for text in dict.fromkeys(problem.message for problem in problems)
            ),
        ),
    )


def also_selected_by_base(draft: Draft, pairs: Pairs) -> Draft:
    """Return the run with the cases that are selected in the base commit too.

    Otherwise a change could rename a case so that ``--filter`` leaves it out. Of a sharded run, the first shard runs
    them.
    """
    own = draft.spec
    added = [
        item
        for item in draft.left_out
        if (theirs := pairs.base.get(item.case.id)) is not None and draft.selection.selects(theirs)
    ]
    if not added:
        return draft
    shard, ids = own.shard, [item.case.id for item in added]
    if shard is not None:
        shard = shard.model_copy(update={"cases": [*shard.cases, *ids]})
    order = {case.id: place for place, case in enumerate(case for suite in own.suites for case in suite.cases)}
    cases = (*own.cases, *(added if shard is None or shard.index == 1 else ()))
    chosen = replace(
        own,
        cases=tuple(sorted(cases, key=lambda item: order[item.case.id])),
        shard=shard,
        coverage=own.coverage.model_copy(update={"selected": own.coverage.selected + len(added)}),
    )
    return replace(draft, spec=chosen, left_out=tuple(item for item in draft.left_out if item.case.id not in ids))


def _iterations(
    suites: Iterable[Suite], config_of: Mapping[str, Config], asked: int | None
) -> dict[str, tuple[int, bool]]:
    found = {}
    for suite in suites:
        config = config_of.get(suite.path)
        for case in suite.cases:
            wanted = asked or case.iterations or suite.iterations
            found[case.id] = (wanted or (config and config.iterations) or 1, wanted is None)
    return found


def limited(cases: Sequence[PlannedCase], agents: Mapping[str, AgentSpec]) -> Iterator[PlannedCase]:
    """Yield cases whose agents have the limits of the base commit; an agent that cases share stays one object.

    A case that the base commit does not have gets the limits of the other cases of its agent.

    Args:
        agents: the base commit's agent by the id of the case in the change.
    """
    of_agent: dict[int, AgentSpec] = {}
    for item in cases:
        if item.case.id in agents:
            of_agent.setdefault(id(item.agent), agents[item.case.id])
    made: dict[tuple[int, float | None, int | None], AgentSpec] = {}
    for item in cases:
        theirs = agents.get(item.case.id) or of_agent.get(id(item.agent))
        if theirs is None:
            yield item
            continue
        key = (id(item.agent), theirs.timeout_s, theirs.retries)
        if key not in made:
            made[key] = replace(item.agent, timeout_s=theirs.timeout_s, retries=theirs.retries)
        yield replace(item, agent=made[key])


def agent_differences(
    cases: Iterable[PlannedCase], agents: Mapping[str, AgentSpec], place: Checkout, *, is_compared: bool
) -> Iterator[Difference]:
    """Yield how the definitions of agents differ; equal differences of several cases are one.

    Args:
        cases: the cases of the run, with the agents as the change defines them.
        agents: as for ``limited``.
        is_compared: whether this run, or the merge of its shards, is compared with a baseline. Then recorded
            answers cannot replace a live agent: they show nothing of the change.
    """
    known: dict[tuple[int, int], list[Difference]] = {}

    def differences_of(ours: AgentSpec, theirs: AgentSpec) -> list[Difference]:
        key = (id(ours), id(theirs))
        if key not in known:
            known[key] = list(diff(_agent(theirs, place.worktree), _agent(ours, place.root)))
            if ours.kind == REPLAY and is_compared:
                unproven = {"effect": "unproven"}
                known[key] = [it.model_copy(update=unproven) if it.setting == "kind" else it for it in known[key]]
        return known[key]

    yield from grouped(
        (item.case.id, found)
        for item in cases
        if item.case.id in agents
        for found in differences_of(item.agent, agents[item.case.id])
    )


def _agent(agent: AgentSpec, root: Path) -> Document:
    values = {attribute.name: _portable(getattr(agent, attribute.name), str(root)) for attribute in fields(AgentSpec)}
    values |= {"timeout_s": agent.limit_s, "retries": agent.retry_limit}
    return {("agent", "", name.removesuffix("_s")): value for name, value in values.items()}


def _portable(value: Any, root: str) -> Any:
    if isinstance(value, str):
        return "." if value == root else value.replace(f"{root}/", "")
    if isinstance(value, Mapping):
        return {str(key): _portable(item, root) for key, item in value.items()}
    return [_portable(item, root) for item in value] if isinstance(value, list | tuple) else value


def _suite_differences(
    draft: Draft, continued: Mapping[str, Suite | None], config_of: Mapping[str, Config]
) -> Iterator[Difference]:
    known = [(suite, theirs) for suite in draft.spec.suites if (theirs := continued[suite.path]) is not None]
    if draft.spec.traces is not None:
        # The metrics of suites score recorded traces.
        for ours, theirs in known:
            yield from diff(*(case_document(_whole(suite), 1) for suite in (theirs, ours)))
    configs = [(config_of[path], draft.config_of[path]) for path in config_of]
    for before, after in {(id(before), id(after)): (before, after) for before, after in configs}.values():
        yield from setting_differences(before, after, of_run=False)
    for ours, theirs in known:
        yield from diff(_criteria(theirs), _criteria(ours))


def _whole(suite: Suite) -> Case:
    return Case(suite.path, suite.name, (), metrics=suite.metrics, aggregate=suite.aggregate)


def _criteria(suite: Suite) -> Document:
    criteria = suite.evaluation and suite.evaluation.criteria
    return {("setting", "", "criteria"): None if criteria is None else repr(criteria)}


def setting_differences(before: Config, after: Config, *, of_run: bool) -> Iterator[Difference]:
    """Yield the settings that differ, and affect the verdict or how it is shown.

    Args:
        before: the configuration of the base commit.
        of_run: of the run as a whole, or else for the suites of the configuration.
    """
    from agenteval.run.config_file import RUN_KEYS, ConfigFile, written_settings

    defaults = written_settings(ConfigFile())

    def document(config: Config) -> Document:
        models = {} if of_run else {"judge": config.judge, "embeddings": config.embeddings}
        written = {name: config.written.get(name, default) for name, default in defaults.items()}
        chosen = {name: value for name, value in written.items() if (name.partition(".")[0] in RUN_KEYS) == of_run}
        return {("setting", "", name): value for name, value in {**models, **chosen}.items()}

    yield from diff(document(before), document(after))


_FOLDER = ".github"
_SUFFIXES = frozenset({".yml", ".yaml"})
_NAME = b"agenteval"
_LARGEST = 2**20
_REFERENCE = re.compile(r"[\w./-]{1,200}:[\w.]{1,200}")


def workflow_differences(place: Checkout) -> Iterator[Difference]:
    """Yield the workflows and actions below ``.github/`` that name agenteval and differ from the base commit."""
    here, there = _workflows(place.root), _workflows(place.worktree)
    names = {name for name in {*here, *there} if _NAME in there.get(name, b"") + here.get(name, b"")}
    before, after = ({name: text for name, text in found.items() if name in names} for found in (there, here))
    yield from file_differences(before, after, "workflow", "listed")


def _workflows(root: Path) -> Mapping[str, bytes]:
    found = {}
    for folder, _, names in below(root / _FOLDER):
        for path in (folder / name for name in names if PurePosixPath(name).suffix in _SUFFIXES):
            try:
                found[path.relative_to(root).as_posix()] = read_regular(path, limit=_LARGEST)
            except (OSError, ValueError):
                found[path.relative_to(root).as_posix()] = str(path).encode() + _NAME
    return found


def _graders(suites: Iterable[Suite], root: Path) -> Mapping[str, bytes]:
    metrics = [metric for suite in suites for case in suite.cases for metric in case.all_metrics]
    named = {
        (metric.where.directory, value.partition(":")[0])
        for metric in metrics
        for value in (metric.type, *metric.options.values())
        if isinstance(value, str) and _REFERENCE.fullmatch(value)
    }
    found = {}
    for folder, name in named:
        path = Path(folder, name if name.endswith(".py") else f"{name.replace('.', '/')}.py")
        # A module that is installed has no file here.
        with suppress(OSError, ValueError):
            found[f"grader {path.relative_to(root).as_posix()}"] = read_regular(path, limit=_LARGEST)
    return found


def _by_new_id(pairs: Pairs, of_base: Mapping[str, AgentSpec]) -> Mapping[str, AgentSpec]:
    return {new: of_base[theirs.id] for new, theirs in pairs.base.items() if theirs.id in of_base}


def _passing(draft: Draft, gate: GatePolicy) -> frozenset[str]:
    if draft.spec.baseline is None:
        return frozenset()
    results = draft.spec.baseline.results
    passed = {case.id for _, case in results.cases() if case.status == "passed"}
    return frozenset(passed - quarantined(results, gate))


def _is_accepted(accepted: Sequence[Accepted], case: Case) -> bool:
    return accepted_of(accepted, "edited", case.id, digest_of(case.fingerprints)) is not None


def _masked(difference: Difference, redact: Redactor) -> Difference:
    texts = {name: getattr(difference, name) for name in ("case", "metric", "setting", "before", "after")}
    return difference.model_copy(update={name: redact(text) for name, text in texts.items() if text is not None})


def _settings(draft: Draft, config_of: Mapping[str, Config], base: BaseRules) -> Mapping[str, SuiteSpec]:
    """Return the settings of the suites, with those of the base commit; equal ones are still one object."""
    graders = {
        # A virtual environment is in no commit, so that of the checkout is used.
        folder: program if Path(program).exists() else str(base.place.here(Path(program)))
        for folder, program in interpreters_of(base.files.agents.values()).items()
    }
    made: dict[tuple[int, int], SuiteSpec] = {}
    found: dict[str, SuiteSpec] = {}
    for path, config in config_of.items():
        own = draft.spec.settings[path]
        key = (id(own), id(config))
        if key not in made:
            limits = config.user_code
            made[key] = replace(
                own,
                interpreters={**own.interpreters, **graders},
                judge=config.judge,
                embeddings=config.embeddings,
                rules=replace(own.rules, memory_mb=limits.memory_mb, cpu_s=limits.cpu_s),
                case_s=config.case_timeout_s,
            )
        found[path] = made[key]
    return found
