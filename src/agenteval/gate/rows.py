"""Says what the gate found about metrics and cases in the types of results.json."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from agenteval.gate.evidence import Sides
from agenteval.gate.proof import GateOutcome, Test
from agenteval.gate.run_scores import RESOURCE, amount_of
from agenteval.gate.suspicion import detectable_drop
from agenteval.gate.values import Values, case_means, joined, known, length
from agenteval.results.case import CaseResult
from agenteval.results.comparison import (
    CaseChange,
    CaseMove,
    CaseNote,
    ComparedCase,
    ComparedMetric,
    ComparedResource,
    FailedOf,
    History,
    Proof,
    State,
)
from agenteval.results.model import Results

# A case is flaky if its pass rate is between 0.1 and 0.9 in at least so many iterations of the baseline.
_FLAKY_RANGE = 0.4
_FLAKY_ITERATIONS = 10
_ROUNDING = 1e-9
_MOST_MOVED = 50


def proofs_of(out: GateOutcome, *, better: bool = False) -> list[Proof]:
    """Return the tests side by side; scores of an improvement are turned back."""
    return [_proof(test, better=better) for test in sorted(out.tests, key=lambda test: (not test.proven, test.p))]


def _proof(test: Test, *, better: bool) -> Proof:
    sign = -1 if better else 1
    low, high = (test.low, test.high) if not better else (_minus(test.high), _minus(test.low))
    here, there = ([1 - value if better else value for value in row] for row in (test.here, test.there))
    return Proof(
        metric=test.metric,
        case=test.case,
        difference=sign * test.difference,
        low=low,
        high=high,
        p=test.p,
        limit=test.limit,
        pr=[round(value, 6) for value in here],
        base=[round(value, 6) for value in there],
        failed=test.failed,
        base_failed=test.base_failed,
        better=better,
        proven=test.proven,
    )


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def compared_metrics(
    sides: Sides, out: GateOutcome, rise: GateOutcome | None, look: GateOutcome | None = None
) -> list[ComparedMetric]:
    """Return what was found about the mean of each metric: the family first, then those that are only reported."""
    rises = {proof.metric: proof for proof in rise.proofs if proof.case is None} if rise is not None else {}
    looks = {proof.metric: proof for proof in look.proofs if proof.case is None} if look is not None else {}
    # Passes that decided nothing are no figures of the mean.
    is_decided = out.state != "unproven"
    tests = {test.metric: test for test in out.tests if test.case is None and is_decided}
    found = []
    for name in sides.metrics:
        if name in rises:
            found.append(_metric(sides, name, rises[name], rise, better=True))
        elif name in looks:
            found.append(_metric(sides, name, looks[name], look))
        else:
            found.append(_metric(sides, name, tests.get(name), out))
    return [*(metric for metric in found if metric is not None), *_reported(sides)]


def _metric(
    sides: Sides, name: str, test: Test | None, out: GateOutcome | None, *, better: bool = False
) -> ComparedMetric | None:
    evidence = sides.evidence
    now, baseline = evidence.first[name], [run[name] for run in evidence.baseline]
    then = case_means(joined(baseline))
    both = {case: value for case, value in case_means(now).items() if case in then}
    if not both or out is None:
        return None
    allowed = sides.allowed(name)
    first, earlier = (_mean(values) for values in (both.values(), (then[case] for case in both)))
    current, base = first, earlier
    low = high = None
    if test is not None and test.here and test.there:
        proof = _proof(test, better=better)
        current, base = _mean(proof.pr), _mean(proof.base)
        low, high = proof.low, proof.high
    shown = _amounts if allowed is not None else lambda *values: values
    current, base, first, earlier = shown(current, base, first, earlier)
    difference = current - base if allowed is None else current / base - 1
    if allowed is not None and low is not None and high is not None:
        low, high = math.expm1(-high), math.expm1(-low)
    rules = sides.policy.rules
    return ComparedMetric(
        id=name,
        n=len(both),
        baseline=base,
        current=current,
        difference=difference,
        state=_word(name, test, out, better=better),
        first=first,
        earlier=earlier,
        low=low,
        high=high,
        p=test.p if test is not None else None,
        limit=test.limit if test is not None else None,
        passes=len(test.here) if test is not None else None,
        runs=len(baseline),
        iterations=_usual(now),
        allowed=allowed,
        detectable_drop=detectable_drop(baseline, length(now), rules) if allowed is None else None,
        moved=_moved(sides, name, out, better=better) if test is not None and test.proven else [],
    )


def _amounts(*values: float) -> tuple[float, ...]:
    return tuple(math.exp(-value) for value in values)


def _word(name: str, test: Test | None, out: GateOutcome, *, better: bool) -> State:
    if test is not None and test.proven:
        return "proven"
    if better or not any(item.metric == name and item.case is None for item in out.suspicions):
        return "clear"
    if out.state in {"unproven", "suspicious"}:
        return out.state
    # What is red already needs no further proof, so a suspicion may be left.
    return "suspicious" if out.state == "proven" and test is None else "cleared"


def _moved(sides: Sides, name: str, out: GateOutcome, *, better: bool) -> list[CaseMove]:
    pr, base = out.pr.get(name, {}), out.base.get(name, {})
    now, then = case_means(pr), case_means(base)
    moves = sorted((now[case] - then[case], case) for case in now if case in then and now[case] < then[case])
    metric = sides.metrics[name]
    is_amount = sides.allowed(name) is not None

    def shown(value: float) -> float:
        return math.exp(-value) if is_amount else 1 - value if better else value

    def failures(values: Values, case: str) -> FailedOf | None:
        if not metric.by_case.get(case) or better:
            return None
        return FailedOf(failed=metric.failures(case, values[case]), of=len(known(values[case])))

    return [
        CaseMove(
            id=case,
            baseline=shown(then[case]),
            current=shown(now[case]),
            baseline_failures=failures(base, case),
            current_failures=failures(pr, case),
        )
        for _, case in moves[:_MOST_MOVED]
    ]


def _usual(values: Values) -> int:
    lengths = Counter(map(len, values.values()))
    return max(lengths, key=lambda number: (lengths[number], number), default=0)


def _reported(sides: Sides) -> Iterator[ComparedMetric]:
    names = dict.fromkeys(name for metrics in sides.scores.values() for name in metrics)
    for name in names:
        if name in sides.gating or name.startswith(RESOURCE):
            continue
        pairs = list(_means(sides, name))
        if pairs:
            current, baseline = (_mean(values) for values in zip(*pairs, strict=True))
            yield ComparedMetric(
                id=name,
                n=len(pairs),
                baseline=baseline,
                current=current,
                difference=current - baseline,
                state="clear",
                gating=False,
                runs=len(sides.earlier.scores),
            )


def _means(sides: Sides, name: str) -> Iterator[tuple[float, float]]:
    for case_id, metrics in sides.scores.items():
        now = known(metrics.get(name, ()))
        then = [value for run in sides.earlier.scores for value in known(run.get(case_id, {}).get(name, ()))]
        if now and then and case_id not in sides.quarantined:
            yield _mean(now), _mean(then)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found)


def annotated(
    sides: Sides,
    cases: Iterable[ComparedCase],
    out: GateOutcome,
    rise: GateOutcome | None,
    metrics: Iterable[ComparedMetric],
) -> list[ComparedCase]:
    """Return the cases with their change and notes. Only a proof marks a case; a mean that fell shows its answers."""
    broke = {proof.case for proof in out.proofs}
    repaired = {proof.case for proof in rise.proofs} if rise is not None else set[str | None]()
    is_open = out.state in {"unproven", "suspicious"}
    suspicious = {item.case for item in out.suspicions} - broke if is_open else set[str | None]()
    histories = _histories(sides)
    fell = {move.id for metric in metrics if metric.fell for move in metric.moved}

    def marked(case: ComparedCase) -> ComparedCase:
        change: CaseChange = "broke" if case.id in broke else "repaired" if case.id in repaired else case.change
        notes: list[CaseNote] = []
        if case.id in sides.quarantined:
            notes.append("quarantined")
        elif case.id in suspicious:
            notes.append("suspicious")
        history = histories.get(case.id)
        if history is not None and _is_flaky(history):
            notes.append("flaky")
        is_told = bool(notes) or change == "broke" or case.status_after != "passed"
        is_shown = change in {"broke", "repaired"} or "suspicious" in notes or case.id in fell or _failed_now(case)
        update = {
            "change": change,
            "notes": notes,
            "history": history if is_told else None,
            "answers": case.answers if is_shown else [],
        }
        return case.model_copy(update=update)

    return list(map(marked, cases))


def _failed_now(case: ComparedCase) -> bool:
    return case.status_before == "passed" and case.status_after != "passed"


def _is_flaky(history: History) -> bool:
    return history.iterations >= _FLAKY_ITERATIONS and abs(history.pass_rate - 0.5) <= _FLAKY_RANGE + _ROUNDING


def _histories(sides: Sides) -> Mapping[str, History]:
    found: dict[str, History] = {}
    for case_id in sides.cases:
        for metric in sides.gating:
            history = _history(sides, case_id, metric)
            if history and (case_id not in found or history.pass_rate < found[case_id].pass_rate):
                found[case_id] = history
    return found


def _history(sides: Sides, case_id: str, metric: str) -> History | None:
    threshold = sides.thresholds.get((case_id, metric))
    if threshold is None:
        return None
    runs = [known(run.get(case_id, {}).get(metric, ())) for run in sides.earlier.scores]
    scores = [score for run in runs for score in run]
    if not scores:
        return None
    passed = sum(score >= threshold - _ROUNDING for score in scores)
    return History(runs=sum(map(bool, runs)), iterations=len(scores), pass_rate=passed / len(scores))


def resources_of(current: Results, baseline: Results, case_ids: Collection[str]) -> list[ComparedResource]:
    """Return time, tokens and cost per answer over the cases of both runs, to look at; none of them decides."""
    before = {case.id: case for _, case in baseline.cases() if case.id in case_ids}
    pairs = [(before[case.id], case) for _, case in current.cases() if case.id in before]
    found = []
    for name, resource in (("latency_ms", ""), ("tokens", "tokens"), ("cost_usd", "cost")):
        means = [(_of_case(old, resource), _of_case(new, resource)) for old, new in pairs]
        both: Sequence[tuple[float, float]] = [(x, y) for x, y in means if x is not None and y is not None]
        if both:
            then, now = (_mean(column) for column in zip(*both, strict=True))
            change = (now - then) / then if then else None
            found.append(ComparedResource(name=name, n=len(both), baseline=then, current=now, change=change))
    return found


def _of_case(case: CaseResult, resource: str) -> float | None:
    turns = (turn for turn in case.turns if turn.error is None)
    found = [amount_of(turn, resource) if resource else turn.latency_ms for turn in turns]
    values = [value for value in found if value is not None]
    return _mean(values) if values else None
