"""Reads what an agent answered: as its definition says, and in what a program printed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.agents.base import Reply, Request, answer_text, as_text, read_json, reply_from_json, reply_to
from agenteval.agents.tool_calls import parsed_arguments, raise_error, reported, text_of_blocks
from agenteval.core.errors import AgentError
from agenteval.core.records import dataclass, field
from agenteval.suite.forms import JsonPath, PathError, described, parse_path


@dataclass(frozen=True)
class ReplyPaths:
    """The paths of the parts of a reply, in every document of it: a stream consists of several.

    Attributes:
        paths: the path of each part by its key below ``response``, such as ``answer`` and ``usage.cost_usd``.
        call: the paths in an item of the list of calls; ``None`` for calls of a known form.
    """

    paths: Mapping[str, JsonPath]
    call: Mapping[str, JsonPath] | None = None
    answer_key: str = field(default="response.answer")

    def __str__(self) -> str:
        keys = (self.answer_key if key == "answer" else f"response.{key}" for key in self.paths)
        return ", ".join(f"{key} {str(path)!r}" for key, path in zip(keys, self.paths.values(), strict=True))

    def find(self, documents: Sequence[Any]) -> dict[str, Any]:
        """Return the parts of a reply in the agent protocol.

        Raises:
            AgentError: the reply contains an error, or no answer at its path.
        """
        for error in self._values("error", documents):
            if error:
                raise reported(error)
        found: dict[str, Any] = {}
        if "answer" in self.paths:
            found["response"] = self._answer(documents)
        if "tool_calls" in self.paths:
            found["tool_calls"] = self._calls(documents)
        if "retrieval_context" in self.paths:
            values = [value for value in self._values("retrieval_context", documents) if value is not None]
            found["retrieval_context"] = [part for value in values for part in _listed(value)]
        counts = {name: [*self._values(f"usage.{name}", documents)] for name in _USAGE}
        usage = {name: values[-1] for name, values in counts.items() if values}
        return {**found, **({"usage": usage} if usage else {})}

    def missing(self, documents: Sequence[Any]) -> Iterator[str]:
        """Yield why paths have no value in any document, with the keys that exist in the first."""
        for key, path in self.paths.items():
            if not self._values(key, documents):
                try:
                    path.find(documents[0], self.answer_key if key == "answer" else f"response.{key}")
                except PathError as error:
                    yield str(error)

    def _answer(self, documents: Sequence[Any]) -> Any:
        path = self.paths["answer"]
        values: list[Any] = []
        problem: PathError | None = None
        for document in documents:
            try:
                values.append(path.find(document, self.answer_key))
            except PathError as error:
                problem = problem or error
        if problem is not None and not values:
            for document in documents:
                raise_error(document)
            many = f" (in none of {len(documents)} events)" if len(documents) > 1 else ""
            raise AgentError(f"{problem}{many}")
        texts = [_answer_text(value, path) for value in values]
        if len(texts) == 1 or all(text is None for text in texts):
            return texts[0]
        return "".join(map(as_text, texts))

    def _calls(self, documents: Sequence[Any]) -> list[Any]:
        items: list[Any] = []
        for value in self._values("tool_calls", documents):
            if value is None:
                continue
            if not isinstance(value, list | dict):
                path = self.paths["tool_calls"]
                raise AgentError(f"response.tool_calls: {str(path)!r} must lead to a list, not {described(value)}")
            for part in _listed(value):
                items += _listed(part)
        if self.call is None:
            return items
        # Items without a name are no calls.
        found = ({key: path.get(item) for key, path in self.call.items()} for item in items)
        calls = [call for call in found if isinstance(call["name"], str)]
        return [{**call, "args": parsed_arguments(call.get("args"))} for call in calls]

    def _values(self, key: str, documents: Sequence[Any]) -> list[Any]:
        path = self.paths.get(key)
        if path is None:
            return []
        found = (path.get(document, _NOTHING) for document in documents)
        return [value for value in found if value is not _NOTHING]


_USAGE = ("input_tokens", "output_tokens", "cost_usd")
_NOTHING = object()


def reply_paths(options: Mapping[str, Any]) -> ReplyPaths | None:
    """Return the paths in the options of an agent; ``None`` without any.

    Raises:
        ValueError: a text is not a path.
    """
    written = dict(options.get("response") or {})
    short = options.get("response_path")
    if short is not None:
        written["answer"] = short
    calls = written.get("tool_calls")
    call = None
    if isinstance(calls, Mapping):
        written["tool_calls"] = calls["path"]
        parts = {key: parse_path(calls[key]) for key in ("args", "result", "error") if calls.get(key) is not None}
        call = {"name": parse_path(calls.get("name") or "name"), **parts}
    usage = written.pop("usage", None) or {}
    written |= {f"usage.{name}": path for name, path in usage.items()}
    paths = {key: parse_path(path) for key, path in written.items() if path is not None}
    if not paths:
        return None
    return ReplyPaths(paths, call, "response.answer" if short is None else "response_path")


def _answer_text(value: Any, path: JsonPath) -> Any:
    """Return an answer: a list of texts that ``[*]`` found, or of blocks of text, as one text."""
    if isinstance(value, list) and (path.is_list or any(isinstance(item, dict) for item in value)):
        if value and all(isinstance(item, str) for item in value):
            return "".join(value)
        text = text_of_blocks(value)
        return value if text is None else text
    return value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


#: What to do about an object that is the answer itself.
WHOLE = "`reply: text` if the whole object is the answer"

# Keys of an object that are searched for the answer.
_MOST_KEYS = 50
# How deep an answer is searched for in an object that is no reply.
_DEPTH = 4
# Names under which programs return their answer, the most specific first.
_ANSWERS = ("answer", "response", "reply", "output", "content", "text", "completion", "result", "message")
# Names of texts that are no answer.
_NO_ANSWERS = frozenset({"error", "errors"})
_NAME = re.compile(r"[A-Za-z_][\w-]{0,60}", re.ASCII)


def suggestion(value: Mapping[str, Any]) -> str:
    """Return which options would find the answer in an object without ``response``."""
    return f"{_suggested_path(value)}, or {WHOLE}"


def _suggested_path(value: Mapping[str, Any]) -> str:
    path = _path_of_answer(value)
    return f"set `response_path: {path}`" if path else "set `response_path` to the path of the answer"


@dataclass(frozen=True)
class ReplyForm:
    """The form of the replies of one agent.

    Attributes:
        is_text: whether the whole output is the answer (``reply: text``).
        paths: the paths of the parts of a reply; ``None`` for the agent protocol.
    """

    is_text: bool = False
    paths: ReplyPaths | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ReplyForm:
        """Return the form that the options of an agent describe.

        Raises:
            ValueError: a text is not a path.
        """
        return cls(options.get("reply") == "text", reply_paths(options))

    def read(
        self,
        documents: Sequence[Any],
        request: Request,
        written: str | None = None,
        fix: Callable[[Mapping[str, Any]], str] = suggestion,
    ) -> Reply:
        """Return the reply in JSON.

        Args:
            request: the turn; it says whether the case expects JSON as its answer.
            fix: returns what to do about an object without ``response``.

        Raises:
            AgentError: there is no answer, or a field of a reply has the wrong shape.
        """
        value = next((item for item in documents if isinstance(item, dict) and "response" in item), documents[0])
        if self.is_text:
            return Reply(response=answer_text(value if written is None else written))
        if self.paths is None:
            return reply_to(request, value, written, fix)
        found = self.paths.find(documents)
        if "response" in found:
            return reply_from_json(found)
        # Only other parts have paths.
        if isinstance(value, dict) and "response" in value:
            return reply_from_json({**value, **found})
        return reply_from_json({**found, "response": reply_to(request, value, written, _suggested_path).response})


def _path_of_answer(value: Mapping[str, Any]) -> str | None:
    paths = list(_paths_of_texts(value, "", _DEPTH))
    rank = {name: index for index, name in enumerate(_ANSWERS)}
    named = [path for path in paths if _last_name(path) in rank]
    if named:
        return min(named, key=lambda path: (path.count("."), rank[_last_name(path)]))
    return paths[0] if len(paths) == 1 else None


def _last_name(path: str) -> str:
    return path.rpartition(".")[2].partition("[")[0]


def _paths_of_texts(value: Any, path: str, depth: int) -> Iterator[str]:
    if isinstance(value, str) and path:
        yield path
    elif isinstance(value, list) and value and depth and path:
        yield from _paths_of_texts(value[0], f"{path}[0]", depth - 1)
    elif isinstance(value, dict) and depth:
        for key in list(value)[:_MOST_KEYS]:
            if _NAME.fullmatch(key) and key not in _NO_ANSWERS:
                yield from _paths_of_texts(value[key], f"{path}.{key}" if path else key, depth - 1)


@dataclass(frozen=True)
class Output:
    """The reply that a program printed.

    Attributes:
        has_log: whether the program printed further lines before it.
        no_json: where a text that begins like a JSON object stops being one; empty for other texts.
    """

    reply: Reply
    value: Mapping[str, Any] | None = None
    has_log: bool = False
    no_json: str = ""


@dataclass(frozen=True)
class OutputReader:
    """Reads what a program printed.

    The output is a JSON object, or it ends with a reply object after log lines, or it is the answer as plain text.
    """

    form: ReplyForm

    def read(self, printed: str, request: Request) -> Output:
        """Return the reply in an output.

        Raises:
            AgentError: an object contains no answer, or a field of a reply has the wrong shape.
        """
        text = without_last_break(printed)
        if self.form.is_text:
            return Output(Reply(text))
        whole = _object(text)
        if whole is not None:
            return Output(self.form.read([whole], request, text), whole)
        log, last = _split(text)
        if last is not None and (self._is_reply(last) or (_is_json_lines(log) and not request.expects_json)):
            return Output(self.form.read([last], request), last, has_log=True)
        if self.form.paths is not None:
            raise AgentError(f"the agent's reply is not a JSON object, so {self.form.paths} cannot be read")
        return Output(Reply(text), no_json=_broken_at(text))

    def _is_reply(self, value: dict[str, Any]) -> bool:
        return self.form.paths is not None or "response" in value or value.get("error") is not None


def without_last_break(text: str) -> str:
    """Return printed text without the line break at its end."""
    return text.removesuffix("\n").removesuffix("\r")


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is; ``None`` for any other text."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _broken_at(text: str) -> str:
    """Return where a text that begins like a JSON object stops being one; empty for other texts."""
    if not text.lstrip().startswith("{"):
        return ""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        pass
    return ""


def _split(text: str) -> tuple[str, dict[str, Any] | None]:
    """Return the lines before an object at the end of a text, and the object, on one line or indented."""
    body = text.rstrip()
    if not body.endswith("}"):
        return text, None
    start = body.rfind("\n") + 1
    if body[start:] == "}":
        # An indented object starts at the last line that is only its opening brace.
        start = max(body.rfind("\n{\n"), body.rfind("\n{\r\n")) + 1
    return body[:start], _object(body[start:]) if start else None


def _is_json_lines(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and all(_object(line) is not None for line in lines)
