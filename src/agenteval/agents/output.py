"""Finds the reply in what a program printed, with or without log lines before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.agents.base import Reply, Request
from agenteval.agents.reading import ReplyForm
from agenteval.core.errors import AgentError


@dataclass(frozen=True, slots=True)
class Output:
    """The reply that a program printed.

    Attributes:
        reply: the reply.
        value: the JSON object that contained it, if it was one.
        has_log: whether the program printed further lines before it.
        no_json: where a text that begins like a JSON object stops being one; empty for other texts.
    """

    reply: Reply
    value: Mapping[str, Any] | None = None
    has_log: bool = False
    no_json: str = ""


@dataclass(frozen=True, slots=True)
class OutputReader:
    """Reads what a program printed.

    The output is a JSON object, or it ends with a reply object after log lines, or it is the answer as plain text.

    Attributes:
        form: the form of the object.
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
        value = json.loads(text)
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
