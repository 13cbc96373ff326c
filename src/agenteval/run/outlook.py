"""Records in a first run what the gate will find once the base branch has runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from agenteval.compare.policy import ComparePolicy
from agenteval.results.model import Results
from agenteval.results.outlook import Outlook


def outlook_of(results: Results, policy: ComparePolicy) -> list[Outlook]:
    """Return what the gate will find; empty for a run that is compared or incomplete, and for other policies.

    One iteration of each case does not tell how much the scores vary, so a run without a second one has none either.
    """
    is_first = results.comparison is None and results.run.complete and results.run.shard is None
    if not is_first or policy.name != "statistics" or not policy.confirms_beside_base:
        return []
    if all(len(case.iterations) < 2 for _, case in results.cases()):
        return []
    # Imported here: only first runs need them.
    from agenteval.compare.regression.outlook import expected
    from agenteval.compare.sides import Sides

    today = datetime.now(UTC).date()
    out = frozenset(case.id for _, case in results.cases() if policy.quarantined(case.id, case.name, today))
    # As in `explain`: the run is the only one of its pool. Its own entry gets its scores when it is written.
    alone = results.model_copy(update={"pool": []})
    evidence = replace(Sides(alone, alone, policy, out).evidence, first={})
    if not evidence.metrics or not evidence.pool:
        return []
    found = []
    for item in expected(evidence, policy.settings):
        metric = max(item.detectable, key=lambda name: item.detectable[name], default=None)
        drop = item.detectable[metric] if metric is not None and not item.too_few else None
        found.append(
            Outlook(
                runs=item.runs,
                metric=metric if drop is not None else None,
                drop=drop,
                too_few=item.too_few,
                case_calls=item.case_calls,
            )
        )
    return found
