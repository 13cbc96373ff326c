"""The JSON Schemas of the files that users and other programs read and write."""

from __future__ import annotations

from typing import Any

from agenteval.results.model import SCHEMA_VERSION, Results


def schema(name: str) -> dict[str, Any]:
    """The schema called ``results`` or ``config``."""
    if name == "results":
        body = Results.model_json_schema(mode="serialization")
        title = f"agenteval results.json, schema_version {SCHEMA_VERSION}"
    else:
        from agenteval.config import PublishedConfig

        body = PublishedConfig.model_json_schema()
        title = "agenteval.yaml"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **body, "title": title}
