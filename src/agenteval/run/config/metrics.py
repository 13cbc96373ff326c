"""``metrics:`` of ``agenteval.yaml``: metrics that are added to the cases of every suite in any format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agenteval.core.documents.document import Document, KeyPath
from agenteval.core.documents.durations import Duration
from agenteval.core.documents.validation import value_message
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.names import chat_model, embedding_model
from agenteval.core.llm.spec import ModelSpec
from agenteval.core.text.choices import choices
from agenteval.metrics.registry import REGISTRY, MetricType
from agenteval.run.config.model import AddedMetric
from agenteval.run.config.models import ModelEntry, read_model
from agenteval.suite.model import CaseFilter, MetricConfig, MetricKind, Place

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


class _Entry:
    """An entry of the list, with its position in the file and its problems."""

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
        entries: the list as it was read.
        document: the file, for positions in messages.
        judge: the default model for metrics that need one.
        problems: receives the problems of the list.
    """
    found = []
    for index, written in enumerate(entries):
        item = _Entry(written, document, ("metrics", index))
        config = _config(item, judge)
        problems += item.problems
        if config is not None and not item.problems:
            over_iterations = hasattr(REGISTRY[config.type].load(), "measure_all")
            found.append(AddedMetric(config, tuple(written.suites), over_iterations))
    return tuple(found)


def _config(item: _Entry, judge: ModelSpec | None) -> MetricConfig | None:
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


def _python(item: _Entry, reference: str) -> MetricConfig | None:
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


def _options(item: _Entry, registered: MetricType, judge: ModelSpec | None) -> Iterator[tuple[str, Any]]:
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


def _checked(item: _Entry, registered: MetricType, name: str, hint: Any, given: Any) -> Iterator[tuple[str, Any]]:
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
