"""Whether a run can be a baseline: it must be whole, and most of its cases must be evaluated."""

from __future__ import annotations

from agenteval.results.coverage import EndedBy
from agenteval.results.model import Results, Run
from agenteval.results.summary import Summary

_ENDINGS: dict[EndedBy, str] = {
    "signal": "it was interrupted",
    "time": "its time limit was reached",
    "budget": "its budget of model calls ended before every case was evaluated",
}


def is_interrupted(run: Run) -> bool:
    """Return whether a signal ended a run."""
    return run.coverage.ended_by == "signal" if run.coverage is not None else not run.complete


def why_no_baseline(results: Results) -> str:
    """Return why a run cannot be a baseline; empty if it can.

    A baseline may have some cases that ended in an error. They have no scores, so the comparison leaves them out.
    """
    return why_partial(results.run) or why_not_evaluated(results.summary)


def why_partial(run: Run) -> str:
    """Return why a run covers only a part of its suites; empty for a whole run.

    Runs of files without a coverage are whole if they are complete and no shard.
    """
    if run.shard is not None:
        part = f"it is shard {run.shard.index} of {run.shard.count} of a run"
        return f"{part}; merge the shards first, with agenteval merge"
    covered = run.coverage
    if covered is not None and covered.ended_by is not None:
        return _ENDINGS[covered.ended_by]
    if not run.complete:
        return "its evaluation was not complete"
    return f"it is partial: {note}" if covered is not None and (note := covered.selection_note) else ""


def why_not_evaluated(summary: Summary) -> str:
    """Return why a run evaluated too little to compare with; empty if at least half of what ended was evaluated."""
    evaluated = summary.passed + summary.failed
    if evaluated and evaluated >= summary.errors:
        return ""
    if not summary.cases:
        return "it contains no case"
    parts = [f"{summary.errors:,} ended in an error"] if summary.errors else []
    parts += [f"{summary.skipped:,} skipped"] if summary.skipped else []
    which = "most of its cases were not evaluated" if evaluated else "none of its cases was evaluated"
    return f"{which}: of {summary.cases:,}, {', '.join(parts)}"
