"""An agent that repeats recorded answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.agents.base import Reply, Request, agent_problem, reply_from_json
from agenteval.errors import AgentError, ConfigError, Problem
from agenteval.suite.document import read_text
from agenteval.suite.model import AgentSpec

_Key = tuple[str, int, int]
# A recorded reply, or the text of a recorded error.
_Recorded = Reply | str


class ReplayAgent:
    """Answers from a JSON Lines file, found by case (name or id), turn and iteration."""

    def __init__(self, spec: AgentSpec) -> None:
        self._path = Path(str(spec.target))
        self._where = spec.where
        self._replies: Mapping[_Key, _Recorded] = {}

    async def start(self) -> None:
        """Read the recording."""
        if not self._path.is_file():
            raise ConfigError(agent_problem(self._where, f"there is no recording {self._path}"))
        self._replies = read_recording(self._path)

    def session(self) -> ReplayAgent:
        """Recorded answers know no state."""
        return self

    async def send(self, request: Request) -> Reply:
        """The recorded answer."""
        for case in (request.case, request.case_id):
            recorded = self._replies.get((case, request.turn, request.iteration))
            if isinstance(recorded, str):
                raise AgentError(recorded)
            if recorded is not None:
                return recorded
        raise AgentError(
            f"{self._path.name} has no reply for case {request.case!r}, turn {request.turn}, "
            f"iteration {request.iteration}"
        )

    async def end(self) -> None:
        """Nothing is held."""

    async def close(self) -> None:
        """Nothing is open."""


def read_recording(path: Path) -> dict[_Key, _Recorded]:
    """All records of a replay file; the last of several for one turn counts.

    Raises:
        ConfigError: every line that is not a record, with its number.
    """
    records: dict[_Key, _Recorded] = {}
    problems: list[Problem] = []
    # Not splitlines(): a JSON text may hold other characters that end a line, such as U+2028.
    for number, line in enumerate(read_text(path, str(path)).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            key = _key(record)
            records[key] = _recorded(record)
        except (ValueError, RecursionError, AgentError) as error:
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


def _recorded(record: Mapping[str, Any]) -> _Recorded:
    if record.get("error") is not None:
        return str(record["error"])
    own = {"case", "turn", "iteration", "latency_ms", "error"}
    reply = reply_from_json({key: value for key, value in record.items() if key not in own})
    latency = record.get("latency_ms")
    return reply if latency is None else replace(reply, latency_ms=float(latency))
