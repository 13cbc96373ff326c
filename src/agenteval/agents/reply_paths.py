"""``response`` of an agent: finds the parts of a reply of any form by their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.agents.base import as_text
from agenteval.agents.reply_parts import raise_error, reported, text_of_blocks
from agenteval.agents.tool_calls import parsed_arguments
from agenteval.core.errors import AgentError
from agenteval.suite.json_path import JsonPath, PathError, described, parse_path


@dataclass(frozen=True, slots=True)
class CallPaths:
    """The paths of the parts of a tool call, from an item of the list of calls."""

    name: JsonPath
    parts: Mapping[str, JsonPath]

    def calls(self, items: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """Yield the calls among items; items without a name are no calls."""
        for item in items:
            name = self.name.get(item)
            if isinstance(name, str):
                found = {key: path.get(item) for key, path in self.parts.items()}
                yield {"name": name, **found, "args": parsed_arguments(found.get("args"))}


@dataclass(frozen=True, slots=True)
class ReplyPaths:
    """The paths of the parts of a reply, in every document of it: a stream consists of several.

    Attributes:
        paths: the path of each part by its key below ``response``, such as ``answer`` and ``usage.cost_usd``.
        call: the paths in an item of the list of calls; ``None`` for calls of a known form.
    """

    paths: Mapping[str, JsonPath]
    call: CallPaths | None = None
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
        return items if self.call is None else list(self.call.calls(items))

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
        call = CallPaths(parse_path(calls.get("name") or "name"), parts)
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
