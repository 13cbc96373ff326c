"""Reads what an agent answered as its definition says: as a reply of the protocol, as text, or by paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.agents.base import Reply, Request, answer_text, reply_from_json, reply_to
from agenteval.agents.reply_paths import ReplyPaths, reply_paths

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


@dataclass(frozen=True, slots=True)
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
            documents: the value, or the values of a stream.
            request: the turn; it says whether the case expects JSON as its answer.
            written: the text that the value was read from, if there was one.
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
    """Return the path of the text that is most likely the answer."""
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
