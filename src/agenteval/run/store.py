"""The finished cases of a run: ``journal.jsonl`` has them in full, an index in memory what reports and the gate ask.

A case is written when it finishes, so that a crash loses only unfinished ones. The first line of the journal names
the run and its conditions. Each further line is one of:

* ``{"suite", "case"}``: a finished case,
* ``{"suite", "of", "iteration"}``: a finished iteration of a case with several iterations,
* ``{"asked", "judged"}``: the usage of models so far, and the number of judged answers by suite,
* ``{"resumed", "active_s"}``: the run was resumed; the time of that, and the duration of the run before it.
"""

from __future__ import annotations

import json
import math
import os
import re
import weakref
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from agenteval.core.errors import InfrastructureError
from agenteval.core.records import replace
from agenteval.core.version import __version__
from agenteval.core.writing import create_file, open_file, remove_file, remove_regular_file
from agenteval.gate.run_scores import CaseScores, baseline_case, case_amounts, scores_of
from agenteval.report.parts import SUMMARY_LEVELS
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, SuiteResult
from agenteval.results.comparison import BaselineCase, BaselineRun
from agenteval.results.masking import redacted, shortened
from agenteval.results.model import RunUsage, Summary
from agenteval.results.rollup import CaseTally, summary_of, total
from agenteval.results.store import Archive, Passed, agent_seconds
from agenteval.run.agent_failure import AgentNotes
from agenteval.run.plan import Job, Plan, PlannedCase, needs_whole_answers

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer

ModelT = TypeVar("ModelT", bound=BaseModel)

JOURNAL_FILE = "journal.jsonl"
# The journals of the runs of a confirmation.
CONFIRMATION_FILE = re.compile(r"confirmation(-[0-9]+)?\.jsonl")


def confirmation_file(number: int) -> str:
    """Return the name of the journal of a confirmation's request, which are counted from 1."""
    return f"confirmation-{number}.jsonl"


def remove_confirmations(directory: Path) -> None:
    """Remove the journals of the confirmation of an earlier run."""
    for name in sorted(path.name for path in directory.iterdir() if CONFIRMATION_FILE.fullmatch(path.name)):
        remove_file(directory, name)


def remove_journals(directory: Path) -> None:
    """Remove the journals of an earlier run and of its confirmation."""
    remove_confirmations(directory)
    remove_regular_file(directory, JOURNAL_FILE)


class Journal:
    """A journal that is open for writing.

    Args:
        keep: bytes of the existing file to keep, from its beginning; ``None`` replaces the file.
    """

    def __init__(self, path: Path, keep: int | None = None) -> None:
        self.path = path
        self._keep = keep
        self._descriptor: int | None = None
        self._is_writable = False
        self._size = 0
        self._asked = RunUsage()

    @property
    def is_opened(self) -> bool:
        """Whether the file was opened, perhaps for writing no more."""
        return self._descriptor is not None

    def __enter__(self) -> Journal:
        try:
            self._descriptor = self._opened()
            self._is_writable = True
        except OSError as error:
            raise self._unwritable(error) from None
        # It stays open for reading while this object lives.
        weakref.finalize(self, os.close, self._descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_writable = False

    def _opened(self) -> int:
        if self._keep is None:
            return create_file(self.path.parent, self.path.name)
        descriptor = open_file(self.path.parent, self.path.name, os.O_APPEND)
        try:
            os.ftruncate(descriptor, self._keep)
        except BaseException:
            os.close(descriptor)
            raise
        self._size = self._keep
        return descriptor

    def read(self, place: int, size: int) -> bytes:
        """Return bytes of the file that was written, whatever the path names by now."""
        if self._descriptor is None:
            raise InfrastructureError(f"cannot read {self.path}: the run wrote no journal")
        try:
            return _read_at(self._descriptor, size, place)
        except OSError as error:
            raise InfrastructureError(f"cannot read {self.path}: {error.strerror}") from None

    def begin(self, run_id: str, suites: Mapping[str, str], **more: Any) -> None:
        """Write the first line."""
        self._write_line(json.dumps({"run": run_id, "version": __version__, "suites": dict(suites), **more}))

    def resume(self, resumed: float, active_s: float) -> None:
        """Record that an interrupted run is resumed."""
        self._write_line(json.dumps({"resumed": resumed, "active_s": active_s}))

    def add(self, suite: str, case: bytes) -> int:
        """Write a finished case, as JSON; return the byte offset of the JSON, for ``read``."""
        start = case_start(suite)
        place = self._size + len(start)
        self._write(b"".join((start, case, CASE_END)))
        return place

    def add_iteration(self, suite: str, case_id: str, iteration: str) -> None:
        """Write a finished iteration of a case, as JSON."""
        self._write_line(f'{{"suite": {json.dumps(suite)}, "of": {json.dumps(case_id)}, "iteration": {iteration}}}')

    def spend(self, asked: RunUsage, judged: Mapping[str, int]) -> None:
        """Write the usage of models so far, if it has changed."""
        if asked != self._asked:
            self._asked = asked
            self._write_line(f'{{"asked": {asked.model_dump_json()}, "judged": {json.dumps(dict(judged))}}}')

    def _write_line(self, line: str) -> None:
        self._write(f"{line}\n".encode("utf-8", "backslashreplace"))

    def _write(self, data: bytes) -> None:
        if self._descriptor is None or not self._is_writable:
            return
        self._size += len(data)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> InfrastructureError:
        return InfrastructureError(f"cannot write {self.path}: {error.strerror or error}")


def _read_at(descriptor: int, size: int, place: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, place)
    # Lines are appended wherever the file's position is.
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.read(descriptor, size)


@lru_cache(32)
def case_start(suite: str) -> bytes:
    """Return what precedes the case in its line."""
    return f'{{"suite": {json.dumps(suite)}, "case": '.encode()


#: What follows the case in its line.
CASE_END = b"}\n"


def parsed(model: type[ModelT], text: bytes) -> ModelT:
    """Parse a case's JSON into a model, which may contain only some of its fields."""
    try:
        return model.model_validate_json(text)
    except ValidationError:
        # The json module accepts lone surrogates; pydantic's parser does not.
        return model.model_validate(json.loads(text))


def _reread(model: type[ModelT], text: bytes) -> ModelT:
    try:
        return parsed(model, text)
    except ValueError:
        raise InfrastructureError(f"{JOURNAL_FILE} was changed by another program during the run") from None


#: No report lists more passed cases.
MOST_SHOWN: Final = max(level.max_rows for level in SUMMARY_LEVELS)

# Bytes of the JSON of all cases that did not pass and are in memory in full; of further ones only the result is.
_MOST_IN_FULL = 8_000_000
# A case whose JSON is longer is in memory with values of at most so many bytes: more than a comment or summary shows.
_LONGEST_CASE = 200_000
_LONGEST_TEXT = 16_000
_CASES_AT_ONCE = 1000
# What the index says of a case; 0 is said of those that have not finished.
_PASSED, _REMARKABLE = 1, 2


class _Brief(BaseModel):
    name: str
    status: CaseStatus


class CaseStore(Archive):
    """The finished cases of a run. They may finish in any order; each has its position in the plan.

    Args:
        total: number of the cases of the plan.
        metered: ids of cases that a model agent answers; their usage is counted as model usage.

    Attributes:
        journal: has every case; open while cases are recorded.
        agents: counts what the cases of an agent have in common.
        tallies: the counts of each suite, by its path.
    """

    def __init__(self, plan: Plan, total: int, metered: Collection[str] = ()) -> None:
        self.journal = Journal(plan.journal, plan.earlier.kept if plan.earlier else None)
        self.agents = AgentNotes()
        self.tallies: dict[str, CaseTally] = {}
        self._plan = plan
        self._metered = metered
        # Recorded traces have no entry of a baseline: they are identified by their ids only.
        self._planned = plan.known_cases or ()
        self._kinds = bytearray(total)
        # Of the JSON of each case: its place and size in the journal, which only this user can write.
        self._places, self._sizes = array("Q", bytes(8 * total)), array("Q", bytes(8 * total))
        self._seconds = array("d", bytes(8 * total))
        self._unwritten: dict[int, CaseResult] = {}
        # By suite, in the order in which its cases finished.
        self._positions: dict[str, array[int]] = {}
        # Metrics of cases with the number of their scores, numbered from 1; the number and the first of the scores
        # of each case; and all scores, of which NaN is a lost one.
        self._shapes: dict[tuple[tuple[str, int], ...], int] = {}
        self._shape_of, self._starts = array("L", bytes(8 * total)), array("Q", bytes(8 * total))
        self._scores = array("d")
        # The first position with each number of iterations.
        self._repeated: dict[int, int] = {}
        self._answers: dict[str, list[tuple[int, list[EvaluatedAnswer]]]] = {}

    def record(self, job: Job, result: CaseResult) -> None:
        """Record a finished case."""
        kept, text, answers = self._kept(job.item, result)
        self._record_spend()
        self._write(job.position, job.item.suite.path, text.encode("utf-8", "backslashreplace"))
        self._add(job.position, job.item, kept, answers)

    def record_iteration(self, job: Job, iteration: IterationResult) -> IterationResult:
        """Write a finished iteration to the journal; a case with a single iteration is written only as a case."""
        if job.item.iterations == 1:
            return iteration
        kept, text = shortened(*redacted(iteration, self._plan.redact), self._plan.limits.max_answer_bytes)
        self._record_spend()
        self.journal.add_iteration(job.item.suite.path, job.item.case.id, text)
        return iteration if needs_whole_answers(job.item.suite, job.item.case) else kept

    def resumed(self, position: int, item: PlannedCase, result: CaseResult, there: tuple[int, int]) -> None:
        """Add a case that the interrupted run had finished."""
        data = result.model_dump_json().encode("utf-8", "backslashreplace")
        if self.journal.read(*there) == data:
            self._places[position], self._sizes[position] = there
        else:
            self._write(position, item.suite.path, data)
        self._add(position, item, result, self._analysed(item, result))

    def unfinished(self, position: int, item: PlannedCase, result: CaseResult) -> None:
        """Add a case that did not finish; it is not written to the journal, so that a resumed run runs it."""
        kept, _, answers = self._kept(item, result)
        self._unwritten[position] = kept
        self._add(position, item, kept, answers)

    def cases(self, suite: SuiteResult) -> Iterator[CaseResult]:
        """Yield every case of a suite, complete."""
        return (_reread(CaseResult, data) for _, data in self._read(suite.path))

    def texts(self, suite: SuiteResult) -> Iterator[str]:
        """Yield every case of a suite as JSON in one line."""
        return (data.decode() for _, data in self._read(suite.path))

    def findings(self, suite: SuiteResult) -> Iterator[tuple[CaseResult, float] | Passed]:
        """Yield the cases of a suite; those that did not pass are complete, with the agent's seconds."""
        for position, data in self._read(suite.path):
            seconds = self._seconds[position]
            brief = _reread(_Brief, data)
            yield Passed(brief.name, seconds) if brief.status == "passed" else (_reread(CaseResult, data), seconds)

    def baseline_cases(self, entry: BaselineRun) -> Iterator[Mapping[str, BaselineCase]]:
        """Yield the cases of a run of a baseline by case id, in batches; those of this run in plan order."""
        if entry.run_id != self._plan.run_id:
            yield entry.cases
            return
        found: dict[str, BaselineCase] = {}
        shapes = list(self._shapes)
        for position, planned in enumerate(self._planned):
            if number := self._shape_of[position]:
                scores = self._scores_at(self._starts[position], shapes[number - 1])
                found[planned.case.id] = baseline_case(planned.case.fingerprints, scores)
            if len(found) == _CASES_AT_ONCE:
                yield found
                found = {}
        yield found

    def seconds(self, suite: SuiteResult) -> float:
        """Return the agent's total time for the cases of a suite, in seconds."""
        return total([self._seconds[position] for position in self._positions.get(suite.path, ())])

    def counts(self, suite: SuiteResult) -> Counter[CaseStatus]:
        """Return the number of cases of a suite by status."""
        return self.tallies[suite.path].statuses if suite.path in self.tallies else Counter()

    def shown(self) -> dict[str, list[CaseResult]]:
        """Return the cases that reports list and the gate names, by suite path, in the order of the plan.

        For a comparison, these are all cases. Otherwise they are the first that passed, the quarantined ones, one for
        each number of iterations, and all that did not pass or have a broken score: in full while there is room for
        them, and then without their iterations.
        """
        room, passed = _MOST_IN_FULL, MOST_SHOWN
        found: dict[str, list[CaseResult]] = {}
        is_named, compared = self._plan.is_quarantined_by_name, self._plan.compared
        usual = set(self._repeated.values())
        for path in sorted(self._positions, key=lambda path: min(self._positions[path])):
            found[path] = []
            for position, data in self._read(path):
                is_plain = self._kinds[position] == _PASSED
                is_listed = not is_plain or compared or passed > 0 or position in usual
                if not is_listed and is_named is None:
                    continue
                case = _reread(CaseResult, data)
                if not is_listed and not (is_named and is_named(case)):
                    continue
                passed -= is_plain
                room -= 0 if is_plain or compared else len(data)
                if room < 0 and not is_plain:
                    case = case.model_copy(update={"iterations": []})
                elif len(data) > _LONGEST_CASE:
                    case, _ = shortened(case, data.decode(), _LONGEST_TEXT)
                found[path].append(case)
        return found

    def answers(self) -> dict[str, list[EvaluatedAnswer]]:
        """Return the answers that analyses need, in plan order, by path of each suite that defines an analysis."""
        ordered = {path: sorted(found, key=lambda item: item[0]) for path, found in self._answers.items()}
        return {path: [answer for _, answers in found for answer in answers] for path, found in ordered.items()}

    def summary(self, asked: RunUsage) -> Summary:
        """Return the summary of the run; metrics are in the order in which the plan first uses them."""
        return summary_of(self.tallies.values(), asked)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence about the turns that were retried; empty without retries."""
        retried = [tally.retried for tally in self.tallies.values()]
        turns, retries, answered = (sum(part[number] for part in retried) for number in range(3))
        if not turns:
            return ()
        what = "1 turn was" if turns == 1 else f"{turns} turns were"
        attempts = "1 retry" if retries == 1 else f"{retries} retries"
        return (f"{what} retried after a transient failure ({attempts}); {answered} got an answer",)

    def _kept(self, item: PlannedCase, result: CaseResult) -> tuple[CaseResult, str, list[EvaluatedAnswer]]:
        clean, text = redacted(result, self._plan.redact)
        # Analyses read the whole tool calls.
        answers = self._analysed(item, clean)
        return *shortened(clean, text, self._plan.limits.max_answer_bytes), answers

    def _write(self, position: int, suite: str, data: bytes) -> None:
        self._places[position], self._sizes[position] = self.journal.add(suite, data), len(data)

    def _read(self, suite: str) -> Iterator[tuple[int, bytes]]:
        for position in sorted(self._positions.get(suite, ())):
            if position in self._unwritten:
                yield position, self._unwritten[position].model_dump_json().encode("utf-8", "backslashreplace")
                continue
            yield position, self.journal.read(self._places[position], self._sizes[position])

    def _analysed(self, item: PlannedCase, case: CaseResult) -> list[EvaluatedAnswer]:
        if item.suite.evaluation is None:
            return []
        redact = self._plan.redact
        return [replace(answer, trace_id=redact(answer.trace_id)) for answer in _answers(item, case)]

    def _add(self, position: int, item: PlannedCase, case: CaseResult, answers: list[EvaluatedAnswer]) -> None:
        path, aggregate = item.suite.path, item.suite.aggregate
        threshold = aggregate.threshold if aggregate else None
        tally = self.tallies.get(path)
        if tally is None:
            tally = self.tallies[path] = CaseTally(threshold, self._metered)
            self._positions[path] = array("Q")
        tally.add(case, position)
        self._positions[path].append(position)
        self._seconds[position] = agent_seconds(case)
        is_plain = case.status == "passed" and not any(score.status == "error" for score in case.scores)
        self._kinds[position] = _PASSED if is_plain else _REMARKABLE
        repeated = len(case.iterations)
        self._repeated[repeated] = min(position, self._repeated.get(repeated, position))
        self.agents.add(item.agent, case)
        if self._planned:
            scores = scores_of(case, threshold, item.case.compared_metrics)
            self._keep_scores(position, {**scores, **case_amounts(case, self._plan.measured)})
        if item.suite.evaluation is not None:
            self._answers.setdefault(path, []).append((position, answers))
        self._plan.progress.finished(case)

    def _keep_scores(self, position: int, scores: CaseScores) -> None:
        shape = tuple([(name, len(values)) for name, values in scores.items()])
        self._shape_of[position] = self._shapes.setdefault(shape, len(self._shapes) + 1)
        self._starts[position] = len(self._scores)
        self._scores.extend([math.nan if value is None else value for values in scores.values() for value in values])

    def _scores_at(self, start: int, shape: Iterable[tuple[str, int]]) -> CaseScores:
        found: dict[str, list[float | None]] = {}
        for name, number in shape:
            values = self._scores[start : start + number]
            found[name] = [None if math.isnan(value) else value for value in values]
            start += number
        return found

    def _record_spend(self) -> None:
        # Written before the case: a resumed run must count the cost of every case that it keeps.
        resources = self._plan.resources
        if resources.gateway.budget.calls or resources.gateway.cached_calls:
            self.journal.spend(resources.asked, resources.judged)


def _answers(item: PlannedCase, result: CaseResult) -> Iterable[EvaluatedAnswer]:
    # Imported here: few suites define an analysis.
    from agenteval.results.analysis.answers import evaluated

    recorded = item.recorded
    for iteration in result.iterations:
        trace = {"success": True} if recorded is None else recorded.record
        yield evaluated(result, iteration, item.case.persona, trace)
