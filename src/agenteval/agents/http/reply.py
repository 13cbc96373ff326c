"""Reads the replies of HTTP agents: of the agent protocol, of a shape, or of any form by paths."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.agents.http.response import HttpResponse, is_text, media_type, text_of
from agenteval.agents.http.shapes.base import Shape
from agenteval.agents.http.shapes.registry import SHAPES, probable_shape
from agenteval.agents.http.stream import Event, is_stream, json_of, objects_of, read_events
from agenteval.agents.reading import WHOLE, ReplyForm, suggestion
from agenteval.agents.reply_parts import raise_error
from agenteval.core.errors import AgentError
from agenteval.core.masking import shortened
from agenteval.suite.json_path import PathError, described

_SHOWN = 300
_AS_TEXT = "check the address, or set `reply: text` if the whole body is the answer"
_EMPTY = "an empty answer needs `Content-Type: text/plain` or a `response`"


def _is_untagged(kind: str, response: HttpResponse) -> bool:
    """Return whether a response of type HTML is plain text: some frameworks send every text as HTML."""
    return kind == "text/html" and not response.content.lstrip().startswith(b"<")


@dataclass(frozen=True, slots=True)
class Received:
    """A response as JSON: one document, or those of a stream; or the text of a response that is not JSON."""

    documents: Sequence[Any] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True)
class ReplyReader:
    """Reads replies by the options of an agent.

    Attributes:
        form: the form of the JSON; its paths replace parts of a shape.
        shape: the published form of the replies, if they have one.
    """

    form: ReplyForm = field(default_factory=ReplyForm)
    shape: Shape | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ReplyReader:
        """Return the reader for the options of an agent.

        Raises:
            ValueError: the shape does not exist, or a path is not valid.
        """
        name = options.get("shape")
        if name is not None and name not in SHAPES:
            raise ValueError(f"no shape {name!r}; known: {', '.join(SHAPES)}")
        return cls(ReplyForm.of(options), None if name is None else SHAPES[name])

    def received(self, response: HttpResponse) -> Received:
        """Return the JSON in a response, or its text.

        Raises:
            AgentError: there is no body, it is not JSON although it should be, or a stream is incomplete.
        """
        if not response.content and not is_text(response):
            raise AgentError("the agent's reply has no body; " + _EMPTY)
        if self.form.is_text:
            return Received(text=text_of(response))
        if is_stream(response):
            return self._of_stream(read_events(response))
        is_foreign = self.shape is not None or self.form.paths is not None
        kind = media_type(response)
        if not is_foreign and "json" not in kind:
            if kind and not (is_text(response) or _is_untagged(kind, response)):
                shown = shortened(kind, _SHOWN)
                raise AgentError(f"the agent's reply has the type {shown}, not JSON or plain text; {_AS_TEXT}")
            return Received(text=text_of(response))
        try:
            return Received([json.loads(response.content)])
        except (ValueError, RecursionError) as error:
            # Some servers do not name the type of a stream.
            events = read_events(response) if is_foreign else []
            if len(events) > 1:
                return self._of_stream(events)
            raise AgentError(f"the agent's reply is not JSON: {error}") from None

    def reply(self, received: Received, request: Request) -> Reply:
        """Return the reply to a turn in its response.

        Raises:
            AgentError: it is an error, or lacks an answer.
        """
        if received.text is not None:
            return Reply(response=received.text)
        if self.shape is None:
            return self.form.read(received.documents, request, fix=_fix)
        found = _read(self.shape, received.documents[0])
        if self.form.paths is not None:
            found.update(self.form.paths.find(received.documents))
        return reply_from_json(found)

    def missing(self, received: Received) -> Iterator[str]:
        """Yield why paths have no value in a reply or in any event of a stream, and which shape it probably has."""
        if self.form.paths is not None and received.documents:
            yield from self.form.paths.missing(received.documents)
        elif self.shape is None and (name := _shape_of(received.documents)):
            yield f"the reply looks like `shape: {name}`"

    def _of_stream(self, events: Sequence[Event]) -> Received:
        if not events:
            raise AgentError("the agent's stream contains no events")
        if self.shape is not None:
            return Received([self.shape.join(events)])
        failed = next((event for event in events if event.name == "error"), None)
        if failed is not None:
            raise AgentError(f"the agent reported an error: {shortened(failed.data, _SHOWN)}")
        if self.form.paths is not None:
            return Received(list(objects_of(events)) or [None])
        return _without_mapping(events)


def _read(shape: Shape, document: Any) -> dict[str, Any]:
    try:
        return shape.read(document)
    except PathError as error:
        other = probable_shape(document)
        hint = f"; it looks like `shape: {other}`" if other and other != shape.name else ""
        raise AgentError(f"{error}{hint}") from None


def _fix(value: Mapping[str, Any]) -> str:
    """Return what to do about an object without ``response``."""
    shape = probable_shape(value)
    return f"set `shape: {shape}`, or {WHOLE}" if shape else suggestion(value)


def _without_mapping(events: Sequence[Event]) -> Received:
    """Return the texts of a stream as one, or the only reply of the agent protocol in it.

    Raises:
        AgentError: its events are objects of another form.
    """
    objects = [value for event in events if (value := _object(event)) is not None]
    if not objects:
        return Received(text="".join(_texts(events)))
    for value in objects:
        raise_error(value)
    replies = [value for value in objects if "response" in value]
    if len(replies) == 1:
        return Received(replies)
    shape = _shape_of(objects)
    fix = f"set `shape: {shape}`" if shape else "set `response: {answer: …}` to the path of the text in an event"
    example = max(objects, key=len)
    raise AgentError(f"the agent's stream consists of {len(objects)} objects, such as {described(example)}; {fix}")


def _shape_of(documents: Iterable[Any]) -> str | None:
    return next((name for value in documents if (name := probable_shape(value))), None)


def _object(event: Event) -> dict[str, Any] | None:
    if not event.data.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(event.data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _texts(events: Sequence[Event]) -> list[str]:
    """Return the texts of events: their content if all are JSON texts, else as they are."""
    try:
        values = [json_of(event) for event in events]
    except AgentError:
        values = []
    return values if values and all(isinstance(value, str) for value in values) else [event.data for event in events]
