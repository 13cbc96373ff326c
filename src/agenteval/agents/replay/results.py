"""Recordings that are the results of a run: agenteval's own, or those of HoloDeck, FluxLoop or promptfoo."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from pydantic import ValidationError

from agenteval.agents.base import Reply
from agenteval.agents.replay.recording import RecordedCase, RecordedQuestion, RecordedTurn
from agenteval.core.documents.lines import read_head, read_lines
from agenteval.core.errors import ConfigError
from agenteval.results.model import CaseResult, TurnResult
from agenteval.results.store import RESULTS_FILE, parse_results

# How agenteval writes the file: each case is a line of its own, and all other lines but the first and last are
# indented.
_OWN = re.compile(rb'\{\s*"schema_version"')
_CASE = b'{"id":'
_LONGEST_LINE = 1_000_000_000


class RecordedResults:
    """The answers of a run, by the id of their case; a case of another suite by its name, where that is the only one.

    Args:
        cases: of the run.
    """

    is_run: ClassVar[bool] = True

    def __init__(self, cases: Iterable[CaseResult]) -> None:
        self._by_id: dict[str, RecordedCase] = {}
        self._by_name: dict[str, RecordedCase | None] = {}
        for case in cases:
            recorded = _recorded(case)
            self._by_id[case.id] = recorded
            self._by_name[case.name] = None if case.name in self._by_name else recorded

    def find(self, asked: RecordedQuestion) -> RecordedCase:
        """What was recorded of a case."""
        return self._by_id.get(asked.case_id) or self._by_name.get(asked.name) or {}

    def notices(self, asked: Iterable[RecordedQuestion]) -> tuple[str, ...]:  # noqa: ARG002 - other recordings need it
        """Nothing: a run of more cases may be scored in part."""
        return ()


def read_recorded_results(path: Path) -> RecordedResults:
    """The answers of a run.

    Args:
        path: its results file, or the report directory that holds it.

    Raises:
        ConfigError: there is no such file, or it is of no tool that is understood.
    """
    file = path / RESULTS_FILE if path.is_dir() else path
    if _OWN.match(read_head(file, 100)):
        try:
            return RecordedResults(_cases(file))
        except (ValidationError, ConfigError):
            # Somebody has formatted it, or it is broken: read as a whole, which says what is wrong.
            pass
    from agenteval.results.importers.detect import read_run

    results, _ = read_run(path)
    return RecordedResults(case for _, case in results.cases())


def _cases(file: Path) -> Iterator[CaseResult]:
    """The cases of a file that agenteval wrote, one by one: so it is never held as a whole.

    Raises:
        ConfigError: the rest of the file is no results file.
        ValidationError: a line is no case.
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
    # Of a file that somebody has formatted, cases may stand there as well.
    yield from (case for _, case in parse_results(b"".join(frame), str(file)).cases())


def _recorded(case: CaseResult) -> RecordedCase:
    return {
        iteration.index: {turn.index: recorded for turn in iteration.turns if (recorded := _turn(turn)) is not None}
        for iteration in case.iterations
    }


def _turn(turn: TurnResult) -> RecordedTurn | None:
    """A turn as it was answered; ``None`` where nobody was asked."""
    if turn.error is not None:
        return RecordedTurn(turn.error, turn.input)
    if turn.response is None:
        return None
    reply = Reply(
        response=turn.response,
        tool_calls=tuple(turn.tool_calls),
        retrieval_context=tuple(turn.retrieval_context),
        usage=turn.usage,
        latency_ms=turn.latency_ms,
    )
    return RecordedTurn(reply, turn.input)
