"""How sure the gate is about what it found, in sentences with the numbers of the proofs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.compare.phrases import count, points
from agenteval.report.view.case_kinds import fallen_metrics
from agenteval.report.view.causes import Cause, proofs_by_case
from agenteval.report.view.run_cost import base_name
from agenteval.results.comparison import CaseProof, ComparedMetric, Comparison, FailedOf
from agenteval.results.model import Results

_COMMIT = 7
_MOST_FINDINGS = 3
_LEAST_COST = 0.005  # dollars


def certainty(results: Results, causes: Sequence[Cause]) -> tuple[str, ...]:
    """Return how sure the findings are; empty if nothing was found or compared.

    A proof is told by its least certain case. Only what the gate's tests found is said: p, limit and interval.

    Args:
        results: the run.
        causes: of the run.
    """
    comparison = results.comparison
    if comparison is None or comparison.stage is None:
        return ()
    proofs = proofs_by_case(comparison)
    broke = [found.id for cause in causes if cause.kind == "broke" for found in cause.cases]
    names = {found.id: found.name for cause in causes for found in cause.cases}
    proven = [proofs[id_] for id_ in broke if id_ in proofs and proofs[id_].proven]
    told = [*_of_cases(proven, names, comparison)]
    told += [_of_metric(metric, comparison) for metric in fallen_metrics(comparison)[:_MOST_FINDINGS]]
    if not told and comparison.verdict == "improved":
        risen = [metric for metric in comparison.metrics if metric.gating and metric.verdict == "improved"]
        return tuple(_of_metric(metric, comparison) for metric in risen[:_MOST_FINDINGS])
    if not told and (comparison.unproven or any(cause.kind == "maybe" for cause in causes)):
        return tuple(_not_proven(comparison, results))
    if not told:
        return tuple(_cleared(comparison))
    if comparison.stage == "earlier-runs":
        told.append("It was compared with earlier runs, so drift cannot be told from regression.")
    return tuple(told)


def requested_proof(results: Results) -> tuple[str, ...]:
    """Return the result of a request to prove an improvement, as one sentence; empty without a request."""
    requested = results.comparison.requested if results.comparison is not None else None
    return () if requested is None else (f"{requested.reason[:1].upper()}{requested.reason[1:]}.",)


def _of_cases(proofs: Sequence[CaseProof], names: dict[str, str], comparison: Comparison) -> Iterator[str]:
    if not proofs:
        return
    alike = len({(str(proof.current), str(proof.control), proof.q, proof.limit) for proof in proofs}) == 1
    weakest = max(proofs, key=_doubt)
    if len(proofs) == 1:
        who = "It"
    elif alike:
        who = "Each of them"
    else:
        who = f"The least certain, {names.get(weakest.id, weakest.id)},"
    yield f"{who} {_figures(weakest, comparison)}.{_chance(weakest.q, weakest.limit, comparison)}"


def _doubt(proof: CaseProof) -> tuple[float, float]:
    rate = proof.current.failed / proof.current.of if proof.current.of else 0.0
    return (proof.q or 0.0, -rate)


def _figures(proof: CaseProof, comparison: Comparison) -> str:
    now, before = proof.current, proof.control
    if not now.of:
        return f"failed {_of(proof.first)} iterations here, {_of(proof.pool)} in the earlier runs"
    if not before.of:
        return f"failed {_of(now)} re-runs here, {_of(proof.pool)} iterations in the earlier runs"
    return f"failed {_of(now)} re-runs here and {_of(before)} on {_side(comparison)} beside it"


def _of(failures: FailedOf) -> str:
    return f"{failures.failed} of {failures.of}"


def _side(comparison: Comparison) -> str:
    base = base_name(comparison)
    return f"{base} ({comparison.control[:_COMMIT]})" if comparison.control else base


def _of_metric(metric: ComparedMetric, comparison: Comparison) -> str:
    by = points(metric.difference)
    if metric.interval is not None:
        least, most = sorted(map(abs, metric.interval))
        start = points(least).removesuffix(" points").removesuffix(" point")
        # An agent that always answers the same leaves no range.
        by = points(most) if points(least) == points(most) else f"{start} to {points(most)}"
    where = (
        f" side by side with {_side(comparison)} ({count(metric.runs_a_side, 'run')} a side)"
        if metric.runs_a_side
        else ""
    )
    moved = "rose" if metric.verdict == "improved" else "fell"
    return f"{metric.id} {moved} by {by}{where}.{_chance(metric.p, metric.limit, comparison)}"


def _chance(p: float | None, limit: float | None, comparison: Comparison) -> str:
    if p is not None and limit is not None:
        return (
            f" Without a change, that has a probability of {_share(p, limit)}; at most {_percent(limit)} was needed."
        )
    return " Both sides repeat exactly, so one difference is a proof." if comparison.stage == "repeats" else ""


def _share(p: float, limit: float) -> str:
    """Return a probability with as many digits as the comparison with its limit needs."""
    if p < 0.0001 <= limit:
        return "less than 0.01 %"
    digits = next(number for number in range(2, 18) if (float(f"{p:.{number}g}") <= limit) is (p <= limit))
    return _percent(float(f"{p:.{digits}g}"))


def _percent(value: float) -> str:
    return f"{100 * value:.6g} %"


def _cleared(comparison: Comparison) -> Iterator[str]:
    """Yield the suspicions that further runs cleared."""
    for metric in comparison.metrics:
        if metric.suspicious and metric.verdict == "unchanged":
            yield f"{metric.reason[:1].upper()}{metric.reason[1:]}."


def _not_proven(comparison: Comparison, results: Results) -> Iterator[str]:
    """Yield why nothing is proven, in the words of the comparison, and what would tell more."""
    details = [text for point in comparison.unproven for text in point.details or (point.text,)]
    told = details or comparison.findings
    if told:
        yield f"Not very: {'; '.join(told[:_MOST_FINDINGS])}."
    metric = next((metric for metric in comparison.metrics if metric.gating and metric.finer is not None), None)
    if metric is None or metric.finer is None:
        return
    cost = results.summary.usage.cost_usd * (metric.finer.iterations / (metric.iterations or 1) - 1)
    price = f", for about ${cost:,.2f} more in each run" if cost >= _LEAST_COST else ""
    yield (
        f"About {count(metric.finer.iterations, 'iteration')} of each case would exclude a drop of more than "
        f"{points(metric.finer.bound)} in {metric.id}{price}."
    )
