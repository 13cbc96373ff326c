"""The words of a comparison: one sentence for each state, and numbers and enumerations in sentences.

Scores and their differences are shown as 0.00 to 1.00. Every number belongs to the test that decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agenteval.core import escape
from agenteval.core.records import dataclass, field
from agenteval.gate.values import ANSWERED

if TYPE_CHECKING:
    from agenteval.gate.proof import GateOutcome, GateSuspicion, Test

# Maximum number of cases or metrics in a sentence.
_NAMED = 3
_SMALLEST_P = 0.0001
_LONGEST_NAME = 80
_COMMIT = 7
NO_REGRESSION = "no regression"
# In smaller suites only broken cases are found.
_FEW_CASES = 10


@dataclass(frozen=True)
class Telling:
    """What sentences need to know besides a decision.

    Attributes:
        commit: the commit that ran beside the change, if one did.
        allowed: resource → the share by which it may rise.
        lower: metric → how much lower the mean of the first run is than that of the baseline.
        drop: drop that is found in about 8 of 10 pull requests; ``None`` if it is unknown.
    """

    names: Mapping[str, str]
    base: str = "the base"
    commit: str | None = None
    allowed: Mapping[str, float] = field(default_factory=dict)
    lower: Mapping[str, float] = field(default_factory=dict)
    cases: int = 0
    drop: float | None = None

    @property
    def beside(self) -> str:
        """The base with the commit that ran."""
        return f"{self.base} ({self.commit[:_COMMIT]})" if self.commit else self.base


def headline(out: GateOutcome, told: Telling) -> str:
    """Return the state as one phrase."""
    if out.state == "proven":
        return _proven(out, told)
    if out.state in {"unproven", "suspicious"}:
        return f"{_suspected(out)} may be worse"
    return NO_REGRESSION


def _proven(out: GateOutcome, told: Telling) -> str:
    cases = list(dict.fromkeys(proof.case for proof in out.proofs if proof.case is not None))
    parts = [fell(proof, told) for proof in out.proofs if proof.case is None]
    if cases:
        total = max(told.cases, len(cases))
        parts.append(
            f"{len(cases):,} of {count(total, 'case')} broke ({some([_name(case, told) for case in cases], 'case')})"
        )
    return enumeration(parts)


def fell(proof: Test, told: Telling, *, better: bool = False) -> str:
    """Return what happened to the mean of a metric: ``accuracy fell from 0.82 to 0.71``."""
    here, there = _means(proof)
    if proof.metric == ANSWERED:
        return f"{_percent(1 - here)} of answers are lost ({_percent(1 - there)} on {told.base})"
    allowed = told.allowed.get(proof.metric)
    if allowed is not None:
        return f"{proof.metric} rose by {_percent(math.expm1(-proof.difference))} ({_percent(allowed)} allowed)"
    moved = "rose" if better else "fell"
    first, second = distinct(1 - there, 1 - here) if better else distinct(there, here)
    return f"{proof.metric} {moved} from {first} to {second}"


def _means(proof: Test) -> tuple[float, float]:
    here, there = (sum(row) / len(row) if row else 0.0 for row in (proof.here, proof.there))
    return here, there


def _suspected(out: GateOutcome) -> str:
    latest = _latest(out)
    cases = {item.case for item in latest if item.case is not None}
    names = (
        "the share of answers" if item.metric == ANSWERED else item.metric for item in latest if item.case is None
    )
    means = list(dict.fromkeys(names))
    parts = [*([count(len(cases), "case")] if cases else []), *first(means, "metric")]
    return enumeration(parts) or "the change"


def _latest(out: GateOutcome) -> list[GateSuspicion]:
    later = [item for item in out.suspicions if item.stage != "first"]
    return later or list(out.suspicions)


def sentences(out: GateOutcome, told: Telling) -> list[str]:
    """Return how certain a state is, one sentence each."""
    match out.state:
        case "proven":
            return list(_proofs(out, told))
        case "unproven" | "suspicious" if out.why:
            return [f"We could not tell: {without_markup(out.why)}.", *_weak(out, told)]
        case "suspicious":
            return [*_weak(out, told), f"Nothing ran beside {told.base} yet: run agenteval prove."]
        case "cleared":
            return list(_cleared(out, told))
    return list(_clear(told))


def _proofs(out: GateOutcome, told: Telling) -> Iterator[str]:
    strongest: dict[str, Test] = {}
    for proof in sorted(out.proofs, key=lambda proof: proof.p):
        # Several metrics can find the same case.
        strongest.setdefault(proof.case or f"mean of {proof.metric}", proof)
    alike: dict[tuple[str, str], list[str]] = {}
    for proof in strongest.values():
        key = ("", _by(proof, told)) if proof.case is None else _fails(proof, told)
        alike.setdefault(key, []).append(_name(proof.case, told))
    texts = []
    for (verb, text), names in alike.items():
        who = "It" if len(strongest) == 1 else some(names, "case")
        texts.append(f"{who} {verb}{'s' if len(names) == 1 else ''} {text}" if verb else text)
    if texts:
        weakest = max(strongest.values(), key=lambda proof: proof.p)
        which = "this" if len(strongest) == 1 else "the least certain of these"
        limit = percent(float(f"{weakest.limit:.2g}"))
        chance = f"{share(weakest.p, weakest.limit)} of comparisons (limit {limit})"
        yield f"{'; '.join(first(texts, 'finding'))}. Chance alone would do {which} in {chance}."
    if out.stage == "memory":
        yield "An earlier run of this pull request proved it, and at least half of it is still there."


def better(out: GateOutcome, told: Telling) -> str:
    """Return what is proven to be better, as a sentence; empty if nothing is."""
    means = [fell(proof, told, better=True) for proof in out.proofs if proof.case is None]
    cases = [f"{_name(proof.case, told)} is repaired" for proof in out.proofs if proof.case is not None]
    found = first([*means, *cases], "finding")
    return f"Improvement proven side by side with {told.beside}: {', '.join(found)}." if found else ""


def _counts(proof: Test) -> tuple[tuple[int, Sequence[float]], tuple[int, Sequence[float]]]:
    return (proof.failed or 0, proof.here), (proof.base_failed or 0, proof.there)


def _fails(proof: Test, told: Telling) -> tuple[str, str]:
    here, there = (f"{failed} of {len(row)}" for failed, row in _counts(proof))
    verb, no_answer = ("give", "no answer in ") if proof.metric == ANSWERED else ("fail", "")
    return verb, f"{no_answer}{here} passes here and {there} on {told.beside} beside it"


def _by(proof: Test, told: Telling) -> str:
    passes = f"{len(proof.here)} passes each"
    if proof.metric == ANSWERED:
        return f"{fell(proof, told)}, side by side ({passes})"
    allowed = told.allowed.get(proof.metric)
    if allowed is not None:
        ends = _range(proof, lambda value: _percent(math.expm1(-value)))
        by = _percent(math.expm1(-proof.difference))
        more = f"{passes}{ends}; {_percent(allowed)} allowed"
        return f"{proof.metric} rose by {by} side by side with {told.base} ({more})"
    ends = _range(proof, lambda value: f"{abs(value):.2f}")
    return f"{proof.metric} fell by {abs(proof.difference):.2f} side by side with {told.base} ({passes}{ends})"


def _range(proof: Test, shown: Callable[[float], str]) -> str:
    if proof.low is None or proof.high is None or proof.low == proof.high:
        return ""
    return f"; between {shown(proof.high)} and {shown(proof.low)}"


def _weak(out: GateOutcome, told: Telling) -> Iterator[str]:
    yield from _few([f"{name} is {drop} than on earlier days." for name, drop in _looked_lower(out, told).items()])
    names = list(dict.fromkeys(_name(item.case, told) for item in _latest(out) if item.case is not None))
    if names:
        yield f"{some(names, 'case')} {'fails' if len(names) == 1 else 'fail'} more often than on earlier days."


def _looked_lower(out: GateOutcome, told: Telling) -> dict[str, str]:
    names = dict.fromkeys(item.metric for item in out.suspicions if item.case is None and item.metric in told.lower)
    return {
        name: f"{_percent(math.expm1(-told.lower[name]))} higher"
        if name in told.allowed
        else f"{abs(told.lower[name]):.2f} lower"
        for name in names
    }


def _cleared(out: GateOutcome, told: Telling) -> Iterator[str]:
    tests = {test.metric: test for test in out.tests if test.case is None}
    means = []
    for name, drop in _looked_lower(out, told).items():
        end = "a second run was not"
        if test := tests.get(name):
            by = f"{100 * math.expm1(-test.difference):+.0f} %" if name in told.allowed else signed(test.difference)
            end = f"side by side with {told.base} it was not ({by}, {len(test.here)} passes each)"
        means.append(f"The first run was worse ({name} {drop}); {end}.")
    yield from _few(means)
    cases = list(dict.fromkeys(_name(item.case, told) for item in out.suspicions if item.case is not None))
    if cases:
        end = "in further tries, it did not"
        if tested := [test for test in out.tests if test.case is not None]:
            weakest = min(tested, key=lambda test: test.p)
            here, there = (f"{failed} of {len(row)}" for failed, row in _counts(weakest))
            end = f"side by side with {told.beside}, it did not ({here} failed here, {there} there)"
        yield f"In the first run, {some(cases, 'case')} failed more often; {end}."


def _clear(told: Telling) -> Iterator[str]:
    if 0 < told.cases < _FEW_CASES:
        yield "The suite has few cases: broken cases are found, smaller drops rarely."
    elif told.cases and told.drop:
        yield f"Drops of about {told.drop:.2f} are found in 8 of 10 pull requests."


def _name(case: str | None, told: Telling) -> str:
    return quoted(told.names.get(case or "", case or ""))


def distinct(before: float, after: float) -> tuple[str, str]:
    """Return two scores with as many digits as tell them apart, at least two."""
    for digits in range(2, 5):
        texts = f"{before:.{digits}f}", f"{after:.{digits}f}"
        if texts[0] != texts[1]:
            return texts
    return texts


def signed(difference: float) -> str:
    """Format a difference of scores with its sign."""
    return f"{difference:+.2f}".replace("-", "−")


def share(p: float, limit: float) -> str:
    """Return a probability with as many digits as the comparison with its limit needs."""
    if p < _SMALLEST_P <= limit:
        return f"less than {percent(_SMALLEST_P)}"
    digits = next((number for number in range(2, 17) if (float(f"{p:.{number}g}") <= limit) is (p <= limit)), 17)
    return percent(p, digits)


def percent(value: float, digits: int = 3) -> str:
    """Return a share in per cent, without zeros at its end: ``0.6 %``."""
    return f"{100 * value:.{max(digits, 3) if value >= 0.1 else digits}g} %"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def quoted(name: str) -> str:
    """Return a name for a sentence: one line of at most 80 characters between quotation marks."""
    return f"'{escape.one_line(name, _LONGEST_NAME)}'"


def without_markup(message: str) -> str:
    """Return a message with quotation marks instead of backticks: outputs show sentences as they are."""
    return message.replace("`", "'")


def enumeration(texts: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``; empty without texts."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def count(number: int, noun: str) -> str:
    """Return ``1 run`` or ``2 runs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def some(names: Sequence[str], noun: str) -> str:
    """Return the first names as an enumeration, and how many there are besides."""
    more = f" and {_more(names, noun)}" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def first(texts: Sequence[str], noun: str) -> list[str]:
    """Return the first texts, and how many there are besides."""
    return [*texts[:_NAMED], *([_more(texts, noun)] if len(texts) > _NAMED else [])]


def _few(told: Sequence[str]) -> Iterator[str]:
    yield from [*told[:_NAMED], *([f"{_more(told, 'metric')} likewise."] if len(told) > _NAMED else [])]


def _more(items: Sequence[str], noun: str) -> str:
    return count(len(items) - _NAMED, f"more {noun}")
