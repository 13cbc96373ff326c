"""An agent that is a model with instructions and tools, run by pydantic-ai."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent, NativeOutput, StructuredDict, ToolOutput
from pydantic_ai.exceptions import AgentRunError, UnexpectedModelBehavior, UsageLimitExceeded, UserError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.usage import UsageLimits

from agenteval.agents.base import Reply, Request
from agenteval.agents.model_client import (
    MeteredModel,
    ModelClient,
    ModelTool,
    Toolset,
    by_name,
    function_tool,
    prompt_tool,
)
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import (
    AgentError,
    AgentNotAskedError,
    ConfigError,
    Kind,
    TransientAgentError,
    UserCodeError,
    agent_problem,
    raise_failures,
)
from agenteval.core.llm.calls import CallTotals
from agenteval.core.llm.gateway import Gateway
from agenteval.core.llm.models import BudgetSpentError, LlmError
from agenteval.core.records import replace
from agenteval.results.case import Usage
from agenteval.suite.agent_definitions import ModelAgentSpec, model_agent_of
from agenteval.suite.model import AgentSpec
from agenteval.suite.model_tools import FunctionTool, McpServer, PromptTool

if TYPE_CHECKING:
    from agenteval.agents.mcp import McpConnection

# Limit of requests in a turn; a turn with more is treated as an endless loop.
_MOST_REQUESTS = 50
# Limit for importing a module with tools, in seconds.
_IMPORT_TIMEOUT_S = 60.0


class ModelAgent:
    """Sends turns to a model through the gateway, and runs the tool calls it requests.

    Args:
        spec: an agent of kind ``model``.
        gateway: counts all model calls of the run.
        concurrency: maximum number of concurrent turns.
    """

    def __init__(self, spec: AgentSpec, gateway: Gateway, concurrency: int) -> None:
        self._spec = spec
        self._agent = model_agent_of(spec)
        self._gateway = gateway
        self._workers = WorkerPool(replace(spec, kind="python", target="", options={}), concurrency)
        self._client: ModelClient | None = None
        self._functions: dict[str, ModelTool] = {}
        self._sessions: set[ModelSession] = set()

    async def start(self) -> None:
        """Check that the model is configured and the tools exist.

        Raises:
            ConfigError: something is missing; the message lists everything.
            UserCodeError: all tools that cannot be used are in files whose import fails.
        """
        checks = [self._start_client(), *map(self._check, self._agent.tools)]
        found = await asyncio.gather(*map(_failure, checks))
        raise_failures([self._placed(failure) for failure in found if failure is not None])

    def session(self) -> ModelSession:
        """Return a new conversation, with separate server processes."""
        if self._client is None:
            raise AgentError("the agent was not started")
        session = ModelSession(
            self._agent,
            self._spec.directory,
            self._gateway,
            self._client,
            self._functions,
            ended=self._sessions.discard,
        )
        self._sessions.add(session)
        return session

    async def close(self) -> None:
        """End the conversations, worker processes and connections."""
        await asyncio.gather(*(session.end() for session in list(self._sessions)))
        await self._workers.close()
        if self._client is not None:
            await self._client.close()

    async def _start_client(self) -> None:
        self._client = ModelClient(self._agent.model)

    async def _check(self, tool: FunctionTool | McpServer | PromptTool) -> None:
        if isinstance(tool, McpServer):
            from agenteval.agents.mcp import check_server

            check_server(tool, self._spec.directory)
        elif isinstance(tool, PromptTool):
            self._gateway.check(tool.model)
        else:
            try:
                async with asyncio.timeout(_IMPORT_TIMEOUT_S):
                    self._functions[tool.name] = await function_tool(tool, self._workers)
            except TimeoutError:
                message = f"importing {tool.file} took longer than {_IMPORT_TIMEOUT_S:g} s"
                raise UserCodeError(agent_problem(tool.where, message, Kind.USER_CODE)) from None

    def _placed(self, failure: ConfigError | UserCodeError) -> ConfigError | UserCodeError:
        problems = (
            problem if problem.file else agent_problem(self._spec.where, problem.message)
            for problem in failure.problems
        )
        return type(failure)(problems)


class ModelSession:
    """One conversation: its messages so far, and the tools."""

    def __init__(
        self,
        agent: ModelAgentSpec,
        directory: str,
        gateway: Gateway,
        client: ModelClient,
        functions: Mapping[str, ModelTool],
        *,
        ended: Callable[[ModelSession], None],
    ) -> None:
        self._agent = agent
        self._directory = directory
        self._gateway = gateway
        self._client = client
        self._functions = functions
        self._ended = ended
        self._messages: list[ModelMessage] = []
        self._connections: list[McpConnection] = []
        self._toolset: Toolset | None = None

    async def send(self, request: Request) -> Reply:
        """Have the model answer one turn and run its tool calls."""
        toolset = await self._open(request.iteration) if self._toolset is None else self._toolset
        toolset.begin_turn()
        model = MeteredModel(self._client, self._gateway, request.iteration)
        started = time.perf_counter()
        try:
            result = await self._runner(toolset).run(
                request.prompt,
                model=model,
                message_history=self._messages or None,
                usage_limits=UsageLimits(request_limit=_MOST_REQUESTS),
            )
        except BudgetSpentError as error:
            raise AgentNotAskedError(f"the model was not called: {error}", error.limit) from None
        except (LlmError, AgentRunError, UserError) as error:
            is_transient = isinstance(error, LlmError) and error.transient
            raise (TransientAgentError if is_transient else AgentError)(self._said(error)) from None
        self._messages = result.all_messages()
        return Reply(
            response=_text(result.output),
            tool_calls=toolset.calls,
            retrieval_context=toolset.retrieved,
            usage=_usage(model.tally),
            metadata={"llm_calls": model.tally.calls, "cached_calls": model.tally.cached},
            latency_ms=None if model.tally.cached else round((time.perf_counter() - started) * 1000, 3),
            cached=bool(model.tally.cached),
        )

    async def end(self) -> None:
        """Stop the MCP servers of this conversation."""
        self._ended(self)
        self._toolset = None
        connections, self._connections = self._connections, []
        await asyncio.gather(*(connection.close() for connection in connections))

    async def _open(self, sample: int) -> Toolset:
        """Connect to the MCP servers and collect all tools by name, the suite's tools first."""
        tools = self._agent.tools
        own = [(tool.name, [self._own(tool, sample)]) for tool in tools if not isinstance(tool, McpServer)]
        servers = [tool for tool in tools if isinstance(tool, McpServer)]
        offered = await self._connect(servers) if servers else []
        names = (server.name for server in servers)
        self._toolset = Toolset(by_name([*own, *zip(names, offered, strict=True)]))
        return self._toolset

    async def _connect(self, servers: Sequence[McpServer]) -> list[list[ModelTool]]:
        from agenteval.agents.mcp import McpConnection

        # Close connections of an earlier attempt.
        await asyncio.gather(*(connection.close() for connection in self._connections))
        self._connections = [McpConnection(server, self._directory) for server in servers]
        return await _all([connection.open() for connection in self._connections])

    def _own(self, tool: FunctionTool | PromptTool, sample: int) -> ModelTool:
        if isinstance(tool, PromptTool):
            return prompt_tool(tool, self._gateway, sample)
        return self._functions[tool.name]

    def _runner(self, toolset: Toolset) -> Agent[object, Any]:
        agent = self._agent
        return Agent(
            output_type=self._output_type(), instructions=agent.instructions, toolsets=[toolset], name="agent"
        )

    def _output_type(self) -> Any:
        schema = self._agent.response_schema
        if schema is None:
            # An empty answer is valid.
            return [str, None]
        answer = StructuredDict(dict(schema), name="answer")
        marker = NativeOutput if self._client.writes_json else ToolOutput
        return marker(answer, name="answer")

    def _said(self, error: Exception) -> str:
        if isinstance(error, UsageLimitExceeded):
            return f"no answer after {_MOST_REQUESTS} model calls in one turn"
        if isinstance(error, UnexpectedModelBehavior):
            wanted = "by `response_format`" if self._agent.response_schema else "that can be used"
            return f"the model gave no answer {wanted}: {error.message}"
        return str(error)


async def _failure(check: Awaitable[None]) -> ConfigError | UserCodeError | None:
    try:
        await check
    except (ConfigError, UserCodeError) as error:
        return error
    return None


async def _all(openings: Sequence[Awaitable[list[ModelTool]]]) -> list[list[ModelTool]]:
    """Return every result, or raise the first error after all have finished, so that none keeps running."""
    found = await asyncio.gather(*openings, return_exceptions=True)
    results = []
    for item in found:
        if isinstance(item, BaseException):
            raise item
        results.append(item)
    return results


def _text(output: Any) -> str:
    if output is None:
        return ""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def _usage(tally: CallTotals) -> Usage:
    """Return the tokens of every answer, including free ones from the cache; their cost is not that of the turn."""
    return Usage(
        input_tokens=tally.input_tokens + tally.cached_input_tokens,
        output_tokens=tally.output_tokens + tally.cached_output_tokens,
        cost_usd=None if tally.cached else tally.cost_usd,
    )
