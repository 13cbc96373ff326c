"""Recordings and traces: the interface that all formats share, and recordings in results files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pydantic import ValidationError

from agenteval.agents.base import MOST_OF_STREAM, Reply, check_size
from agenteval.core.errors import AgentError, ConfigError, Kind, Problem
from agenteval.core.files import read_head, read_lines
from agenteval.core.records import dataclass, field
from agenteval.results.case import CaseResult, TurnResult
from agenteval.results.masking import ANSWER_FIELDS, shortened_note
from agenteval.results.model import OWN_NAME
from agenteval.results.record import Record
from agenteval.results.store import OWN_BEGINNING, RESULTS_FILE, parse_results

if TYPE_CHECKING:
    from agenteval.agents.otel_messages import Export

# agenteval writes each case on a separate line, and indents all other lines except the first and last.
_CASE = b'{"id":'
_LONGEST_LINE = 1_000_000_000
_NOT_WHOLE = (
    "the recording contains only the beginning of this turn's {} ({}); record the case again with a larger "
    "`max_answer_bytes` in agenteval.yaml"
)


class RecordedResults:
    """The answers of a run by case id; for a case of another suite by name, if it is unique.

    Args:
        by_question: whether a case of another name with the same question gets the answer: other tools need no names.
    """

    is_run: ClassVar[bool] = True

    def __init__(self, cases: Iterable[CaseResult], *, by_question: bool = False) -> None:
        self._by_id: dict[str, RecordedCase] = {}
        self._by_name: dict[str, RecordedCase | None] = {}
        self._by_input: dict[str, RecordedCase | None] = {}
        for case in cases:
            recorded = _recorded(case)
            self._by_id[case.id] = recorded
            self._by_name[case.name] = None if case.name in self._by_name else recorded
            asked = case.turns[0].input if by_question and len(case.turns) == len(case.iterations) > 0 else ""
            self._by_input[asked] = None if asked in self._by_input else recorded

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """Return the answers recorded for a case."""
        found = self._by_id.get(asked.case_id) or self._by_name.get(asked.name)
        same = self._by_input.get(asked.inputs[0]) if len(asked.inputs) == 1 and asked.inputs[0] else None
        return found or same or {}

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:  # noqa: ARG002 - other recordings need it
        """Return nothing: a suite may use only a part of a recorded run."""
        return ()


def read_recorded_results(path: Path) -> RecordedResults:
    """Read the answers of a run: its results file, or the report directory that contains it."""
    file = path / RESULTS_FILE if path.is_dir() else path
    if OWN_BEGINNING.match(read_head(file, 100)):
        try:
            return RecordedResults(_cases(file))
        except (ValidationError, ConfigError):
            # The file was reformatted or is damaged; reading it as a whole finds the error.
            pass
    from agenteval.results.importers.base import SEVERAL
    from agenteval.results.importers.detect import read_run

    results, _ = read_run(path)
    columns = {suite.path: {case.name for case in suite.cases} for suite in results.suites if "[" in suite.path}
    if len(set[str]().union(*columns.values())) < sum(map(len, columns.values())):
        raise ConfigError(Problem(SEVERAL.format(", ".join(columns)), file=str(path), kind=Kind.RESULTS))
    is_own = results.tool.name == OWN_NAME
    return RecordedResults((case for _, case in results.cases()), by_question=not is_own)


def _cases(file: Path) -> Iterator[CaseResult]:
    frame: list[bytes] = []
    for _, line in read_lines(file, _LONGEST_LINE):
        if line is not None and line.startswith(_CASE):
            text = line.rstrip()
            yield CaseResult.model_validate_json(text[:-1])
            # A comma, or the end of the list.
            frame.append(text[-1:].strip(b","))
        else:
            frame.append(line or b"")
    # In a reformatted file, this part may contain cases, too.
    yield from (case for _, case in parse_results(b"".join(frame), str(file)).cases())


def _recorded(case: CaseResult) -> RecordedCase:
    return {
        iteration.index: {
            turn.index: recorded for turn in iteration.turns if (recorded := recorded_turn(turn)) is not None
        }
        for iteration in case.iterations
    }


def recorded_turn(turn: TurnResult) -> RecordedTurn | None:
    """Return the recorded turn; ``None`` if the agent was not called."""
    if turn.error is not None:
        return RecordedTurn(turn.error, turn.input)
    if turn.response is None:
        return None
    missing = [name for name in ("input", *ANSWER_FIELDS) if name in turn.shortened]
    if missing:
        return RecordedTurn(_NOT_WHOLE.format(missing[0], shortened_note(turn.shortened[missing[0]])))
    reply = Reply(
        response=turn.response,
        tool_calls=tuple(turn.tool_calls),
        retrieval_context=tuple(turn.retrieval_context),
        usage=turn.usage,
        latency_ms=turn.latency_ms,
    )
    return RecordedTurn(reply, turn.input)


@dataclass(frozen=True)
class RecordedTurn:
    """One recorded exchange.

    Attributes:
        input: the question; ``None`` if the recording does not contain it, or identifies the turn by its case.
    """

    answer: Reply | str
    input: str | None = None


# By turn and by iteration, from 0; turns that were not recorded are missing.
RecordedIteration = Mapping[int, RecordedTurn]
RecordedCase = Mapping[int, RecordedIteration]


@dataclass(frozen=True)
class RecordedQuestion:
    """A case whose recorded answers are searched for."""

    case_id: str
    name: str
    inputs: tuple[str, ...]


class Recording(Protocol):
    """Recorded answers of any format.

    Attributes:
        is_run: whether the recording is a run, which is replayed in full; otherwise answers are selected from it.
    """

    is_run: ClassVar[bool]

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """Return the answers recorded for a case; empty without any."""
        ...

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:
        """Return notices about the recording, after all cases of the run were searched for."""
        ...


@dataclass(frozen=True)
class Trace:
    """One recorded answer.

    Attributes:
        line: its 1-based line in the file.
        iteration: the iteration of the question, from 0.
        input: the question; JSON text if it is not text.
        output: the answer; JSON text if it is not text, empty without one.
        duration_ms: the duration in milliseconds.
        success: the record's ``success`` field.
        record: the whole record, for fields named by path.
    """

    line: int
    trace_id: str
    iteration: int
    persona: str | None
    input: str
    output: str
    duration_ms: float | None
    success: bool | None
    record: Record = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class BadLine:
    """A line that is not a trace: its place, and the problem with its fix."""

    file: Path
    line: int
    message: str


# Bytes; a line is one export request of an agent, often with thousands of spans.
LONGEST_LINE = 100_000_000
_START = re.compile(rb'\s*\{\s*"resource(?:Spans|Logs|Metrics)"\s*:')
_HEAD = 4096
# What only observations and traces of Langfuse, runs of LangSmith, and spans of Phoenix and OpenTelemetry's SDK have.
_ROW_KEYS = ("parentObservationId", "parent_observation_id", "sessionId", "run_type", "parent_id")
_ROW_KEY = re.compile(rf'(?<!\\)"(?:{"|".join(_ROW_KEYS)})"\s*:'.encode())
_ROW_HEAD = 1 << 17


def is_otel(file: Path) -> bool:
    """Return whether a file, plain or gzip'ed, contains OpenTelemetry data as JSON."""
    return _START.match(read_head(file, _HEAD)) is not None


def is_traced(file: Path) -> bool:
    """Return whether a file has traces: OpenTelemetry data, rows of Langfuse or LangSmith, or chats."""
    if is_otel(file):
        return True
    head = read_head(file, _ROW_HEAD)
    try:
        row, _ = json.JSONDecoder().raw_decode(head.decode("utf-8", "replace").lstrip(" \t\r\n["))
    except (ValueError, RecursionError):
        # A long document; quotes inside of a text have a backslash before them.
        return OWN_BEGINNING.match(head) is None and _ROW_KEY.search(head) is not None
    row = rows_in(row)[0]
    if not isinstance(row, dict) or "case" in row:
        return False
    is_chat = isinstance(row.get("messages"), list) and "input" not in row
    return is_chat or not row.keys().isdisjoint(_ROW_KEYS)


def rows_in(document: Any) -> list[Any]:
    """Return the rows of a document: a list, or a list in it; a trace can have only the ids of its observations."""
    lists = [document.get(key) for key in ("observations", "data")] if isinstance(document, dict) else [document]
    for found in lists:
        if isinstance(found, list) and found and isinstance(found[0], dict):
            return found
    return [document]


def read_exports(file: Path) -> Iterator[tuple[int, Export] | BadLine]:
    """Yield every line of a file with its number, except blank lines."""
    # Imported here: every recording is inspected, and few have this format.
    from agenteval.agents.otel_messages import Export

    for number, line in read_lines(file, LONGEST_LINE):
        if line is None:
            limit = LONGEST_LINE // 1_000_000
            yield BadLine(file, number, f"the line is longer than {limit} MB; let the collector send smaller batches")
        elif line.strip():
            try:
                check_size(line, MOST_OF_STREAM)
                yield number, Export.model_validate_json(line)
            except AgentError as error:
                yield BadLine(file, number, f"{error}; let the collector send smaller batches")
            except ValidationError as error:
                yield BadLine(file, number, _mistake(error))


def _mistake(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return f"{first['msg']}; each line must be one whole JSON object with `resourceSpans`"
    path = ".".join(map(str, first["loc"]))
    return str(
        Problem(f"{first['msg']}; each line must be an ExportTraceServiceRequest of OTLP", path=path, kind=Kind.FILE)
    )
