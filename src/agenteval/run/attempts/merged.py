"""One attempt of a pull request whose results exist already: shards of a run, or runs of other steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.results.merge import RunToMerge
from agenteval.results.model import Memory, Results
from agenteval.run.attempts.attempt import Attempt, attempt_after
from agenteval.run.attempts.identity import Identity, identity_of_results
from agenteval.run.attempts.key import AttemptKey
from agenteval.run.context import RunContext
from agenteval.run.resolve.spec import GateSpec


def decided_before(parts: Sequence[RunToMerge], context: RunContext) -> Results | None:
    """Return the decided run that shards show instead of running; ``None`` if all parts were run.

    Shards ask for the newest attempt before they call anything. If one of them found that the same files were
    decided, the verdict stands, whatever the others have done.

    Args:
        context: additions of the environment; only a run that may have attempts believes such a shard.

    Raises:
        ConfigError: a shard did not run, and must not be believed, or is of other files or another commit.
    """
    records = [part.results.memory for part in parts]
    left_out = [
        part
        for part, record in zip(parts, records, strict=True)
        if part.run.shard is not None and record is not None and record.repeats
    ]
    if not left_out:
        return None
    keys = {(record.key, record.whole) if record is not None else None for record in records}
    head = context.provenance.commit if context.provenance is not None else None
    why = ""
    if context.attempts is None:
        why = "only the workflow of its pull request can show the verdict again"
    elif len(keys) > 1:
        why = "the other shards are of other files; run all shards again"
    elif head is None or any(_left_out_for(part) != head for part in left_out):
        why = "it is of another commit, for instance because a step has left an old file; run all shards again"
    if why:
        raise ConfigError(
            Problem(
                f"this shard did not run, because its attempt was decided before: {why}",
                file=part.file,
                kind=Kind.MERGE,
            )
            for part in left_out
        )
    first = left_out[0].results
    memory = first.memory.model_copy(update={"left_out_for": None}) if first.memory is not None else None
    return first.model_copy(update={"run": first.run.model_copy(update={"shard": None}), "memory": memory})


def _left_out_for(part: RunToMerge) -> str | None:
    """Return the commit for which a shard did not run."""
    return part.results.memory.left_out_for if part.results.memory is not None else None


def begin_merged_attempt(
    results: Results, parts: Sequence[RunToMerge], spec: GateSpec, context: RunContext
) -> Attempt | None:
    """Find the earlier attempts of the pull request, and what follows from them; ``None`` if the run is for none."""
    memory = results.memory
    # A whole run that repeats a verdict is decided like any other.
    if memory is not None and memory.repeats and parts[0].run.shard is not None:
        return Attempt(memory, shown=results)
    if context.attempts is None:
        return None
    found = attempt_after(_identity(results, parts, spec, context), spec.gate, context.attempts)
    # Nothing can be resumed here; what was run counts beside this run.
    return replace(found, restore=None)


def with_earlier_runs(results: Results, attempt: Attempt | None) -> Results:
    """Return a run whose pool contains the runs of the attempt that it continues: all of them decide together."""
    if attempt is None or attempt.continued is None:
        return results
    known = {entry.run_id for entry in results.pool}
    earlier = [entry for entry in attempt.continued.pool if entry.run_id not in known]
    return results.model_copy(update={"pool": [*results.pool, *earlier]})


def _identity(results: Results, parts: Sequence[RunToMerge], spec: GateSpec, context: RunContext) -> Identity:
    """Return the identity that the parts have in common, or else that of the files that are checked out."""
    records = [part.results.memory for part in parts]
    first = records[0]
    if first is not None and first.whole is not None and all(_is_like(record, first) for record in records):
        return Identity(AttemptKey(first.key, first.whole), first.control)
    cases = ((case.id, case.planned) for _, case in results.cases())
    return identity_of_results(spec, context.control, cases)


def _is_like(record: Memory | None, other: Memory) -> bool:
    return record is not None and (record.key, record.whole) == (other.key, other.whole)
