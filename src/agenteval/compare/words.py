"""What a decision of the gate says, in plain sentences; every number belongs to the test that decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agenteval.compare.regression.model import CaseFinding, Decision, Failures, MetricFinding

# Maximum number of cases or metrics in a sentence.
_NAMED = 3
_SMALLEST_P = 0.0001
# From so many earlier runs on, they decide where the base commit's agent cannot run.
_RUNS_THAT_DECIDE = 3
_COMMIT = 7


@dataclass(frozen=True)
class Words:
    """Names for the sentences about one comparison.

    Attributes:
        cases: names of cases by id.
        control: the commit whose agent ran beside the change; ``None`` if it has no commit or did not run.
        runs: number of earlier runs.
        tolerance: rise of a mean that is worth a remark, 0..1.
    """

    cases: Mapping[str, str] = field(default_factory=dict)
    control: str | None = None
    runs: int = 0
    tolerance: float = 0.05

    def verdict(self, decision: Decision) -> str:
        """Return the verdict with its reasons."""
        match decision.verdict:
            case "regressed" | "improved":
                return f"{decision.verdict.capitalize()}: {'; '.join(self._proven(decision))}"
            case "unproven":
                return f"Unproven: {self.missing(decision)}"
        return f"No regression: {'; '.join(self._cleared(decision))}"

    def metric(self, decision: Decision, finding: MetricFinding) -> str:
        """Return what was found about the mean of one metric."""
        if finding.proven:
            return self._mean(decision, finding)
        if finding.suspicious and decision.verdict == "unproven":
            return f"{_looked_worse(finding)}, and this is unproven"
        return self._kept(decision, finding)

    def missing(self, decision: Decision) -> str:
        """Return why a decision is unproven."""
        if decision.missing is None:
            current, control = (f"{share:.0%}" for share in decision.lost)
            return f"the change loses iterations that the base does not ({current} against {control})"
        looked = [_looked_worse(finding) for finding in decision.metrics if finding.suspicious]
        names = [self._case(finding) for finding in _one_per_case(decision.cases) if not finding.proven]
        if names:
            looked.append(f"{_some(names)} failed more often than before")
        reasons = [*_first(looked, "metric"), decision.missing.why]
        if decision.missing.what == "control" and self.runs < _RUNS_THAT_DECIDE:
            reasons.append(f"without it, {_RUNS_THAT_DECIDE} earlier runs are needed, and there {_are(self.runs)}")
        return "; ".join(reasons)

    def _proven(self, decision: Decision) -> Iterator[str]:
        yield from (self._mean(decision, finding) for finding in decision.metrics if finding.proven)
        cases = _one_per_case(finding for finding in decision.cases if finding.proven)
        yield from _first([self._case_proof(decision, finding) for finding in cases], "case")
        if decision.stage == "earlier-runs":
            yield "compared with runs of earlier days, so drift cannot be told from regression"
        if decision.carried:
            yield "an earlier attempt was proven worse, and at least half of that is left"

    def _mean(self, decision: Decision, finding: MetricFinding) -> str:
        moved, than = ("rose", "more") if decision.verdict == "improved" else ("fell", "less")
        by = points(finding.current - finding.control)
        if finding.runs:
            runs = "1 run a side" if finding.runs == 1 else f"{finding.runs} runs a side"
            details = "; ".join([runs, *_numbers(finding)])
            return f"{finding.metric} {moved}: side by side with {self._base} it scored {by} {than} ({details})"
        if decision.stage == "repeats":
            return f"{finding.metric} {moved} by {by}; all scores repeat exactly on both sides"
        details = "; ".join(_numbers(finding))
        earlier = "1 earlier run" if self.runs == 1 else f"{self.runs} earlier runs"
        return (
            f"{finding.metric} {moved}: it scored {by} {than} than in {earlier}{f' ({details})' if details else ''}"
        )

    def _case_proof(self, decision: Decision, finding: CaseFinding) -> str:
        now, before = finding.current, finding.control
        is_rise = decision.verdict == "improved"
        verb = "passes" if is_rise else "fails"
        if is_rise:
            now, before = (Failures(item.of - item.failed, item.of) for item in (now, before))
        if not now.of:
            first, pool = finding.first, finding.pool
            return f"{self._case(finding)} fails {_of(first)} iterations, {_of(pool)} in earlier runs"
        if not before.of:
            return f"{self._case(finding)} fails {_of(now)} re-runs, {_of(finding.pool)} iterations in earlier runs"
        repeats = "; both repeat exactly" if finding.q is None else ""
        return f"{self._case(finding)} {verb} {_of(now)} re-runs, {_of(before)} on {self._base} beside it{repeats}"

    def _cleared(self, decision: Decision) -> Iterator[str]:
        if decision.repeats:
            yield self._repeated(decision)
            return
        means = [self._kept(decision, finding) for finding in decision.metrics]
        yield from _first(means or ["no metric that gates has scores in both runs"], "metric")
        yield from _first([self._case_cleared(finding) for finding in _one_per_case(decision.cases)], "case")

    def _repeated(self, decision: Decision) -> str:
        if not decision.changed:
            return "every score is the same as in the earlier runs"
        names = [f"`{self.cases.get(case_id, case_id)}`" for case_id in decision.changed]
        return f"the scores of {_some(names)} changed, none below its threshold"

    def _kept(self, decision: Decision, finding: MetricFinding) -> str:
        if finding.runs:
            return self._not_proven(decision, finding)
        if finding.suspicious and decision.stage in {"second", "earlier-runs"}:
            again = _signed(finding.current - finding.control)
            what = "a second run was not" if decision.stage == "second" else "both runs together do not prove it"
            return f"{_looked_worse(finding)}; {what} ({again})"
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        means = f"{finding.metric} {100 * finding.first:.1f}, base {100 * finding.baseline:.1f} ({runs})"
        bound = "" if finding.bound is None else f"; worse by more than {points(finding.bound)} is excluded (95 %)"
        rise = finding.first - finding.baseline
        better = f"; looks better ({_signed(rise)} points in one run)" if rise >= self.tolerance else ""
        return f"{means}{bound}{better}"

    def _not_proven(self, decision: Decision, finding: MetricFinding) -> str:
        """Return what the head-to-head found about a mean without proving a change."""
        moved = _signed(finding.current - finding.control)
        between = "" if finding.interval is None else ", between {} and {}".format(*map(_signed, finding.interval))
        if decision.verdict == "improved" or not finding.suspicious:
            return f"{finding.metric} is not proven to change side by side with {self._base} ({moved}{between})"
        return f"{_looked_worse(finding)}; side by side with {self._base} that is not proven ({moved}{between})"

    def _case_cleared(self, finding: CaseFinding) -> str:
        if not finding.current.of:
            return f"{self._case(finding)} failed more often than before, which was not checked"
        if not finding.control.of:
            return f"{self._case(finding)} failed in the first run, not when repeated"
        return (
            f"{self._case(finding)} failed in the first run, and fails {_of(finding.current)} re-runs, "
            f"{_of(finding.control)} on {self._base}"
        )

    def _case(self, finding: CaseFinding) -> str:
        return f"`{self.cases.get(finding.case_id, finding.case_id)}`"

    @property
    def _base(self) -> str:
        return self.control[:_COMMIT] if self.control else "the base"


def points(difference: float) -> str:
    """Format a difference of scores, 0..1, in percentage points."""
    number = f"{100 * abs(difference):.1f}".removesuffix(".0")
    return f"{number} point" if number == "1" else f"{number} points"


def p_text(p: float, limit: float) -> str:
    """Return ``p = 0.0041, needed ≤ 0.009``, with as many digits as the comparison needs."""
    if p < _SMALLEST_P <= limit:
        return f"p < {_SMALLEST_P}, needed ≤ {limit:g}"
    digits = next((number for number in range(2, 17) if (float(f"{p:.{number}g}") <= limit) is (p <= limit)), 17)
    return f"p = {p:.{digits}g}, needed ≤ {limit:g}"


def _numbers(finding: MetricFinding) -> Iterator[str]:
    """Yield the proven part of a change, and p with its limit."""
    proven = [] if finding.interval is None else [f"at least {points(min(map(abs, finding.interval)))}"]
    if finding.p is not None and finding.limit is not None:
        proven.append(p_text(finding.p, finding.limit))
    if proven:
        yield ", ".join(proven)


def _looked_worse(finding: MetricFinding) -> str:
    return f"the first run of {finding.metric} looked worse ({_signed(finding.first - finding.baseline)} points)"


def _signed(difference: float) -> str:
    return f"{100 * difference:+.1f}".replace("-", "−")


def _are(number: int) -> str:
    return "is 1" if number == 1 else f"are {number}"


def _of(failures: Failures) -> str:
    return f"{failures.failed} of {failures.of}"


def _some(names: Sequence[str]) -> str:
    more = f" and {_more(names, 'case')}" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _one_per_case(findings: Iterable[CaseFinding]) -> list[CaseFinding]:
    """Return one finding for each case, the clearest one: several metrics can find the same case."""
    clearest: dict[str, CaseFinding] = {}
    for finding in findings:
        known = clearest.setdefault(finding.case_id, finding)
        if abs(finding.fall) > abs(known.fall):
            clearest[finding.case_id] = finding
    return list(clearest.values())


def _first(texts: Sequence[str], noun: str) -> list[str]:
    """Return the first texts, and how many there are besides."""
    return [*texts[:_NAMED], *([_more(texts, noun)] if len(texts) > _NAMED else [])]


def _more(items: Sequence[str], noun: str) -> str:
    number = len(items) - _NAMED
    return f"1 more {noun}" if number == 1 else f"{number} more {noun}s"
