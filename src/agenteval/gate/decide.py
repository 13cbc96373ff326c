"""The gate in one generator: a first run suspects, a second one clears, passes side by side prove."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence

from agenteval.core.records import dataclass, field, replace
from agenteval.core.statistics import fisher_p
from agenteval.gate.proof import (
    Ask,
    CannotRunError,
    GateOutcome,
    GateSuspicion,
    base_is_out,
    one_pass,
    side_by_side,
)
from agenteval.gate.suspicion import are_copies, case_suspicions, is_unproven_alone, mean_suspicion
from agenteval.gate.values import (
    ANSWERED,
    Constants,
    GateMetric,
    Pass,
    Run,
    Values,
    cases_of,
    has_losses,
    joined,
    known,
    length,
    turned,
    with_answered,
)

Deciding = Generator[Ask, Pass, GateOutcome]
COPIES = "answers are copies of each other (a cache outlives the session); switch it off in CI"
THIN = "too little was answered side by side; run it again when agents and judges answer"
FILES = "nothing ran side by side, so a bad day cannot be told from a worse change; run agenteval prove"


@dataclass(frozen=True)
class Evidence:
    """What the gate decides on.

    Attributes:
        metrics: the metrics of the family; those with scores come first.
        no_base: why the base cannot run beside the change; empty if it can.
        can_run: whether the change itself can run again.
    """

    first: Run
    baseline: Sequence[Run]
    metrics: Mapping[str, GateMetric]
    no_base: str = ""
    can_run: bool = True


@dataclass
class _Case:
    evidence: Evidence
    rules: Constants
    first: Run
    baseline: list[Run]
    metrics: dict[str, GateMetric]
    out: GateOutcome = field(default_factory=GateOutcome)
    in_shard: bool = False

    def earlier(self, name: str) -> list[Values]:
        return [run[name] for run in self.baseline if name in run]

    def count_answers(self) -> None:
        self.first, self.baseline = with_answered(self.first), [with_answered(run) for run in self.baseline]
        self.metrics[ANSWERED] = GateMetric(0.5, self.rules.losses)

    def asked(self, name: str) -> list[str]:
        return cases_of(self.first, None if name == ANSWERED else [name])


def decide(evidence: Evidence, rules: Constants | None = None, seed: int | str | None = None) -> Deciding:
    """Decide whether a run is worse than the base branch, asking for the passes that this needs.

    Args:
        seed: of the order of the sides; a run that is resumed needs the same one.
    """
    rules = rules or Constants()
    state = _Case(evidence, rules, evidence.first, list(evidence.baseline)[-rules.window :], dict(evidence.metrics))
    if has_losses(state.first):
        state.count_answers()
    out = state.out
    out.metrics = state.metrics
    means, cases = _first_look(state)
    out.suspicions = [*means, *cases]
    if not out.suspicions:
        return out
    if not evidence.can_run:
        is_strong = is_unproven_alone(state.first, state.baseline, state.metrics, rules)
        out.state, out.stage = ("unproven" if is_strong else "suspicious"), "alone"
        out.why = FILES if is_strong else ""
        return out
    try:
        means, cases = yield from _once_more(state, means, cases)
        out.suspicions = _later(out.suspicions, [*means, *cases])
        if not means and not cases:
            out.state, out.stage = "cleared", "second"
            return out
        if evidence.no_base:
            return (yield from _alone(state, means, cases, evidence.no_base))
        try:
            yield from _prove(state, means, cases, seed)
        except CannotRunError as error:
            if error.side != "base" or out.base:
                raise
            # Only now it was found that the base cannot run.
            return (yield from _alone(state, means, cases, error.why))
    except CannotRunError as error:
        out.state, out.why, out.mended_by = "unproven", error.why, error.mended_by
        return out
    return _concluded(state)


def prove(
    evidence: Evidence,
    suspicions: Sequence[GateSuspicion],
    rules: Constants | None = None,
    seed: int | str | None = None,
    *,
    in_shard: bool = False,
) -> Deciding:
    """Prove or clear suspicions that an earlier decision left, without the baseline that raised them.

    In a shard, only some cases answer. What they prove, the merge proves too; for means every pass is made.
    """
    rules = rules or Constants()
    state = _Case(evidence, rules, evidence.first, [], dict(evidence.metrics), in_shard=in_shard)
    if any(item.metric == ANSWERED for item in suspicions):
        state.count_answers()
    out = state.out
    out.metrics, out.suspicions = state.metrics, [item for item in suspicions if item.metric in state.metrics]
    means = [item for item in out.suspicions if item.case is None]
    cases = [item for item in out.suspicions if item.case is not None]
    try:
        _, cases = yield from _once_more(state, [], cases)
        out.suspicions = _later(out.suspicions, cases)
        if not means and not cases:
            out.state = "cleared"
            return out
        yield from _prove(state, means, cases, seed)
    except CannotRunError as error:
        out.state, out.why, out.mended_by = "unproven", error.why, error.mended_by
        return out
    return _concluded(state)


def cases_to_prove(evidence: Evidence, suspicions: Sequence[GateSuspicion]) -> list[str]:
    """Return the cases that the proof of suspicions can ask for."""
    is_mean = any(item.case is None for item in suspicions)
    return cases_of(evidence.first) if is_mean else list(dict.fromkeys(item.case for item in suspicions if item.case))


def _first_look(state: _Case) -> tuple[list[GateSuspicion], list[GateSuspicion]]:
    share = math.sqrt(len(state.evidence.metrics) or 1)
    means: list[GateSuspicion] = []
    cases: list[GateSuspicion] = []
    for name, metric in state.metrics.items():
        p = mean_suspicion(state.first.get(name, {}), state.earlier(name), metric)
        if p <= state.rules.suspect / share:
            means.append(GateSuspicion(name, None, p))
        found = case_suspicions(state.first.get(name, {}), state.earlier(name), metric, state.rules)
        cases.extend(GateSuspicion(name, case, p) for p, case in found)
    return means, sorted(cases, key=lambda item: (item.p, item.metric, item.case or ""))[: state.rules.many]


def _once_more(
    state: _Case, means: list[GateSuspicion], cases: list[GateSuspicion]
) -> Generator[Ask, Pass, tuple[list[GateSuspicion], list[GateSuspicion]]]:
    out, rules = state.out, state.rules
    passes = max(map(length, state.evidence.first.values()), default=0)
    out.stage = "second"
    whole = _whole(state, means)
    single = list(dict.fromkeys(item.case for item in cases if item.case is not None))
    for number in range(max(passes, rules.again)):
        rows = whole if means and number < passes else []
        if number < rules.again:
            rows = list(dict.fromkeys([*rows, *single]))
        if rows:
            yield from one_pass(out, out.second, Ask("pr", tuple(rows), "second"))
    second = {name: _first_passes(values, passes) for name, values in out.second.items()}
    if (
        ANSWERED not in state.metrics
        and means
        and any(value == 0 for row in second[ANSWERED].values() for value in row)
    ):
        # Losses that begin after the first run are looked at too.
        state.count_answers()
        means = [*means, GateSuspicion(ANSWERED, None, 1.0)]
    left = []
    share = math.sqrt(len(state.evidence.metrics) or 1)
    for item in means:
        both = joined([state.first.get(item.metric, {}), second.get(item.metric, {})])
        p = mean_suspicion(both, state.earlier(item.metric), state.metrics[item.metric])
        if p <= rules.agree / share:
            left.append(replace(item, p=p, stage="second"))
    kept = [item for item in cases if not _passes_again(state, item)]
    return left, [replace(item, stage="second") for item in kept]


def _whole(state: _Case, means: Sequence[GateSuspicion]) -> list[str]:
    return list(dict.fromkeys(case for item in means for case in state.asked(item.metric)))


def _first_passes(values: Values, number: int) -> Values:
    return {case: row[:number] for case, row in values.items()}


def _passes_again(state: _Case, item: GateSuspicion) -> bool:
    case = item.case or ""
    row = state.out.second.get(item.metric, {}).get(case, ())[: state.rules.again]
    return None not in row and not state.metrics[item.metric].failures(case, row)


def _later(first: Sequence[GateSuspicion], left: Sequence[GateSuspicion]) -> list[GateSuspicion]:
    found = {(item.metric, item.case): item for item in [*first, *left]}
    return list(found.values())


def _prove(
    state: _Case, means: list[GateSuspicion], cases: list[GateSuspicion], seed: int | str | None
) -> Generator[Ask, Pass, None]:
    out, rules = state.out, state.rules
    out.family = len(means) + len(cases)
    if state.in_shard:
        # Others' cases may have passed again, so the merge's limits are no smaller. No passes have so small a p.
        out.family, rules = len(out.suspicions), replace(rules, looks=rules.looks[-1:], limits=(1e-12,))
    asked = {item.metric: state.asked(item.metric) for item in means}
    if cases:
        yield from side_by_side(out, cases, asked, state.rules, seed)
    if means and not out.proofs:
        yield from side_by_side(out, means, asked, rules, seed)


def _concluded(state: _Case) -> GateOutcome:
    out = state.out
    out.thin |= base_is_out(out, state.rules)
    if out.proofs:
        first = next(iter(state.evidence.metrics), "")
        if are_copies(state.earlier(first)):
            out.state, out.why, out.mended_by = "unproven", COPIES, "change"
        else:
            out.state = "proven"
    elif out.thin:
        out.state, out.why = "unproven", THIN
    else:
        out.state = "cleared"
    return out


def _alone(state: _Case, means: list[GateSuspicion], cases: list[GateSuspicion], why: str) -> Deciding:
    out = state.out
    out.stage = "alone"
    passes = max(map(length, state.evidence.first.values()), default=0)
    seen: Run = state.first
    if means:
        seen = {
            name: joined([state.first.get(name, {}), _first_passes(out.second.get(name, {}), passes)])
            for name in state.metrics
        }
    is_strong = is_unproven_alone(seen, state.baseline, state.metrics, state.rules)
    never = [] if is_strong else (yield from _never_passed(state, cases))
    if is_strong or any(_is_no_noise(state, item) for item in never):
        out.state, out.why = "unproven", why
    elif means or never:
        out.state, out.why = "suspicious", why
    else:
        out.state = "cleared"
    return out


def _never_passed(state: _Case, cases: list[GateSuspicion]) -> Generator[Ask, Pass, list[GateSuspicion]]:
    out, rules = state.out, state.rules

    def fail_always() -> list[GateSuspicion]:
        found = [(item, _results(state, item)) for item in cases]
        return [item for item, row in found if state.metrics[item.metric].failures(item.case or "", row) == len(row)]

    for _ in range(rules.tries - rules.again):
        cases = fail_always()
        if cases:
            rows = tuple(dict.fromkeys(item.case for item in cases if item.case is not None))
            yield from one_pass(out, out.second, Ask("pr", rows, "alone"))
    return fail_always()


def _results(state: _Case, item: GateSuspicion) -> list[float]:
    runs = (state.first, state.out.second)
    return [value for run in runs for value in known(run.get(item.metric, {}).get(item.case or "", ()))]


def _is_no_noise(state: _Case, item: GateSuspicion) -> bool:
    now = len(_results(state, item))
    before = known(joined(state.earlier(item.metric)).get(item.case or "", ()))
    failed = state.metrics[item.metric].failures(item.case or "", before)
    return bool(now) and fisher_p(failed, len(before), now, now) <= state.rules.alone_always


def decide_improvement(evidence: Evidence, rules: Constants | None = None, seed: int | str | None = None) -> Deciding:
    """Decide whether a run is better than the base branch: the same gate with scores and thresholds turned over.

    Amounts have no improvement that is worth a proof.
    """
    metrics = {name: metric.turned for name, metric in evidence.metrics.items() if not metric.slack}
    turned_over = replace(
        evidence,
        first=_turned(evidence.first, metrics),
        baseline=[_turned(run, metrics) for run in evidence.baseline],
        metrics=metrics,
    )
    asking = decide(turned_over, rules, seed)
    try:
        ask = next(asking)
        while True:
            try:
                seen = yield ask
            except CannotRunError as error:
                ask = asking.throw(error)
            else:
                one = {name: {case: [value] for case, value in column.items()} for name, column in seen.items()}
                back = _turned(one, metrics)
                ask = asking.send(
                    {name: {case: row[0] for case, row in column.items()} for name, column in back.items()}
                )
    except StopIteration as end:
        found: GateOutcome = end.value
        return found


def _turned(run: Run, metrics: Mapping[str, GateMetric]) -> dict[str, Values]:
    return {name: turned(run[name]) for name in metrics if name in run}


def decline(
    newest: Sequence[Run],
    start: Sequence[Run],
    metrics: Mapping[str, GateMetric],
    rules: Constants | None = None,
    seed: int | str | None = None,
) -> Deciding:
    """Compare the newest base runs with the first ones since the start, and prove a decline side by side."""
    rules = rules or Constants()
    out = GateOutcome(metrics=dict(metrics))
    for name, metric in metrics.items():
        now = joined([run[name] for run in newest if name in run])
        p = mean_suspicion(now, [run[name] for run in start if name in run], metric)
        if p <= rules.suspect:
            out.suspicions.append(GateSuspicion(name, None, p))
    if not out.suspicions:
        return out
    out.family = len(out.suspicions)
    asked = {item.metric: cases_of(newest[-1], [item.metric]) for item in out.suspicions}
    try:
        yield from side_by_side(out, out.suspicions, asked, rules, seed)
    except CannotRunError as error:
        out.state, out.why, out.mended_by = "unproven", error.why, error.mended_by
        return out
    out.state = "proven" if out.proofs else "unproven" if out.thin else "cleared"
    out.why = THIN if out.state == "unproven" else ""
    return out
