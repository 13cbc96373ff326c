"""An agent that repeats recorded answers: of JSON Lines, OpenTelemetry traces or results files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from agenteval.agents.base import (
    NO_ANSWER,
    PlainAgent,
    Reply,
    Request,
    as_text,
    is_number,
    read_json,
    reply_from_json,
)
from agenteval.agents.recording import RecordedCase, RecordedQuestion, RecordedTurn, Recording, is_traced
from agenteval.core.errors import AgentError, ConfigError, Kind, Problem, agent_problem
from agenteval.core.files import read_head, read_lines
from agenteval.results.case import MOST_USED
from agenteval.suite.cases import excerpt
from agenteval.suite.model import AgentSpec, Case

_LONGEST_LINE = 100_000_000
# Cases whose answers are kept; parsed replies need much more memory than their lines.
_PARSED_CASES = 64
_PLACE = ("case", "turn", "iteration")
_OWN = frozenset({*_PLACE, "latency_ms", "error"})


class RecordedLines:
    """Replies by the name or id of their case.

    Args:
        records: by case, the lines of its records, which need a fraction of the memory of parsed replies.
    """

    is_run: ClassVar[bool] = False

    def __init__(self, records: Mapping[str, Sequence[bytes]]) -> None:
        self._records = records
        # All turns and iterations of a case are asked for, mostly one after the other.
        self._case = lru_cache(_PARSED_CASES)(self._parsed)

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """Return the answers recorded for a case; for each turn, its name precedes its id."""
        by_id, by_name = self._case(asked.case_id), self._case(asked.name)
        if not by_id or not by_name:
            return by_name or by_id
        return {key: {**by_id.get(key, {}), **by_name.get(key, {})} for key in by_id.keys() | by_name.keys()}

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:  # noqa: ARG002 - other recordings need it
        """Return nothing: such a file may serve several suites."""
        return ()

    def _parsed(self, key: str) -> RecordedCase:
        iterations: dict[int, dict[int, RecordedTurn]] = {}
        for line in self._records.get(key, ()):
            record = read_json(line.decode("utf-8"))
            _, turn, iteration = _place(record)
            iterations.setdefault(iteration, {})[turn] = RecordedTurn(_answer(record))
        return iterations


def read_recorded_lines(file: Path) -> RecordedLines:
    """Read all records of a file; of several records for the same turn, the last one is used."""
    records: dict[str, list[bytes]] = {}
    problems: list[Problem] = []
    for number, line in read_lines(file, _LONGEST_LINE):
        if line is not None and not line.strip():
            continue
        try:
            if line is None:
                raise ValueError(f"the line is longer than {_LONGEST_LINE // 1_000_000} MB")
            record = read_json(line.decode("utf-8"))
            case, _, _ = _place(record)
            _answer(record)
            records.setdefault(case, []).append(line.strip())
        except UnicodeDecodeError as error:
            problems.append(
                Problem(f"not UTF-8 text (byte {error.start} of the line)", str(file), number, kind=Kind.FILE)
            )
        except (ValueError, RecursionError, AgentError) as error:
            problems.append(Problem(f"not a recorded reply: {error}", file=str(file), line=number, kind=Kind.FILE))
    if problems:
        raise ConfigError(problems)
    return RecordedLines(records)


def _place(record: Any) -> tuple[str, int, int]:
    if not isinstance(record, dict):
        raise ValueError("must be an object")
    case = record.get("case")
    if not isinstance(case, str):
        raise ValueError("needs a text `case`, the name of its case, or `messages` with question and answer")
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


_HEAD = 1 << 20


def read_recording(path: Path) -> Recording:
    """Read the recorded answers of a file.

    Args:
        path: JSON Lines of replies; traces; results of agenteval or another tool, or the directory with them.
    """
    if is_traced(path):
        from agenteval.agents.traces import read_recorded_traces

        return read_recorded_traces(path)
    if path.is_dir() or _is_run(path):
        from agenteval.agents.recording import read_recorded_results

        return read_recorded_results(path)
    return read_recorded_lines(path)


def _is_run(path: Path) -> bool:
    """Return whether a file contains the results of a run: one JSON document, or FluxLoop's scored traces."""
    first = read_head(path, _HEAD).lstrip().split(b"\n", 1)[0]
    value = _json(first)
    if isinstance(value, dict):
        return "case" not in value and ("scores" in value or "schema_version" in value or path.suffix == ".json")
    # A results document with several lines, or with one very long line.
    return first.startswith(b"{") and (first.strip() == b"{" or path.suffix == ".json")


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


_USER = "user"
_MASK = "***"


class ReplayAgent(PlainAgent):
    """Answers from a recording, by case, turn and iteration."""

    def __init__(self, spec: AgentSpec) -> None:
        self._path = Path(str(spec.target))
        self._where = spec.where
        self._recording: Recording | None = None
        self._found: dict[str, RecordedCase] = {}
        self._different: dict[str, str] = {}

    async def start(self) -> None:
        """Read the recording."""
        if not self._path.exists():
            raise ConfigError(agent_problem(self._where, f"recording {self._path} does not exist"))
        self._recording = read_recording(self._path)

    def expect(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """Look up the cases of the run.

        Returns:
            Notices about the recording.
        """
        if self._recording is None:
            return ()
        if self._recording.is_run:
            self._found = {asked.case_id: self._recording.find(asked) for asked in map(_case_asked, cases)}
        return self._recording.notices(map(_case_asked, cases))

    def iterations(self, case_id: str) -> int | None:
        """Return the number of recorded iterations of a case; 1 without any, so that one error reports it."""
        is_run = self._recording is not None and self._recording.is_run
        return max(self._found.get(case_id, ()), default=0) + 1 if is_run else None

    async def send(self, request: Request) -> Reply:
        """Return the recorded answer."""
        case = self._found.get(request.case_id) or self._find(request)
        iteration = case.get(request.iteration, {})
        turn = iteration.get(request.turn)
        if turn is None:
            raise AgentError(f"{self._path.name} has no reply for {self._what_is_missing(request, case)}")
        # Earlier turns affect later answers, so a different question counts for all turns after it.
        if request.session not in self._different and turn.input is not None and not _same(turn.input, request.input):
            self._different[request.session] = (
                f"{self._path.name}: turn {request.turn} of case {request.case!r}: the recorded question differs "
                f"({excerpt(turn.input)!r}); record the case again"
            )
        if request.session in self._different:
            raise AgentError(self._different[request.session])
        if isinstance(turn.answer, str):
            raise AgentError(turn.answer)
        return turn.answer

    def _find(self, request: Request) -> RecordedCase:
        if self._recording is None:
            return {}
        said = (said["content"] for said in request.history if said["role"] == _USER)
        # Only a run is searched by its questions; with the history, long conversations would take quadratic time.
        asked = (*said, request.input) if self._recording.is_run else ()
        return self._recording.find(RecordedQuestion(request.case_id, request.case, asked))

    def _what_is_missing(self, request: Request, case: RecordedCase) -> str:
        name = f"case {request.case!r}"
        if not case:
            return (
                f"{name}; record it: agenteval run -k {request.case!r} with the agent itself, "
                "and replay the results.json of that run"
            )
        if request.iteration not in case:
            recorded = len(case)
            times = "once" if recorded == 1 else f"{recorded} times"
            return (
                f"{name}, turn {request.turn}, iteration {request.iteration}: it was recorded {times}; "
                f"ask for no more with --iterations or in the suite, or record it again"
            )
        return f"{name}, turn {request.turn}, iteration {request.iteration}: this turn was not recorded"


def _case_asked(case: Case) -> RecordedQuestion:
    return RecordedQuestion(case.id, case.name, tuple(turn.input for turn in case.turns))


def _same(recorded: str, asked: str) -> bool:
    """Return whether two inputs are equal; in results, secrets are masked."""
    wanted = as_text(asked).strip()
    first, *rest = recorded.strip().split(_MASK)
    if not rest:
        return first == wanted
    if not wanted.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = wanted.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return wanted.endswith(rest[-1]) and len(wanted) - len(rest[-1]) >= at
