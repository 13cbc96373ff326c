"""Suites and settings of another commit, and the metrics that ``agenteval.yaml`` adds to suites."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass, replace
from agenteval.core.secrets import redactor
from agenteval.metrics.registry import is_case_metric
from agenteval.run.config import AddedMetric, Config
from agenteval.run.plan import PlannedCase
from agenteval.run.resolve.agents import resolve_agent
from agenteval.run.resolve.configurations import Sources, find_configurations, read_configurations
from agenteval.run.resolve.suites import bind_all, checked_suites, collected, load_suites, without_cases
from agenteval.suite.agent_keys import REPLY_KEYS, request_problem
from agenteval.suite.agents import TOOL_SUFFIX
from agenteval.suite.cases import masked_suite, persona_tag
from agenteval.suite.model import OVERALL, AgentSpec, Case, MetricConfig, Suite


def with_added_metrics(suite: Suite, added: Iterable[AddedMetric]) -> Suite:
    """Return the suite with the added metrics that apply to it, after the suite's metrics.

    If a case already has a metric with the same id, the id of the added metric gets the suffix ``#2``.
    """
    chosen = [item for item in added if item.applies_to(suite.path, suite.name)]
    if not chosen:
        return suite
    renamed = _Renamed()
    taken = {metric.id for metric in suite.metrics} | ({OVERALL} if suite.aggregate else set())
    on_traces = [item.metric for item in chosen if not item.over_iterations] if suite.metrics else []
    return replace(
        suite,
        cases=tuple(_with(case, chosen, renamed) for case in suite.cases),
        metrics=(*suite.metrics, *renamed.all(on_traces, taken)),
    )


def _with(case: Case, added: Iterable[AddedMetric], renamed: _Renamed) -> Case:
    wanted = [item for item in added if item.metric.is_for(case.id, case.name, case.tags)]
    taken = {metric.id for metric in case.all_metrics} | ({OVERALL} if case.aggregate else set())
    metrics = renamed.all([item.metric for item in wanted], taken)
    by_turn = [metric for item, metric in zip(wanted, metrics, strict=True) if not item.over_iterations]
    over_iterations = [metric for item, metric in zip(wanted, metrics, strict=True) if item.over_iterations]
    turns = (replace(turn, metrics=(*turn.metrics, *by_turn)) for turn in case.turns) if by_turn else case.turns
    return replace(case, turns=tuple(turns), metrics=(*case.metrics, *over_iterations))


class _Renamed:
    """Renames metrics whose ids are taken; cases that need the same id share the renamed metric."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], MetricConfig] = {}

    def all(self, metrics: Iterable[MetricConfig], taken: Collection[str]) -> list[MetricConfig]:
        used = set(taken)
        found = []
        for metric in metrics:
            name, number = metric.id, 1
            while name in used:
                number += 1
                name = f"{metric.id}#{number}"
            used.add(name)
            found.append(metric if name == metric.id else self._with_id(metric, name))
        return found

    def _with_id(self, metric: MetricConfig, name: str) -> MetricConfig:
        return self._known.setdefault((id(metric), name), replace(metric, id=name))


def with_config_defaults(suite: Suite, config: Config) -> Suite:
    """Return the suite with the configured tags and metrics added; configured criteria and personas are defaults."""
    if config.personas:
        suite = replace(suite, cases=tuple(_with_persona(case, config) for case in suite.cases))
    if config.tags:
        suite = replace(suite, cases=tuple(_with_tags(case, config) for case in suite.cases))
    if config.criteria is not None and suite.evaluation is None:
        from agenteval.suite.evaluation import Evaluation

        suite = replace(suite, evaluation=Evaluation(criteria=config.criteria))
    if config.metrics:
        # After the personas and tags: both are tags, which metrics can select.
        suite = with_added_metrics(suite, config.metrics)
    return suite


def _with_persona(case: Case, config: Config) -> Case:
    if case.persona is not None:
        return case
    for persona, patterns in config.personas.items():
        if any(fnmatchcase(case.name, pattern) for pattern in patterns):
            return replace(case, persona=persona, tags=(*case.tags, persona_tag(persona)))
    return case


def _with_tags(case: Case, config: Config) -> Case:
    found = (
        tag
        for tag, patterns in config.tags.items()
        if any(fnmatchcase(text, pattern) for text in (case.name, case.id) for pattern in patterns)
    )
    return replace(case, tags=tuple(dict.fromkeys((*case.tags, *found))))


def with_metrics(suite: Suite, metrics: Sequence[MetricConfig]) -> Suite:
    """Return the suite with the caller's metrics added."""
    if not metrics:
        return suite
    added = (
        AddedMetric(replace(metric, requested_by="config"), over_iterations=is_case_metric(metric))
        for metric in metrics
    )
    return with_added_metrics(suite, added)


@dataclass(frozen=True)
class ControlCase:
    """A case of the control, with the agent that answers it."""

    suite: Suite
    case: Case
    agent: AgentSpec


@dataclass(frozen=True)
class ControlFiles:
    """The suites of the control, with masked secrets.

    Attributes:
        agents: the agent of each case, by case id; empty if they were not read.
        of_run: decides the settings of the run as a whole.
    """

    suites: Sequence[Suite]
    agents: Mapping[str, AgentSpec]
    config_of: Mapping[str, Config]
    of_run: Config


def read_control_files(sources: Sources, *, agents: bool = True) -> ControlFiles:
    """Read the suites and the configurations of the control.

    Args:
        agents: whether the agent of each case is read too.
    """
    problems: list[Problem] = []
    loaded, places, file_of = load_suites(sources, problems)
    configs = read_configurations(places, problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    config_of = {suite.path: configs.by_file[file_of[suite.path]] for suite in loaded}
    every = (with_metrics(with_config_defaults(suite, config_of[suite.path]), sources.metrics) for suite in loaded)
    suites = checked_suites(every, [])
    found: Mapping[str, AgentSpec] = {}
    if agents:
        suites, found = bind_all([(suite, config_of[suite.path]) for suite in suites], sources.agent, problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    redact = redactor()
    return ControlFiles(
        [masked_suite(suite, redact) for suite in suites],
        {redact(case_id): agent for case_id, agent in found.items()},
        {redact(path): config for path, config in config_of.items()},
        configs.of_run,
    )


def read_control_configuration(sources: Sources) -> ControlFiles:
    """Read the configuration of a control that has no suite."""
    problems: list[Problem] = []
    configs = read_configurations(find_configurations(sources, ()), problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return ControlFiles((), {}, {}, configs.of_run)


def read_control_cases(sources: Sources) -> Mapping[str, ControlCase]:
    """Read the suites and the configuration of the control; return its cases by id, with masked secrets."""
    files = read_control_files(sources)
    if problems := without_cases(files.suites):
        raise ConfigError(dict.fromkeys(problems))
    return {
        case.id: ControlCase(suite, case, files.agents[case.id]) for suite in files.suites for case in suite.cases
    }


def named_controls(
    asked: str | None,
    suites: Sequence[tuple[Suite, Config]],
    agents: Mapping[str, AgentSpec],
    problems: list[Problem],
) -> Mapping[str, AgentSpec]:
    """Return the deployments of the base commit's agents that the caller or the configuration names, by case id.

    Args:
        asked: the agent of ``--control``; it replaces those of the configuration, but no tool under test.
        agents: the agents under test by case id; ``control`` of an agent names the one to run beside it.
    """
    configs = {config.name: config for _, config in suites} if asked else {}
    of_caller: dict[str, AgentSpec] = {}
    for name, config in configs.items():
        where = f" for {name or 'suites without a configuration'}" if len(configs) > 1 else ""
        with collected(problems):
            of_caller[name] = resolve_agent(asked, config, f"--control{where}")
    of_agents: dict[tuple[str, int], AgentSpec | None] = {}
    found: dict[str, AgentSpec] = {}
    for suite, config in suites:
        for case_id in (case.id for case in suite.cases if case.id in agents):
            agent = agents[case_id]
            key = (config.name, id(agent))
            if key not in of_agents:
                of_agents[key] = None
                is_tool = agent.kind.endswith(TOOL_SUFFIX)
                with collected(problems):
                    control = None if is_tool else of_caller.get(config.name)
                    if control is None and agent.control:
                        known = replace(config, agents=config.tools) if is_tool else config
                        control = resolve_agent(agent.control, known, f"{agent.where}: control")
                    of_agents[key] = control and _completed(control, agent)
            if (of_agent := of_agents[key]) is not None:
                found[case_id] = of_agent
    return found


def _completed(control: AgentSpec, agent: AgentSpec) -> AgentSpec:
    """Return a control with the keys of its agent that it does not have: both are the same service."""
    if control.kind != agent.kind or not is_deployed(agent):
        return control
    own = {name: value for name, value in control.options.items() if value or name != "headers"}
    has_reply = any(name in own for name in REPLY_KEYS)
    theirs = {name: value for name, value in agent.options.items() if not (has_reply and name in REPLY_KEYS)}
    options, config = {**theirs, **own}, control.config or agent.config
    request = {name: options.get(name) for name in ("method", "body", "shape")}
    if problem := request_problem(url=str(control.target), config=config, **request):
        raise ConfigError(Problem(problem, file=control.where, kind=Kind.VALUE))
    return replace(
        control,
        timeout_s=control.timeout_s or agent.timeout_s,
        concurrency=control.concurrency or agent.concurrency,
        retries=agent.retries if control.retries is None else control.retries,
        config=config,
        options=options,
    )


#: What lets the gate prove something about a deployed agent.
DEPLOY = (
    "deploy the base commit's agent too, and write `control: ADDRESS` below its `http:` in agenteval.yaml, or pass "
    "--control ADDRESS"
)


def is_deployed(agent: AgentSpec) -> bool:
    """Return whether an agent or tool is behind an address, so that every commit uses the same one."""
    return agent.kind.removesuffix(TOOL_SUFFIX) == "http"


def without_control(cases: Iterable[PlannedCase], controls: Mapping[str, AgentSpec]) -> Collection[str]:
    """Return a warning for each deployed agent that has no control; an empty ``control`` is one on purpose."""
    alone = (item.agent for item in cases if item.agent.control is None and item.case.id not in controls)
    said = "without `control:`, this address is compared with earlier days only, and nothing can be proven"
    return dict.fromkeys(f"{agent.where}: {said}; {DEPLOY}" for agent in alone if is_deployed(agent))
