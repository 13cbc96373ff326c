"""The cases of recorded traces, planned one by one as a run gets to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agenteval.agents.replay.cases import recorded_cases
from agenteval.agents.replay.trace import BadLine
from agenteval.agents.replay.trace_files import find_traces
from agenteval.core.errors import ConfigError, Problem
from agenteval.run.plan import PlannedCase
from agenteval.suite.model import AgentSpec, Case, Suite

# More broken lines than that are counted instead of listed.
_LISTED = 20


class RecordedCases:
    """A case for each trace of a file and each suite; every iteration reads the file anew.

    Args:
        suites: each scores every trace.
        traces: a file of traces, or a folder that contains one.
        is_selected: whether a case is among those that the run is to score.
        keep_going: leave out lines that are not traces, with a warning.

    Raises:
        ConfigError: there is no such file, or the folder does not contain exactly one.
    """

    def __init__(
        self, suites: Sequence[Suite], traces: Path, is_selected: Callable[[Case], bool], *, keep_going: bool
    ) -> None:
        self._suites = suites
        self._traces = find_traces(traces)
        self._is_selected = is_selected
        self._keep_going = keep_going
        self._agent = AgentSpec(kind="replay", target=str(self._traces), directory="")
        self._listed: dict[Problem, None] = {}
        self._bad = 0

    def __iter__(self) -> Iterator[PlannedCase]:
        """Yield the cases in the order of the file.

        Raises:
            ConfigError: after the last trace, with the lines that are not traces; or the file cannot be read.
        """
        for suite in self._suites:
            self._listed, self._bad = {}, 0
            for item in recorded_cases(suite, self._traces):
                if isinstance(item, BadLine):
                    self._note(item)
                    continue
                case, answer = item
                if self._is_selected(case):
                    yield PlannedCase(suite, case, self._agent, 1, recorded=answer)
            if self._bad and not self._keep_going:
                raise ConfigError(self._problems)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The lines that were left out; of very many, the number of those that are not listed."""
        return tuple(map(str, self._problems))

    @property
    def _problems(self) -> list[Problem]:
        more = self._bad - len(self._listed)
        rest = [Problem(f"{more} more lines are no traces", file=str(self._traces))] if more else []
        return [*self._listed, *rest]

    def _note(self, bad: BadLine) -> None:
        self._bad += 1
        if len(self._listed) < _LISTED:
            self._listed[Problem(bad.message, file=str(bad.file), line=bad.line)] = None
