"""An agent that repeats recorded answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agenteval.agents.base import Reply, Request, reply_from_json
from agenteval.errors import AgentError, ConfigError, Problem
from agenteval.suite.document import read_text
from agenteval.suite.model import AgentSpec

_Key = tuple[str, int, int]


class ReplayAgent:
    """Answers from a JSON Lines file, found by case (name or id), turn and iteration."""

    def __init__(self, spec: AgentSpec) -> None:
        self._path = Path(str(spec.target))
        self._replies: Mapping[_Key, Mapping[str, Any]] = {}

    async def start(self) -> None:
        """Read the recording."""
        self._replies = read_recording(self._path)

    def session(self) -> ReplayAgent:
        """Recorded answers know no state."""
        return self

    async def send(self, request: Request) -> Reply:
        """The recorded answer."""
        for case in (request.case, request.case_id):
            record = self._replies.get((case, request.turn, request.iteration))
            if record is not None:
                return _reply(record)
        raise AgentError(
            f"{self._path.name} has no reply for case {request.case!r}, turn {request.turn}, "
            f"iteration {request.iteration}"
        )

    async def close(self) -> None:
        """Nothing is open."""


def read_recording(path: Path) -> dict[_Key, Mapping[str, Any]]:
    """All records of a replay file; the last of several for one turn counts.

    Raises:
        ConfigError: every line that is not a record, with its number.
    """
    records: dict[_Key, Mapping[str, Any]] = {}
    problems: list[Problem] = []
    for number, line in enumerate(read_text(path, str(path)).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            records[_key(record)] = record
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"not a recorded reply: {error}", file=str(path), line=number))
    if problems:
        raise ConfigError(problems)
    return records


def _key(record: Any) -> _Key:
    if not isinstance(record, dict):
        raise ValueError("must be an object")
    case = record.get("case")
    if not isinstance(case, str):
        raise ValueError("needs a text `case`")
    place = []
    for name in ("turn", "iteration"):
        number = record.get(name, 0)
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise ValueError(f"`{name}` must be a number from 0")
        place.append(number)
    if "response" not in record and "error" not in record:
        raise ValueError("needs a `response` or an `error`")
    latency = record.get("latency_ms")
    if latency is not None and (not isinstance(latency, int | float) or isinstance(latency, bool)):
        raise ValueError("`latency_ms` must be a number")
    return case, place[0], place[1]


def _reply(record: Mapping[str, Any]) -> Reply:
    if record.get("error") is not None:
        raise AgentError(str(record["error"]))
    own = {"case", "turn", "iteration", "latency_ms", "error"}
    reply = reply_from_json({key: value for key, value in record.items() if key not in own})
    latency = record.get("latency_ms")
    return Reply(
        response=reply.response,
        tool_calls=reply.tool_calls,
        retrieval_context=reply.retrieval_context,
        usage=reply.usage,
        metadata=reply.metadata,
        latency_ms=None if latency is None else float(latency),
    )
