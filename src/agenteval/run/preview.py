"""Shows what the change's own rules would say about the answers of its run, before they are merged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agenteval.compare.pairing import Match, own_cases
from agenteval.compare.phrases import count, quoted
from agenteval.compare.run_scores import pool_case
from agenteval.results.case import CaseResult, CaseStatus
from agenteval.results.model import Results
from agenteval.results.rollup import mean
from agenteval.run.rescorable import rescorable
from agenteval.run.rescore import catalog_of_answers, scored_again, why_not_whole
from agenteval.suite.model import OVERALL, Case

# Seconds for all cases together.
_LONGEST_S = 60.0


def preview(results: Results, proposed: Mapping[str, Case]) -> tuple[str, ...]:
    """Return what changed metrics would say about the answers of a run, as notes; empty if they say the same.

    Args:
        results: the run, judged by the rules of the base commit.
        proposed: the cases as the change has them, by id.
    """
    wanted = dict(_wanted(results, proposed)) if proposed else {}
    return tuple(_notes(asyncio.run(_scored(results, wanted)))) if wanted else ()


@dataclass(frozen=True)
class _Wanted:
    """A case of the change, and its changed metrics that can score answers; ``is_whole`` if these are all changes."""

    case: Case
    names: frozenset[str]
    is_whole: bool


@dataclass(frozen=True)
class _Scored:
    """A case as the base commit's rules score it, and as the change's do."""

    before: CaseResult
    after: CaseResult
    names: frozenset[str]
    is_whole: bool


def _wanted(results: Results, proposed: Mapping[str, Case]) -> Iterator[tuple[str, _Wanted]]:
    for case_id, then in own_cases(results).items():
        case = proposed.get(case_id)
        names = rescorable(case, then) if case is not None else frozenset()
        if case is not None and names:
            match = Match.of(pool_case(case.fingerprints, {}), then)
            yield case_id, _Wanted(case, names, match.changed == names and not match.unmatched)


async def _scored(results: Results, wanted: Mapping[str, _Wanted]) -> list[_Scored]:
    found: list[_Scored] = []
    catalog, until = catalog_of_answers(), time.monotonic() + _LONGEST_S
    for _, before in results.cases():
        item = wanted.get(before.id)
        if item is None or time.monotonic() >= until or why_not_whole(item.case, before) is not None:
            continue
        scored = await scored_again(item.case, item.names, before, catalog)
        if scored is not None:
            found.append(_Scored(before, *scored, item.is_whole and scored[1] == item.names))
    return found


def _notes(pairs: Sequence[_Scored]) -> Iterator[str]:
    for name in sorted({name for pair in pairs for name in pair.names}):
        of_metric = [pair for pair in pairs if name in pair.names]
        before = mean(_mean_of(pair.before, name) for pair in of_metric)
        after = mean(_mean_of(pair.after, name) for pair in of_metric)
        if before is not None and after is not None and before != after:
            figures = f"would be {after:.2f} instead of {before:.2f}"
            yield f"by the rules of the change, {quoted(name)} {figures} in {count(len(of_metric), 'case')}"
    passing, failing = _turned(pairs, "passed"), _turned(pairs, "failed")
    if passing or failing:
        more = f"{count(passing, 'more case')} would pass, and {count(failing, 'more case')} would fail"
        yield f"by the rules of the change, {more}"


def _mean_of(case: CaseResult, name: str) -> float | None:
    return case.score if name == OVERALL else mean(score.score for score in case.scores if score.id == name)


def _turned(pairs: Sequence[_Scored], status: CaseStatus) -> int:
    return sum(pair.is_whole and pair.after.status == status != pair.before.status for pair in pairs)
