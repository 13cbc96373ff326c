"""What a decision of the gate says, in plain sentences; every number belongs to the test that decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agenteval.compare.case_words import case_cleared, case_proven
from agenteval.compare.compared import Compared
from agenteval.compare.metric_words import looked_worse, metric_words
from agenteval.compare.phrases import first, points, some, without_markup
from agenteval.compare.regression.model import CaseFinding, Decision, MetricFinding

# From so many earlier runs on, they decide where the base commit's agent cannot run.
_RUNS_THAT_DECIDE = 3
# Characters of a reason in a headline.
_LONGEST_WHY = 200


def words_of(decision: Decision, compared: Compared) -> dict[str, Any]:
    """Return the words of a decision as results.json records them: headline, findings, and all in one text."""
    found = findings(decision, compared)
    start = "No regression" if decision.verdict == "unchanged" else decision.verdict.capitalize()
    return {"headline": headline(decision, compared), "findings": found, "reason": f"{start}: {'; '.join(found)}"}


def headline(decision: Decision, compared: Compared) -> str:
    """Return the verdict as one short sentence. It names only what made the verdict."""
    match decision.verdict:
        case "unchanged":
            return "no regression"
        case "unproven":
            return _unproven(decision, compared)
    is_rise = decision.verdict == "improved"
    means = _means([finding for finding in decision.metrics if finding.proven], "rose" if is_rise else "fell")
    names = [compared.case(finding.case_id) for finding in _proven_cases(decision)]
    cases = [f"{_few(names, 'case')} {'improved' if is_rise else 'broke'}"] if names else []
    return ", and ".join([*means, *cases])


def findings(decision: Decision, compared: Compared) -> list[str]:
    """Return what was found, one sentence each: what made the verdict, or what cleared every suspicion."""
    match decision.verdict:
        case "unchanged":
            return list(_cleared(decision, compared))
        case "unproven":
            return [*missing(decision, compared)] or [_unproven(decision, compared)]
    return list(_proven(decision, compared))


def missing(decision: Decision, compared: Compared) -> list[str]:
    """Return what an unproven decision lacks, one sentence each; empty if only lost iterations are the reason."""
    if decision.missing is None:
        return []
    names = [compared.case(finding.case_id) for finding in _suspects(decision)]
    looked = first([looked_worse(finding) for finding in decision.metrics if finding.suspicious], "metric")
    looked += [f"{some(names, 'case')} passed less often than before"] if names else []
    reasons = [*looked, without_markup(decision.missing.why)]
    if decision.missing.what == "control" and compared.runs < _RUNS_THAT_DECIDE:
        there = f"there {'is' if compared.runs == 1 else 'are'} {compared.runs}"
        reasons.append(f"without it, {_RUNS_THAT_DECIDE} earlier runs are needed, and {there}")
    return reasons


def _unproven(decision: Decision, compared: Compared) -> str:
    if decision.missing is None:
        current, control = (f"{share:.0%}" for share in decision.lost)
        return f"the change loses iterations that the base does not ({current} against {control})"
    suspects = [finding.metric for finding in decision.metrics if finding.suspicious]
    suspects += [compared.case(finding.case_id) for finding in _suspects(decision)]
    if not suspects:
        why = without_markup(decision.missing.why).partition(";")[0]
        is_short = decision.missing.what == "runs" and len(why) <= _LONGEST_WHY
        return why if is_short else "the comparison with the base is not complete"
    return f"{_few(suspects, 'suspicion')} looked worse, which was neither proven nor cleared"


def _means(proven: Sequence[MetricFinding], moved: str) -> list[str]:
    if len(proven) == 1:
        return [f"{proven[0].metric} {moved} by {points(proven[0].current - proven[0].control)}"]
    return [f"{_few([finding.metric for finding in proven], 'metric')} {moved}"] if proven else []


def _few(names: Sequence[str], noun: str) -> str:
    """Return the first name, and how many there are besides."""
    more = len(names) - 1
    return f"{names[0]} and {more} more {noun}{'s' if more > 1 else ''}" if more else names[0]


def _proven(decision: Decision, compared: Compared) -> Iterator[str]:
    yield from (metric_words(decision, finding, compared) for finding in decision.metrics if finding.proven)
    yield from first([case_proven(decision, finding, compared) for finding in _proven_cases(decision)], "case")
    if decision.stage == "earlier-runs":
        yield "compared with earlier runs, so drift cannot be told from regression"
    if decision.carried:
        yield "an earlier attempt was proven worse, and at least half of that is left"


def _cleared(decision: Decision, compared: Compared) -> Iterator[str]:
    if decision.repeats:
        yield _repeated(decision, compared)
        return
    means = [metric_words(decision, finding, compared) for finding in decision.metrics]
    yield from first(means or ["no metric that gates has scores in both runs"], "metric")
    yield from first([case_cleared(finding, compared) for finding in _one_per_case(decision.cases)], "case")


def _repeated(decision: Decision, compared: Compared) -> str:
    if not decision.changed:
        return "every score is the same as in the earlier runs"
    names = [compared.case(case_id) for case_id in decision.changed]
    return f"the scores of {some(names, 'case')} changed, none below its threshold"


def _proven_cases(decision: Decision) -> list[CaseFinding]:
    return _one_per_case(finding for finding in decision.cases if finding.proven)


def _suspects(decision: Decision) -> list[CaseFinding]:
    return _one_per_case(finding for finding in decision.cases if not finding.proven)


def _one_per_case(found: Iterable[CaseFinding]) -> list[CaseFinding]:
    """Return one finding for each case, the clearest one: several metrics can find the same case."""
    clearest: dict[str, CaseFinding] = {}
    for finding in found:
        known = clearest.setdefault(finding.case_id, finding)
        if abs(finding.fall) > abs(known.fall):
            clearest[finding.case_id] = finding
    return list(clearest.values())
