"""``models:``, ``metrics:`` and ``gate:`` of ``agenteval.yaml``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_type_hints

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from agenteval.compare.gate import DEFAULT_FAIL_ON, FAIL_ON, FailOn, GatePolicy, OnMissing
from agenteval.compare.gate import parse_fail_on as _parse
from agenteval.compare.gate_failures import Required
from agenteval.compare.policy import (
    ComparePolicy,
    Confirm,
    ConfirmationLimits,
    OnDecline,
    OnLowControl,
    PolicyName,
    Quarantine,
)
from agenteval.compare.regression.settings import NAMED_SETTINGS, GateSettings
from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.models import ModelSpec, chat_model, embedding_model
from agenteval.core.start import RENAMED
from agenteval.core.text import choices
from agenteval.core.validation import Duration, value_message
from agenteval.metrics.registry import REGISTRY, MetricType
from agenteval.run.config import DEFAULT_IGNORED, AddedMetric, IgnoredFiles
from agenteval.suite.model import CaseFilter, MetricConfig, MetricKind, Place


class ModelEntry(BaseModel):
    """A model; the short form is its name."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(min_length=1, description="as in openai/gpt-6-luna, anthropic/claude-…, azure/…, ollama/…")
    endpoint: str | None = Field(None, description="address of the API")
    api_key: str | None = Field(None, repr=False, description="API key; default: the provider's environment variable")
    api_version: str | None = Field(None, description="API version of Azure OpenAI")


def read_model(entry: str | ModelEntry, read: Callable[[str], ModelSpec]) -> ModelSpec:
    """Return the model that an entry names.

    Raises:
        ValueError: no such model exists.
    """
    written = ModelEntry(model=entry) if isinstance(entry, str) else entry
    spec = read(written.model)
    return replace(spec, endpoint=written.endpoint, api_key=written.api_key, api_version=written.api_version)


_PYTHON = "python"
_FILE = re.compile(r"(?P<file>.+\.py):(?P<name>[^\W\d][\w.]*)")
_MODULE = re.compile(r"[^\W\d][\w.]*:(?P<name>[^\W\d][\w.]*)")
# Metrics whose model is an embedding model; other metrics use a judge model.
_EMBEDS = frozenset({"similar", "consistency", "schema"})


class MetricEntry(BaseModel):
    """A metric that is added to suites; keys that are not listed are options of the metric."""

    model_config = ConfigDict(extra="allow")

    python: str | None = Field(None, description="function or class: `path.py:name` or `module:name`")
    type: str | None = Field(None, description="built-in metric, or `name.of.plugin` of an installed package")
    id: str | None = Field(None, min_length=1, description="name in reports (the name of the metric)")
    threshold: float | None = Field(None, ge=0, le=1, description="score needed to pass; none: the metric's verdict")
    gating: bool = Field(True, description="false only reports the score")
    suites: list[str] = Field(default_factory=list, description="paths of suites; * matches any text; default: all")
    cases: list[str] = Field(default_factory=list, description="names or ids; * matches any text; default: all")
    tags: list[str] = Field(default_factory=list, description="tags of cases; * matches any text; default: all")
    timeout: Duration = Field(60.0, description="seconds for one answer")
    options: dict[str, Any] = Field(default_factory=dict, description="options of the metric")


class _PlacedEntry:
    def __init__(self, entry: MetricEntry, document: Document, at: KeyPath) -> None:
        self.entry = entry
        self.at = at
        self.document = document
        own = entry.model_extra or {}
        self.options: dict[str, Any] = {**entry.options, **own}
        self.problems: list[Problem] = []
        for name in entry.options.keys() & own.keys():
            self.add(f"{name!r} is given twice; remove it here or under `options`", name)

    def add(self, message: str, key: str | None = None) -> None:
        """Add a problem at a key or option, or at the whole entry."""
        steps: KeyPath = () if key is None else (key,)
        if key is not None and key in self.entry.options:
            steps = ("options", key)
        self.problems.append(self.document.problem((*self.at, *steps), message))

    def config(self, name: str, kind: MetricKind, options: Mapping[str, Any], metric_type: str) -> MetricConfig:
        """Return the configuration of the metric."""
        entry = self.entry
        return MetricConfig(
            id=entry.id or name,
            type=metric_type,
            kind=kind,
            threshold=entry.threshold if entry.gating else None,
            options=options,
            timeout_s=entry.timeout,
            requested_by="config",
            gating=entry.gating,
            only=CaseFilter(tuple(entry.cases), tuple(entry.tags)) if entry.cases or entry.tags else None,
            where=Place(str(self.document.directory), self.document.file, self.document.line((*self.at, "python"))),
        )


def read_metrics(
    entries: list[MetricEntry], document: Document, judge: ModelSpec | None, problems: list[Problem]
) -> tuple[AddedMetric, ...]:
    """Return the metrics of the file.

    Args:
        judge: the default model for metrics that need one.
    """
    found = []
    for index, written in enumerate(entries):
        item = _PlacedEntry(written, document, ("metrics", index))
        config = _config(item, judge)
        problems += item.problems
        if config is not None and not item.problems:
            over_iterations = hasattr(REGISTRY[config.type].load(), "measure_all")
            found.append(AddedMetric(config, tuple(written.suites), over_iterations))
    return tuple(found)


def _config(item: _PlacedEntry, judge: ModelSpec | None) -> MetricConfig | None:
    entry = item.entry
    if (entry.python is None) == (entry.type is None):
        item.add("needs exactly one of `python` and `type`")
        return None
    if entry.python is not None:
        return _python(item, entry.python)
    name = entry.type or ""
    if "." in name:
        return item.config(name, "custom", {"reference": name, "arguments": item.options}, _PYTHON)
    known = [key for key in REGISTRY if key != _PYTHON]
    if name not in known:
        hint = "; write `python: path.py:name`" if name == _PYTHON else choices(name, known, "known")
        item.add(f"no metric {name!r}{hint}", "type")
        return None
    registered = REGISTRY[name]
    return item.config(name, registered.kind, dict(_options(item, registered, judge)), name)


def _python(item: _PlacedEntry, reference: str) -> MetricConfig | None:
    in_file = _FILE.fullmatch(reference)
    match = in_file or _MODULE.fullmatch(reference)
    if match is None:
        item.add(f"{reference!r} must be `path.py:name` or `module:name`", "python")
        return None
    if in_file is not None:
        path = Path(item.document.directory, in_file["file"])
        if not path.is_file():
            item.add(f"file {in_file['file']!r} does not exist in {item.document.directory}", "python")
            return None
    return item.config(match["name"], "custom", {"reference": reference, "arguments": item.options}, _PYTHON)


def _options(item: _PlacedEntry, registered: MetricType, judge: ModelSpec | None) -> Iterator[tuple[str, Any]]:
    """Yield the options of a built-in metric, checked against the types of its fields."""
    kind = registered.load()
    hints = get_type_hints(kind)
    allowed = registered.options
    for name in item.options:
        if name not in allowed:
            keys = [*allowed, *MetricEntry.model_fields]
            item.add(f"unknown key{choices(name, keys)}", name)
    implied = {"name": item.entry.id or registered.name, "metric": registered.name, "model": judge}
    for option in (option for option in fields(kind) if option.name in allowed):
        if option.name in item.options:
            given = item.options[option.name]
            yield from _checked(item, registered, option.name, hints[option.name], given)
        elif option.default is MISSING and option.default_factory is MISSING:
            value = implied.get(option.name)
            if value is not None:
                yield option.name, value
            else:
                hint = ", here or as `judge:` of this file" if option.name == "model" else ""
                item.add(f"{registered.name} needs `{option.name}`{hint}")


def _checked(
    item: _PlacedEntry, registered: MetricType, name: str, hint: Any, given: Any
) -> Iterator[tuple[str, Any]]:
    try:
        if name == "model":
            read: Callable[[str], ModelSpec] = embedding_model if registered.name in _EMBEDS else chat_model
            yield name, read_model(TypeAdapter(str | ModelEntry).validate_python(given), read)
        else:
            yield name, TypeAdapter(hint).validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        message = value_message(first)
        item.add(f"{place}: {message}" if place else message, name)
    except ValueError as error:
        item.add(str(error), name)
    except ConfigError as error:
        item.problems += error.problems


NamedSettings = Literal["default", "thrifty", "thorough"]

_DEFAULTS = GateSettings()
# Settings that a project may choose; the other limits were calibrated together.
_CHOSEN = ("tolerance", "require", "window", "min_effect", "max_cases", "head_to_head_calls")
_CALIBRATED = "the limits of the gate were calibrated together; choose `settings: thrifty` or `settings: thorough`"
# Settings of earlier versions, with what to do.
_REMOVED = {
    **dict.fromkeys(("screen", "alpha_aggregate", "alpha_single", "alpha_case", "case_drop"), _CALIBRATED),
    "confidence": "the interval belongs to the test that decided",
    "max_repeats": "a suspected case runs at most 12 times on each side; `max_confirmation` limits the cost",
}
_GATE = GatePolicy()
_MOST = ConfirmationLimits()


class QuarantineEntry(BaseModel):
    """A case that runs and is reported, but does not affect the gate until a date."""

    model_config = ConfigDict(extra="forbid")

    case: str = Field(min_length=1, description="name or id; * matches any text")
    until: date = Field(description="last day (YYYY-MM-DD, UTC), preferably at most a year ahead")
    reason: str = Field("", description="reason, shown in reports")


class GatedMetric(BaseModel):
    """How the gate treats one metric."""

    model_config = ConfigDict(extra="forbid")

    gating: bool = Field(description="false: the metric is only reported")


class ConfirmationEntry(BaseModel):
    """The largest cost of the runs that confirm suspected regressions."""

    model_config = ConfigDict(extra="forbid")

    runs: int | None = Field(
        _MOST.runs,
        ge=0,
        description="calls of so many runs of the suite, both sides and single cases together; null: no limit",
    )
    calls: int | None = Field(_MOST.calls, ge=0, description="iterations of cases, both sides together")
    cost_usd: float | None = Field(
        _MOST.cost_usd, ge=0, description="cost of agents and judges in US dollars, as far as it is known"
    )


class GateEntry(BaseModel):
    """What fails the gate."""

    model_config = ConfigDict(extra="forbid")

    fail_on: frozenset[FailOn] = Field(
        DEFAULT_FAIL_ON,
        validation_alias=AliasChoices("fail_on", "fail-on"),
        description="failures, regressions, unproven, errors; or none",
        # A set has no order, but the published schema must not change between builds; _words checks the text form.
        json_schema_extra={
            "type": ["array", "string"],
            "items": {"enum": [*FAIL_ON, "none"]},
            "default": [word for word in FAIL_ON if word in DEFAULT_FAIL_ON],
        },
    )
    max_error_rate: float = Field(
        0.10,
        ge=0,
        le=1,
        description="share of cases that may be errors if `fail_on` has no `errors`; above it the run is broken",
    )
    policy: PolicyName = Field("statistics", description="or a simple rule: any-flip, mean-drop, threshold")
    confirm: Confirm = Field(
        "against-base",
        description="against-base: a suspected regression is proven side by side with the base commit's agent; "
        "rerun: against earlier runs; off: nothing runs again",
    )
    max_confirmation: ConfirmationEntry = Field(
        default_factory=ConfirmationEntry, description="limits of the cost of confirming a suspected regression"
    )
    long_look: OnDecline = Field(
        ComparePolicy().long_look,
        description="a slow decline of the base branch, proven beside an early commit: `fail` the run; `issue`: the "
        "action opens an issue, and the run does not fail; off: never compare with early commits",
    )
    on_low_control: OnLowControl = Field(
        ComparePolicy().on_low_control,
        description="the base commit's agent scored lower than in the earlier runs, in two pull requests of a day: "
        "only `warn`; `dispatch`: the action starts a new run of the base branch, once in each epoch",
    )
    staged: bool = Field(
        ComparePolicy().staged,
        description="a pull request asks a case only once if it scored the same in all earlier runs: cheaper, and "
        "finds a little less",
    )
    settings: NamedSettings = Field(
        "default", description="thrifty runs less again and finds less; thorough runs more again and finds more"
    )
    tolerance: float = Field(_DEFAULTS.tolerance, ge=0, le=1, description="drop of a mean that does not matter")
    require: Literal["no-worse-than"] | None = Field(
        _DEFAULTS.require,
        description="no-worse-than: green needs that a drop of more than `tolerance` is excluded; without that the "
        "change is unproven",
    )
    window: int = Field(_DEFAULTS.window, ge=1, description="number of newest baseline runs that count")
    min_effect: float = Field(_DEFAULTS.min_effect, ge=0, le=1, description="smallest drop of a mean that counts")
    max_cases: int = Field(_DEFAULTS.max_cases, ge=1, description="limit of suspected cases that run again")
    head_to_head_calls: int = Field(
        _DEFAULTS.head_to_head_calls,
        ge=0,
        description="calls of one run of the head-to-head: smaller suites run more iterations, at most "
        f"{_DEFAULTS.head_to_head_factor} times as many; 0: never",
    )
    metrics: dict[str, GatedMetric] = Field(default_factory=dict, description="metric → whether it gates")
    deterministic: bool = Field(False, description="the agent is deterministic, so one flip is a regression")
    strict: bool = Field(False, description="every failing case fails the gate, even if it fails in the baseline too")
    must_pass: list[str] = Field(
        default_factory=list,
        description="names or ids of cases that fail the gate whenever they fail; * matches any text",
    )
    quarantine: list[QuarantineEntry] = Field(
        default_factory=list, description="cases to leave out of the gate until a date"
    )
    on_unchecked: OnMissing = Field(
        _GATE.on_unchecked,
        description="criteria without data, metrics without a score: `fail` the gate, or only `warn`",
    )
    on_unjudged: OnMissing = Field(
        _GATE.on_unjudged, description="cases that limits of a suite leave unjudged: `fail` the gate, or only `warn`"
    )
    ignore: list[IgnoredFiles] = Field(
        list(DEFAULT_IGNORED),
        description="files that cannot change a verdict, as patterns of git; a red pull request that changes nothing "
        "else stays red without a run; the base branch must list them too",
    )
    min_pass_rate: float | None = Field(
        None, ge=0, le=1, description="required share of passed cases, for `policy: threshold`"
    )
    max_latency_increase: float | None = Field(
        None, ge=0, description="limit for the growth of the mean latency; 0.2 is 20 %"
    )
    max_cost_increase: float | None = Field(
        None, ge=0, description="limit for the growth of the cost per answer; 0.2 is 20 %"
    )

    @model_validator(mode="before")
    @classmethod
    def _removed(cls, value: Any) -> Any:
        for name in _REMOVED.keys() & value.keys() if isinstance(value, Mapping) else ():
            raise ValueError(f"`{name}` is not a setting any more: {_REMOVED[name]}")
        return value

    @field_validator("fail_on", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        if isinstance(value, frozenset):
            return value
        return _parse(",".join(str(item) for item in value) if isinstance(value, list) else str(value))

    @field_validator("confirm", mode="before")
    @classmethod
    def _spelling(cls, value: Any) -> Any:
        if value is False:
            # In YAML 1.1 a bare off is a boolean.
            return "off"
        return RENAMED["gate.confirm"].get(value, value) if isinstance(value, str) else value

    @field_validator("long_look", mode="before")
    @classmethod
    def _off(cls, value: Any) -> Any:
        # In YAML 1.1 a bare off is a boolean.
        return "off" if value is False else value

    @model_validator(mode="after")
    def _needs_pass_rate(self) -> GateEntry:
        if self.policy == "threshold" and self.min_pass_rate is None:
            raise ValueError("`policy: threshold` needs `min_pass_rate`, for instance 0.9")
        return self

    @model_validator(mode="after")
    def _staged_needs_proof(self) -> GateEntry:
        if self.staged and (self.policy != "statistics" or self.confirm != "against-base"):
            raise ValueError("`staged` needs `policy: statistics` and `confirm: against-base`; remove it")
        if self.staged and self.require is not None:
            raise ValueError("`staged` excludes too little for `require`; remove one of them")
        return self

    def gate_policy(self) -> GatePolicy:
        """The policy of the gate."""
        return GatePolicy(
            fail_on=self.fail_on,
            max_error_rate=self.max_error_rate,
            quarantine=self._quarantine(),
            on_unchecked=self.on_unchecked,
            on_unjudged=self.on_unjudged,
            required=Required(self.strict, tuple(self.must_pass)),
        )

    def compare_policy(self) -> ComparePolicy:
        """The policy of the comparison with the baseline."""
        return ComparePolicy(
            name=self.policy,
            settings=replace(NAMED_SETTINGS[self.settings], **self._chosen()),
            confirm=self.confirm,
            gating={name: metric.gating for name, metric in self.metrics.items()},
            deterministic=self.deterministic,
            quarantine=self._quarantine(),
            max_confirmation=ConfirmationLimits(**self.max_confirmation.model_dump()),
            staged=self.staged,
            long_look=self.long_look,
            on_low_control=self.on_low_control,
            min_pass_rate=self.min_pass_rate,
            max_latency_increase=self.max_latency_increase,
            max_cost_increase=self.max_cost_increase,
        )

    def _chosen(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _CHOSEN if name in self.model_fields_set}

    def _quarantine(self) -> tuple[Quarantine, ...]:
        return tuple(Quarantine(entry.case, entry.until, entry.reason) for entry in self.quarantine)
