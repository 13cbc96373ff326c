"""Recordings as JSON Lines of replies, each with its ``case``, ``turn`` and ``iteration``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from agenteval.agents.base import NO_ANSWER, Reply, is_number, reply_from_json
from agenteval.agents.replay.recording import RecordedCase, RecordedQuestion, RecordedTurn
from agenteval.core.documents.lines import read_lines
from agenteval.core.errors import AgentError, ConfigError, Kind, Problem
from agenteval.results.case import MOST_USED

_LONGEST_LINE = 100_000_000
_PLACE = ("case", "turn", "iteration")
_OWN = frozenset({*_PLACE, "latency_ms", "error"})
# Most records have only these fields; for these the answer's text is kept instead of the record.
_PLAIN = frozenset({"case", "response"})


class RecordedLines:
    """Replies by the name or id of their case.

    Args:
        records: by case: the only answer's text, or the lines of its records. Lines need a fraction of the
            memory of parsed replies.
    """

    is_run: ClassVar[bool] = False

    def __init__(self, records: Mapping[str, str | bytes]) -> None:
        self._records = records

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """Return the answers recorded for a case; for each turn, its name precedes its id."""
        by_id, by_name = (_case(self._records.get(key, b"")) for key in (asked.case_id, asked.name))
        if not by_id or not by_name:
            return by_name or by_id
        return {key: {**by_id.get(key, {}), **by_name.get(key, {})} for key in by_id.keys() | by_name.keys()}

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:  # noqa: ARG002 - other recordings need it
        """Return nothing: such a file may serve several suites."""
        return ()


def read_recorded_lines(file: Path) -> RecordedLines:
    """Read all records of a file; of several records for the same turn, the last one is used.

    Raises:
        ConfigError: it cannot be read, or has lines that are not records; the message lists their numbers.
    """
    records: dict[str, str | bytes] = {}
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
            answer = _answer(record)
            if case in records:
                further.setdefault(case, []).append(line.strip())
            else:
                records[case] = _kept(record, answer, line)
        except UnicodeDecodeError as error:
            problems.append(
                Problem(f"not UTF-8 text (byte {error.start} of the line)", str(file), number, kind=Kind.FILE)
            )
        except (ValueError, RecursionError, AgentError) as error:
            problems.append(Problem(f"not a recorded reply: {error}", file=str(file), line=number, kind=Kind.FILE))
    if problems:
        raise ConfigError(problems)
    for case, lines in further.items():
        first = records[case]
        if isinstance(first, str):
            first = json.dumps({"case": case, "response": first}).encode()
        records[case] = b"\n".join([first, *lines])
    return RecordedLines(records)


def _kept(record: Mapping[str, Any], answer: Reply | str, line: bytes) -> str | bytes:
    """Return the smallest form of a case's only record from which it can be restored."""
    return answer.response if isinstance(answer, Reply) and record.keys() == _PLAIN else line.strip()


def _case(records: str | bytes) -> RecordedCase:
    """Parse the records of a case, which were validated before."""
    if isinstance(records, str):
        return {0: {0: RecordedTurn(Reply(records))}}
    iterations: dict[int, dict[int, RecordedTurn]] = {}
    for line in records.split(b"\n") if records else ():
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
    if latency is not None and not (is_number(latency) and 0 <= latency <= MOST_USED):
        raise ValueError("`latency_ms` must be a number from 0 to 10^15")
    return case, place[0], place[1]


def _answer(record: Mapping[str, Any]) -> Reply | str:
    if record.get("error"):
        return str(record["error"])
    fields = {key: value for key, value in record.items() if key not in _OWN}
    if record.get("response") is None and not record.get("tool_calls"):
        return NO_ANSWER
    reply = reply_from_json(fields)
    latency = record.get("latency_ms")
    return reply if latency is None else replace(reply, latency_ms=float(latency))
