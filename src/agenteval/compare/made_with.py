"""What a run was made with: runs of other models, iterations or major versions are of another epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agenteval.results.epoch import MadeWith
from agenteval.results.model import Results

# Metric kinds whose scores a model decides.
_JUDGES = frozenset({"geval", "rag", "judge", "safety"})


def made_with(results: Results) -> MadeWith:
    """Return what a run was made with, as far as its results tell: they do not name the models of agents."""
    judges: set[str] = set()
    lengths: Counter[int] = Counter()
    for _, case in results.cases():
        if case.iterations:
            lengths[case.planned] += 1
        scores = (score for iteration in case.iterations for turn in iteration.turns for score in turn.scores)
        judges.update(score.model for score in scores if score.model and score.kind in _JUDGES)
    usual = max(lengths, key=lambda length: (lengths[length], length), default=None)
    return MadeWith(judges=sorted(judges), iterations=usual, engine=results.tool.version.partition(".")[0])


def declared_change(now: MadeWith | None, then: MadeWith | None) -> str:
    """Return what differs between two runs, as text; empty if nothing that both know differs."""
    return "; ".join(_changes(now, then)) if now is not None and then is not None else ""


def _changes(now: MadeWith, then: MadeWith) -> Iterator[str]:
    for name, after, before in (("agent", now.agents, then.agents), ("judge", now.judges, then.judges)):
        # With an added or a removed judge, the others still make the runs comparable.
        if set(after) - set(before) and set(before) - set(after):
            yield f"the model of the {name} changed from {', '.join(before)} to {', '.join(after)}"
    if now.iterations and then.iterations and now.iterations != then.iterations:
        yield f"iterations changed from {then.iterations} to {now.iterations}"
    if now.engine and then.engine and now.engine != then.engine:
        yield f"the major version of agenteval changed from {then.engine} to {now.engine}"
