"""The tools of a model agent; see :mod:`~agenteval.suite.agent_definitions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import dataclass, field


@dataclass(frozen=True)
class FunctionTool:
    """A Python function of the user.

    Attributes:
        parameters: JSON Schema per parameter; ``None`` takes them from the function's signature.
        where: ``file:line`` of the definition, for messages.
    """

    name: str
    description: str
    file: str
    function: str
    parameters: Mapping[str, Mapping[str, Any]] | None = None
    is_retrieval: bool = False
    where: str = ""


@dataclass(frozen=True)
class McpServer:
    """A server that offers tools by the Model Context Protocol.

    Attributes:
        command: program and arguments, for ``stdio``.
        env: further environment variables of the program.
        url: address, for ``http`` (streamable) and ``sse``.
        allowed_tools: tools that the model gets; ``None`` means all.
        where: ``file:line`` of the definition, for messages.
    """

    name: str
    transport: Literal["stdio", "http", "sse"]
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    encoding: str = "utf-8"
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout_s: float = 30.0
    read_timeout_s: float = 300.0
    request_timeout_s: float = 60.0
    allowed_tools: frozenset[str] | None = None
    is_retrieval: bool = False
    where: str = ""


@dataclass(frozen=True)
class PromptTool:
    """A prompt that a model answers; ``{{name}}`` in the template stands for an argument."""

    name: str
    description: str
    template: str
    parameters: Mapping[str, Mapping[str, Any]]
    model: ModelSpec
    where: str = ""


Tool = FunctionTool | McpServer | PromptTool
