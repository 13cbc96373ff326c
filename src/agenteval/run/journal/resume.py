"""Takes over what an interrupted run left in its journal."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from agenteval.core.errors import ConfigError, Problem
from agenteval.results.model import CaseResult, IterationResult, RunUsage
from agenteval.run.journal.run_key import changes, conditions
from agenteval.run.plan import ResumedRun

if TYPE_CHECKING:
    from agenteval.run.plan import Plan


def resumed(plan: Plan) -> Plan:
    """The plan of the run whose journal lies where the plan's own would.

    Raises:
        ConfigError: there is none, it cannot be read, or the run would be another one now.
    """
    earlier, before = _read(plan.journal)
    now = conditions(plan)
    problems = [
        _problem(f"{change}, so what is left would not belong to it", plan.journal) for change in changes(before, now)
    ]
    if problems:
        raise ConfigError([*problems, _problem("run without --resume to start anew; nothing was lost", plan.journal)])
    plan.catalog.resources.record_spend(earlier.asked, earlier.judged)
    return replace(plan, run_id=earlier.run_id, earlier=earlier)


def taken_over(plan: Plan) -> str:
    """What a resumed run takes from its journal, for people."""
    earlier = plan.earlier
    total = cases = 0
    for item in plan.cases:
        cases += 1
        total += item.iterations
    if earlier is None or len(earlier.complete) < cases:
        done = earlier.done if earlier else 0
        return f"resuming: {done} of {total} iterations are taken from {plan.journal}"
    return f"resuming: the run was complete; nothing is run again, the reports are written anew from {plan.journal}"


def _problem(message: str, path: Path) -> Problem:
    return Problem(f"--resume: {message}", file=str(path))


def _read(path: Path) -> tuple[ResumedRun, Mapping[str, str]]:
    """What is in a journal, and under which conditions its run ran.

    Raises:
        ConfigError: it is not there, or says nothing.
    """
    if not path.is_file():
        message = "there is nothing to resume: no run left a journal here; run without --resume"
        raise ConfigError(_problem(message, path))
    try:
        modified = path.stat().st_mtime
        with path.open("rb") as file:
            return _found(_whole_lines(file), path, modified)
    except OSError as error:
        raise ConfigError(_problem(f"cannot be read: {error.strerror}", path)) from None


def _found(lines: Iterator[tuple[int, bytes]], path: Path, modified: float) -> tuple[ResumedRun, Mapping[str, str]]:
    _, first = next(lines, (0, b""))
    head = _value(first)
    if not _is_head(head):
        message = "the journal does not say how its run was made; run without --resume"
        raise ConfigError(_problem(message, path))
    left = _Left(since=head["started"], end=len(first))
    for place, line in lines:
        left.end = place + len(line)
        # What cannot be read is run again.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError):
            left.add(place, _value(line))
    earlier = ResumedRun(
        run_id=head["run"],
        active_s=left.active_s + max(0.0, modified - left.since),
        end=left.end,
        complete=left.complete,
        iterations={case_id: tuple(found.values()) for case_id, found in left.iterations.items()},
        done=left.done + sum(map(len, left.iterations.values())),
        asked=left.asked,
        judged=left.judged,
    )
    return earlier, head["conditions"]


def _whole_lines(file: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines with the bytes where they begin; what a crash cut short is left out."""
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


class _Left:
    """Collects what the lines say; of a case that is complete, its own line counts."""

    def __init__(self, since: float, end: int) -> None:
        self.since = since
        self.end = end
        self.active_s = 0.0
        self.iterations: dict[str, dict[int, IterationResult]] = {}
        self.complete: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self.asked = RunUsage()
        self.judged: dict[str, int] = {}

    @property
    def done(self) -> int:
        """Iterations of the cases that are complete."""
        return sum(self._numbers.values())

    def add(self, place: int, line: Any) -> None:
        if "asked" in line:
            self.asked = RunUsage.model_validate(line["asked"])
            self.judged = {suite: int(count) for suite, count in line["judged"].items()}
        elif "resumed" in line:
            self.since, self.active_s = float(line["resumed"]), float(line["active_s"])
        elif "case" in line:
            case = CaseResult.model_validate(line["case"])
            self.complete[case.id] = place
            self._numbers[case.id] = len(case.iterations)
            self.iterations.pop(case.id, None)
        else:
            iteration = IterationResult.model_validate(line["iteration"])
            self.iterations.setdefault(line["of"], {})[iteration.index] = iteration
