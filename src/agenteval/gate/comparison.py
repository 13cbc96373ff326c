"""Makes the comparison that results.json records from a decision of the gate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from agenteval.core.records import replace
from agenteval.gate.comparer import Comparer, Decision
from agenteval.gate.evidence import Sides
from agenteval.gate.integrity import Accepted, unproven_changes, with_acceptances
from agenteval.gate.pairing import compared_cases
from agenteval.gate.proof import GateOutcome
from agenteval.gate.rows import annotated, compared_metrics, proofs_of, resources_of
from agenteval.gate.run_scores import declared_change
from agenteval.gate.suspicion import detectable_drop
from agenteval.gate.unpaired import ungraded
from agenteval.gate.values import case_means, joined, length
from agenteval.gate.words import NO_REGRESSION, Telling, better, headline, sentences, some
from agenteval.results.comparison import (
    BaselineInfo,
    ComparedMetric,
    Comparison,
    Cost,
    StartCause,
    Suspicion,
)
from agenteval.results.verdict import Unproven

# Commits that a report lists.
_MOST_BETWEEN = 20
_BRANCH = "refs/heads/"
# What a proof decides about a metric, and about a comparison.
_OF_A_PROOF = ["state", "baseline", "current", "difference", "low", "high", "p", "limit", "passes", "moved"]
_OF_A_DECISION = ["state", "stage", "why", "headline", "sentences", "suspicions", "pairs", "family", "proofs", "cost"]


def decide_files(comparer: Comparer) -> Comparison:
    """Decide without running anything: what the run's own results have proven beside the same baseline holds."""
    found, stored = make_comparison(comparer, comparer.by_files), comparer.current.comparison
    if stored is None or stored.baseline.run_id != comparer.baseline.run.id or not _holds(comparer, stored):
        return found
    points = [point for point in stored.unproven if point.what == "proof"]
    points += [point for point in found.unproven if point.what != "proof"]
    # What else made it unproven may have been accepted since.
    state = "proven" if stored.state == "proven" else "unproven" if points else "cleared"
    told = points[0].text if points else NO_REGRESSION if state == "cleared" else stored.headline
    cases = with_acceptances(stored.cases, comparer.accepted_cases)
    update = {"state": state, "headline": told, "unproven": points, "cases": cases, "notes": found.notes}
    return stored.model_copy(update=update)


def _holds(comparer: Comparer, stored: Comparison) -> bool:
    # A first run proves only what a look back found, which nothing can find again.
    if stored.state == "suspicious" or (stored.stage == "first" and stored.state != "proven"):
        return False
    found = stored.worse if stored.state == "proven" else stored.suspicions
    out = {*comparer.quarantined, *comparer.accepted_metrics}
    return not found or any((item.case or item.metric) not in out for item in found)


def make_comparison(comparer: Comparer, decision: Decision, lower: Mapping[str, float] | None = None) -> Comparison:
    """Return the comparison with a decision; ``lower``, unless it is known already: see ``Telling``."""
    if decision.outcome.state == "unproven":
        # Copies of one answer prove nothing, however many they are.
        tests = [replace(test, proven=False) for test in decision.outcome.tests]
        decision = replace(decision, outcome=replace(decision.outcome, tests=tests))
    out, sides = decision.outcome, comparer.sides
    told = _telling(comparer, decision, lower)
    points = [*_points(comparer, out, told)]
    run, baseline = comparer.baseline.run, comparer.sides.usable.runs
    cause, why_new = _cause(comparer, decision)
    planned = sum(case.planned for _, case in comparer.current.cases())
    cost = Cost(calls=decision.calls, runs=round(decision.calls / max(planned, 1), 2)) if decision.calls else None
    look = _look_words(comparer, decision, told)
    certainty = sentences(out, told)
    if points and out.state == "clear":
        certainty = [f"We could not tell: {points[0].text}."]
    metrics = compared_metrics(sides, out, decision.rise, decision.look)
    return Comparison(
        baseline=BaselineInfo(
            commit=run.commit,
            ref=run.ref,
            run_id=run.id,
            created_at=run.started_at,
            file=comparer.file,
            workflow_run_id=run.workflow_run_id,
            workflow_artifact=run.workflow_artifact,
            distance=comparer.distance,
            between=list(comparer.between[:_MOST_BETWEEN]),
        ),
        state=_word(decision, points),
        stage=out.stage,
        why=out.why if out.state == "unproven" else "",
        headline=look[0] if look and look[0] else points[0].text if points else headline(out, told),
        sentences=[*certainty, *(look[1:] if look else ())],
        unproven=points,
        metrics=metrics,
        cases=with_acceptances(
            annotated(sides, comparer.pairing, out, decision.rise, metrics), comparer.accepted_cases
        ),
        base_sha=decision.commit,
        start_sha=baseline[-1].start if baseline else None,
        cause=cause,
        baseline_runs=[entry.run_id for entry in baseline],
        suspicions=[
            Suspicion(metric=item.metric, case=item.case, p=item.p, stage=item.stage) for item in out.suspicions
        ],
        pairs=out.pairs,
        family=out.family,
        proofs=[
            *proofs_of(out),
            *(proofs_of(decision.rise, better=True) if decision.rise is not None else ()),
        ],
        memory=out.stage == "memory",
        cost=cost,
        resources=resources_of(comparer.current, comparer.baseline, comparer.counting),
        improvement=_improvement(comparer, decision, told),
        decline=" ".join(look) if look else "",
        rescored=[] if comparer.rescored is None else list(comparer.rescored.metrics),
        notes=[*comparer.notes, *sides.earlier.notes, *_not_run(comparer), *_acknowledged(comparer), *why_new],
    )


def replace_decision(comparer: Comparer, comparison: Comparison, decision: Decision) -> Comparison:
    """Return a comparison with another decision about the same run, whose baseline is not known any more."""
    lower = {metric.id: _by_first_run(metric) for metric in comparison.metrics if metric.gating}
    found = make_comparison(comparer, decision, lower)
    told = {metric.id: metric for metric in found.metrics}
    metrics = [
        metric.model_copy(update={name: getattr(told[metric.id], name) for name in _OF_A_PROOF})
        if metric.id in told and told[metric.id].p is not None
        else metric.model_copy(update={"state": told[metric.id].state if metric.id in told else metric.state})
        for metric in comparison.metrics
    ]
    marks = {case.id: case for case in found.cases}
    cases = [
        case.model_copy(update={"change": marks[case.id].change, "notes": marks[case.id].notes})
        if case.id in marks and case.change == "same"
        else case
        for case in comparison.cases
    ]
    update = {name: getattr(found, name) for name in [*_OF_A_DECISION, "base_sha"]}
    points = [*(point for point in comparison.unproven if point.what != "proof"), *found.unproven]
    return comparison.model_copy(update={**update, "unproven": points, "metrics": metrics, "cases": cases})


def _word(decision: Decision, points: Sequence[Unproven]) -> str:
    if decision.look is not None and decision.look.state == "proven":
        return "proven"
    state = decision.outcome.state
    return "unproven" if points and state != "proven" else state


def _telling(comparer: Comparer, decision: Decision, lower: Mapping[str, float] | None) -> Telling:
    sides = comparer.sides
    evidence = sides.evidence
    names = {case.id: case.name for run in (comparer.baseline, comparer.current) for _, case in run.cases()}
    ref = comparer.baseline.run.ref or ""
    drops = [
        drop
        for name, metric in sides.metrics.items()
        if not metric.slack
        and (
            drop := detectable_drop(
                [run[name] for run in evidence.baseline], length(evidence.first[name]), comparer.policy.rules
            )
        )
    ]
    return Telling(
        names=names,
        base=ref.removeprefix(_BRANCH) if ref.startswith(_BRANCH) else "the base",
        commit=decision.commit,
        allowed={name: share for name in sides.metrics if (share := sides.allowed(name)) is not None},
        lower=_lower(sides) if lower is None else lower,
        cases=sum(case.id not in sides.quarantined for case in compared_cases(comparer.pairing)),
        drop=max(filter(None, drops), default=None),
    )


def _points(comparer: Comparer, out: GateOutcome, told: Telling) -> Iterator[Unproven]:
    yield from unproven_changes(comparer.integrity.differences)
    yield from comparer.withdrawn
    if out.state == "unproven":
        yield Unproven(
            what="proof", text=headline(out, told), details=tuple(sentences(out, told)), mended_by=out.mended_by
        )
    if not comparer.is_of_branch:
        yield from ungraded(
            comparer.sides, [case for case in compared_cases(comparer.pairing) if case.id not in comparer.quarantined]
        )


def _improvement(comparer: Comparer, decision: Decision, told: Telling) -> str:
    found = better(decision.rise, told) if decision.rise is not None and decision.rise.state == "proven" else ""
    by = comparer.policy_in_force.asked_by
    if found or not by:
        return found
    if not comparer.sides.evidence.can_run:
        return f"{by} asked to prove an improvement, but nothing can run again here."
    why = f" ({decision.rise.why})" if decision.rise is not None and decision.rise.why else ""
    return f"{by} asked to prove an improvement: none is proven{why}."


def _look_words(comparer: Comparer, decision: Decision, told: Telling) -> list[str]:
    look = decision.look
    if look is None:
        return []
    start = comparer.start or "its start"
    beside = replace(told, commit=comparer.start, base="the older commit")
    if look.state == "proven":
        return [f"since {start[:7]} {headline(look, beside)}", *sentences(look, beside)]
    if look.state == "unproven":
        return ["", f"The base branch could not be compared with {start[:7]}: {look.why}."]
    return ["", f"No decline since {start[:7]}."]


def _cause(comparer: Comparer, decision: Decision) -> tuple[StartCause | None, list[str]]:
    if not comparer.is_of_branch:
        return None, []
    found = (decision.outcome, decision.rise, decision.look)
    if any(out is not None and any(proof.case is None for proof in out.proofs) for out in found):
        return "proven", []
    accepted = [f"the mean of {name} was {_by(entry)}" for name, entry in comparer.accepted_metrics.items()]
    if accepted:
        return "accepted", [f"earlier runs do not count from now on: {'; '.join(accepted)}"]
    newest = max(comparer.baseline.baseline_runs, key=lambda entry: entry.created_at, default=None)
    own = comparer.current.baseline_runs[0] if comparer.current.baseline_runs else None
    text = declared_change(own.made_with if own else None, newest.made_with if newest else None)
    return ("declared", [f"earlier runs do not count from now on: {text}"]) if text else (None, [])


def _not_run(comparer: Comparer) -> Iterator[str]:
    ran = {*comparer.gone, *(suite.path for suite in comparer.current.suites)}
    paired = {case.id for case in comparer.pairing}
    for suite in comparer.baseline.suites:
        missing = sum(case.id not in paired for case in suite.cases)
        if suite.path not in ran and missing:
            cases = "1 case is" if missing == 1 else f"{missing:,} cases are"
            yield f"{suite.path} is in the baseline and not in this run: {cases} not compared"


def _acknowledged(comparer: Comparer) -> Iterator[str]:
    names = {case.id: case.name for run in (comparer.baseline, comparer.current) for _, case in run.cases()}
    alike: dict[tuple[str, str], list[str]] = {}
    for case_id, entry in comparer.accepted_cases.items():
        alike.setdefault((entry.change, _by(entry)), []).append(names.get(case_id, case_id))
    for (change, by), cases in alike.items():
        kind = "" if change == "worse" else f" ({change})"
        yield f"{some(sorted(cases), 'case')}{kind} {'was' if len(cases) == 1 else 'were'} {by}"
    for name, entry in comparer.accepted_metrics.items():
        means = (run.summary.metrics.get(name) for run in (comparer.baseline, comparer.current))
        figures = " → ".join(f"{found.mean:.2f}" for found in means if found is not None and found.mean is not None)
        yield f"the mean of {name} ({figures}) was {_by(entry)}"
    for entry in comparer.integrity.accepted:
        mean = comparer.current.summary.metrics.get(entry.metric)
        if mean is not None and mean.mean is not None and entry.metric not in comparer.accepted_metrics:
            by = f" by {entry.author}" if entry.author else ""
            yield f"the mean of {entry.metric} is {mean.mean:.2f}, and only {entry.after} was accepted{by}"


def _lower(sides: Sides) -> dict[str, float]:
    found = {}
    for name in sides.metrics:
        now = case_means(sides.evidence.first[name])
        then = case_means(joined([run[name] for run in sides.evidence.baseline]))
        both = [now[case] - then[case] for case in now if case in then]
        if both:
            found[name] = sum(both) / len(both)
    return found


def _by_first_run(metric: ComparedMetric) -> float:
    first, earlier = metric.first or 0.0, metric.earlier or 0.0
    if metric.allowed is None:
        return first - earlier
    return math.log(earlier / first) if first and earlier else 0.0


def _by(entry: Accepted) -> str:
    return f"accepted{f' by {entry.author}' if entry.author else ''}: {entry.reason}"
