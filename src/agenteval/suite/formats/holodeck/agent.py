"""The agent that a HoloDeck ``agent.yaml`` describes: model, instructions, tools and response format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agenteval.core.document import Document, KeyPath, environment_with, parse_dotenv, read_text
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import is_secret_name
from agenteval.core.validation import validate
from agenteval.core.yaml import read_yaml
from agenteval.suite.agent_definitions import ModelAgentSpec
from agenteval.suite.cases import is_file
from agenteval.suite.formats.base import Findings
from agenteval.suite.formats.holodeck.schema import AgentFile, HoloDeckModel

if TYPE_CHECKING:
    from agenteval.suite.formats.holodeck.tools_schema import FunctionEntry, McpEntry, PromptEntry, ToolEntry
    from agenteval.suite.model_tools import FunctionTool, McpServer, PromptTool, Tool

# The tools' schema is imported only with tools: most suites have none, and the import takes longer than the rest.

# HoloDeck's defaults for an agent's model.
_TEMPERATURE = 0.3

_MAX_TOKENS = 1000

_CONNECT_TIMEOUT_S = 30.0

_READ_TIMEOUT_S = 300.0


def validate_file(data: dict[str, Any], document: Document) -> tuple[AgentFile | None, list[Problem]]:
    """Return the content of the file, or its problems."""
    if "tools" not in data:
        return validate(AgentFile, data, document)
    from agenteval.suite.formats.holodeck.tools_schema import AgentFileWithTools, tools_as_written

    return validate(AgentFileWithTools, tools_as_written(data, document), document)


def repeated_names(entry: AgentFile, document: Document) -> list[Problem]:
    """Return problems for tools with the name of an earlier one."""
    names = [tool.name for tool in entry.tools or ()]
    return [
        document.problem(("tools", index, "name"), f"another tool is called {name!r} already")
        for index, name in enumerate(names)
        if name in names[:index]
    ]


def model_agent(
    entry: AgentFile, document: Document, problems: Iterable[Problem], variables: Mapping[str, str]
) -> ModelAgentSpec:
    """Return the agent that the file describes, for agenteval to run.

    Reasons why it cannot run are part of its definition, because the suite may be run with another agent.

    Args:
        problems: reasons that are known already.
        variables: of the files of the project.
    """
    model = model_spec(entry.model, variables)  # type: ignore[arg-type]
    return _AgentReader(document, model, variables, list(problems)).read(entry)


def model_spec(entry: HoloDeckModel, variables: Mapping[str, str]) -> ModelSpec:
    """Return the model of an agent, with HoloDeck's defaults."""
    given = entry.model_fields_set
    missing = {"temperature": _TEMPERATURE, "max_tokens": _MAX_TOKENS}
    defaults = {name: value for name, value in missing.items() if name not in given}
    return entry.model_copy(update=defaults).spec(variables)


def written_secrets(agent: ModelAgentSpec) -> frozenset[str]:
    """Return keys and tokens in the file; they are as secret as those from the environment."""
    found: set[str | None] = {agent.model.api_key}
    if agent.tools:
        found |= _secrets_of_tools(agent.tools)
    return frozenset(secret for secret in found if secret)


def _secrets_of_tools(tools: Iterable[Tool]) -> set[str | None]:
    from agenteval.suite.model_tools import McpServer, PromptTool

    found: set[str | None] = set()
    for tool in tools:
        if isinstance(tool, McpServer):
            found.update(value for name, value in tool.env.items() if is_secret_name(name))
            signed = {"authorization", "cookie"}
            headers = tool.headers.items()
            found.update(value for name, value in headers if name.lower() in signed or is_secret_name(name))
        elif isinstance(tool, PromptTool):
            found.add(tool.model.api_key)
    return found


@dataclass
class _AgentReader(Findings):
    """Reads the parts of the agent, and collects reasons why it cannot run."""

    document: Document
    model: ModelSpec
    variables: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)

    def read(self, entry: AgentFile) -> ModelAgentSpec:
        instructions = self._instructions(entry)
        schema = self._response_schema(entry.response_format)
        tools = [self._tool(tool, ("tools", index)) for index, tool in enumerate(entry.tools or [])]
        return ModelAgentSpec(
            model=self.model,
            instructions=instructions,
            tools=tuple(tool for tool in tools if tool is not None),
            response_schema=schema,
            problems=tuple(self.problems),
        )

    def _instructions(self, entry: AgentFile) -> str:
        given = entry.instructions
        if given is None or given.file is None:
            return given.inline or "" if given else ""
        return self._text(given.file, ("instructions", "file"))

    def _text(self, file: str, at: KeyPath) -> str:
        try:
            return read_text(self.document.directory / file, file)
        except ConfigError as error:
            self._problem(at, f"{file}: {error.problems[0].message}")
            return ""

    def _response_schema(self, given: Mapping[str, Any] | str | None) -> Mapping[str, Any] | None:
        schema: Any = given
        at = ("response_format",)
        if isinstance(given, str):
            try:
                # Every JSON document is also YAML.
                schema = read_yaml(
                    self.document.directory / given, shown_as=given, environment=environment_with(self.variables)
                ).data
            except ConfigError as error:
                self._problem(at, str(error.problems[0]))
                return None
        if isinstance(schema, dict) and "properties" in schema:
            schema = {"type": "object", **schema}
        if schema is not None and not (isinstance(schema, dict) and schema.get("type") == "object"):
            self._problem(at, "must be a JSON Schema of `type: object`")
            return None
        found: Mapping[str, Any] | None = plain_json(schema)
        return found

    def _tool(self, entry: ToolEntry, at: KeyPath) -> Tool | None:
        from agenteval.suite.formats.holodeck.tools_schema import FunctionEntry, McpEntry, PromptEntry

        if isinstance(entry, FunctionEntry):
            return self._function(entry, at)
        if isinstance(entry, McpEntry):
            return self._server(entry, at)
        if isinstance(entry, PromptEntry):
            return self._prompt(entry, at)
        # HoloDeck runs agents with the others.
        return None

    def _function(self, entry: FunctionEntry, at: KeyPath) -> FunctionTool:
        from agenteval.suite.model_tools import FunctionTool

        path = self.document.directory / entry.file
        if not is_file(path):
            self._problem((*at, "file"), f"there is no file {entry.file}")
        elif path.suffix != ".py":
            self._problem((*at, "file"), f"{entry.file} is not a Python file (.py)")
        return FunctionTool(
            name=entry.name,
            description=entry.description,
            file=str(path),
            function=entry.function,
            parameters=plain_json(entry.parameters),
            is_retrieval=entry.is_retrieval,
            where=self.document.place(at),
        )

    def _server(self, entry: McpEntry, at: KeyPath) -> McpServer:
        from agenteval.suite.model_tools import McpServer

        return McpServer(
            name=entry.name,
            transport=entry.transport,
            command=(entry.command or "", *(entry.args or ())),
            env=self._environment(entry, at),
            encoding=entry.encoding or "utf-8",
            url=entry.url or "",
            headers=entry.headers or {},
            connect_timeout_s=entry.timeout or _CONNECT_TIMEOUT_S,
            read_timeout_s=entry.sse_read_timeout or _READ_TIMEOUT_S,
            request_timeout_s=entry.request_timeout,
            allowed_tools=_allowed_tools(entry),
            is_retrieval=entry.is_retrieval,
            where=self.document.place(at),
        )

    def _environment(self, entry: McpEntry, at: KeyPath) -> Mapping[str, str]:
        """Return the value from the file, else as written, else from HoloDeck's variable for free-form settings."""
        variables: dict[str, str] = {}
        if entry.env_file:
            variables |= parse_dotenv(self._text(entry.env_file, (*at, "env_file")))
        variables |= entry.env or {}
        if entry.config:
            variables["MCP_CONFIG"] = json.dumps(entry.config, default=str)
        return variables

    def _prompt(self, entry: PromptEntry, at: KeyPath) -> PromptTool:
        from agenteval.suite.model_tools import PromptTool

        return PromptTool(
            name=entry.name,
            description=entry.description,
            template=entry.template or self._text(entry.file or "", (*at, "file")),
            parameters=plain_json(entry.parameters),
            model=self._prompt_model(entry, at),
            where=self.document.place(at),
        )

    def _prompt_model(self, entry: PromptEntry, at: KeyPath) -> ModelSpec:
        """Return the agent's model, with the tool's overrides."""
        if not entry.model:
            return self.model
        agent = self.model
        given = {"provider": agent.provider, "name": agent.name, **entry.model}
        if given["provider"] == agent.provider:
            own = {"endpoint": agent.endpoint, "api_key": agent.api_key, "api_version": agent.api_version}
            given = {**own, **given}
        found, problems = validate(HoloDeckModel, given, self.document, (*at, "model"))
        self.problems += problems
        return agent if found is None else model_spec(found, self.variables)


def _allowed_tools(entry: McpEntry) -> frozenset[str] | None:
    if not entry.load_tools:
        return frozenset()
    allowed = (entry.config or {}).get("allowed_tools")
    return frozenset(map(str, allowed)) if isinstance(allowed, list) and allowed else None


def plain_json(value: Any) -> Any:
    """Return the value with text keys, because JSON has no others."""
    if isinstance(value, dict):
        return {str(key): plain_json(item) for key, item in value.items()}
    return [plain_json(item) for item in value] if isinstance(value, list) else value
