"""Streams in responses, read after their end: server-sent events and JSON Lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agenteval.agents.http.response import HttpResponse, media_type, text_of
from agenteval.core.errors import AgentError

#: Limit of the events of one reply, whose objects need much more memory than their text.
MAX_EVENTS = 200_000
#: What OpenAI and others send after the last event.
DONE = "[DONE]"

_SERVER_SENT = "text/event-stream"
_JSON_LINES = re.compile(r"application/(x-)?(ndjson|jsonl|jsonlines|json-lines|stream\+json)")
_BEGINS_AS_EVENTS = re.compile(r"(?:data|event|id|retry)?:|(?:\r\n|\r|\n)+(?:data|event):")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name, empty for most, and its data."""

    name: str
    data: str


def is_stream(response: HttpResponse) -> bool:
    """Return whether the type of a response's content is that of a stream."""
    kind = media_type(response)
    return kind == _SERVER_SENT or _JSON_LINES.fullmatch(kind) is not None


def read_events(response: HttpResponse) -> list[Event]:
    """Return the events of a response, whatever its type: server-sent events, else one for each line.

    Raises:
        AgentError: there are too many events.
    """
    text = text_of(response).removeprefix("\ufeff")
    is_server_sent = media_type(response) == _SERVER_SENT or _BEGINS_AS_EVENTS.match(text)
    found = _server_sent(text) if is_server_sent else _lines(text)
    events = list(islice(found, MAX_EVENTS + 1))
    if len(events) > MAX_EVENTS:
        raise AgentError(f"the agent's stream has more than {MAX_EVENTS:,} events")
    return [event for event in events if event.data != DONE]


def json_of(event: Event) -> Any:
    """Return the data of an event.

    Raises:
        AgentError: it is not JSON.
    """
    try:
        return json.loads(event.data)
    except (ValueError, RecursionError) as error:
        raise AgentError(f"an event of the agent's stream is not JSON: {error}") from None


def objects_of(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """Yield the objects in the data of events; events without data and with other JSON are left out.

    Raises:
        AgentError: the data of an event is not JSON.
    """
    for event in events:
        value = json_of(event) if event.data else None
        if isinstance(value, dict):
            yield value


def _lines(text: str) -> Iterator[Event]:
    return (Event("", line) for line in _LINE_END.split(text) if line.strip())


def _server_sent(text: str) -> Iterator[Event]:
    """Yield the events of an event stream (WHATWG HTML, section 9.2.6); the last one may lack its empty line."""
    name, data = "", list[str]()
    for line in _LINE_END.split(f"{text}\n\n"):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif not line:
            if data or name:
                yield Event(name, "\n".join(data))
            name, data = "", []
