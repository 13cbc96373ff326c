"""Recordings as JSON Lines of replies, each with its ``case``, ``turn`` and ``iteration``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from agenteval.agents.base import Reply, is_number, reply_from_json
from agenteval.agents.replay_recording import Asked, RecordedCase, RecordedTurn
from agenteval.errors import AgentError, ConfigError, Problem
from agenteval.traces.lines import read_lines

_LONGEST_LINE = 100_000_000
_PLACE = ("case", "turn", "iteration")
_OWN = frozenset({*_PLACE, "latency_ms", "error"})


class RecordedLines:
    """Replies by the name or id of their case.

    Args:
        lines: the records of each case, as they are written, a line each: they need a fraction of the room that
            replies take.
    """

    is_run: ClassVar[bool] = False

    def __init__(self, lines: Mapping[str, bytes]) -> None:
        self._lines = lines

    def find(self, asked: Asked) -> RecordedCase:
        """What was recorded of a case; where its name and its id both are, the name wins turn by turn."""
        by_id, by_name = (_case(self._lines.get(key, b"")) for key in (asked.case_id, asked.name))
        if not by_id or not by_name:
            return by_name or by_id
        return {key: {**by_id.get(key, {}), **by_name.get(key, {})} for key in by_id.keys() | by_name.keys()}

    def remarks(self, asked: Iterable[Asked]) -> tuple[str, ...]:  # noqa: ARG002 - other recordings need it
        """Nothing: such a file may serve several suites."""
        return ()


def read_recorded_lines(file: Path) -> RecordedLines:
    """All records of a file; the last of several for one turn counts.

    Raises:
        ConfigError: it cannot be read, or with every line that is not a record, with its number.
    """
    first: dict[str, bytes] = {}
    further: dict[str, list[bytes]] = {}
    problems: list[Problem] = []
    for number, line in read_lines(file, _LONGEST_LINE):
        if line is not None and not line.strip():
            continue
        try:
            if line is None:
                raise ValueError(f"the line is longer than {_LONGEST_LINE // 1_000_000} MB")
            record = json.loads(line.decode("utf-8"))
            case, _, _ = _place(record)
            _answer(record)
            written = line.strip()
            if first.setdefault(case, written) is not written:
                further.setdefault(case, []).append(written)
        except UnicodeDecodeError as error:
            problems.append(Problem(f"not UTF-8 text (byte {error.start} of the line)", str(file), number))
        except (ValueError, RecursionError, AgentError) as error:
            problems.append(Problem(f"not a recorded reply: {error}", file=str(file), line=number))
    if problems:
        raise ConfigError(problems)
    for case, lines in further.items():
        first[case] = b"\n".join([first[case], *lines])
    return RecordedLines(first)


def _case(lines: bytes) -> RecordedCase:
    """What records say that were found to be sound."""
    iterations: dict[int, dict[int, RecordedTurn]] = {}
    for line in lines.split(b"\n") if lines else ():
        record = json.loads(line.decode("utf-8"))
        _, turn, iteration = _place(record)
        iterations.setdefault(iteration, {})[turn] = RecordedTurn(_answer(record))
    return iterations


def _place(record: Any) -> tuple[str, int, int]:
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
    if latency is not None and not is_number(latency):
        raise ValueError("`latency_ms` must be a number")
    return case, place[0], place[1]


def _answer(record: Mapping[str, Any]) -> Reply | str:
    if record.get("error") is not None:
        return str(record["error"])
    reply = reply_from_json({key: value for key, value in record.items() if key not in _OWN})
    latency = record.get("latency_ms")
    return reply if latency is None else replace(reply, latency_ms=float(latency))
