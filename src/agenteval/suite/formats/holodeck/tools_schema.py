"""The schema of ``tools`` in a HoloDeck ``agent.yaml``, and the published schema of the whole file."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agenteval.core.document import Document, KeyPath
from agenteval.core.escape import display_url
from agenteval.suite.formats.base import AgentKey, Node, each_property, or_scalar, with_variables
from agenteval.suite.formats.holodeck.schema import AgentFile, CaseEntry

# The schema of ``tools`` in a HoloDeck ``agent.yaml``.
#
# Keys keep HoloDeck's names, types and defaults. Those without effect here (``defer_loading``, the
# filling of a vector store, …) are accepted without checks.


MAX_TOOLS = 50

_NAME = re.compile(r"[0-9A-Za-z_]+")
_LOCAL_URL = re.compile(r"http://(localhost|127\.0\.0\.1|\[::1\])(?=[:/?#]|$)")
# Keys whose YAML numbers and booleans are read as text, as written.
_TEXT_KEYS = ("args", "env", "headers")


class _Tool(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    description: str
    defer_loading: bool = True

    @field_validator("name")
    @classmethod
    def _identifier(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError(f"{value!r} may consist of letters, digits and underscores only")
        return value

    @field_validator("file", "function", "source", "template", check_fields=False)
    @classmethod
    def _not_blank(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("must not be empty")
        return value


class FunctionEntry(_Tool):
    """``type: function``: a Python function in a file."""

    type: Literal["function"]
    file: str
    function: str
    parameters: dict[str, dict[str, Any]] | None = None
    is_retrieval: bool = Field(False, description="agenteval: what it returns counts as retrieved passages")


class McpEntry(_Tool):
    """``type: mcp``: a server that offers tools."""

    type: Literal["mcp"]
    transport: Literal["stdio", "sse", "http"] = "stdio"
    command: str | None = None
    args: list[str] | None = None
    env: dict[str, str] | None = Field(None, repr=False)
    env_file: str | None = None
    encoding: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = Field(None, repr=False)
    timeout: float | None = None
    sse_read_timeout: float | None = None
    terminate_on_close: bool | None = None
    config: dict[str, Any] | None = None
    load_tools: bool = True
    load_prompts: bool = True
    request_timeout: int = Field(60, gt=0)
    is_retrieval: bool = False
    registry_name: str | None = None

    @field_validator("url")
    @classmethod
    def _scheme(cls, value: str | None) -> str | None:
        if value is None or value.startswith("https://") or _LOCAL_URL.match(value):
            return value
        raise ValueError(f"{display_url(value)!r} must begin with https:// (http:// only for localhost)")

    @model_validator(mode="after")
    def _address(self) -> McpEntry:
        if self.transport == "stdio" and not self.command:
            raise ValueError("`command` is required for the transport stdio")
        if self.transport != "stdio" and self.url is None:
            raise ValueError(f"`url` is required for the transport {self.transport}")
        return self


class PromptEntry(_Tool):
    """``type: prompt``: a template that a model answers."""

    type: Literal["prompt"]
    template: str | None = None
    file: str | None = None
    parameters: dict[str, dict[str, Any]] = Field(min_length=1)
    model: dict[str, Any] | None = Field(None, repr=False)

    @model_validator(mode="after")
    def _template_or_file(self) -> PromptEntry:
        if bool(self.template) == bool(self.file):
            raise ValueError("exactly one of `template` and `file` is needed")
        return self


class VectorstoreEntry(_Tool):
    """``type: vectorstore``: HoloDeck's search; see ``INDEXED``."""

    type: Literal["vectorstore"]
    source: str
    vector_field: Any = None
    meta_fields: Any = None
    chunk_size: Any = None
    chunk_overlap: Any = None
    embedding_model: Any = None
    embedding_dimensions: Any = None
    database: Any = None
    top_k: Any = None
    min_similarity_score: Any = None
    record_path: Any = None
    record_prefix: Any = None
    meta_prefix: Any = None
    id_field: Any = None
    field_separator: Any = None
    delimiter: Any = None


class HierarchicalDocumentEntry(_Tool):
    """``type: hierarchical_document``: HoloDeck's search; see ``INDEXED``."""

    type: Literal["hierarchical_document"]
    source: str
    chunking_strategy: Any = None
    max_chunk_tokens: Any = None
    chunk_overlap: Any = None
    document_domain: Any = None
    max_subsection_depth: Any = None
    search_mode: Any = None
    top_k: Any = None
    min_score: Any = None
    semantic_weight: Any = None
    keyword_weight: Any = None
    exact_weight: Any = None
    rrf_k: Any = None
    contextual_embeddings: Any = None
    context_max_tokens: Any = None
    context_concurrency: Any = None
    extract_definitions: Any = None
    extract_cross_references: Any = None
    enable_reranking: Any = None
    reranker_model: Any = None
    context_model: Any = None
    embedding_model: Any = None
    database: Any = None
    keyword_index: Any = None


class HostedEntry(BaseModel):
    """``type: hosted`` and ``type: skill``, newer than HoloDeck 0.7.1, which only HoloDeck runs."""

    model_config = ConfigDict(extra="allow")

    name: str
    type: Literal["hosted", "skill"]


ToolEntry = Annotated[
    FunctionEntry | McpEntry | PromptEntry | VectorstoreEntry | HierarchicalDocumentEntry | HostedEntry,
    Field(discriminator="type"),
]


class AgentFileWithTools(AgentFile):
    """A file with the agent's tools."""

    tools: list[ToolEntry] | None = Field(None, max_length=MAX_TOOLS)


def tools_as_written(data: dict[str, Any], document: Document) -> dict[str, Any]:
    """Return the content of a file, with arguments, variables and headers of tools as the written text."""
    tools = data.get("tools")
    if not isinstance(tools, list):
        return data
    return {**data, "tools": [_tool_as_written(tool, document, ("tools", index)) for index, tool in enumerate(tools)]}


def _tool_as_written(tool: Any, document: Document, at: KeyPath) -> Any:
    if not isinstance(tool, dict):
        return tool
    return tool | {key: document.as_written(tool[key], (*at, key)) for key in _TEXT_KEYS if key in tool}


# Texts that may be written as YAML numbers and booleans.
_TEXTS = frozenset({"name", "input", "ground_truth"})
_AGENT = "agenteval, deprecated: HoloDeck refuses this key; name the agent in agenteval.yaml"
_BARE_TEXTS = ("ExpectedTool", "Instructions")


class _HolodeckFile(AgentFileWithTools):
    agent: AgentKey | None = Field(None, description=_AGENT)
    test_cases: list[CaseEntry] | None = None


def published() -> Node:
    """Return the schema of a file."""
    body = with_variables(_HolodeckFile.model_json_schema())
    for name in _BARE_TEXTS:
        body["$defs"][name] = {"anyOf": [{"type": "string"}, body["$defs"][name]]}
    return each_property(body, lambda key, value: or_scalar(value) if key in _TEXTS else value)
