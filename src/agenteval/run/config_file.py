"""Reads ``agenteval.yaml`` into a :class:`~agenteval.run.config.Config`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from agenteval.core.confine import UserCodeRules, confined
from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import outside_problem
from agenteval.core.llm.budget import Limits
from agenteval.core.llm.gateway import LlmSettings, ResponseCache, default_directory
from agenteval.core.llm.models import ModelSpec, chat_model, embedding_model
from agenteval.core.records import replace
from agenteval.core.secrets import secrets_in
from agenteval.core.shared_files import seal
from agenteval.core.text import display_path
from agenteval.core.validation import Duration, validate
from agenteval.core.yaml import read_yaml
from agenteval.results.masking import MAX_ANSWER_BYTES
from agenteval.run.config import Config, read_pass_env
from agenteval.run.config_keys import GateEntry, MetricEntry, ModelEntry, read_metrics, read_model
from agenteval.run.options import GONE, OPTIONS, help_of, other_place
from agenteval.suite.agents import CREDENTIALS as AGENT_CREDENTIALS
from agenteval.suite.agents import AgentEntry, read_agent, read_tool
from agenteval.suite.evaluation import Criteria, ToolCheck
from agenteval.suite.model import AgentSpec, Count

_CREDENTIALS = (
    "judge.**",
    "embeddings.**",
    "metrics.*.model.**",
    "metrics.*.options.model.**",
    *(f"{section}.*.{key}" for section in ("agents", "tools") for key in AGENT_CREDENTIALS),
)


# The system has no larger limits of processes.
_MOST = 1_000_000_000

#: The keys that concern the run as a whole; the others concern the suites of a configuration.
RUN_KEYS = ("gate", "llm", "concurrency", "time_limit", "templates", "reports", "max_answer_bytes")

#: The keys whose values are read into objects, which are compared instead of what is written.
OBJECT_KEYS = ("agents", "tools", "judge", "embeddings", "metrics", "criteria")


class LlmEntry(BaseModel):
    """``llm:`` - calls to judges, model agents and embeddings, and their budget."""

    model_config = ConfigDict(extra="forbid")

    max_calls: int | None = Field(None, ge=0, description=help_of("llm.max_calls"))
    max_cost_usd: float | None = Field(None, ge=0, description=help_of("llm.max_cost_usd"))
    cache: bool | str = Field(True, description="store replies to judges on disk; a text is the directory")
    cache_agents: bool = Field(False, description="let the cache also answer model agents")
    concurrency: Count = Field(16, description="calls at the same time, per provider")
    requests_per_minute: int | None = Field(None, ge=1, description="limit of requests per minute, per provider")
    retries: int = Field(3, ge=0, le=10, description="retries after a transient failure")
    backoff: float = Field(2.0, ge=0, description="seconds before the first retry; doubles with each retry")
    timeout: Duration = Field(60.0, description="time limit of one attempt in seconds")


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
    quality: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=dict, description="metric → required mean score, 0 to 1"
    )
    tool_calls: list[ToolCheck] = Field(default_factory=list, description="conditions on all tool calls")


class LimitsEntry(BaseModel):
    """``limits:`` - resource limits of each process of user code (agent, tool or grader)."""

    model_config = ConfigDict(extra="forbid")

    memory_mb: int | None = Field(None, ge=16, le=_MOST, description="limit of data in memory, in MB (10^6 bytes)")
    cpu_s: int | None = Field(
        None, ge=1, le=_MOST, description="limit of processor time in seconds; a worker has it for all its calls"
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
    tags: dict[str, list[str]] = Field(
        default_factory=dict,
        description="tag → names or ids of its cases; * matches any text",
    )
    iterations: Count | None = Field(None, description=help_of("iterations"))
    concurrency: Count | None = Field(None, description=help_of("concurrency"))
    case_timeout: Duration | None = Field(
        None, description="time limit for all turns of a case in one iteration, in seconds"
    )
    time_limit: Duration | None = Field(None, description=help_of("time_limit"))
    pass_env: list[str] | None = Field(
        None,
        description="environment variables that agents, tools, graders and suites get in a CI run, besides PATH and "
        "other basics; * matches any text",
    )
    secrets: list[str] = Field(
        default_factory=list,
        description="environment variables with secrets, besides those with secret-like names; * matches any text",
    )
    limits: LimitsEntry = LimitsEntry()
    max_answer_bytes: int = Field(
        MAX_ANSWER_BYTES,
        ge=1024,
        description="bytes that results keep of an answer and of every other text; metrics read the whole",
    )
    templates: TemplatesEntry = TemplatesEntry()
    reports: list[str] = Field(
        default_factory=list,
        description="reporters of other packages; AGENTEVAL_PLUGINS must name them",
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
    """Read a configuration file."""
    problems: list[Problem] = []
    with confined(pass_env=read_pass_env(path)):
        name = display_path(path)
        document = read_yaml(path, shown_as=name, unset=problems, credentials=_CREDENTIALS, unique=True)
    entry, wrong = validate(ConfigFile, {} if document.data is None else document.data, document)
    problems += map(_with_place, wrong)
    if entry is None and isinstance(document.data, dict):
        # What is written right is read too, so that all mistakes are told at once.
        right = {k: v for k, v in document.data.items() if not any(at.path.startswith(str(k)) for at in wrong)}
        entry, _ = validate(ConfigFile, right, document)
    agents = _specs(document, "agents", read_agent, problems)
    tools = _specs(document, "tools", read_tool, problems)
    judge = _model(entry.judge, chat_model, document, "judge", problems) if entry else None
    embeddings = _model(entry.embeddings, embedding_model, document, "embeddings", problems) if entry else None
    problems += _reporters(entry.reports, document) if entry else []
    metrics = read_metrics(entry.metrics, document, judge, problems) if entry else ()
    cache = _cache(entry.llm, document, problems) if entry else None
    if problems or entry is None:
        raise ConfigError(problems)
    return Config(
        name=document.file,
        agents=agents,
        tools=tools,
        judge=judge,
        metrics=metrics,
        embeddings=embeddings,
        criteria=_criteria(entry.criteria) if entry.criteria is not None else None,
        personas=entry.personas,
        tags=entry.tags,
        iterations=entry.iterations,
        concurrency=entry.concurrency,
        case_timeout_s=entry.case_timeout,
        time_limit_s=entry.time_limit,
        user_code=UserCodeRules(tuple(entry.pass_env or ()), entry.limits.memory_mb, entry.limits.cpu_s),
        max_answer_bytes=entry.max_answer_bytes,
        gate=entry.gate.gate_policy(),
        compare=entry.gate.compare_policy(),
        comment_template=_beside(document, entry.templates.comment),
        summary_template=_beside(document, entry.templates.summary),
        reports=tuple(dict.fromkeys(entry.reports)),
        llm=_llm_settings(entry.llm, cache),
        warnings=document.warnings,
        secrets=document.secrets | _secrets((judge, embeddings), (*agents.values(), *tools.values())),
        of_run=_of_run(entry, document),
        lines={key: document.line((key,)) for key in RUN_KEYS},
        written=written_settings(entry),
    )


def written_settings(entry: ConfigFile) -> dict[str, Any]:
    """Return the value of every key that is no agent, metric or model, by its dotted path; sections are opened."""
    found: dict[str, Any] = {}
    for key in (key for key in ConfigFile.model_fields if key not in OBJECT_KEYS):
        value = getattr(entry, key)
        if isinstance(value, BaseModel):
            found |= {f"{key}.{name}": item for name, item in value.model_dump(mode="json").items()}
        else:
            found[key] = value
    return {key: sorted(value) if key == "gate.fail_on" else value for key, value in found.items()}


def _of_run(entry: ConfigFile, document: Document) -> dict[str, Any]:
    templates = {name: _beside(document, path) for name, path in entry.templates}
    llm = entry.llm.model_dump()
    if isinstance(entry.llm.cache, str):
        llm["cache"] = document.directory / entry.llm.cache
    values = {key: getattr(entry, key) for key in RUN_KEYS} | {"llm": llm, "templates": templates}
    defaults = ConfigFile()
    return {key: value for key, value in values.items() if getattr(entry, key) != getattr(defaults, key)}


def names_elsewhere() -> frozenset[str]:
    """Return the names of options and keys that could be taken for inputs of the action, with hyphens."""
    flags = (option.flags[-1].removeprefix("--") for option in OPTIONS if option.flags)
    keys = (name.replace("_", "-") for model in (ConfigFile, GateEntry) for name in model.model_fields)
    return frozenset({*flags, *keys, *(name.replace("_", "-") for name in GONE)})


def place_of(name: str) -> str:
    """Return where an option or key is written that is no such option or input; empty if nothing has the name."""
    key = name.removeprefix("--").replace("-", "_")
    if key in GateEntry.model_fields:
        in_file = f"write `gate: {{{key}: …}}` in agenteval.yaml"
    else:
        in_file = f"write `{key}:` in agenteval.yaml" if key in ConfigFile.model_fields else ""
    return other_place(name) or in_file


def _with_place(problem: Problem) -> Problem:
    if problem.kind is not Kind.UNKNOWN_KEY or "did you mean" in problem.message:
        return problem
    place = other_place(problem.path)
    return replace(problem, message=f"unknown key; {place}") if place else problem


def _secrets(models: Iterable[ModelSpec | None], agents: Iterable[AgentSpec]) -> frozenset[str]:
    found = {model.api_key for model in models if model is not None and model.api_key}
    for agent in agents:
        for name, value in (agent.options.get("headers") or {}).items():
            found |= secrets_in(name, value)
        for name, value in (*agent.env.items(), *_texts(agent.options.get("body")), *_texts(agent.config)):
            found |= secrets_in(name, value)
    return frozenset(found)


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, key)


def _beside(document: Document, path: str | None) -> Path | None:
    return None if path is None else document.directory / path


def _reporters(names: Sequence[str], document: Document) -> list[Problem]:
    if not names:
        return []
    from agenteval.report.report import find_reporter

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
    if entry is None:
        return None
    try:
        return read_model(entry, read)
    except ValueError as error:
        problems.append(document.problem((key,), str(error)))
        return None


def _cache(entry: LlmEntry, document: Document, problems: list[Problem]) -> ResponseCache | None:
    if entry.cache is False:
        return None
    if entry.cache is True:
        return ResponseCache(default_directory(), seal())
    directory = document.directory / entry.cache
    if problem := outside_problem(directory):
        problems.append(document.problem(("llm", "cache"), problem))
    return ResponseCache(directory, seal())


def _llm_settings(entry: LlmEntry, cache: ResponseCache | None) -> LlmSettings:
    return LlmSettings(
        limits=Limits(max_calls=entry.max_calls, max_cost_usd=entry.max_cost_usd),
        cache=cache,
        caches_agents=entry.cache_agents,
        concurrency=entry.concurrency,
        requests_per_minute=entry.requests_per_minute,
        retries=entry.retries,
        backoff_s=entry.backoff,
        timeout_s=entry.timeout,
    )
