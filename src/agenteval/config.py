"""``agenteval.yaml`` and the settings of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from agenteval.compare.compare import DEFAULT_TOLERANCE
from agenteval.compare.gate import DEFAULT_FAIL_ON, FAIL_ON, FailOn, GatePolicy, parse_fail_on
from agenteval.errors import ConfigError, Problem
from agenteval.llm.budget import Limits
from agenteval.llm.cache import ResponseCache, default_directory
from agenteval.llm.gateway import LlmSettings
from agenteval.provenance import shown_path
from agenteval.suite.agent_spec import AgentEntry, agent_from_text, is_inline_agent, read_agent
from agenteval.suite.document import read_yaml
from agenteval.suite.model import AgentSpec
from agenteval.suite.model_agent import model_agent_of
from agenteval.suite.validation import did_you_mean, one_of, validate

CONFIG_FILE = "agenteval.yaml"
DEFAULT_AGENT = "default"
DEFAULT_CONCURRENCY = 8


class GateEntry(BaseModel):
    """``gate:`` - what fails the gate."""

    model_config = ConfigDict(extra="forbid")

    fail_on: frozenset[FailOn] = Field(
        DEFAULT_FAIL_ON,
        validation_alias=AliasChoices("fail_on", "fail-on"),
        description="failures, regressions, errors, inconclusive; or none",
        # A set has no order, and a schema must be the same each time; the text form is checked when it is read.
        json_schema_extra={
            "type": ["array", "string"],
            "items": {"enum": [*FAIL_ON, "none"]},
            "default": [word for word in FAIL_ON if word in DEFAULT_FAIL_ON],
        },
    )
    tolerance: float = Field(DEFAULT_TOLERANCE, ge=0, le=1, description="how far the mean of a metric may fall")
    max_error_rate: float = Field(0.10, ge=0, le=1, description="share of cases that may break")

    @field_validator("fail_on", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        if isinstance(value, frozenset):
            return value
        return parse_fail_on(",".join(str(item) for item in value) if isinstance(value, list) else str(value))


class LlmEntry(BaseModel):
    """``llm:`` - how judges and model agents are called, and what they may spend."""

    model_config = ConfigDict(extra="forbid")

    max_calls: int | None = Field(None, ge=0, description="requests of a run, repeated ones included")
    max_cost_usd: float | None = Field(None, ge=0, description="US dollars of a run")
    cache: bool | str = Field(True, description="keep replies on disk; a text is the directory")
    concurrency: int = Field(16, ge=1, description="calls under way at once, per provider")
    requests_per_minute: int | None = Field(None, ge=1, description="per provider")
    retries: int = Field(4, ge=0, le=10, description="further attempts after a passing failure")
    backoff: float = Field(1.0, ge=0, description="seconds before the second attempt; doubles")
    timeout: float = Field(60.0, gt=0, description="seconds for one attempt")


class ConfigFile(BaseModel):
    """The whole of ``agenteval.yaml``; every key is optional."""

    model_config = ConfigDict(extra="forbid")

    agents: dict[str, Any] = Field(default_factory=dict, description="name → how the agent is reached")
    iterations: int | None = Field(None, ge=1, description="times every case runs (1)")
    concurrency: int | None = Field(None, ge=1, description=f"cases at once ({DEFAULT_CONCURRENCY})")
    gate: GateEntry = Field(default_factory=GateEntry)
    llm: LlmEntry = LlmEntry()


class PublishedConfig(ConfigFile):
    """``agenteval.yaml`` with its agents spelled out, for the published JSON Schema."""

    agents: dict[str, AgentEntry | list[str] | str] = Field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """What ``agenteval.yaml`` says, or the defaults if there is none."""

    agents: Mapping[str, AgentSpec] = field(default_factory=dict)
    iterations: int | None = None
    concurrency: int | None = None
    gate: GatePolicy = field(default_factory=GatePolicy)
    tolerance: float = DEFAULT_TOLERANCE
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
    out: Path = Path("agenteval-report")
    iterations: int | None = None
    concurrency: int | None = None
    filter: str | None = None
    tags: tuple[str, ...] = ()
    fail_on: frozenset[FailOn] | None = None
    max_llm_calls: int | None = None
    max_cost_usd: float | None = None
    use_cache: bool = True
    quiet: bool = False
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
    """Read a configuration file.

    Raises:
        ConfigError: with every problem of the file.
    """
    if path is None:
        return Config(llm=LlmSettings(cache=ResponseCache(default_directory())))
    problems: list[Problem] = []
    document = read_yaml(path, shown_as=shown_path(path), unset=problems)
    entry, wrong = validate(ConfigFile, {} if document.data is None else document.data, document)
    problems += wrong
    agents: dict[str, AgentSpec] = {}
    listed = document.data.get("agents") if isinstance(document.data, dict) else None
    for name, value in (listed if isinstance(listed, dict) else {}).items():
        spec, wrong = read_agent(value, document, ("agents", name))
        problems += wrong
        if spec is not None:
            agents[str(name)] = spec
    if problems or entry is None:
        raise ConfigError(problems)
    return Config(
        agents=agents,
        iterations=entry.iterations,
        concurrency=entry.concurrency,
        gate=GatePolicy(fail_on=entry.gate.fail_on, max_error_rate=entry.gate.max_error_rate),
        tolerance=entry.gate.tolerance,
        llm=_llm_settings(entry.llm, document.directory),
        warnings=document.warnings,
        secrets=document.secrets,
    )


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
    )


def _llm_settings(entry: LlmEntry, directory: Path) -> LlmSettings:
    cache = None
    if entry.cache is not False:
        own = directory / entry.cache if isinstance(entry.cache, str) else default_directory()
        cache = ResponseCache(own)
    return LlmSettings(
        limits=Limits(max_calls=entry.max_calls, max_cost_usd=entry.max_cost_usd),
        cache=cache,
        concurrency=entry.concurrency,
        requests_per_minute=entry.requests_per_minute,
        retries=entry.retries,
        backoff_s=entry.backoff,
        timeout_s=entry.timeout,
    )


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
