"""The runs to merge, and checks that they belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.results.case import CaseResult
from agenteval.results.comparison import PoolEntry
from agenteval.results.model import SCHEMA_VERSION, Results, Run, RunShard
from agenteval.suite.model import Fingerprints

# Scores over all iterations of a case, which change with the number of iterations.
_OVER_ITERATIONS = frozenset({"consistency", "performance"})
# The maximum number of cases and shards in a message.
_NAMED = 5


@dataclass(frozen=True)
class Part:
    """A run to merge, and its file."""

    file: str
    results: Results

    @property
    def run(self) -> Run:
        """The metadata of the run."""
        return self.results.run

    @property
    def shard(self) -> RunShard:
        """The shard of the run.

        Raises:
            ValueError: the run is not a shard.
        """
        if self.run.shard is None:
            raise ValueError(f"{self.file} is not a shard")
        return self.run.shard

    @property
    def run_ids(self) -> list[str]:
        """The ids of the runs it was merged from; without a merge, its own id."""
        return self.run.merged or [self.run.id]

    @property
    def case_ids(self) -> list[str]:
        """The ids of the run's cases, in its order."""
        return [case.id for _, case in self.results.cases()]

    @property
    def own_entry(self) -> PoolEntry | None:
        """The run's own entry in its pool."""
        return next((entry for entry in self.results.pool if entry.run_id == self.run.id), None)

    @property
    def fingerprints(self) -> dict[str, Fingerprints]:
        """The fingerprints of each case's inputs and metrics, by case id."""
        cases = self.own_entry.cases if self.own_entry else {}
        return {case_id: Fingerprints(case.fingerprint, case.metrics) for case_id, case in cases.items()}


def check_parts(parts: Sequence[Part]) -> None:
    """Check that runs can be merged.

    Args:
        parts: one or more runs.

    Raises:
        ConfigError: they cannot be merged; the message lists every reason.
    """
    problems = list(_unusable(parts)) or list(_foreign(parts))
    if not problems:
        problems = list(_unlike(parts) if parts[0].run.shard is None else _incomplete(parts))
    if problems:
        raise ConfigError(problems)


def _unusable(parts: Sequence[Part]) -> Iterator[Problem]:
    """Yield the problems of parts that cannot be merged with any other."""
    for part in parts:
        if not part.run.complete:
            yield Problem("this run was interrupted; run it again", file=part.file, kind=Kind.MERGE)
        elif not _is_time(part.run.started_at) or not _is_time(part.run.finished_at):
            yield Problem("`run` does not say when it started and finished", file=part.file, kind=Kind.MERGE)
        elif part.case_ids and part.own_entry is None and len(parts) > 1:
            message = "this run scored recorded traces; score them all in one run, with --traces FOLDER"
            yield Problem(message, file=part.file, kind=Kind.MERGE)
        elif repeated := [case_id for case_id, times in Counter(part.case_ids).items() if times > 1]:
            yield Problem(f"names {_cases(repeated)} more than once", file=part.file, kind=Kind.MERGE)


def _foreign(parts: Sequence[Part]) -> Iterator[Problem]:
    """Yield the differences of parts from the first in commit, suites or settings."""
    first = parts[0]
    files = dict.fromkeys(first.run_ids, first.file)
    for part in parts[1:]:
        again = next((files[run_id] for run_id in part.run_ids if run_id in files), None)
        files |= dict.fromkeys(part.run_ids, part.file)
        different = [what for what, of in _SAME if of(part) != of(first)]
        if again is not None:
            yield Problem(f"the same run is in {again}", file=part.file, kind=Kind.MERGE)
        elif part.run.shard is None and first.run.shard is not None:
            yield Problem(f"a whole run, but {first.file} is a shard", file=part.file, kind=Kind.MERGE)
        elif part.run.shard is not None and first.run.shard is None:
            yield Problem(f"a shard, but {first.file} is a whole run", file=part.file, kind=Kind.MERGE)
        elif different:
            yield Problem(f"{' and '.join(different)} than {first.file}", file=part.file, kind=Kind.MERGE)


def _release(part: Part) -> tuple[str, ...]:
    """Return the version without its last part: patch releases do not affect results."""
    return tuple(part.results.tool.version.split(".")[:2])


def _paths(part: Part) -> list[str]:
    return sorted(suite.path for suite in part.results.suites)


def _contents(part: Part) -> list[str]:
    """Return the fingerprints of the suites' contents; their paths are compared separately."""
    return sorted(suite.fingerprint for suite in part.results.suites)


_SAME: tuple[tuple[str, Callable[[Part], object]], ...] = (
    ("of another tool", lambda part: part.results.tool.name),
    ("of another repository", lambda part: part.run.repository),
    ("of another commit", lambda part: part.run.commit),
    ("written by another version of agenteval", _release),
    ("of another version of results.json", lambda part: part.results.schema_version),
    ("of other suites", _paths),
    ("of suites with other cases or metrics", _contents),
)


def _incomplete(parts: Sequence[Part]) -> Iterator[Problem]:
    """Yield the problems of shards: another division, missing or duplicate shards."""
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
    missing = [str(index) for index in range(1, first.count + 1) if index not in seen]
    if len(missing) == 1:
        yield Problem(f"shard {missing[0]} of {first.count} is missing", kind=Kind.MERGE)
    elif missing:
        yield Problem(f"{len(missing)} shards of {first.count} are missing: {_some(missing)}", kind=Kind.MERGE)
    else:
        yield from _badly_divided(parts)


def _badly_divided(parts: Iterable[Part]) -> Iterator[Problem]:
    """Yield the cases that are in no shard, in several, or unexpected."""
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


def _unlike(parts: Sequence[Part]) -> Iterator[Problem]:
    """Yield the problems of runs of the same cases."""
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
        if part.results.schema_version < SCHEMA_VERSION:
            message = "this file does not record which cases are strict; merge its shards only, or run it again"
            yield Problem(message, file=part.file, kind=Kind.MERGE)
        elif together:
            message = f"judges all iterations of {_cases(together)} together; run these once, with --iterations"
            yield Problem(message, file=part.file, kind=Kind.MERGE)


def _is_judged_together(case: CaseResult) -> bool:
    return any(score.kind in _OVER_ITERATIONS for score in case.scores)


def _cases(ids: Sequence[str]) -> str:
    """Return a number of cases with their names: ``2 cases (a, b)``."""
    return f"{'1 case' if len(ids) == 1 else f'{len(ids):,} cases'} ({_some(ids)})"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
