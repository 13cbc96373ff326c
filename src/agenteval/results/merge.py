"""Merges several runs into one: all shards of a run, or runs of the same cases."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from typing import TypeVar

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import dataclass
from agenteval.core.version import __version__
from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.comparison import BaselineRun
from agenteval.results.model import (
    OWN_NAME,
    Coverage,
    Results,
    Run,
    RunShard,
    RunUsage,
    Tool,
)
from agenteval.results.rollup import case_status, mean, strict_case_status, summarise, tally_of
from agenteval.suite.model import Fingerprints

# Scores over all iterations of a case, which change with the number of iterations.
_OVER_ITERATIONS = frozenset({"consistency", "performance"})
# The maximum number of cases and shards in a message.
_NAMED = 5


@dataclass(frozen=True)
class RunToMerge:
    """A run to merge, and its file."""

    file: str
    results: Results

    @property
    def run(self) -> Run:
        """The metadata of the run."""
        return self.results.run

    @property
    def shard(self) -> RunShard:
        """The shard of the run; of a whole run, all of it."""
        return self.run.shard or RunShard(index=1, count=1, cases=self.case_ids)

    @property
    def run_ids(self) -> list[str]:
        """The ids of the runs it was merged from; without a merge, its own id."""
        return self.run.merged or [self.run.id]

    @property
    def case_ids(self) -> list[str]:
        """The ids of the run's cases, in its order."""
        return [case.id for _, case in self.results.cases()]

    @property
    def own_entry(self) -> BaselineRun | None:
        """The run's own entry in its baseline."""
        return next((entry for entry in self.results.baseline_runs if entry.run_id == self.run.id), None)


class MissingShardError(ConfigError):
    """A machine wrote no results, or not all of them: the shard can run again (exit status 3)."""

    exit_status = 3


def _unusable(parts: Sequence[RunToMerge]) -> Iterator[Problem]:
    for part in parts:
        if not part.run.complete:
            what = f"shard {part.shard.index} of {part.shard.count}" if part.run.shard is not None else "this run"
            yield Problem(f"{what} was interrupted; run it again", file=part.file, kind=Kind.MERGE)
        elif part.case_ids and part.own_entry is None and len(parts) > 1:
            message = "this run scored recorded traces; score them all in one run, with --traces FOLDER"
            yield Problem(message, file=part.file, kind=Kind.MERGE)
        elif repeated := [case_id for case_id, times in Counter(part.case_ids).items() if times > 1]:
            yield Problem(f"names {_cases(repeated)} more than once", file=part.file, kind=Kind.MERGE)


def _foreign(parts: Sequence[RunToMerge]) -> Iterator[Problem]:
    first = parts[0]
    files = dict.fromkeys(first.run_ids, first.file)
    for part in parts[1:]:
        again = next((files[run_id] for run_id in part.run_ids if run_id in files), None)
        files |= dict.fromkeys(part.run_ids, part.file)
        different = [what for what, of in _SAME if of(part) != of(first)]
        # All shards of a proof contain the run.
        if again is not None and first.shard.proof is None:
            yield Problem(f"the same run is in {again}", file=part.file, kind=Kind.MERGE)
        elif part.run.shard is None and first.run.shard is not None:
            yield Problem(f"a whole run, but {first.file} is a shard", file=part.file, kind=Kind.MERGE)
        elif part.run.shard is not None and first.run.shard is None:
            yield Problem(f"a shard, but {first.file} is a whole run", file=part.file, kind=Kind.MERGE)
        elif different:
            yield Problem(f"{' and '.join(different)} than {first.file}", file=part.file, kind=Kind.MERGE)


_SAME: tuple[tuple[str, Callable[[RunToMerge], object]], ...] = (
    ("of another tool", lambda part: part.results.tool.name),
    ("of another repository", lambda part: part.run.repository),
    ("of another commit", lambda part: part.run.commit),
    # Patch releases do not affect results.
    ("written by another version of agenteval", lambda part: part.results.tool.version.split(".")[:2]),
    ("of other suites", lambda part: sorted(suite.path for suite in part.results.suites)),
    (
        "of suites with other cases or metrics",
        lambda part: sorted(suite.fingerprint for suite in part.results.suites),
    ),
    ("with passes of another run", lambda part: part.shard.proof and part.run_ids),
)


def _incomplete(parts: Sequence[RunToMerge]) -> Iterator[Problem]:
    first = parts[0].shard
    seen: dict[int, str] = {}
    for part in parts:
        shard = part.shard
        if shard.count != first.count:
            yield Problem(
                f"one of {shard.count} shards; {parts[0].file} is one of {first.count}",
                file=part.file,
                kind=Kind.MERGE,
            )
        elif shard.index > shard.count:
            yield Problem(f"shard {shard.index} of {shard.count} does not exist", file=part.file, kind=Kind.MERGE)
        elif shard.divided_by != first.divided_by:
            message = f"its cases were divided by another baseline than those of {parts[0].file}"
            yield Problem(f"{message}; give all shards the same one", file=part.file, kind=Kind.MERGE)
        elif shard.cases != first.cases:
            message = (
                f"part of a run of other cases than {parts[0].file}; give all shards the same suites and filters"
            )
            yield Problem(message, file=part.file, kind=Kind.MERGE)
        elif shard.index in seen:
            yield Problem(f"shard {shard.index} is also in {seen[shard.index]}", file=part.file, kind=Kind.MERGE)
        seen.setdefault(shard.index, part.file)
    missing = missing_shards(parts)
    yield from missing
    if not missing and first.proof is None:
        yield from _badly_divided(parts)


def missing_shards(parts: Sequence[RunToMerge]) -> list[Problem]:
    """Return the problem of the shards that are not among the parts, if there is one."""
    if not parts:
        return []
    count, there = parts[0].shard.count, {part.shard.index for part in parts}
    missing = [str(index) for index in range(1, count + 1) if index not in there]
    if len(missing) > 1:
        return [Problem(f"{len(missing)} shards of {count} are missing: {_some(missing)}", kind=Kind.MERGE)]
    return [Problem(f"shard {index} of {count} is missing", kind=Kind.MERGE) for index in missing]


def _badly_divided(parts: Iterable[RunToMerge]) -> Iterator[Problem]:
    wanted = dict.fromkeys(case_id for part in parts for case_id in part.shard.cases)
    seen: dict[str, str] = {}
    for part in parts:
        again = [case_id for case_id in part.case_ids if case_id in seen]
        if again:
            yield Problem(f"has {_cases(again)} that {seen[again[0]]} has too", file=part.file, kind=Kind.MERGE)
        unwanted = [case_id for case_id in part.case_ids if case_id not in wanted]
        if unwanted:
            yield Problem(f"has {_cases(unwanted)} not in its own list of cases", file=part.file, kind=Kind.MERGE)
        seen |= dict.fromkeys(part.case_ids, part.file)
    lost = [case_id for case_id in wanted if case_id not in seen]
    if lost:
        yield Problem(f"in no shard: {_cases(lost)}", kind=Kind.MERGE)


def _unlike(parts: Sequence[RunToMerge]) -> Iterator[Problem]:
    first = parts[0]
    for part in parts[1:]:
        missing = sorted(set(first.case_ids) - set(part.case_ids))
        more = sorted(set(part.case_ids) - set(first.case_ids))
        if missing:
            yield Problem(f"lacks {_cases(missing)} that {first.file} has", file=part.file, kind=Kind.MERGE)
        if more:
            yield Problem(f"has {_cases(more)} that {first.file} lacks", file=part.file, kind=Kind.MERGE)
    for part in parts if len(parts) > 1 else ():
        together = [case.id for _, case in part.results.cases() if _is_judged_together(case)]
        if together:
            message = f"judges all iterations of {_cases(together)} together; run these once, with --iterations"
            yield Problem(message, file=part.file, kind=Kind.MERGE)


def _is_judged_together(case: CaseResult) -> bool:
    return any(score.kind in _OVER_ITERATIONS for score in case.scores)


def _cases(ids: Sequence[str]) -> str:
    return f"{'1 case' if len(ids) == 1 else f'{len(ids):,} cases'} ({_some(ids)})"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class Merged:
    """A merged run.

    Attributes:
        results: the run without a baseline. Its criteria are not evaluated, because they concern the whole run;
            those of a single run are as that run has them.
        fingerprints: fingerprints by case id, for its baseline.
        warnings: differences of the parts that do not prevent the merge.
    """

    results: Results
    fingerprints: dict[str, Fingerprints]
    warnings: tuple[str, ...] = ()


def merge(parts: Sequence[RunToMerge]) -> Merged:
    """Merge runs.

    Cases of shards are joined in the order of the suites, whatever the order of the parts. Iterations of other runs
    are appended in the order of the parts.
    """
    problems = list(_unusable(parts)) or list(_foreign(parts))
    if not problems:
        problems = list(_unlike(parts) if parts[0].run.shard is None else _incomplete(parts))
    if problems:
        is_lost = len(parts) < parts[0].shard.count or not all(part.run.complete for part in parts)
        raise (MissingShardError if is_lost else ConfigError)(problems)
    if parts[0].shard.proof is not None:
        whole = parts[0].results
        run = whole.run.model_copy(update={"shard": None})
        return Merged(whole.model_copy(update={"run": run}), {}, tuple(_warnings(parts)))
    sharded = parts[0].run.shard is not None
    ordered = sorted(parts, key=lambda part: part.shard.index) if sharded else list(parts)
    suites = _joined(ordered) if sharded else _repeated(ordered) if len(ordered) > 1 else ordered[0].results.suites
    # Cases do not contain the usage of judges.
    usage = reduce(RunUsage.plus, (part.results.summary.usage for part in parts))
    summary = summarise(case for suite in suites for case in suite.cases).model_copy(update={"usage": usage})
    return Merged(
        results=Results(tool=_tool(ordered), run=_run(ordered, sharded), summary=summary, suites=suites),
        fingerprints={
            case_id: Fingerprints(case.fingerprint, case.metrics)
            for part in ordered
            if part.own_entry
            for case_id, case in part.own_entry.cases.items()
        },
        warnings=tuple(_warnings(parts)),
    )


def _warnings(parts: Sequence[RunToMerge]) -> Iterator[str]:
    versions = sorted({part.results.tool.version for part in parts})
    if len(versions) > 1:
        yield f"merged results of several versions of agenteval: {', '.join(versions)}"


def _tool(parts: Sequence[RunToMerge]) -> Tool:
    first = parts[0].results.tool
    if first.name != OWN_NAME:
        return first
    plugins = {(item.name, item.version): item for part in parts for item in part.results.tool.plugins}
    return Tool(version=__version__, plugins=list(plugins.values()))


def _joined(shards: Sequence[RunToMerge]) -> list[SuiteResult]:
    position = {case_id: number for number, case_id in enumerate(shards[0].shard.cases)}
    found: dict[str, list[CaseResult]] = {}
    for part in shards:
        for suite, case in part.results.cases():
            found.setdefault(suite.path, []).append(case)
    return [
        _with_cases(suite, sorted(found.get(suite.path, ()), key=lambda case: position[case.id]))
        for suite in shards[0].results.suites
    ]


def _repeated(runs: Sequence[RunToMerge]) -> list[SuiteResult]:
    found: dict[str, list[CaseResult]] = {}
    for part in runs:
        for _, case in part.results.cases():
            found.setdefault(case.id, []).append(case)
    return [
        _with_cases(suite, [_with_iterations(found[case.id]) for case in suite.cases])
        for suite in runs[0].results.suites
    ]


def _with_cases(suite: SuiteResult, cases: list[CaseResult]) -> SuiteResult:
    criteria = [criterion.model_copy(update={"met": None, "value": None}) for criterion in suite.criteria]
    tally = tally_of(cases, suite.threshold)
    found = {"criteria": criteria, "cases": cases, "unmeasured": tally.unmeasured, "undecided": tally.undecided}
    return suite.model_copy(update=found)


def _with_iterations(runs: Sequence[CaseResult]) -> CaseResult:
    iterations = [
        iteration.model_copy(update={"index": index})
        for index, iteration in enumerate(iteration for case in runs for iteration in case.iterations)
    ]
    status = strict_case_status if runs[0].strict else case_status
    return runs[0].model_copy(
        update={
            "status": status([iteration.status for iteration in iterations]),
            "score": mean([iteration.score for iteration in iterations]),
            "iterations": iterations,
            "unneeded": sum(case.unneeded for case in runs),
        }
    )


def _run(parts: Sequence[RunToMerge], sharded: bool) -> Run:
    runs = [part.run for part in parts]
    merged = [run_id for part in parts for run_id in part.run_ids]
    started = min((run.started_at for run in runs), key=datetime.fromisoformat)
    finished = max((run.finished_at for run in runs), key=datetime.fromisoformat)
    # Shards run in parallel; further iterations run one after the other, perhaps days apart.
    passed = datetime.fromisoformat(finished) - datetime.fromisoformat(started)
    duration_s = passed.total_seconds() if sharded else sum(run.duration_s for run in runs)
    return Run(
        # The same for the same parts, and unchanged for a single part.
        id=merged[0] if len(merged) == 1 else _digest(merged),
        started_at=started,
        finished_at=finished,
        duration_s=round(duration_s, 3),
        complete=True,
        commit=runs[0].commit,
        ref=_common(run.ref for run in runs),
        base_ref=_common(run.base_ref for run in runs),
        uncommitted=any(run.uncommitted for run in runs),
        repository=runs[0].repository,
        workflow_run_id=_common(run.workflow_run_id for run in runs),
        workflow_artifact=_common(run.workflow_artifact for run in runs),
        merged=merged if len(merged) > 1 else [],
        coverage=_coverage(parts, sharded),
        seed=_common(run.seed for run in runs),
        integrity=list(dict.fromkeys(item for run in runs for item in run.integrity)),
        accepted=runs[0].accepted,
    )


def _coverage(parts: Sequence[RunToMerge], sharded: bool) -> Coverage | None:
    found = [part.run.coverage for part in parts if part.run.coverage is not None]
    if len(found) < len(parts):
        return None
    iterations = [covered.iterations for covered in found]
    return found[0].model_copy(
        update={
            "finished": sum(covered.finished for covered in found) if sharded else found[0].finished,
            "iterations": iterations[0] if sharded or None in iterations else sum(filter(None, iterations)),
            "ended_by": next((covered.ended_by for covered in found if covered.ended_by is not None), None),
        }
    )


def _digest(run_ids: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(run_ids).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _common(values: Iterable[ValueT | None]) -> ValueT | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None
