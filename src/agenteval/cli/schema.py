"""Prints the JSON Schemas of the files that users and other programs read and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from agenteval.suite.formats.registry import formats


@dataclass(frozen=True, slots=True)
class _Published:
    title: str
    body: Callable[[], dict[str, Any]]


def schema_names() -> tuple[str, ...]:
    """List the schemas that ``schema`` makes."""
    return tuple(_schemas())


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema with one of the ``schema_names``."""
    found = _schemas()[name]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found.body(), "title": found.title}


def _schemas() -> Mapping[str, _Published]:
    from agenteval.results.model import SCHEMA_VERSION

    return {
        "results": _Published(f"agenteval results.json, schema_version {SCHEMA_VERSION}", _results),
        "config": _Published("agenteval.yaml", _config),
        "accepted": _Published(".agenteval/accepted.yaml", _accepted),
        **{
            item.name: _Published(f"{item.title}, as agenteval reads it", item.schema)
            for item in formats()
            if item.schema is not None
        },
        "request": _Published("what an agent gets", partial(_protocol, "request")),
        "reply": _Published("what an agent gives", partial(_protocol, "reply")),
        "recording": _Published("a line of a replay file", partial(_protocol, "recording")),
        "trace": _Published("a line of recorded traces", _trace),
    }


def _results() -> dict[str, Any]:
    from agenteval.results.model import Results

    return Results.model_json_schema(mode="serialization")


def _config() -> dict[str, Any]:
    from agenteval.run.config.file import PublishedConfig

    return PublishedConfig.model_json_schema()


def _accepted() -> dict[str, Any]:
    from agenteval.run.integrity.accepted_file import AcceptedFile

    return AcceptedFile.model_json_schema()


def _protocol(name: str) -> dict[str, Any]:
    from agenteval.agents.protocol import DOCUMENTS

    return DOCUMENTS[name].model_json_schema()


def _trace() -> dict[str, Any]:
    body = _protocol("trace")
    # ``final_output`` is an older name of ``output``.
    body["required"].remove("output")
    return {**body, "anyOf": [{"required": ["output"]}, {"required": ["final_output"]}]}
