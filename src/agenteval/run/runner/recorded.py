"""Plans the cases of recorded traces lazily, one by one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.agents.replay.cases import recorded_cases
from agenteval.agents.replay.trace import BadLine
from agenteval.agents.replay.trace_files import find_traces
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files.reading import is_stream
from agenteval.core.text.redact import Redactor
from agenteval.run.plan import PlannedCase
from agenteval.suite.agent_kinds import REPLAY
from agenteval.suite.masking import masked_case
from agenteval.suite.model import AgentSpec, Case, Suite

# The number of bad lines of a file that are listed individually.
_LISTED = 20


class RecordedCases:
    """A case for each trace of a file, for each suite; every iteration reads the files again.

    A run iterates twice: first to find every bad line before it pays a judge, then to score. The alternative is to
    keep all traces in memory.

    Args:
        traces: each suite with the file of the traces that it scores, or the folder that contains this file.
        is_selected: returns whether a case is selected.
        names: names or ids of traces that must exist.
        redact: masks secrets in ids and names.
        keep_going: omit lines that are not traces, with a warning.
        may_be_streams: whether a file may be a pipe, because the user of the command named it.

    Raises:
        ConfigError: a file does not exist, or a folder does not contain exactly one.
    """

    def __init__(
        self,
        traces: Iterable[tuple[Suite, Path]],
        is_selected: Callable[[Case], bool],
        *,
        names: Iterable[str] = (),
        redact: Redactor,
        keep_going: bool,
        may_be_streams: bool,
    ) -> None:
        found = [(suite, find_traces(path)) for suite, path in traces]
        files = {file: _File(file, may_be_stream=may_be_streams) for _, file in found}
        self._traces = [(suite, files[file]) for suite, file in found]
        self._is_selected = is_selected
        self._names = frozenset(names)
        self._redact = redact
        self._keep_going = keep_going
        self._bad: dict[Path, _BadLines] = {}

    def __iter__(self) -> Iterator[PlannedCase]:
        """Yield the cases of each suite in the order of its file.

        Raises:
            ConfigError: raised after the last trace of a file with the lines that are not traces; or the file cannot
                be read, no line is a trace, a named trace is in no file, or no trace of any file is selected.
        """
        selected, unseen = 0, set(self._names)
        for suite, file in self._traces:
            bad = self._bad[file.named] = _BadLines(file.named)
            has_trace = False
            for item in recorded_cases(suite, file.read):
                if isinstance(item, BadLine):
                    bad.add(item)
                    continue
                has_trace = True
                case, answer = masked_case(item[0], self._redact), item[1]
                unseen -= {case.id, case.name}
                if self._is_selected(case):
                    selected += 1
                    yield PlannedCase(suite, case, file.agent, 1, recorded=answer)
            if bad.problems and not (self._keep_going and has_trace):
                raise ConfigError(bad.problems)
        if unseen:
            raise ConfigError(
                Problem(f"--case: no trace is named {name!r}", kind=Kind.CASE_SELECTION) for name in sorted(unseen)
            )
        if not selected:
            raise ConfigError(
                Problem(
                    "no trace is selected; check --filter, --tag, --case and --failed-in", kind=Kind.CASE_SELECTION
                )
            )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the omitted lines; beyond a limit only their number."""
        return tuple(str(problem) for bad in self._bad.values() for problem in bad.problems)


@dataclass
class _BadLines:
    """The lines of a file that are not traces."""

    file: Path
    listed: list[Problem] = field(default_factory=list)
    more: int = 0

    def add(self, bad: BadLine) -> None:
        """Add a line."""
        if len(self.listed) < _LISTED:
            self.listed.append(Problem(bad.message, file=str(self.file), line=bad.line, kind=Kind.FILE))
        else:
            self.more += 1

    @property
    def problems(self) -> list[Problem]:
        """The first lines, and the number of the others."""
        rest = (
            [Problem(f"{self.more} more lines are not traces", file=str(self.file), kind=Kind.FILE)]
            if self.more
            else []
        )
        return [*self.listed, *rest]


class _File:
    """A file of traces that can be read more than once.

    Args:
        named: the file.
        may_be_stream: copy what can be read only once, such as a pipe, to a temporary file.

    Attributes:
        read: the file to read.
        agent: answers from it.

    Raises:
        ConfigError: the file cannot be read.
    """

    def __init__(self, named: Path, *, may_be_stream: bool) -> None:
        self.named = named
        self.read = named
        if may_be_stream and is_stream(named):
            # It is deleted with this object.
            self._copy = tempfile.NamedTemporaryFile(prefix="agenteval-traces-")  # noqa: SIM115
            try:
                with named.open("rb") as source:
                    shutil.copyfileobj(source, self._copy)
            except OSError as error:
                raise ConfigError(
                    Problem(f"cannot be read: {error.strerror}", file=str(named), kind=Kind.FILE)
                ) from None
            self._copy.flush()
            if not self._copy.tell():
                raise ConfigError(Problem("there are no traces in this file", file=str(named), kind=Kind.FILE))
            self.read = Path(self._copy.name)
        self.agent = AgentSpec(kind=REPLAY, target=str(self.read), directory="")
