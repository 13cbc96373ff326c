"""What the configuration and the command line say about a run; :mod:`~agenteval.config_file` reads the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.compare.gate import FailOn, GatePolicy
from agenteval.compare.policy import ComparePolicy
from agenteval.errors import ConfigError, Problem
from agenteval.llm.budget import Limits
from agenteval.llm.cache import ResponseCache, default_directory
from agenteval.llm.gateway import LlmSettings
from agenteval.suite.agent_spec import agent_from_text, is_inline_agent
from agenteval.suite.model import AgentSpec, ModelSpec
from agenteval.suite.validation import did_you_mean, one_of

if TYPE_CHECKING:
    from agenteval.baselines import BaselineSource
    from agenteval.run.shard import Shard
    from agenteval.suite.evaluation import Criteria

CONFIG_FILE = "agenteval.yaml"
DEFAULT_AGENT = "default"
DEFAULT_CONCURRENCY = 8


@dataclass(frozen=True)
class ProcessLimits:
    """What one process of users' code may use; ``None`` is no limit.

    Attributes:
        memory_mb: data in memory, in MB (10^6 bytes).
        cpu_s: seconds of processor time.
    """

    memory_mb: int | None = None
    cpu_s: int | None = None


@dataclass(frozen=True)
class Config:
    """What ``agenteval.yaml`` says, or the defaults if there is none."""

    agents: Mapping[str, AgentSpec] = field(default_factory=dict)
    tools: Mapping[str, AgentSpec] = field(default_factory=dict)
    judge: ModelSpec | None = None
    embeddings: ModelSpec | None = None
    criteria: Criteria | None = None
    personas: Mapping[str, Sequence[str]] = field(default_factory=dict)
    iterations: int | None = None
    concurrency: int | None = None
    case_timeout_s: float | None = None
    time_limit_s: float | None = None
    pass_env: tuple[str, ...] | None = None
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    gate: GatePolicy = field(default_factory=GatePolicy)
    compare: ComparePolicy = field(default_factory=ComparePolicy)
    comment_template: Path | None = None
    summary_template: Path | None = None
    llm: LlmSettings = field(default_factory=LlmSettings)
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(frozen=True)
class Settings:
    """One run as the command line or the action asks for it; ``None`` leaves a choice to the files."""

    suites: tuple[Path, ...] = ()
    config: Path | None = None
    agent: str | None = None
    baseline: Path | None = None
    baseline_source: BaselineSource | None = None
    out: Path = Path("agenteval-report")
    iterations: int | None = None
    concurrency: int | None = None
    filter: str | None = None
    tags: tuple[str, ...] = ()
    shard: Shard | None = None
    fail_on: frozenset[FailOn] | None = None
    max_llm_calls: int | None = None
    max_cost_usd: float | None = None
    max_time_s: float | None = None
    seed: int | None = None
    resume: bool = False
    use_cache: bool = True
    quiet: bool = False
    traces: Path | None = None
    keep_going: bool = False
    control: str | None = None
    history: Path | None = None
    comment_template: Path | None = None
    summary_template: Path | None = None
    setup: str = ""
    warnings: tuple[str, ...] = ()


def find_config(explicit: Path | None, near: Iterable[Path]) -> Path | None:
    """The configuration file of a run.

    Args:
        explicit: the file that was asked for; it need not exist yet to be returned.
        near: directories to look in, best first; their parents are searched up to the repository.
    """
    if explicit is not None:
        return explicit
    for start in near:
        for directory in (start.resolve(), *start.resolve().parents):
            if (directory / CONFIG_FILE).is_file():
                return directory / CONFIG_FILE
            if (directory / ".git").exists():
                break
    return None


def read_config(path: Path | None) -> Config:
    """Read a configuration file; without one, the defaults.

    Raises:
        ConfigError: with every problem of the file.
    """
    if path is None:
        return Config(llm=LlmSettings(cache=ResponseCache(default_directory())))
    # Imported here: without such a file nobody pays for what may stand in it.
    from agenteval.config_file import read_config_file

    return read_config_file(path)


def llm_settings(settings: Settings, config: Config) -> LlmSettings:
    """How models are called in a run: the configuration, with what the command line overrules."""
    limits = config.llm.limits
    return replace(
        config.llm,
        limits=Limits(
            max_calls=limits.max_calls if settings.max_llm_calls is None else settings.max_llm_calls,
            max_cost_usd=limits.max_cost_usd if settings.max_cost_usd is None else settings.max_cost_usd,
        ),
        cache=config.llm.cache if settings.use_cache else None,
        seed=settings.seed,
    )


def time_limit_s(settings: Settings, config: Config) -> float | None:
    """How long a run may take, in seconds; ``None`` is no limit."""
    return config.time_limit_s if settings.max_time_s is None else settings.max_time_s


def resolve_agent(
    asked: AgentSpec | str | None, config: Config, suite: str, fallback: AgentSpec | None = None
) -> AgentSpec:
    """The agent that answers a suite.

    Args:
        asked: what ``--agent`` or the suite names: an agent, the name of one, or nothing.
        config: where names are defined.
        suite: the suite's path, for messages.
        fallback: the agent that the suite itself describes, if it does.

    Raises:
        ConfigError: the name is not defined, or nothing is named and there is neither a default nor a fallback
            that can run here.
    """
    if isinstance(asked, AgentSpec):
        return asked
    if asked is not None and is_inline_agent(asked):
        return agent_from_text(asked, Path.cwd())
    name = asked or DEFAULT_AGENT
    if name in config.agents:
        return config.agents[name]
    if asked is None and fallback is not None:
        from agenteval.suite.model_agent import model_agent_of

        obstacles = model_agent_of(fallback).obstacles
        if obstacles:
            raise ConfigError(obstacles)
        return fallback
    if asked is None:
        message = (
            f"no agent to run: add one to {CONFIG_FILE}, for instance\n"
            "    agents:\n      default:\n        command: [python, agent.py]\n"
            "  or give one with --agent, or give the suite `model` and `instructions` to run these"
        )
    else:
        defined = one_of(config.agents) or "none; a program is given as a list, like [python, agent.py]"
        message = f"no agent is called {name!r}{did_you_mean(name, config.agents)}; defined: {defined}"
    raise ConfigError(Problem(message, file=suite))
