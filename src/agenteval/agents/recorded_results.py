"""Recordings in results files of agenteval, HoloDeck, FluxLoop or promptfoo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from pydantic import ValidationError

from agenteval.agents.base import Reply
from agenteval.agents.recording import RecordedCase, RecordedQuestion, RecordedTurn
from agenteval.core.errors import ConfigError
from agenteval.core.files import read_head, read_lines
from agenteval.results.case import CaseResult, TurnResult
from agenteval.results.masking import ANSWER_FIELDS, shortened_note
from agenteval.results.store import OWN_BEGINNING, RESULTS_FILE, parse_results

# agenteval writes each case on a separate line, and indents all other lines except the first and last.
_CASE = b'{"id":'
_LONGEST_LINE = 1_000_000_000
_NOT_WHOLE = (
    "the recording contains only the beginning of this turn's {} ({}); record the case again with a larger "
    "`max_answer_bytes` in agenteval.yaml"
)


class RecordedResults:
    """The answers of a run by case id, or by case name for a case of another suite, if the name is unique."""

    is_run: ClassVar[bool] = True

    def __init__(self, cases: Iterable[CaseResult]) -> None:
        self._by_id: dict[str, RecordedCase] = {}
        self._by_name: dict[str, RecordedCase | None] = {}
        for case in cases:
            recorded = _recorded(case)
            self._by_id[case.id] = recorded
            self._by_name[case.name] = None if case.name in self._by_name else recorded

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """Return the answers recorded for a case."""
        return self._by_id.get(asked.case_id) or self._by_name.get(asked.name) or {}

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:  # noqa: ARG002 - other recordings need it
        """Return nothing: a suite may use only a part of a recorded run."""
        return ()


def read_recorded_results(path: Path) -> RecordedResults:
    """Read the answers of a run.

    Args:
        path: its results file, or the report directory that contains it.

    Raises:
        ConfigError: the file does not exist, or its format is not supported.
    """
    file = path / RESULTS_FILE if path.is_dir() else path
    if OWN_BEGINNING.match(read_head(file, 100)):
        try:
            return RecordedResults(_cases(file))
        except (ValidationError, ConfigError):
            # The file was reformatted or is damaged; reading it as a whole finds the error.
            pass
    from agenteval.results.importers.detect import read_run

    results, _ = read_run(path)
    return RecordedResults(case for _, case in results.cases())


def _cases(file: Path) -> Iterator[CaseResult]:
    """Yield the cases of a file that agenteval wrote, one by one, to limit memory.

    Raises:
        ConfigError: the rest of the file is not a results file.
        ValidationError: a line is not a case.
    """
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
