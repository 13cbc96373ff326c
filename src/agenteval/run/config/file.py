"""The keys of ``agenteval.yaml``, and how they become a :class:`~agenteval.run.config.model.Config`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agenteval.core.documents.document import Document, KeyPath
from agenteval.core.documents.validation import validate
from agenteval.core.documents.yaml.read import read_yaml
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.budget import Limits
from agenteval.core.llm.cache import ResponseCache, default_directory
from agenteval.core.llm.gateway import LlmSettings
from agenteval.core.llm.names import chat_model, embedding_model
from agenteval.core.llm.spec import ModelSpec
from agenteval.core.paths import display_path
from agenteval.run.config.gate import GateEntry
from agenteval.run.config.metrics import MetricEntry, read_metrics
from agenteval.run.config.model import DEFAULT_CONCURRENCY, Config, ProcessLimits
from agenteval.run.config.models import ModelEntry, read_model
from agenteval.suite.agents import AgentEntry, read_agent, read_tool
from agenteval.suite.evaluation import Criteria, ToolCheck
from agenteval.suite.model import AgentSpec


class LlmEntry(BaseModel):
    """``llm:`` - calls to judges, model agents and embeddings, and their budget."""

    model_config = ConfigDict(extra="forbid")

    max_calls: int | None = Field(None, ge=0, description="limit of requests in a run, including retries")
    max_cost_usd: float | None = Field(None, ge=0, description="limit of the cost of a run in US dollars")
    cache: bool | str = Field(True, description="store replies on disk; a text is the directory")
    concurrency: int = Field(16, ge=1, description="calls at the same time, per provider")
    requests_per_minute: int | None = Field(None, ge=1, description="limit of requests per minute, per provider")
    retries: int = Field(4, ge=0, le=10, description="retries after a transient failure")
    backoff: float = Field(1.0, ge=0, description="seconds before the first retry; doubles with each retry")
    timeout: float = Field(60.0, gt=0, description="time limit of one attempt in seconds")


class CriteriaEntry(BaseModel):
    """``criteria:`` - conditions on the whole run; the gate fails if one is not met."""

    model_config = ConfigDict(extra="forbid")

    all_successful: bool = Field(False, description="every case has an answer")
    avg_response_ms: float | None = Field(None, gt=0, description="limit of the mean response time in milliseconds")
    max_response_ms: float | None = Field(
        None, gt=0, description="limit of the response time of any answer in milliseconds"
    )
    error_rate_percent: float | None = Field(
        None, ge=0, le=100, description="limit of cases without an answer, in percent"
    )
    quality: dict[str, float] = Field(default_factory=dict, description="metric → required mean score, 0 to 1")
    tool_calls: list[ToolCheck] = Field(default_factory=list, description="conditions on all tool calls")


class LimitsEntry(BaseModel):
    """``limits:`` - resource limits of each process of user code (agent, tool or grader)."""

    model_config = ConfigDict(extra="forbid")

    memory_mb: int | None = Field(None, ge=16, description="limit of data in memory, in MB (10^6 bytes)")
    cpu_s: int | None = Field(
        None, ge=1, description="limit of processor time in seconds; a worker has it for all its calls"
    )


class TemplatesEntry(BaseModel):
    """``templates:`` - user templates that extend or replace the built-in ones; paths are relative to this file."""

    model_config = ConfigDict(extra="forbid")

    comment: str | None = Field(None, description="template of the pull-request comment")
    summary: str | None = Field(None, description="template of the job summary")


class ConfigFile(BaseModel):
    """The whole of ``agenteval.yaml``; every key is optional."""

    model_config = ConfigDict(extra="forbid")

    agents: dict[str, Any] = Field(default_factory=dict, description="name → agent")
    tools: dict[str, Any] = Field(default_factory=dict, description="name → tool under test")
    judge: str | ModelEntry | None = Field(
        None, description="judge model for suites that can also run without a judge"
    )
    embeddings: str | ModelEntry | None = Field(
        None, description="embedding model; default: openai/text-embedding-3-small"
    )
    metrics: list[MetricEntry] = Field(default_factory=list, description="metrics to add to the cases of every suite")
    criteria: CriteriaEntry | None = Field(None, description="conditions on the whole run of every suite")
    personas: dict[str, list[str]] = Field(
        default_factory=dict, description="persona → names of its cases; * matches any text"
    )
    iterations: int | None = Field(None, ge=1, description="number of times each case runs; default: 1")
    concurrency: int | None = Field(
        None, ge=1, description=f"cases that run at the same time; default: {DEFAULT_CONCURRENCY}"
    )
    case_timeout: float | None = Field(
        None, gt=0, description="time limit for all turns of a case in one iteration, in seconds"
    )
    time_limit: float | None = Field(None, gt=0, description="time limit for the whole run, in seconds")
    pass_env: list[str] | None = Field(
        None,
        description="secret-like environment variables (KEY, TOKEN, SECRET, PASSWORD or CREDENTIAL in their names) "
        "to pass to agents, tools and graders; * matches any text; default: all except the runner's",
    )
    limits: LimitsEntry = LimitsEntry()
    templates: TemplatesEntry = TemplatesEntry()
    reports: list[str] = Field(
        default_factory=list,
        description="reporters of other packages, besides the built-in reports; AGENTEVAL_PLUGINS must name them",
    )
    gate: GateEntry = Field(default_factory=GateEntry)
    llm: LlmEntry = LlmEntry()


class PublishedConfig(ConfigFile):
    """``agenteval.yaml`` with all keys of agents, for the published JSON Schema."""

    agents: dict[str, AgentEntry | list[str] | str] = Field(
        default_factory=dict, description="name → agent; a list is a command"
    )
    tools: dict[str, AgentEntry | list[str] | str] = Field(
        default_factory=dict, description="name → tool under test; a list is a command"
    )


def read_config_file(path: Path) -> Config:
    """Read a configuration file.

    Raises:
        ConfigError: with every problem of the file.
    """
    problems: list[Problem] = []
    document = read_yaml(path, shown_as=display_path(path), unset=problems)
    entry, wrong = validate(ConfigFile, {} if document.data is None else document.data, document)
    problems += wrong
    agents = _specs(document, "agents", read_agent, problems)
    tools = _specs(document, "tools", read_tool, problems)
    judge = _model(entry.judge, chat_model, document, "judge", problems) if entry else None
    embeddings = _model(entry.embeddings, embedding_model, document, "embeddings", problems) if entry else None
    problems += _reporters(entry.reports, document) if entry else []
    metrics = read_metrics(entry.metrics, document, judge, problems) if entry else ()
    if problems or entry is None:
        raise ConfigError(problems)
    return Config(
        agents=agents,
        tools=tools,
        judge=judge,
        metrics=metrics,
        embeddings=embeddings,
        criteria=_criteria(entry.criteria) if entry.criteria is not None else None,
        personas=entry.personas,
        iterations=entry.iterations,
        concurrency=entry.concurrency,
        case_timeout_s=entry.case_timeout,
        time_limit_s=entry.time_limit,
        pass_env=None if entry.pass_env is None else tuple(entry.pass_env),
        limits=ProcessLimits(entry.limits.memory_mb, entry.limits.cpu_s),
        gate=entry.gate.gate_policy(),
        compare=entry.gate.compare_policy(),
        comment_template=_beside(document, entry.templates.comment),
        summary_template=_beside(document, entry.templates.summary),
        reports=tuple(dict.fromkeys(entry.reports)),
        llm=_llm_settings(entry.llm, document.directory),
        warnings=document.warnings,
        secrets=document.secrets,
    )


def _beside(document: Document, path: str | None) -> Path | None:
    return None if path is None else document.directory / path


def _reporters(names: Sequence[str], document: Document) -> list[Problem]:
    """Return what is wrong with the reporters of other packages, which are imported."""
    if not names:
        return []
    from agenteval.report.registry import find_reporter

    problems: list[Problem] = []
    for place, name in enumerate(names):
        try:
            find_reporter(name)
        except ConfigError as error:
            problems += [document.problem(("reports", place), problem.message) for problem in error.problems]
    return problems


def _criteria(entry: CriteriaEntry) -> Criteria:
    return Criteria(
        all_successful=entry.all_successful,
        avg_response_ms=entry.avg_response_ms,
        max_response_ms=entry.max_response_ms,
        error_rate_percent=entry.error_rate_percent,
        quality=dict(entry.quality),
        tool_calls=tuple(entry.tool_calls),
    )


_Reader = Callable[[Any, Document, KeyPath], tuple[AgentSpec | None, list[Problem]]]


def _specs(document: Document, key: str, read: _Reader, problems: list[Problem]) -> dict[str, AgentSpec]:
    """The agents or tools below a key, by name."""
    listed = document.data.get(key) if isinstance(document.data, dict) else None
    specs: dict[str, AgentSpec] = {}
    for name, value in (listed if isinstance(listed, dict) else {}).items():
        spec, wrong = read(value, document, (key, name))
        problems += wrong
        if spec is not None:
            specs[str(name)] = spec
    return specs


def _model(
    entry: str | ModelEntry | None,
    read: Callable[[str], ModelSpec],
    document: Document,
    key: str,
    problems: list[Problem],
) -> ModelSpec | None:
    """The model that an entry names."""
    if entry is None:
        return None
    try:
        return read_model(entry, read)
    except ValueError as error:
        problems.append(document.problem((key,), str(error)))
        return None


def _llm_settings(entry: LlmEntry, directory: Path) -> LlmSettings:
    cache = None
    if entry.cache is not False:
        cache = ResponseCache(directory / entry.cache if isinstance(entry.cache, str) else default_directory())
    return LlmSettings(
        limits=Limits(max_calls=entry.max_calls, max_cost_usd=entry.max_cost_usd),
        cache=cache,
        concurrency=entry.concurrency,
        requests_per_minute=entry.requests_per_minute,
        retries=entry.retries,
        backoff_s=entry.backoff,
        timeout_s=entry.timeout,
    )
