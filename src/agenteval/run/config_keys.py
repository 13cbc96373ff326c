"""The keys ``models:``, ``metrics:`` and ``gate:`` of ``agenteval.yaml``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.models import ModelSpec, chat_model, embedding_model
from agenteval.core.records import replace
from agenteval.core.text import choices
from agenteval.core.validation import Duration, value_message
from agenteval.gate.failures import Required
from agenteval.gate.values import TOLERANCE, ComparePolicy, Constants, First, Quarantine, Resource
from agenteval.gate.verdict import DEFAULT_FAIL_ON, FAIL_ON, FailOn, GatePolicy
from agenteval.gate.verdict import parse_fail_on as _parse
from agenteval.metrics.registry import REGISTRY, MetricType
from agenteval.run.config import AddedMetric
from agenteval.run.options import help_of
from agenteval.suite.model import CaseFilter, MetricConfig, MetricKind, Place


class ModelEntry(BaseModel):
    """A model; the short form is its name."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(min_length=1, description="as in openai/gpt-6-luna, anthropic/claude-…, azure/…, ollama/…")
    endpoint: str | None = Field(None, description="address of the API")
    api_key: str | None = Field(None, repr=False, description="API key; default: the provider's environment variable")
    api_version: str | None = Field(None, description="API version of Azure OpenAI")


def read_model(entry: str | ModelEntry, read: Callable[[str], ModelSpec]) -> ModelSpec:
    """Return the model that an entry names."""
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
        steps: KeyPath = () if key is None else (key,)
        if key is not None and key in self.entry.options:
            steps = ("options", key)
        self.problems.append(self.document.problem((*self.at, *steps), message))

    def config(self, name: str, kind: MetricKind, options: Mapping[str, Any], metric_type: str) -> MetricConfig:
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
    """Return the metrics of the file."""
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


_LOOKS = Constants().looks
_NO_WORSE = re.compile(r"no-worse-than\s+(0?\.\d+|\d+(?:\.\d+)?)")


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


_FIXED = (
    "the limits of the gate belong together and cannot be chosen; `pairs: 4` or `pairs: 8` proves less and costs less"
)
_ALWAYS_PROVEN = (
    "what is suspicious is always proven beside the base; name `control:` at the agent if it is deployed elsewhere"
)
_RESOURCE = "write `resources: {latency: 0.2}` or `resources: {cost: 0.2}`, the share by which it may rise"
#: Settings of earlier versions, with what to write instead.
REMOVED: Mapping[str, str] = {
    **dict.fromkeys(
        ("settings", "window", "max_cases", "head_to_head_calls", "screen", "alpha_aggregate", "alpha_single"), _FIXED
    ),
    **dict.fromkeys(("alpha_case", "case_drop", "confidence", "max_repeats", "min_effect"), _FIXED),
    **dict.fromkeys(("confirm", "on_low_control"), _ALWAYS_PROVEN),
    **dict.fromkeys(("max_latency_increase", "max_cost_increase"), _RESOURCE),
    "policy": "there is one gate; to fail at each failing case write `strict: true`, at some `must_pass: [NAME]`",
    "min_pass_rate": "to fail at each failing case write `strict: true`, at some `must_pass: [NAME]`",
    "tolerance": "a drop has to be proven; to exclude one of 0.03 write `require: no-worse-than 0.03`",
    "max_confirmation": "write `pairs: 8` for fewer passes side by side, or `llm: {max_cost_usd: 5}`",
    "long_look": "runs of the base branch look back by themselves; remove it",
    "staged": "write `first: early`, which is the default, or `first: whole`",
    "deterministic": "answers that repeat are proven by the order of their passes; remove it",
    "on_unchecked": "what was not checked fails the gate; remove the criterion or the metric that measures nothing",
    "on_unjudged": "cases that limits leave to no judge are listed; raise the limit of the suite",
    "on_unproven": "write `fail_on: [failures, regressions, errors]` without `unproven`",
    "ignore": "README, CHANGELOG, CONTRIBUTING and LICENSE never count, and everything else does; remove it",
}


class GateEntry(BaseModel):
    """What fails the gate."""

    model_config = ConfigDict(extra="forbid")

    fail_on: frozenset[FailOn] = Field(
        DEFAULT_FAIL_ON,
        description=help_of("gate.fail_on"),
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
        description="share of cases that may be errors if `fail_on` has no `errors`",
    )
    strict: bool = Field(False, description="every failing case fails the gate, even if it fails in the baseline too")
    must_pass: list[str] = Field(
        default_factory=list,
        description="names or ids of cases that fail the gate whenever they fail; * matches any text",
    )
    quarantine: list[QuarantineEntry] = Field(
        default_factory=list, description="cases to leave out of the gate until a date"
    )
    metrics: dict[str, GatedMetric] = Field(default_factory=dict, description="metric → whether it gates")
    resources: dict[Resource, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        description=f"latency, cost or tokens → the share by which it may grow; a list allows {TOLERANCE:.0%}",
        json_schema_extra={"type": ["object", "array"]},
    )
    pairs: int = Field(
        _LOOKS[-1], ge=_LOOKS[0], le=_LOOKS[-1], description="most pairs of passes side by side: 4, 8 or 16"
    )
    first: First = Field(
        "early", description="early: the first run of a change stops when nothing looks low; whole: never"
    )
    require: float | None = Field(
        None,
        gt=0,
        le=1,
        description="`no-worse-than 0.03`: the gate passes only if no mean can have dropped by 0.03",
        json_schema_extra={"anyOf": [{"type": "string", "pattern": _NO_WORSE.pattern}, {"type": "null"}]},
    )
    on_missing_baseline: Literal["warn", "fail"] = Field(
        "warn",
        description="without a baseline to compare with: warn, or fail (the run is unproven)",
    )

    @model_validator(mode="before")
    @classmethod
    def _removed(cls, value: Any) -> Any:
        for name in value if isinstance(value, Mapping) else ():
            if name in REMOVED:
                raise ValueError(f"`{name}` is not a setting any more: {REMOVED[name]}")
        return value

    @field_validator("fail_on", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        if isinstance(value, frozenset):
            return value
        return _parse(",".join(str(item) for item in value) if isinstance(value, list) else str(value))

    @field_validator("resources", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return dict.fromkeys(map(str, value), TOLERANCE) if isinstance(value, list) else value

    @field_validator("require", mode="before")
    @classmethod
    def _margin(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        found = _NO_WORSE.fullmatch(value.strip())
        if found is None:
            raise ValueError("write `no-worse-than 0.03`, with the drop that has to be excluded")
        return float(found[1])

    def gate_policy(self) -> GatePolicy:
        """The policy of the gate."""
        return GatePolicy(
            fail_on=self.fail_on,
            max_error_rate=self.max_error_rate,
            quarantine=self._quarantine(),
            required=Required(self.strict, tuple(self.must_pass)),
            needs_baseline=self.on_missing_baseline == "fail",
        )

    def compare_policy(self) -> ComparePolicy:
        """The settings of the comparison with the baseline."""
        return ComparePolicy(
            gating={name: metric.gating for name, metric in self.metrics.items()},
            resources=self.resources,
            no_worse_than=self.require,
            pairs=self.pairs,
            first=self.first,
            quarantine=self._quarantine(),
        )

    def _quarantine(self) -> tuple[Quarantine, ...]:
        return tuple(Quarantine(entry.case, entry.until, entry.reason) for entry in self.quarantine)
