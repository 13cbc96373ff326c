"""Answers that are there already: of an interrupted run, and recorded ones."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from agenteval.agents.recorded_cases import find_traces, recorded_cases
from agenteval.agents.recording import BadLine
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import LARGEST_RECORDING, is_stream, open_regular
from agenteval.core.records import dataclass, field, replace
from agenteval.core.redact import Redactor
from agenteval.results.case import CaseResult, IterationResult
from agenteval.results.masking import shortened_values
from agenteval.results.model import RunUsage
from agenteval.run.journal import CASE_END, case_start, parsed
from agenteval.run.plan import KeptLines, PlannedCase, ResumedRun, needs_whole_answers
from agenteval.run.run_key import changes, conditions
from agenteval.suite.agents import REPLAY
from agenteval.suite.cases import masked_case
from agenteval.suite.model import AgentSpec, Case, Suite

if TYPE_CHECKING:
    from agenteval.run.plan import Plan


# The number of bad lines of a file that are listed individually.
_LISTED = 20


class RecordedCases:
    """A case for each trace of a file, for each suite; every iteration reads the files again.

    A run iterates twice: first to find every bad line before it pays a judge, then to score. The alternative is to
    keep all traces in memory.

    Args:
        traces: each suite with the file of the traces that it scores, or the folder that contains this file.
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
        may_be_stream: copy what can be read only once, such as a pipe, to a temporary file.

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


def resumed(plan: Plan) -> Plan:
    """Return the plan, completed by the journal of the run that it resumes.

    Raises:
        ConfigError: there is no journal, it cannot be read, or the conditions of the run have changed.
    """
    earlier, before = _read(plan.journal, plan.cases)
    now = conditions(plan)
    problems = [_problem(f"{change}, so the run cannot be resumed", plan.journal) for change in changes(before, now)]
    if problems:
        raise ConfigError([*problems, _problem("run without --resume to start a new run", plan.journal)])
    plan.resources.record_spend(earlier.asked, earlier.judged)
    return replace(plan, run_id=earlier.run_id, earlier=earlier)


def resume_notice(plan: Plan) -> str:
    """Return a sentence about the iterations that a resumed run takes from its journal."""
    earlier = plan.earlier
    total = cases = 0
    for item in plan.cases:
        cases += 1
        total += item.iterations
    if earlier is None or len(earlier.complete) < cases:
        done = earlier.done if earlier else 0
        return f"resuming: {done:,} of {total:,} iterations are taken from {plan.journal}"
    return f"resuming: the run was complete; no case runs again; the reports are rewritten from {plan.journal}"


def _problem(message: str, path: Path) -> Problem:
    return Problem(f"--resume: {message}", file=str(path), kind=Kind.RESULTS)


def _read(path: Path, planned: Iterable[PlannedCase] = ()) -> tuple[ResumedRun, Mapping[str, str]]:
    """Read a journal; return the interrupted run and the conditions that it ran under.

    Raises:
        ConfigError: the file does not exist or does not contain a run.
    """
    if not path.is_file():
        message = "there is nothing to resume: no run left a journal here; run without --resume"
        raise ConfigError(_problem(message, path))
    try:
        with open_regular(path, limit=LARGEST_RECORDING) as file:
            return _found(_whole_lines(file), path, os.fstat(file.fileno()).st_mtime, planned)
    except OSError as error:
        raise ConfigError(_problem(f"cannot be read: {error.strerror}", path)) from None


def _found(
    lines: Iterator[tuple[int, bytes]], path: Path, modified: float, planned: Iterable[PlannedCase]
) -> tuple[ResumedRun, Mapping[str, str]]:
    _, first = next(lines, (0, b""))
    head = _value(first)
    if not _is_head(head):
        message = "the first line of the journal does not describe a run; run without --resume"
        raise ConfigError(_problem(message, path))
    left, digest, end = _Left(since=head["started"]), hashlib.sha256(first), len(first)
    for place, line in lines:
        end = place + len(line)
        digest.update(line)
        # A line that cannot be read is skipped, so its case runs again.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            left.add(place, line)
    if left.shortened:
        left.drop_shortened(planned)
    earlier = ResumedRun(
        run_id=head["run"],
        active_s=left.active_s + max(0.0, modified - left.since),
        kept=KeptLines(end, digest.digest()),
        complete=left.complete,
        iterations={case_id: tuple(found.values()) for case_id, found in left.iterations.items()},
        done=left.done + sum(map(len, left.iterations.values())),
        asked=left.asked,
        judged=left.judged,
    )
    return earlier, head["conditions"]


def _whole_lines(file: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the complete lines with their byte offsets; a line that a crash truncated is omitted."""
    place = 0
    for line in file:
        if line.endswith(b"\n"):
            yield place, line
        place += len(line)


def _value(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_head(head: Any) -> TypeGuard[dict[str, Any]]:
    return (
        isinstance(head, dict)
        and isinstance(head.get("run"), str)
        and isinstance(head.get("started"), int | float)
        and isinstance(head.get("conditions"), dict)
    )


def _is_limited(iteration: IterationResult) -> bool:
    """Return whether the budget of the interrupted run left out calls; that of the resumed run may allow them."""
    causes = [turn.not_asked for turn in iteration.turns]
    causes += [score.not_asked for turn in iteration.turns for score in turn.scores]
    return any(reason is not None and reason.cause == "budget" for reason in causes)


class _Left:
    """Collects the content of the lines; the line of a complete case replaces those of its iterations.

    Cases with calls that the budget left out are not complete, so they run again.

    Attributes:
        shortened: ids of the cases with answers that the journal contains only the beginning of.
    """

    def __init__(self, since: float) -> None:
        self.since = since
        self.active_s = 0.0
        self.iterations: dict[str, dict[int, IterationResult]] = {}
        self.complete: dict[tuple[str, str], tuple[int, int]] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self.asked = RunUsage()
        self.judged: dict[str, int] = {}
        self.shortened: set[str] = set()

    @property
    def done(self) -> int:
        """The number of iterations of complete cases."""
        return sum(self._numbers.values())

    def add(self, place: int, text: bytes) -> None:
        """Add the line that starts at a byte offset; raise one of many exceptions if it was not written by a run."""
        line = _value(text)
        if "asked" in line:
            self.asked = RunUsage.model_validate(line["asked"])
            self.judged = {suite: int(count) for suite, count in line["judged"].items()}
        elif "resumed" in line:
            self.since, self.active_s = float(line["resumed"]), float(line["active_s"])
        elif "case" in line:
            start = case_start(line["suite"])
            if not text.startswith(start):
                return
            # The same bytes as the run will read for its reports.
            own = text[len(start) : -len(CASE_END)]
            case = parsed(CaseResult, own)
            key = (line["suite"], case.id)
            if any(map(_is_limited, case.iterations)):
                self.iterations.pop(case.id, None)
                return
            self.complete[key] = (place + len(start), len(own))
            self._numbers[key] = len(case.iterations)
            self.iterations.pop(case.id, None)
            if shortened_values(case):
                self.shortened.add(case.id)
        else:
            iteration = IterationResult.model_validate(line["iteration"])
            if _is_limited(iteration):
                return
            self.iterations.setdefault(line["of"], {})[iteration.index] = iteration
            if shortened_values(iteration):
                self.shortened.add(line["of"])

    def drop_shortened(self, planned: Iterable[PlannedCase]) -> None:
        """Drop what would be read again but is not whole, so that it runs again.

        A metric of the whole case reads the answers of its finished iterations. The analysis of a suite reads the
        tool calls of every case.
        """
        for item in planned:
            if item.case.id in self.shortened and needs_whole_answers(item.suite, item.case):
                key = (item.suite.path, item.case.id)
                if item.suite.evaluation is not None and self.complete.pop(key, None) is not None:
                    del self._numbers[key]
                there = self.iterations.get(item.case.id, {})
                self.iterations[item.case.id] = {
                    index: iteration for index, iteration in there.items() if not shortened_values(iteration)
                }
