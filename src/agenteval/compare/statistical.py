"""Expresses a decision of the statistics in the types of results.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agenteval.compare.case_notes import annotated
from agenteval.compare.concluded import Concluded
from agenteval.compare.regression.model import Cost, Decision, Failures, MetricFinding
from agenteval.compare.sides import Sides
from agenteval.compare.words import Words
from agenteval.results.comparison import (
    CaseProof,
    ComparedCase,
    ComparedLook,
    ComparedMetric,
    ConfirmationCost,
    FailedOf,
    RunVerdict,
    Stage,
)
from agenteval.results.verdict import Unproven

# A single run without a proof says little about metrics that do not gate.
_ONLY_REPORTED = "only reported"


@dataclass(frozen=True)
class Decided:
    """A decision of the gate on a comparison.

    Attributes:
        decision: the decision.
        is_final: whether nothing could run again, so that the results alone decided.
        control: the commit whose agent ran beside the change; ``None`` if it has no commit or did not run.
        notes: what the comparison with the control leaves out.
    """

    decision: Decision
    is_final: bool = False
    control: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def stage(self) -> Stage:
        """What the verdict rests on."""
        return "files" if self.is_final else self.decision.stage


def conclude(sides: Sides, cases: Sequence[ComparedCase], decided: Decided) -> Concluded:
    """Return what a decision says about a comparison.

    Args:
        sides: the two runs.
        cases: the cases of both runs.
        decided: the decision.
    """
    decision = decided.decision
    words = Words(
        cases={case.id: case.name for case in cases},
        control=decided.control,
        runs=len(sides.earlier.scores),
        tolerance=sides.policy.settings.tolerance,
    )
    compared = [_compared(sides, finding, decided, words) for finding in decision.metrics]
    return Concluded(
        verdict=decision.verdict,
        unproven=list(_unproven(decision, words)),
        metrics=[*compared, *_reported(sides, {metric.id for metric in compared})],
        cases=annotated(sides, cases, decision),
        details={
            "name": sides.policy.name,
            "confirm": sides.policy.confirm,
            "baseline_runs": len(sides.earlier.scores),
            "confirmed": decision.verdict != "unproven" and decision.cost != Cost(),
            "settings": asdict(sides.policy.settings),
            "reason": words.verdict(decision),
        },
        notes=[*sides.earlier.notes, *decided.notes],
        proof=_proof(decided),
    )


def _unproven(decision: Decision, words: Words) -> Iterator[Unproven]:
    if decision.verdict != "unproven":
        return
    text = words.missing(decision)
    if decision.missing is None:
        yield Unproven(what="errors", text=text, mended_by="change")
    else:
        yield Unproven(what="confirmation", text=text, mended_by="outside")


def _compared(sides: Sides, finding: MetricFinding, decided: Decided, words: Words) -> ComparedMetric:
    verdict: RunVerdict = "unchanged"
    if finding.proven:
        verdict = decided.decision.verdict
    elif finding.suspicious and decided.decision.verdict == "unproven":
        verdict = "unproven"
    return ComparedMetric(
        id=finding.metric,
        n=finding.cases,
        baseline=finding.control,
        current=finding.current,
        difference=finding.current - finding.control,
        verdict=verdict,
        reason=words.metric(decided.decision, finding),
        interval=finding.interval,
        p=finding.p,
        limit=finding.limit,
        bound=finding.bound,
        first=finding.first,
        earlier=finding.baseline,
        runs_a_side=finding.runs or None,
        units=finding.units,
        runs=len(sides.earlier.scores),
        iterations=_usual_iterations(sides, finding.metric),
        detectable_drop=finding.detectable_drop,
    )


def _usual_iterations(sides: Sides, metric: str) -> int:
    lengths = Counter(len(metrics[metric]) for metrics in sides.evidence.first.values() if metric in metrics)
    return max(lengths, key=lambda length: (lengths[length], length), default=0)


def _reported(sides: Sides, gating: set[str]) -> Iterator[ComparedMetric]:
    """Yield the means of the metrics that do not gate, without a verdict."""
    names = dict.fromkeys(name for metrics in sides.scores.values() for name in metrics)
    for name in names:
        pairs = list(_means(sides, name)) if name not in gating else []
        if pairs:
            current, baseline = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
            yield ComparedMetric(
                id=name,
                n=len(pairs),
                baseline=baseline,
                current=current,
                difference=current - baseline,
                verdict="unchanged",
                reason=_ONLY_REPORTED,
                gating=False,
                runs=len(sides.earlier.scores),
            )


def _means(sides: Sides, name: str) -> Iterator[tuple[float, float]]:
    """Yield the mean of each case in this run and in the pool, where both have scores."""
    for case_id, metrics in sides.scores.items():
        now = [score for score in metrics.get(name, ()) if score is not None]
        then = [
            score for run in sides.earlier.scores for score in run.get(case_id, {}).get(name, ()) if score is not None
        ]
        if now and then and case_id not in sides.quarantined:
            yield sum(now) / len(now), sum(then) / len(then)


def _proof(decided: Decided) -> dict[str, Any]:
    decision = decided.decision
    cost = decision.cost
    return {
        "control": decided.control,
        "stage": decided.stage,
        "looks": [ComparedLook(**asdict(look)) for look in decision.looks],
        "proofs": [
            CaseProof(
                id=finding.case_id,
                metric=finding.metric,
                pool=_failed(finding.pool),
                first=_failed(finding.first),
                current=_failed(finding.current),
                control=_failed(finding.control),
                q=finding.q,
                limit=finding.limit,
                proven=finding.proven,
            )
            for finding in decision.cases
        ],
        "cost": None if cost == Cost() else ConfirmationCost(runs=cost.runs, calls=cost.calls),
    }


def _failed(failures: Failures) -> FailedOf:
    return FailedOf(failed=failures.failed, of=failures.of)
