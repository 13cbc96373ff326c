"""Merges several runs into one: all shards of a run, or runs of the same cases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TypeVar

from agenteval.core.version import __version__
from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.coverage import Coverage
from agenteval.results.merge_parts import Part, check_parts
from agenteval.results.metric_use import MetricUse
from agenteval.results.model import OWN_NAME, Results, Run, Tool, UsedPlugin
from agenteval.results.rollup import case_status, mean, strict_case_status, summarise
from agenteval.results.summary import RunUsage, Summary
from agenteval.suite.model import Fingerprints

ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class Merged:
    """A merged run.

    Attributes:
        results: the run without its pool entry. Its criteria are not evaluated, because they concern the whole run;
            those of a single run are as that run has them.
        fingerprints: fingerprints by case id, for the pool entry.
        warnings: differences of the parts that do not prevent the merge.
    """

    results: Results
    fingerprints: dict[str, Fingerprints]
    warnings: tuple[str, ...] = ()


def merge(parts: Sequence[Part]) -> Merged:
    """Merge runs.

    Cases of shards are joined in the order of the suites, whatever the order of the parts. Iterations of other runs
    are appended in the order of the parts.

    Args:
        parts: one or more runs.

    Raises:
        ConfigError: the parts do not belong together; the message lists every reason.
    """
    check_parts(parts)
    sharded = parts[0].run.shard is not None
    ordered = sorted(parts, key=lambda part: part.shard.index) if sharded else list(parts)
    suites = _joined(ordered) if sharded else _repeated(ordered) if len(ordered) > 1 else ordered[0].results.suites
    return Merged(
        results=Results(
            tool=_tool(ordered),
            run=_run(ordered, _wall_clock_s if sharded else _total_s),
            summary=_summary(suites, ordered),
            suites=suites,
        ),
        fingerprints={case_id: known for part in ordered for case_id, known in part.fingerprints.items()},
        warnings=tuple(_warnings(parts)),
    )


def _warnings(parts: Sequence[Part]) -> Iterator[str]:
    versions = sorted({part.results.tool.version for part in parts})
    if len(versions) > 1:
        yield f"merged results of several versions of agenteval: {', '.join(versions)}"


def _tool(parts: Sequence[Part]) -> Tool:
    """Return the tool that made the runs: another one, or agenteval."""
    first = parts[0].results.tool
    if first.name != OWN_NAME:
        return first
    return Tool(version=__version__, plugins=_plugins(parts))


def _plugins(parts: Iterable[Part]) -> list[UsedPlugin]:
    return list({(item.name, item.version): item for part in parts for item in part.results.tool.plugins}.values())


def _joined(shards: Sequence[Part]) -> list[SuiteResult]:
    """Return the suites with the cases of all shards."""
    position = {case_id: number for number, case_id in enumerate(shards[0].shard.cases)}
    found: dict[str, list[CaseResult]] = {}
    for part in shards:
        for suite, case in part.results.cases():
            found.setdefault(suite.path, []).append(case)
    return [
        _with_cases(suite, sorted(found.get(suite.path, ()), key=lambda case: position[case.id]))
        for suite in shards[0].results.suites
    ]


def _repeated(runs: Sequence[Part]) -> list[SuiteResult]:
    """Return the suites with the iterations of all runs."""
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
    use = MetricUse(suite.threshold)
    for case in cases:
        use.add(case)
    found = {"criteria": criteria, "cases": cases, "unmeasured": use.unmeasured, "undecided": use.undecided}
    return suite.model_copy(update=found)


def _with_iterations(runs: Sequence[CaseResult]) -> CaseResult:
    """Return one case with its iterations in all runs, numbered consecutively."""
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


def _summary(suites: Iterable[SuiteResult], parts: Iterable[Part]) -> Summary:
    usage = reduce(RunUsage.plus, (part.results.summary.usage for part in parts))
    # Cases do not contain the usage of judges.
    return summarise(case for suite in suites for case in suite.cases).model_copy(update={"usage": usage})


def _run(parts: Sequence[Part], duration_s: Callable[[Sequence[Part]], float]) -> Run:
    runs = [part.run for part in parts]
    merged = [run_id for part in parts for run_id in part.run_ids]
    return Run(
        id=_id(merged),
        started_at=min((run.started_at for run in runs), key=datetime.fromisoformat),
        finished_at=max((run.finished_at for run in runs), key=datetime.fromisoformat),
        duration_s=round(duration_s(parts), 3),
        complete=True,
        commit=runs[0].commit,
        ref=_common(run.ref for run in runs),
        uncommitted=any(run.uncommitted for run in runs),
        repository=runs[0].repository,
        workflow_run_id=_common(run.workflow_run_id for run in runs),
        workflow_artifact=_common(run.workflow_artifact for run in runs),
        merged=merged if len(merged) > 1 else [],
        coverage=_coverage(parts),
        seed=_common(run.seed for run in runs),
        integrity=list(dict.fromkeys(item for run in runs for item in run.integrity)),
        accepted=runs[0].accepted,
    )


def _coverage(parts: Sequence[Part]) -> Coverage | None:
    """Return what all parts covered together; ``None`` if a part does not record it."""
    found = [part.run.coverage for part in parts if part.run.coverage is not None]
    if len(found) < len(parts):
        return None
    sharded = parts[0].run.shard is not None
    iterations = [covered.iterations for covered in found]
    return found[0].model_copy(
        update={
            "finished": sum(covered.finished for covered in found) if sharded else found[0].finished,
            "iterations": iterations[0] if sharded or None in iterations else sum(filter(None, iterations)),
            "ended_by": next((covered.ended_by for covered in found if covered.ended_by is not None), None),
        }
    )


def _id(run_ids: Sequence[str]) -> str:
    """Return the run's id: the same for the same parts, and unchanged for a single part."""
    if len(run_ids) == 1:
        return run_ids[0]
    return hashlib.sha256("\n".join(run_ids).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _common(values: Iterable[ValueT | None]) -> ValueT | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _wall_clock_s(shards: Sequence[Part]) -> float:
    """Return the wall time in seconds; shards run in parallel."""
    started = min(datetime.fromisoformat(part.run.started_at) for part in shards)
    return (max(datetime.fromisoformat(part.run.finished_at) for part in shards) - started).total_seconds()


def _total_s(runs: Iterable[Part]) -> float:
    """Return the sum of the times in seconds; further iterations run one after the other, perhaps days apart."""
    return sum(part.run.duration_s for part in runs)
