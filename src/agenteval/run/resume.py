"""Answers that are there already: of an interrupted run, and recorded ones."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from agenteval.agents.recorded_cases import find_traces, recorded_cases
from agenteval.agents.recording import BadLine
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import LARGEST_RECORDING, open_regular
from agenteval.core.records import replace
from agenteval.core.redact import Redactor
from agenteval.results.case import CaseResult, IterationResult
from agenteval.results.masking import shortened_values
from agenteval.results.model import RunUsage
from agenteval.run.plan import PlannedCase, ResumedRun, needs_whole_answers
from agenteval.run.run_key import changes, conditions
from agenteval.run.store import CASE_END, case_start, parsed
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
    """

    def __init__(
        self,
        traces: Iterable[tuple[Suite, Path]],
        is_selected: Callable[[Case], bool],
        *,
        names: Iterable[str] = (),
        redact: Redactor,
        keep_going: bool,
    ) -> None:
        self._traces = [(suite, find_traces(path)) for suite, path in traces]
        self._agents = {file: AgentSpec(kind=REPLAY, target=str(file), directory="") for _, file in self._traces}
        self._is_selected = is_selected
        self._names = frozenset(names)
        self._redact = redact
        self._keep_going = keep_going
        self._bad: dict[Path, list[Problem]] = {}

    def __iter__(self) -> Iterator[PlannedCase]:
        selected, unseen = 0, set(self._names)
        for suite, file in self._traces:
            bad: list[BadLine] = []
            more, has_trace = 0, False
            for item in recorded_cases(suite, file):
                if isinstance(item, BadLine):
                    if len(bad) < _LISTED:
                        bad.append(item)
                    else:
                        more += 1
                    continue
                has_trace = True
                case, answer = masked_case(item[0], self._redact), item[1]
                unseen -= {case.id, case.name}
                if self._is_selected(case):
                    selected += 1
                    yield PlannedCase(suite, case, self._agents[file], 1, recorded=answer)
            self._bad[file] = _listed(file, bad, more)
            if bad and not (self._keep_going and has_trace):
                raise ConfigError(self._bad[file])
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
        return tuple(str(problem) for bad in self._bad.values() for problem in bad)


def _listed(file: Path, bad: Sequence[BadLine], more: int) -> list[Problem]:
    found = [Problem(item.message, file=str(file), line=item.line, kind=Kind.FILE) for item in bad]
    rest = [Problem(f"{more} more lines are not traces", file=str(file), kind=Kind.FILE)] if more else []
    return [*found, *rest]


def resumed(plan: Plan) -> Plan:
    """Return the plan, completed by the journal of the run that it resumes."""
    earlier, before = _read(plan.journal, plan.cases)
    now = conditions(plan)
    problems = [_problem(f"{change}, so the run cannot be resumed", plan.journal) for change in changes(before, now)]
    if problems:
        lost = [
            f"{name} {text}"
            for name, text in before.items()
            if name[:2] == "--" and text not in {"none", now.get(name)}
        ]
        fix = f"write {' '.join(lost)}, or " if lost else ""
        raise ConfigError([*problems, _problem(f"{fix}run without --resume to start a new run", plan.journal)])
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
    earlier = ResumedRun(head["run"], since=head["started"], kept=len(first))
    for place, line in lines:
        earlier.kept = place + len(line)
        # A line that cannot be read is skipped, so its case runs again.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            _add(earlier, place, line)
    if earlier.shortened:
        _drop_shortened(earlier, planned)
    earlier.active_s += max(0.0, modified - earlier.since)
    return earlier, head["conditions"]


def _whole_lines(file: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
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
    causes = [turn.not_asked for turn in iteration.turns]
    causes += [score.not_asked for turn in iteration.turns for score in turn.scores]
    return any(reason is not None and reason.cause == "budget" for reason in causes)


def _add(earlier: ResumedRun, place: int, text: bytes) -> None:
    """Add the line that starts at a byte offset; raise one of many exceptions if it was not written by a run."""
    line = _value(text)
    if "asked" in line:
        earlier.asked = RunUsage.model_validate(line["asked"])
        earlier.judged = {suite: int(count) for suite, count in line["judged"].items()}
    elif "resumed" in line:
        earlier.since, earlier.active_s = float(line["resumed"]), float(line["active_s"])
    elif "case" in line:
        start = case_start(line["suite"])
        if not text.startswith(start):
            return
        # The same bytes as the run will read for its reports.
        own = text[len(start) : -len(CASE_END)]
        case = parsed(CaseResult, own)
        key = (line["suite"], case.id)
        if any(map(_is_limited, case.iterations)):
            earlier.iterations.pop(case.id, None)
            return
        earlier.complete[key] = (place + len(start), len(own))
        earlier.numbers[key] = len(case.iterations)
        earlier.iterations.pop(case.id, None)
        if shortened_values(case):
            earlier.shortened.add(case.id)
    else:
        iteration = IterationResult.model_validate(line["iteration"])
        if _is_limited(iteration):
            return
        earlier.iterations.setdefault(line["of"], {})[iteration.index] = iteration
        if shortened_values(iteration):
            earlier.shortened.add(line["of"])


def _drop_shortened(earlier: ResumedRun, planned: Iterable[PlannedCase]) -> None:
    """Drop what would be read again but is not whole, so that it runs again.

    A metric of the whole case reads the answers of its finished iterations. The analysis of a suite reads the
    tool calls of every case.
    """
    for item in planned:
        if item.case.id in earlier.shortened and needs_whole_answers(item.suite, item.case):
            key = (item.suite.path, item.case.id)
            if item.suite.evaluation is not None and earlier.complete.pop(key, None) is not None:
                del earlier.numbers[key]
            there = earlier.iterations.get(item.case.id, {})
            earlier.iterations[item.case.id] = {
                index: iteration for index, iteration in there.items() if not shortened_values(iteration)
            }
