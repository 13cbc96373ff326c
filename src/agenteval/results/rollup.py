"""From scores to statuses: of an iteration, a case, a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from agenteval.results.model import (
    CaseResult,
    CaseStatus,
    MetricSummary,
    RunUsage,
    Score,
    Summary,
    TurnResult,
)


def iteration_status(turns: Sequence[TurnResult], fatal: Collection[tuple[int, str]] = ()) -> CaseStatus:
    """The status of one pass through a case.

    ``error`` if a turn had no answer, a fatal metric broke, or all metrics broke; ``failed`` if a
    metric said no; ``skipped`` if nothing could be scored; else ``passed``.

    Args:
        turns: the turns in order.
        fatal: turn and id of metrics whose error is an error of the case.
    """
    if any(turn.error is not None for turn in turns):
        return "error"
    scores = [(turn.index, score) for turn in turns for score in turn.scores]
    broken = [(index, score) for index, score in scores if score.status == "error"]
    applied = [score for _, score in scores if score.status != "skipped"]
    if any((index, score.id) in fatal for index, score in broken):
        return "error"
    if not applied:
        return "skipped"
    if len(broken) == len(applied):
        return "error"
    return "failed" if any(score.passed is False for score in applied) else "passed"


def case_status(iterations: Sequence[CaseStatus]) -> CaseStatus:
    """The status of a case over its iterations.

    The majority of the iterations that passed or failed decides, and a tie counts against the agent.
    Where more iterations broke than said something, the case is an error.
    """
    passed, failed, broken = (iterations.count(name) for name in ("passed", "failed", "error"))
    if broken > passed + failed:
        return "error"
    if passed or failed:
        return "passed" if passed > failed else "failed"
    return "skipped"


def mean_score(turns: Iterable[TurnResult]) -> float | None:
    """The mean over all scores of an iteration; ``None`` if there is none."""
    return mean([score.score for turn in turns for score in turn.scores])


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are there; ``None`` if there is none."""
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


def summarise(cases: Sequence[CaseResult], models: RunUsage | None = None, metered: Collection[str] = ()) -> Summary:
    """The whole run in numbers.

    Args:
        cases: all cases that ran.
        models: what all models took that we asked ourselves: judges, and agents that are only a model.
        metered: ids of cases that such an agent answered; the usage of their turns is in ``models`` already.
    """
    statuses = [case.status for case in cases]
    counts = {name: statuses.count(name) for name in ("passed", "failed", "error", "skipped")}
    judged = counts["passed"] + counts["failed"] + counts["error"]
    turns = [turn for case in cases for iteration in case.iterations for turn in iteration.turns]
    return Summary(
        cases=len(cases),
        passed=counts["passed"],
        failed=counts["failed"],
        errors=counts["error"],
        skipped=counts["skipped"],
        pass_rate=counts["passed"] / judged if judged else None,
        score=mean([case.score for case in cases]),
        metrics=_metric_summaries(score for turn in turns for score in turn.scores),
        usage=_usage(_foreign_turns(cases, metered), models or RunUsage()),
    )


def _metric_summaries(scores: Iterable[Score]) -> dict[str, MetricSummary]:
    values: dict[str, list[float]] = {}
    verdicts: dict[str, list[bool]] = {}
    for score in scores:
        if score.score is not None:
            values.setdefault(score.id, []).append(score.score)
            if score.passed is not None:
                verdicts.setdefault(score.id, []).append(score.passed)
    return {
        name: MetricSummary(
            n=len(found),
            mean=mean(found),
            pass_rate=sum(verdicts[name]) / len(verdicts[name]) if name in verdicts else None,
        )
        for name, found in values.items()
    }


def _foreign_turns(cases: Iterable[CaseResult], metered: Collection[str]) -> list[TurnResult]:
    others = (case for case in cases if case.id not in metered)
    return [turn for case in others for iteration in case.iterations for turn in iteration.turns]


def _usage(turns: Iterable[TurnResult], models: RunUsage) -> RunUsage:
    used = [turn.usage for turn in turns if turn.usage is not None]
    return RunUsage(
        input_tokens=models.input_tokens + sum(usage.input_tokens or 0 for usage in used),
        output_tokens=models.output_tokens + sum(usage.output_tokens or 0 for usage in used),
        llm_calls=models.llm_calls,
        cost_usd=models.cost_usd + sum(usage.cost_usd or 0.0 for usage in used),
    )
