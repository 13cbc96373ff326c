"""What a decision says about the mean of a metric."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.compare.compared import Compared
from agenteval.compare.phrases import count, p_text, points, signed_points, without_markup
from agenteval.compare.regression.model import Decision, MetricFinding


def metric_words(decision: Decision, finding: MetricFinding, compared: Compared) -> str:
    """Return what was found about the mean of one metric, and by which runs."""
    if finding.proven:
        return f"{_moved(finding, compared)}{_doubt(decision, finding)}"
    if finding.suspicious and decision.verdict == "unproven":
        return f"{looked_worse(finding)}, which was neither proven nor cleared"
    return _kept(decision, finding, compared)


def looked_worse(finding: MetricFinding) -> str:
    """Return by how much the first run looked worse: than all earlier runs, or else than the newest of them."""
    drop, than = finding.first - finding.baseline, ""
    if drop >= 0 and finding.newest is not None and finding.first < finding.newest:
        drop, than = finding.first - finding.newest, " than the newest earlier run"
    return f"the first run of {finding.metric} looked worse{than} ({signed_points(drop)} points)"


def _moved(finding: MetricFinding, compared: Compared) -> str:
    """Return the sentence about a proven change."""
    difference = finding.current - finding.control
    moved, than = ("rose", "more") if difference > 0 else ("fell", "less")
    by = points(difference)
    if finding.stage == "repeats":
        return f"{finding.metric} {moved} by {by}; all scores repeat exactly on both sides"
    if finding.runs:
        details = "; ".join([f"{count(finding.runs, 'run')} a side", *_numbers(finding)])
        return f"{finding.metric} {moved}: {_beside(compared)} it scored {by} {than} ({details})"
    details = "; ".join(_numbers(finding))
    shown = f" ({details})" if details else ""
    return f"{finding.metric} {moved}: it scored {by} {than} than in {count(compared.runs, 'earlier run')}{shown}"


def _doubt(decision: Decision, finding: MetricFinding) -> str:
    """Return why a change that was found is no verdict, or is one for another reason."""
    if finding.stage == "memory":
        return ", which is at least half of what an earlier attempt was proven to have lost"
    if decision.verdict != "unproven":
        return ""
    if decision.missing is None:
        return ", if lost iterations count as failures"
    return f", but {without_markup(decision.missing.why)}"


def _numbers(finding: MetricFinding) -> Iterator[str]:
    """Yield the proven part of a change with p and its limit; or its interval, if something else is the proof."""
    if finding.p is None or finding.limit is None:
        yield from () if finding.interval is None else (_between(finding.interval),)
        return
    proven = [] if finding.interval is None else [f"at least {points(min(map(abs, finding.interval)))}"]
    yield ", ".join([*proven, p_text(finding.p, finding.limit)])


def _kept(decision: Decision, finding: MetricFinding, compared: Compared) -> str:
    """Return the sentence about a mean of which no change is proven."""
    if finding.runs:
        return _not_proven(decision, finding, compared)
    if not finding.suspicious or decision.verdict == "improved":
        return _like_before(finding, compared)
    again = signed_points(finding.current - finding.control)
    match finding.stage:
        case "second":
            return f"{looked_worse(finding)}; a second run did not confirm it ({again})"
        case "earlier-runs":
            return f"{looked_worse(finding)}; both runs together do not prove it ({again})"
    return f"{looked_worse(finding)}, which was not checked"


def _like_before(finding: MetricFinding, compared: Compared) -> str:
    runs = count(compared.runs, "run")
    means = f"{finding.metric} {100 * finding.first:.1f}, base {100 * finding.baseline:.1f} ({runs})"
    rise = finding.first - finding.baseline
    better = f"; looks better ({signed_points(rise)} points in one run)" if rise >= compared.tolerance else ""
    return f"{means}{_excluded(finding)}{better}"


def _excluded(finding: MetricFinding) -> str:
    return "" if finding.bound is None else f"; worse by more than {points(finding.bound)} is excluded (95 %)"


def _not_proven(decision: Decision, finding: MetricFinding, compared: Compared) -> str:
    """Return what the head-to-head found about a mean without proving a change."""
    difference = finding.current - finding.control
    figures = ", ".join([signed_points(difference), *([_between(finding.interval)] if finding.interval else [])])
    excluded = _excluded(finding)
    if finding.p is not None and finding.limit is not None and finding.p <= finding.limit:
        what = f"it moved by less than {points(compared.least)}, which does not count"
        return f"{finding.metric}: {_beside(compared)} {what} ({figures})"
    if decision.verdict == "improved" or not finding.suspicious:
        return f"{finding.metric} is not proven to change {_beside(compared)} ({figures}){excluded}"
    return f"{looked_worse(finding)}; {_beside(compared)} that is not proven ({figures}){excluded}"


def _between(interval: tuple[float, float]) -> str:
    return "between {} and {}".format(*map(signed_points, interval))


def _beside(compared: Compared) -> str:
    return "beside the baseline's runs" if compared.is_final else f"side by side with {compared.base}"
