"""``agenteval explain``: what a concept, a metric or a setting means, in the words of the documentation."""

from __future__ import annotations

import difflib
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass
from agenteval.core.text import did_you_mean
from agenteval.metrics.registry import METRICS, MetricType
from agenteval.results.verdict import CONCEPTS, Concept
from agenteval.suite.formats.registry import formats


def schema_names() -> tuple[str, ...]:
    """List the schemas that ``schema`` makes."""
    return tuple(_schemas())


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema with one of the ``schema_names``."""
    title, body = _schemas()[name]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **body(), "title": title}


def _schemas() -> Mapping[str, tuple[str, Callable[[], dict[str, Any]]]]:
    from agenteval.results.model import SCHEMA_VERSION

    # Imported when they are asked for.
    return {
        "results": (f"agenteval results.json, schema_version {SCHEMA_VERSION}", _of("results.model:Results")),
        "findings": ("agenteval findings.json, schema_version 1", _of("report.findings:FindingsFile")),
        "config": ("agenteval.yaml", _of("run.config_file:PublishedConfig", is_read=True)),
        "accepted": (".agenteval/accepted.yaml", _of("run.rules.accepted_file:AcceptedFile", is_read=True)),
        **{
            item.name: (f"{item.title}, as agenteval reads it", item.schema)
            for item in formats()
            if item.schema is not None
        },
        "request": ("what an agent gets", _of("agents.protocol:RequestDocument", is_read=True)),
        "reply": ("what an agent gives", _of("agents.protocol:ReplyDocument", is_read=True)),
        "recording": ("a line of a replay file", _of("agents.protocol:RecordingDocument", is_read=True)),
        "trace": ("a line of recorded traces", _trace),
    }


def _of(model: str, *, is_read: bool = False) -> Callable[[], dict[str, Any]]:
    module, _, name = model.partition(":")
    mode = "validation" if is_read else "serialization"
    return lambda: getattr(import_module(f"agenteval.{module}"), name).model_json_schema(mode=mode)


def _trace() -> dict[str, Any]:
    body = _of("agents.protocol:TraceDocument", is_read=True)()
    # ``final_output`` is an older name of ``output``.
    body["required"].remove("output")
    return {**body, "anyOf": [{"required": ["output"]}, {"required": ["final_output"]}]}


@dataclass(frozen=True)
class ConfigKey:
    """One key of a mapping.

    Attributes:
        default: as in YAML; empty for none.
    """

    name: str
    values: str
    default: str
    meaning: str


@dataclass(frozen=True)
class ConfigMapping:
    """A mapping of the file.

    Attributes:
        places: where it can be, such as ``agents.NAME``; the whole file has an empty place.
    """

    places: tuple[str, ...]
    keys: tuple[ConfigKey, ...]


@cache
def config_mappings() -> list[ConfigMapping]:
    """Return all mappings of ``agenteval.yaml``, the whole file first."""
    root = schema("config")
    places: dict[str, list[str]] = {}
    for place, name in _nested(root, root, ""):
        places.setdefault(name, []).append(place)
    named = ((tuple(dict.fromkeys(where)), root["$defs"][name]) for name, where in places.items())
    return [ConfigMapping(where, tuple(_keys(model, root))) for where, model in ((("",), root), *named)]


def _keys(model: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[ConfigKey]:
    for name, value in model["properties"].items():
        default = value.get("default")
        shown = "" if default in (None, "", []) or isinstance(default, dict) else _yaml(default)
        yield ConfigKey(name, _type(value, root), shown, _says(value, root))


def _yaml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace('"', "") if not isinstance(value, str) else value


def _says(value: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    text = str(value.get("description", ""))
    if not text and "$ref" in value:
        text = str(root["$defs"][_name(value)].get("description", ""))
    # The first paragraph of a docstring has doubled code markers and begins with the key.
    first = " ".join(text.partition("\n\n")[0].replace("``", "`").split())
    return re.sub(r"^`\w+:` - (\w)", lambda match: match[1].upper(), first)


def _type(value: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if alternatives := _alternatives(value):
        return " or ".join(dict.fromkeys(filter(None, (_type(member, root) for member in alternatives))))
    if "$ref" in value:
        return "mapping"
    if "enum" in value:
        return " | ".join(f"`{_yaml(item)}`" for item in value["enum"])
    kind = value.get("type")
    if kind == "array":
        inner = _type(value["items"], root) if value.get("items") else ""
        return f"list of {inner}" if inner else "list"
    if kind == "object":
        return "mapping"
    if isinstance(kind, list):
        return "list or text"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "", "number": "number"}
    return names.get(str(kind), "") + _limits(value)


def _limits(value: Mapping[str, Any]) -> str:
    signs = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
    limits = [f"{sign} {value[key]:g}" for key, sign in signs if key in value]
    return f" {', '.join(limits)}" if limits else ""


def _nested(model: Mapping[str, Any], root: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    for key, value in model.get("properties", {}).items():
        for suffix, member in _members(value):
            name = _name(member)
            place = f"{at}{key}{suffix}"
            yield place, name
            yield from _nested(root["$defs"][name], root, f"{place}.")


def _members(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if "$ref" in value:
        yield "", value
    for member in _alternatives(value):
        yield from _members(member)
    for key, suffix in (("items", "[]"), ("additionalProperties", ".NAME")):
        if isinstance(value.get(key), dict):
            for inner, member in _members(value[key]):
                yield f"{suffix}{inner}", member


def _alternatives(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = value.get("anyOf") or value.get("oneOf") or ()
    return found


def _name(value: Mapping[str, Any]) -> str:
    return str(value["$ref"]).rpartition("/")[2]


_MOST_NEAREST = 3
_WIDTH = 80
# Words of reports that a concept explains.
_NEAR = {"run": ("shard", "merge"), "iteration": ("pass", "session"), "control": ("side by side",)}


@dataclass(frozen=True)
class Topic:
    """Something that can be explained.

    Attributes:
        group: the list that has it; empty for a value of a concept.
        lines: its explanation; made when it is asked for, because a metric is imported for it.
    """

    group: str
    names: tuple[str, ...]
    lines: Callable[[], list[str]]


def explain(words: Sequence[str]) -> list[str]:
    """Return what names mean: the one that all words are, or else each of them; everything that has it."""
    entries = _entries()
    whole = _plain(" ".join(words))
    names = (whole,) if any(whole in map(_plain, entry.names) for entry in entries) else tuple(map(_plain, words))
    found = {name: [entry for entry in entries if name in map(_plain, entry.names)] for name in names}
    problems = [
        Problem(f"no concept, metric or setting is named {word!r}{_nearest(name, entries)}", kind=Kind.UNKNOWN_NAME)
        for word, name in zip(words, names, strict=False)
        if not found[name]
    ]
    if problems:
        raise ConfigError(problems)
    return _wrapped([line for each in found.values() for entry in each for line in ("", *entry.lines())][1:])


def all_names() -> list[str]:
    """Return a line for each group, with the names that can be explained."""
    groups: dict[str, list[str]] = {}
    for entry in _entries():
        if entry.group:
            groups.setdefault(entry.group, []).append(entry.names[0])
    return _wrapped(f"{group}: {', '.join(dict.fromkeys(names))}" for group, names in groups.items())


def _entries() -> list[Topic]:
    return [*chain.from_iterable(map(_of_concept, CONCEPTS)), *map(_of_metric, METRICS), *_of_settings()]


def _wrapped(lines: Iterable[str]) -> list[str]:
    form = textwrap.TextWrapper(_WIDTH, break_long_words=False, break_on_hyphens=False)
    found = []
    for line in lines:
        form.subsequent_indent = "    " if line.startswith(" ") else "  "
        found += form.wrap(line) or [""]
    return found


def _plain(name: str) -> str:
    return name.strip("`: ").casefold().replace("-", "_").replace(" ", "_")


def _nearest(asked: str, entries: Iterable[Topic]) -> str:
    names = {_plain(name): name for entry in entries for name in entry.names}
    if meant := did_you_mean(asked, names.values()):
        return meant
    close = [names[item] for item in difflib.get_close_matches(asked, names, _MOST_NEAREST)]
    return f"; nearest: {', '.join(close)}" if close else "; all names: agenteval explain"


def _of_metric(metric: MetricType) -> Topic:
    return Topic("metrics", (metric.name,), lambda: list(_metric_lines(metric)))


def _metric_lines(metric: MetricType) -> Iterator[str]:
    yield f"{metric.name}: a metric ({metric.kind})"
    first = (inspect.getdoc(metric.load()) or "").partition("\n\n")[0]
    details = " ".join(first.replace("``", "`").split())
    if not details.casefold().startswith(metric.summary.casefold()):
        yield f"  {metric.summary}"
    yield f"  {details}"
    if metric.requires is None:
        yield "  needs: by its options"
    elif metric.requires:
        yield f"  needs: {', '.join(sorted(metric.requires))}"
    if metric.options:
        yield f"  options: {', '.join(metric.options)}"
    yield "  more: docs/metrics.md"


def _of_settings() -> Iterator[Topic]:
    for mapping in config_mappings():
        for key in mapping.keys:
            places = [f"{place}.{key.name}".lstrip(".") for place in mapping.places]
            yield _of_setting(key, places)


def _of_setting(key: ConfigKey, places: list[str]) -> Topic:
    def lines() -> list[str]:
        meaning = [f"  {key.meaning}"] if key.meaning else []
        default = f"; default: {key.default}" if key.default else ""
        values = f"  values: {key.values or 'any'}{default}"
        heading = f"{', '.join(places)}: a setting of agenteval.yaml"
        return [heading, *meaning, values, "  more: docs/configuration.md"]

    return Topic("settings", (key.name, *places), lines)


def _of_concept(concept: Concept) -> Iterator[Topic]:
    values = [f"  {name}: {meaning}" for name, meaning in concept.values.items()]
    lines = [f"{concept.name}: a concept", f"  {concept.meaning}", *values, "  more: docs/index.md"]
    yield Topic("concepts", (concept.name, *_NEAR.get(concept.name, ())), lambda: lines)
    for name, meaning in concept.values.items():
        yield _of_value(name, [f"{name}: said of a {concept.name}", f"  {meaning}"])


def _of_value(name: str, lines: list[str]) -> Topic:
    return Topic("", (name,), lambda: lines)
