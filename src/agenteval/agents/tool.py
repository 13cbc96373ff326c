"""Tools under test: called directly with the context of a case as arguments.

Without a context the prompt is the only argument. The tool's result is the answer: text unchanged, other values as
JSON text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from agenteval.agents.base import PlainAgent, Reply, Request, as_text, read_json
from agenteval.agents.command import Program
from agenteval.agents.http_agent import HttpService
from agenteval.agents.http_response import text_of_response
from agenteval.agents.python import checked_object
from agenteval.agents.reading import without_last_break
from agenteval.agents.worker.pool import WorkerPool
from agenteval.core.errors import AgentError, ToolRaisedError, TransientAgentError
from agenteval.core.refusal import is_breakdown, is_refusal
from agenteval.suite.model import AgentSpec

# Python's ways to reject a request: not allowed, or not a valid input.
_REJECTING = frozenset({"PermissionError", "ValueError"})
# Subclasses of ValueError that a broken backend causes.
_NOT_REJECTING = frozenset({"UnicodeError", "JSONDecodeError"})
# Mistakes in the code, and failures of the machine or the network.
_BROKEN = frozenset(
    {
        "ArithmeticError",
        "AttributeError",
        "BufferError",
        "EOFError",
        "ImportError",
        "IndexError",
        "KeyError",
        "MemoryError",
        "NameError",
        "NotImplementedError",
        "RecursionError",
        "ReferenceError",
        "StopIteration",
        "SyntaxError",
        "SystemError",
        "TypeError",
        "UnicodeError",
    }
)
_CAUSES = frozenset({"ConnectionError", "ImportError", "TimeoutError", "URLError", "gaierror"})
_NAMED = re.compile(
    r"Refus|Block|Denied|Deny|Forbid|Permission|Unauthori[sz]ed|Allowed|Disallow|Unsafe|Secur|Polic|Violat|Guard|Reject"
    r"|Moderat|Filter|Valid|Injection|Saniti[sz]|Prohibit"
)


def is_refusal_exception(types: Collection[str], causes: Collection[str], text: str) -> bool:
    """Return whether an exception of a tool rejects the request; otherwise the tool is broken.

    It does if its type rejects (``PermissionError``, ``ValueError``, or a name such as ``QueryBlocked``) or its text
    does ("request denied"), and no missing module or connection caused it.

    Args:
        types: names of its class and base classes.
        causes: names of the classes, with base classes, of the exceptions that caused it.
    """
    known = frozenset(types)
    is_system = "OSError" in known and "PermissionError" not in known
    if is_system or known & _BROKEN or not _CAUSES.isdisjoint(causes) or is_breakdown(" ".join((*types, text))):
        return False
    if known & _REJECTING and not known & _NOT_REJECTING:
        return True
    return any(map(_NAMED.search, types)) or (bool(text.strip()) and is_refusal(text))


_CALL = "agenteval.agents.worker.calls:call_tool"
# Exit statuses of a shell for a command that cannot be run or found.
_NOT_RUN = frozenset({126, 127})
# 4xx statuses for which the service did not check the arguments: no credentials, not found, wrong method, proxy,
# timeout, and so on.
_NOT_REFUSED = frozenset(
    {401, 402, 404, 405, 406, 407, 408, 410, 411, 412, 413, 415, 417, 421, 425, 426, 428, 429, 431}
)


class ToolAgent(PlainAgent):
    """A tool as an agent: every request is one call."""

    async def send(self, request: Request) -> Reply:
        """Call the tool once."""
        return Reply(response=await self.call(request.context, request.input or None))

    async def call(self, context: Mapping[str, Any], prompt: str | None) -> str:
        """Call the tool with arguments by name; without arguments, with the prompt."""
        raise NotImplementedError


class PythonTool(ToolAgent):
    """A Python callable, or a method of an object, in a worker process."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._spec = spec
        self._workers = WorkerPool(spec, concurrency)
        method, instantiate = spec.options.get("method", "__call__"), bool(spec.options.get("instantiate"))
        self._target = [str(spec.target), method, instantiate]

    async def start(self) -> None:
        """Import the tool once, so that a wrong name is reported before any case runs."""
        await checked_object(self._workers, self._spec, "agenteval.agents.worker.calls:check", self._target)

    async def call(self, context: Mapping[str, Any], prompt: str | None) -> str:
        """Call the tool in a worker process."""
        arguments = [*self._target, dict(context) or None, prompt]
        result = await self._workers.call(_CALL, arguments, load=str(self._spec.target))
        if "raised" not in result:
            return as_text(result["value"])
        if is_refusal_exception(result["types"], result["causes"], result["text"]):
            raise ToolRaisedError(result["raised"])
        raise AgentError(f"the tool raised {result['raised']}")

    async def close(self) -> None:
        """End the worker processes."""
        await self._workers.close()


class CommandTool(ToolAgent):
    """A program: the arguments as JSON on its standard input, the result on its standard output."""

    def __init__(self, spec: AgentSpec) -> None:
        self._program = Program(spec, "the tool's command")

    async def start(self) -> None:
        """Find the program."""
        self._program.find()

    async def call(self, context: Mapping[str, Any], prompt: str | None) -> str:
        """Run the program once; an exit status above 0 is a refusal, except 126, 127 and technical failures."""
        ended = await self._program.run(self._program.of_request(arguments(context, prompt)))
        if ended.status < 0 and not ended.output:
            raise TransientAgentError(f"the tool's command {ended.failure}")
        is_broken = ended.status > 0 and is_breakdown(ended.errors or ended.output.decode("utf-8", "replace"))
        if ended.status < 0 or ended.status in _NOT_RUN or is_broken:
            raise AgentError(f"the tool's command {ended.failure}")
        if ended.status > 0:
            raise ToolRaisedError(f"the tool's command {ended.failure}")
        return _body(without_last_break(ended.output.decode("utf-8", "replace")))


class HttpTool(ToolAgent):
    """An address: the arguments are POSTed as JSON, the body of the response is the result."""

    def __init__(self, spec: AgentSpec, concurrency: int) -> None:
        self._service = HttpService(spec, concurrency, "the tool")

    async def start(self) -> None:
        """Check the definition."""
        self._service.open()

    async def call(self, context: Mapping[str, Any], prompt: str | None) -> str:
        """POST once; a 4xx status is a refusal, except for statuses that concern the call itself."""
        response = await self._service.send(arguments(context, prompt))
        if response.is_success:
            return _body(text_of_response(response))
        refusal = self._service.refusal(response)
        refused = response.is_client_error and response.status not in _NOT_REFUSED
        raise ToolRaisedError(str(refusal)) if refused else refusal

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()


def arguments(context: Mapping[str, Any], prompt: str | None) -> Any:
    """Return the request to a command or HTTP tool: an object of arguments, or the prompt as a JSON text."""
    return dict(context) if context or prompt is None else prompt


def _body(text: str) -> str:
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text
