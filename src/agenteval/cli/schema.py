"""The JSON Schemas of the files that users and other programs read and write."""

from __future__ import annotations

from typing import Any

TITLES = {
    "results": "agenteval results.json",
    "config": "agenteval.yaml",
    "holodeck": "HoloDeck's agent.yaml, as agenteval reads it",
    "agentci": "AgentCI's .agentci/evals/*.toml, as agenteval reads them",
    "fluxloop": "FluxLoop's evaluation.yaml, as agenteval reads it",
    "request": "what an agent gets",
    "reply": "what an agent gives",
    "recording": "a line of a replay file",
    "trace": "a line of recorded traces",
}


def schema(name: str) -> dict[str, Any]:
    """The schema called by one of the names in ``TITLES``."""
    title = TITLES[name]
    if name == "results":
        from agenteval.results.model import SCHEMA_VERSION

        title = f"{title}, schema_version {SCHEMA_VERSION}"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_body(name), "title": title}


def _body(name: str) -> dict[str, Any]:
    if name == "results":
        from agenteval.results.model import Results

        return Results.model_json_schema(mode="serialization")
    if name == "config":
        from agenteval.run.config.file import PublishedConfig

        return PublishedConfig.model_json_schema()
    if name in {"holodeck", "agentci", "fluxloop"}:
        from agenteval.suite.formats import published

        body: dict[str, Any] = getattr(published, name)()
        return body
    from agenteval.agents.protocol import DOCUMENTS

    body = DOCUMENTS[name].model_json_schema()
    if name == "recording":
        # An error may stand for the response.
        body["anyOf"] = [{"required": ["response"]}, {"required": ["error"]}]
    if name == "trace":
        # An older name of the answer.
        body["required"].remove("output")
        body["anyOf"] = [{"required": ["output"]}, {"required": ["final_output"]}]
    return body
