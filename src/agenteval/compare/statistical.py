"""Expresses a decision of the statistics in the types of results.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agenteval.compare.blind import blind_notes
from agenteval.compare.case_notes import annotated
from agenteval.compare.compared import Compared
from agenteval.compare.concluded import Concluded
from agenteval.compare.drift import drift_notes, low_control
from agenteval.compare.metric_words import metric_words
from agenteval.compare.regression.model import Cost, Decision, Failures, MetricFinding, MovedCase
from agenteval.compare.requested import proof_request
from agenteval.compare.sides import Sides
from agenteval.compare.words import headline, missing, words_of
from agenteval.results.comparison import (
    CaseMove,
    CaseProof,
    ComparedCase,
    ComparedLook,
    ComparedMetric,
    Comparison,
    ConfirmationCost,
    FailedOf,
    Finer,
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
        rise: the decision about an improvement; ``None`` if none was looked for.
        is_final: whether nothing could run again, so that the results alone decided.
        control: the commit whose agent ran beside the change; ``None`` if it has no commit or did not run.
    """

    decision: Decision
    rise: Decision | None = None
    is_final: bool = False
    control: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def stage(self) -> Stage:
        """What the verdict rests on."""
        return "files" if self.is_final else self.decision.stage


def conclude(sides: Sides, cases: Sequence[ComparedCase], decided: Decided) -> Concluded:
    """Return what a decision says about a comparison."""
    decision = decided.decision
    compared = Compared(
        cases={case.id: case.name for case in cases},
        control=decided.control,
        runs=len(sides.earlier.scores),
        is_final=decided.is_final,
        tolerance=sides.policy.settings.tolerance,
        least=sides.policy.settings.min_effect,
    )
    metrics = [
        compared_metric(decision, finding, compared, _usual_iterations(sides, finding.metric))
        for finding in decision.metrics
    ]
    return Concluded(
        verdict=decision.verdict,
        unproven=unproven_points(decision, compared),
        metrics=[*metrics, *_reported(sides, {metric.id for metric in metrics})],
        cases=annotated(sides, cases, decision),
        details={
            "name": sides.policy.name,
            "confirm": sides.policy.confirm,
            "baseline_runs": len(sides.earlier.scores),
            "confirmed": decision.verdict != "unproven" and decision.cost != Cost(),
            "settings": asdict(sides.policy.settings),
            **words_of(decision, compared),
        },
        notes=[
            *sides.earlier.notes,
            *decided.notes,
            *blind_notes(sides.evidence, decision, sides.policy.settings),
            *drift_notes(sides.evidence, decision, sides.policy.settings),
        ],
        proof={
            **proof_of(decided),
            "low_control": low_control(sides, decision),
            "requested": proof_request(sides.policy, decided, compared),
        },
    )


def with_cost(comparison: Comparison, cost: Cost) -> Comparison:
    """Return a comparison with the cost of further runs added to its own."""
    if cost == Cost():
        return comparison
    before = comparison.cost or ConfirmationCost()
    total = ConfirmationCost(runs=before.runs + cost.runs, calls=before.calls + cost.calls)
    return comparison.model_copy(update={"cost": total})


def unproven_points(decision: Decision, compared: Compared) -> list[Unproven]:
    """Return why a decision is unproven; empty if it is not."""
    if decision.verdict != "unproven":
        return []
    text = headline(decision, compared)
    if decision.missing is None:
        return [Unproven(what="errors", text=text, mended_by="change")]
    details = tuple(missing(decision, compared))
    return [Unproven(what="confirmation", text=text, details=details, mended_by="outside")]


def compared_metric(
    decision: Decision, finding: MetricFinding, compared: Compared, iterations: int
) -> ComparedMetric:
    """Return what was found about the mean of one metric.

    Args:
        iterations: usual number of iterations of a case in the first run.
    """
    verdict: RunVerdict = "unchanged"
    if finding.proven:
        verdict = decision.verdict
    elif decision.verdict == "unproven" or (decision.verdict == "regressed" and finding.stage == "screen"):
        # What is red already needs no further proof, so a suspicion may be left.
        verdict = "unproven" if finding.suspicious else "unchanged"
    return ComparedMetric(
        id=finding.metric,
        n=finding.cases,
        baseline=finding.control,
        current=finding.current,
        difference=finding.current - finding.control,
        verdict=verdict,
        reason=metric_words(decision, finding, compared),
        interval=finding.interval,
        p=finding.p,
        limit=finding.limit,
        bound=finding.bound,
        finer=None if finding.finer is None else Finer(**asdict(finding.finer)),
        suspicious=finding.suspicious,
        first=finding.first,
        earlier=finding.baseline,
        runs_a_side=finding.runs or None,
        units=finding.units,
        runs=compared.runs,
        iterations=iterations,
        detectable_drop=finding.detectable_drop,
        moved=[_moved(case) for case in finding.moved],
    )


def _moved(case: MovedCase) -> CaseMove:
    return CaseMove(
        id=case.case_id,
        baseline=case.control,
        current=case.current,
        baseline_failures=None if case.control_failures is None else _failed(case.control_failures),
        current_failures=None if case.current_failures is None else _failed(case.current_failures),
    )


def _usual_iterations(sides: Sides, metric: str) -> int:
    lengths = Counter(
        len(metrics[metric]) + sides.cases[case_id][1].unneeded
        for case_id, metrics in sides.evidence.first.items()
        if metric in metrics
    )
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


def proof_of(decided: Decided) -> dict[str, Any]:
    """Return the fields of a comparison that only the statistics fill."""
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
