"""What decides about a run, and about finished results: suites, the gate, the comparison, templates and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agenteval.core.llm.budget import Limits
from agenteval.core.llm.gateway import LlmSettings
from agenteval.core.records import dataclass, field, replace
from agenteval.gate.policy import ComparePolicy
from agenteval.gate.verdict import GatePolicy
from agenteval.report.report import Presentation
from agenteval.results.model import Coverage, Difference, RunShard
from agenteval.run.config import Config, Settings
from agenteval.run.plan import PlannedCase
from agenteval.run.resolve.draft import Draft
from agenteval.run.resolve.spec import NOTHING_COVERED, SuiteSpec, TraceFiles
from agenteval.suite.agents import REPLAY
from agenteval.suite.model import AgentSpec, Suite


@dataclass(frozen=True, kw_only=True)
class RulesInForce:
    """What decides about a run: its own files, or those of the base commit.

    Attributes:
        controls: deployments of the base commit's agents, by case id.
        differences: what differs from the base commit.
        base_cases: ids of the cases of the base commit; ``None`` without one.
        renamed: new ids of its cases, by old id.
        base_suites: its suites, with the directory of the change.
    """

    suites: tuple[Suite, ...]
    gate: GatePolicy
    compare: ComparePolicy
    presentation: Presentation
    cases: tuple[PlannedCase, ...] = ()
    settings: Mapping[str, SuiteSpec] = field(default_factory=dict)
    controls: Mapping[str, AgentSpec] = field(default_factory=dict)
    llm: LlmSettings = field(default_factory=LlmSettings)
    shard: RunShard | None = None
    coverage: Coverage = NOTHING_COVERED
    warnings: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    base_cases: frozenset[str] | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    base_suites: tuple[Path, ...] = ()


def own_rules(draft: Draft, settings: Settings) -> RulesInForce:
    """Return the rules of the change itself."""
    config = draft.of_run
    return RulesInForce(
        suites=draft.suites,
        cases=draft.cases,
        settings=draft.settings,
        controls=draft.controls,
        gate=gate_policy(settings, config),
        compare=compare_policy(config.compare, draft.cases, draft.traces),
        presentation=draft.presentation,
        llm=llm_settings(settings, config.llm),
        shard=draft.shard,
        coverage=draft.coverage,
    )


def compare_policy(
    configured: ComparePolicy, cases: Sequence[PlannedCase], traces: TraceFiles | None
) -> ComparePolicy:
    """Return a comparison policy, without confirmation for recorded answers, which are the same in every run."""
    recorded = frozenset(item.case.id for item in cases if item.agent.kind == REPLAY)
    policy = replace(configured, recorded=recorded)
    all_recorded = bool(recorded) and len(recorded) == len(cases)
    return policy.without_runs() if traces is not None or all_recorded else policy


def gate_policy(settings: Settings, config: Config) -> GatePolicy:
    """Return the policy of the gate: the configuration, with the caller's overrides."""
    fail_on = config.gate.fail_on if settings.fail_on is None else settings.fail_on
    return replace(
        config.gate, fail_on=fail_on, needs_baseline=config.gate.needs_baseline and settings.wants_baseline
    )


def llm_settings(settings: Settings, configured: LlmSettings) -> LlmSettings:
    """Return how models are called: the configuration, with the caller's overrides."""
    models = configured.limits
    limits = Limits(
        max_calls=models.max_calls if settings.max_llm_calls is None else settings.max_llm_calls,
        max_cost_usd=models.max_cost_usd if settings.max_cost_usd is None else settings.max_cost_usd,
    )
    cache = configured.cache if settings.use_cache else None
    return replace(configured, limits=limits, cache=cache, seed=settings.seed)
