"""The one reader of replies: what an agent of any kind printed, returned or sent, as its definition says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.agents.base import (
    FIX,
    Remarks,
    Reply,
    Request,
    answer_text,
    as_text,
    check_size,
    reply_from_json,
    without_response,
)
from agenteval.agents.tool_calls import find_mapping, parsed_arguments, raise_error, reported
from agenteval.core.arguments import problems
from agenteval.core.errors import AgentError, agent_problem
from agenteval.core.records import dataclass, field, replace
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
        """Return the parts of a reply in the agent protocol."""
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
        said = [value for value in values if value is not None]
        # `[*]` finds the pieces of one text.
        said = ["".join(value) if path.is_list and _are_texts(value) else value for value in said]
        if len(said) < 2:
            return said[0] if said else None
        return "".join(map(answer_text, said))

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


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


#: What to do about an object that is the answer itself.
WHOLE = "`reply: text` if the whole object is the answer"

# Keys of an object that are searched for the answer.
_MOST_KEYS = 50
# How deep an answer is searched for in an object that is no reply: Google's are the deepest.
_DEPTH = 6
# Names under which programs return their answer, the most specific first.
_ANSWERS = ("answer", "response", "reply", "output", "content", "text", "completion", "result", "message")
# Keys of an object that is probably a reply of another form.
_FOREIGN = frozenset({*_ANSWERS, "choices", "messages", "errors"})
# Names of texts that are no answer.
_NO_ANSWERS = frozenset({"error", "errors", "role"})
_NAME = re.compile(r"[A-Za-z_][\w-]{0,60}", re.ASCII)


def suggestion(value: Mapping[str, Any]) -> str:
    """Return which options would find the answer in an object without ``response``."""
    return f"{_path_fix(value)}, or {WHOLE}"


def _path_fix(value: Mapping[str, Any]) -> str:
    path = _path_of_answer(value)
    return f"set `response_path: {path}`" if path else "set `response_path` to the path of the answer"


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
        item, index = _answering(value)
        yield from _paths_of_texts(item, f"{path}[{index}]", depth - 1)
    elif isinstance(value, dict) and depth:
        for key in list(value)[:_MOST_KEYS]:
            if _NAME.fullmatch(key) and key not in _NO_ANSWERS:
                yield from _paths_of_texts(value[key], f"{path}.{key}" if path else key, depth - 1)


def _answering(items: list[Any]) -> tuple[Any, str]:
    """Return the item of a list that answers, and its index: the last message, each part of one, else the first."""
    last = items[-1]
    if isinstance(last, dict) and "content" in last:
        return last, "-1"
    return (last, "*") if isinstance(last, dict) and "text" in last else (items[0], "0")


# What an object that is meant to be a reply contains, also as Python prints one.
_REPLY_KEY = re.compile(rf"""["'](?:{"|".join(sorted({*_FOREIGN, "error"}))})["']\s*:""")
_LINES = ('\n{"', "\n{'", "\n{\n", "\n{\r\n")
# How close to its end a text stops being JSON if only its rest is missing.
_CUT = 6
_DECODER = json.JSONDecoder()
# Replies that are searched for tool calls elsewhere.
_MOST_SEARCHED = 50


class ReplyReader:
    """Reads the replies of one agent, of whatever kind.

    A reply is a JSON object, or text that is one or has one as its last lines; any other text is the answer.

    Args:
        options: ``reply``, ``response`` and ``response_path`` of the agent's definition; ``None`` without one.
        fix: returns what to do about an object without ``response``.
        log: what to do about lines beside a reply.

    Attributes:
        is_text: whether everything is the answer (``reply: text``).
        paths: the paths of the parts of a reply; ``None`` for the agent protocol.
        notes: what was noticed in the replies, each once.

    Raises:
        ValueError: a text is not a path.
    """

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        fix: Callable[[Mapping[str, Any]], str] = suggestion,
        log: str = "a text has further lines beside its reply, which were ignored; return the reply alone",
    ) -> None:
        self._is_defined = options is not None
        self._fix = fix if self._is_defined else lambda _value: FIX
        self._log = log
        self.is_text = (options or {}).get("reply") == "text"
        self.paths = reply_paths(options or {})
        self.notes: dict[str, None] = {}
        self._mapping: str | None = None
        self._searched = 0

    def read(self, documents: Sequence[Any], request: Request, written: str | None = None) -> Reply:
        """Return the reply in JSON.

        Args:
            documents: the reply, or the events of its stream.
            request: the turn; it says whether the case expects JSON as its answer.
            written: the text that the reply was read from, if there was one.
        """
        if written is None and len(documents) == 1 and isinstance(documents[0], str):
            return self.parse_text(documents[0], request)
        return self.noticed(self._read(documents, request, written), documents)

    def parse_text(self, text: str, request: Request) -> Reply:
        """Return the reply in a text.

        Raises:
            AgentError: there is no answer, JSON breaks off, or a field of a reply has the wrong shape.
        """
        if self.is_text:
            return Reply(as_text(text))
        text = text.removeprefix("\ufeff")
        found, problem = _objects_in(text)
        for value, before, after in reversed(found):
            if not before and not after:
                return self.read([value], request, text)
            if self._is_reply(value, before, after, request):
                self.notes[self._log] = None
                return self.read([value], request)
        if problem:
            other = "set `reply: text` if the answers are text" if self._is_defined else "return text as `response`"
            raise AgentError(
                f"the reply starts like JSON and is none ({problem}); make it one whole object, or {other}"
            )
        if self.paths is not None:
            raise AgentError(f"the agent's reply is not a JSON object, so {self.paths} cannot be read")
        return Reply(as_text(text))

    def noticed(self, reply: Reply, documents: Sequence[Any]) -> Reply:
        """Return a reply; if it has no tool calls, they are searched for elsewhere in its JSON."""
        if not reply.tool_calls and self._mapping is None and self._searched < _MOST_SEARCHED:
            self._searched += 1
            self._mapping = find_mapping(documents)
        return reply

    def remarks(self, where: str) -> Remarks:
        """Return what was noticed, with the mapping that finds the tool calls elsewhere in replies."""
        return Remarks(tuple(str(agent_problem(where, note)) for note in self.notes), self._mapping)

    def _read(self, documents: Sequence[Any], request: Request, written: str | None) -> Reply:
        value = next((item for item in documents if isinstance(item, dict) and "response" in item), documents[0])
        whole = value if written is None else written
        if self.is_text:
            return Reply(answer_text(whole))
        found = {} if self.paths is None else self.paths.find(documents)
        if "response" in found or not isinstance(value, dict):
            return reply_from_json({"response": whole, **found})
        if "response" in value:
            return reply_from_json({**value, **found})
        if not request.expects_json:
            raise_error(value)
            raise AgentError(without_response(value, self._fix(value) if self.paths is None else _path_fix(value)))
        return reply_from_json({"response": whole, **found})

    def _is_reply(self, value: dict[str, Any], before: str, after: str, request: Request) -> bool:
        """Return whether an object with lines beside it is a reply, in this or another form."""
        if self.paths is not None or "response" in value or value.get("error") is not None:
            return True
        is_foreign = not _FOREIGN.isdisjoint(value) or all(line.startswith("{") for line in before.splitlines())
        return is_foreign and not after and not request.expects_json


def checked_reply(value: object, request: Request) -> Reply:
    """Return what an agent in this process returned as a reply: a ``Reply``, or what `ReplyReader` reads."""
    if isinstance(value, str):
        return ReplyReader().parse_text(value, request)
    if isinstance(value, dict):
        value = ReplyReader().read([value], request)
    if not isinstance(value, Reply):
        raise AgentError(f"the agent returned {type(value).__name__}; it must return a text or a Reply")
    # Agents without type checks use lists.
    names = ("tool_calls", "retrieval_context")
    lists: dict[str, Any] = {name: tuple(item) for name in names if isinstance(item := getattr(value, name), list)}
    reply = replace(value, **lists) if lists else value
    found = problems(reply, Reply, "reply")
    if found:
        raise AgentError("; ".join(map(str, found)))
    try:
        json.dumps([call.model_dump() for call in reply.tool_calls], allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentError(f"reply.tool_calls: JSON cannot express a value: {error}") from None
    return reply


def without_last_break(text: str) -> str:
    """Return printed text without the line break at its end."""
    return text.removesuffix("\n").removesuffix("\r")


def _objects_in(text: str) -> tuple[list[tuple[dict[str, Any], str, str]], str]:
    """Return a text's object, or its first and its last one that begins a line, each with the text before and after.

    The second value is where JSON stops being JSON, if the text breaks off there or has a key of replies. Any other
    text is an answer, whatever it begins with; later lines can be a quotation.
    """
    found: list[tuple[dict[str, Any], str, str]] = []
    problem = ""
    first = len(text) - len(text.lstrip())
    for start in sorted({first, max(map(text.rfind, _LINES)) + 1}):
        if text[start : start + 1] != "{":
            continue
        check_size(text[start:].encode("utf-8", "surrogatepass"))
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            if (start == first and _REPLY_KEY.search(text)) or _is_cut_off(text, error):
                problem = problem or _place(error)
            continue
        before, after = text[:start].strip(), text[end:].strip()
        found.append((value, before, after))
        if start == first and not after:
            return found, ""
        if start == first and not _FOREIGN.isdisjoint(value):
            problem = _place(json.JSONDecodeError("", text, end))
    return found, problem


def _is_cut_off(text: str, error: Exception) -> bool:
    # Else nested too deeply: nobody writes a text like that.
    if not isinstance(error, json.JSONDecodeError):
        return True
    return error.msg.startswith("Unterminated") or len(text.rstrip()) - error.pos < _CUT


def _place(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
