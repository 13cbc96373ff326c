"""Makes one run of several: of all shards of a run, or of runs that asked the same cases again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from agenteval.core.version import __version__
from agenteval.results.merge_parts import Part, check_parts
from agenteval.results.model import CaseResult, Results, Run, RunUsage, SuiteResult, Summary, Tool, UsedPlugin
from agenteval.results.rollup import case_status, mean, strict_case_status, summarise
from agenteval.suite.model import Fingerprints

ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class Merged:
    """The run that they make together.

    Attributes:
        results: without its entry in the pool. Criteria are undecided: they are about the run as a whole.
        fingerprints: by case id, for that entry.
        warnings: what does not keep the parts from being merged, but must be seen.
    """

    results: Results
    fingerprints: dict[str, Fingerprints]
    warnings: tuple[str, ...] = ()


def merge(parts: Sequence[Part]) -> Merged:
    """Join runs.

    Shards join their cases, in the order of the suites whatever the order of the parts. Other runs add their
    iterations to those of the parts before them.

    Args:
        parts: one or more.

    Raises:
        ConfigError: with every reason why they do not belong together.
    """
    check_parts(parts)
    sharded = parts[0].run.shard is not None
    ordered = sorted(parts, key=lambda part: part.shard.index) if sharded else list(parts)
    suites = _joined(ordered) if sharded else _repeated(ordered)
    return Merged(
        results=Results(
            tool=Tool(version=__version__, plugins=_plugins(ordered)),
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
        yield f"merged what several versions of agenteval wrote: {', '.join(versions)}"


def _plugins(parts: Iterable[Part]) -> list[UsedPlugin]:
    return list({(item.name, item.version): item for part in parts for item in part.results.tool.plugins}.values())


def _joined(shards: Sequence[Part]) -> list[SuiteResult]:
    """The suites with the cases of all shards."""
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
    """The suites with the iterations of all runs."""
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
    return suite.model_copy(update={"criteria": criteria, "cases": cases})


def _with_iterations(runs: Sequence[CaseResult]) -> CaseResult:
    """One case with its iterations in all runs, counted on."""
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
        }
    )


def _summary(suites: Iterable[SuiteResult], parts: Iterable[Part]) -> Summary:
    taken = [part.results.summary.usage for part in parts]
    usage = RunUsage(
        input_tokens=sum(usage.input_tokens for usage in taken),
        output_tokens=sum(usage.output_tokens for usage in taken),
        llm_calls=sum(usage.llm_calls for usage in taken),
        cost_usd=sum(usage.cost_usd for usage in taken),
    )
    # What models of ours took is in no case.
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
        repository=runs[0].repository,
        workflow_run_id=_common(run.workflow_run_id for run in runs),
        merged=merged if len(merged) > 1 else [],
        seed=_common(run.seed for run in runs),
    )


def _id(run_ids: Sequence[str]) -> str:
    """An id that the same runs always make, and that of the only one where there is one."""
    if len(run_ids) == 1:
        return run_ids[0]
    return hashlib.sha256("\n".join(run_ids).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _common(values: Iterable[ValueT | None]) -> ValueT | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _wall_clock_s(shards: Sequence[Part]) -> float:
    """Shards run side by side."""
    started = min(datetime.fromisoformat(part.run.started_at) for part in shards)
    return (max(datetime.fromisoformat(part.run.finished_at) for part in shards) - started).total_seconds()


def _total_s(runs: Iterable[Part]) -> float:
    """Further runs come one after the other, perhaps days apart."""
    return sum(part.run.duration_s for part in runs)
