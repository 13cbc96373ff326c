"""Reads evaluations of FluxLoop: ``summary.json`` and ``per_trace.jsonl`` of ``fluxloop evaluate experiment``.

The files that agenteval writes for FluxLoop suites can be read too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import Field

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.results.case import (
    CaseResult,
    CaseStatus,
    Criterion,
    IterationResult,
    Json,
    Score,
    SuiteResult,
    TurnResult,
)
from agenteval.results.importers.base import (
    Amount,
    AnyText,
    Count,
    ImportedRun,
    ImportedScore,
    ImportedShape,
    KnownCase,
    KnownSuite,
    Mapped,
    Number,
    OptionalText,
    Repeats,
    finite,
    text_of,
)
from agenteval.results.model import MetricSummary, RunUsage, Summary
from agenteval.results.rollup import case_status, mean
from agenteval.suite.cases import DistinctNames, asked_by, content_id, excerpt, persona_tag


class Meta(ImportedShape):
    """The input and persona of a trace."""

    input: AnyText = ""
    output: OptionalText = None
    case_id: OptionalText = None
    name: OptionalText = None


class FluxLoopTrace(ImportedShape):
    """A line of per_trace.jsonl."""

    trace_id: AnyText = ""
    persona: OptionalText = None
    duration_ms: Amount = None
    scores: Mapped[Number]
    final_score: Number = None
    passed: bool | None = Field(None, alias="pass")
    reasons: Mapped[Json] = Field({})
    absent: Mapped[OptionalText] = Field({})
    meta: Meta = Meta()


class FluxLoopStats(ImportedShape):
    """One metric."""

    average: Number = None
    count: Count = None


class EvaluationSummary(ImportedShape):
    """A summary.json."""

    total_traces: Count = None
    passed_traces: Count = None
    judged_traces: Count = None
    pass_rate: Number = None
    average_score: Number = None
    threshold: Number = None
    evaluation_goal: OptionalText = None
    evaluator_stats: Mapped[FluxLoopStats] = Field({})
    success_criteria_results: Mapped[Json] = Field({})


class FluxLoopFiles(ImportedShape):
    """Both files; one may be missing."""

    summary: EvaluationSummary | None = None
    traces: tuple[FluxLoopTrace, ...] = ()


_SECTIONS: Mapping[str, str] = {"performance": "", "quality": "quality.", "functionality": "tool_calling."}
# The keys of value and threshold of each criterion, and the divisor for seconds and 0..1.
_VALUES: Mapping[str, float] = {
    "average_ms": 1000,
    "max_ms": 1000,
    "error_rate_percent": 100,
    "average_score": 1,
    "ratio": 1,
}
_THRESHOLDS: Mapping[str, float] = {"threshold_ms": 1000, "threshold_percent": 100, "threshold": 1}
# These criteria require all calls; the file does not record that.
_ALL = ("all_traces_successful", "tool_calling.")


def share(number: float | None) -> float | None:
    """Return a number from 0 to 1; ``None`` for everything else."""
    return number if number is not None and 0 <= number <= 1 else None


def numbers_of(summary: EvaluationSummary) -> Summary:
    """Return the figures of the run, for evaluations without traces."""
    total = summary.total_traces or 0
    judged = total if summary.judged_traces is None else min(summary.judged_traces, total)
    passed = min(summary.passed_traces or 0, judged)
    return Summary(
        cases=total,
        passed=passed,
        failed=judged - passed,
        errors=0,
        skipped=total - judged,
        pass_rate=share(summary.pass_rate),
        score=share(summary.average_score),
        metrics={
            name: MetricSummary(n=stats.count or 0, mean=share(stats.average), pass_rate=None)
            for name, stats in summary.evaluator_stats.items()
        },
        usage=RunUsage(),
    )


def criteria_of(sections: Mapping[str, Any]) -> Iterator[Criterion]:
    """Return the success criteria; times are in seconds, rates are 0..1."""
    for section, prefix in _SECTIONS.items():
        checks = sections.get(section)
        for key, details in checks.items() if isinstance(checks, dict) else ():
            if isinstance(details, dict):
                yield _criterion(f"{prefix}{key}", details)


def _criterion(name: str, details: Mapping[str, Any]) -> Criterion:
    met = details.get("met")
    value, threshold = _first(details, _VALUES), _first(details, _THRESHOLDS)
    if name.startswith(_ALL):
        threshold = 1.0
        value = _successful(details) if value is None else value
    return Criterion(name=name, met=met if isinstance(met, bool) else None, value=value, threshold=threshold)


def _successful(details: Mapping[str, Any]) -> float | None:
    part, total = finite(details.get("successful_traces")), finite(details.get("total_traces"))
    return share(part / total) if part is not None and total else None


def _first(details: Mapping[str, Any], units: Mapping[str, float]) -> float | None:
    found = ((finite(details.get(key)), unit) for key, unit in units.items())
    return next((number / unit for number, unit in found if number is not None), None)


FORMAT: Final = "fluxloop"
# FluxLoop's files do not say which evaluation they come from.
_NAME = "evaluation"
# The files do not distinguish rules from judges.
_KIND: Final = "custom"

# FluxLoop writes 0 for a missing judgement; only the reason, which begins like this, shows it.
_NOT_ASKED = re.compile("Skipped due to LLM sampling|LLM evaluation budget exhausted")
_BROKEN = re.compile(
    "LLM (API key not provided|call failed|client unavailable|evaluator missing|manager unavailable)"
    "|Failed to (initialize OpenAI client|parse LLM response)"
    "|No (numeric score found in response|response from LLM|rules configured)"
    "|Score .* outside expected range|Unknown parser"
)


def is_summary(content: Any) -> bool:
    """Return whether JSON is the summary of an evaluation."""
    return isinstance(content, dict) and {"total_traces", "evaluator_stats"} <= content.keys()


def is_trace(content: Any) -> bool:
    """Return whether JSON is a line of per_trace.jsonl."""
    return isinstance(content, dict) and {"scores", "final_score", "pass"} <= content.keys()


def belong_together(summary: Mapping[str, Any], traces: Sequence[Any]) -> bool:
    """Return whether a summary counts these traces. A summary with another count belongs to another evaluation."""
    return summary.get("total_traces") == len(traces)


def read_fluxloop(content: Mapping[str, Any], suites: Sequence[KnownSuite]) -> ImportedRun:
    """Return an evaluation as a recording; without traces it has figures and no cases.

    Args:
        content: ``summary``, the JSON of summary.json, and ``traces``, the lines of per_trace.jsonl; one may be
            missing.
        suites: known suites; the traces get the case ids of the FluxLoop suite that shares most metrics and
            questions.

    Raises:
        ValidationError: a required part is missing or has another type.
        ConfigError: several suites match.
    """
    evaluation = FluxLoopFiles.model_validate(content)
    summary = evaluation.summary or EvaluationSummary()
    suite = _suite_of(evaluation, suites)
    cases = _CasesOfTraces(suite.path if suite else FORMAT, suite.cases if suite else ()).cases(evaluation.traces)
    return ImportedRun(
        tool=FORMAT,
        version="",
        duration_s=sum(trace.duration_ms or 0.0 for trace in evaluation.traces) / 1000,
        suites=[
            SuiteResult(
                path=suite.path if suite else FORMAT,
                name=suite.name if suite else _NAME,
                format=FORMAT,
                fingerprint="",
                criteria=list(criteria_of(summary.success_criteria_results)),
                threshold=share(summary.threshold),
                goal=summary.evaluation_goal,
                cases=cases,
            )
        ],
        summary=None if cases else numbers_of(summary),
    )


def _suite_of(evaluation: FluxLoopFiles, suites: Sequence[KnownSuite]) -> KnownSuite | None:
    """Return the suite that shares most metrics and questions with the evaluation; a single suite matches always."""
    ours = [suite for suite in suites if suite.format == FORMAT]
    if len(ours) <= 1:
        return ours[0] if ours else None
    metrics = {name for trace in evaluation.traces for name in trace.scores}
    metrics |= evaluation.summary.evaluator_stats.keys() if evaluation.summary else set()
    asked = {_question(trace) for trace in evaluation.traces}

    def shared(suite: KnownSuite) -> tuple[int, int]:
        return len(metrics & suite.metrics), len(asked & {_known_question(case) for case in suite.cases})

    best = max(map(shared, ours))
    meant = [suite for suite in ours if shared(suite) == best]
    if len(meant) > 1:
        paths = ", ".join(suite.path for suite in meant)
        raise ConfigError(
            Problem(f"does not say which suite it evaluates ({paths}); compare one at a time", kind=Kind.RESULTS)
        )
    return meant[0]


_Question = tuple[str | None, str]


def _question(trace: FluxLoopTrace) -> _Question:
    return trace.persona or None, trace.meta.input


def _known_question(case: KnownCase) -> _Question:
    return case.persona, case.inputs[0] if len(case.inputs) == 1 else ""


class _CasesOfTraces:
    """Builds cases from traces, with the case ids of the suite."""

    def __init__(self, path: str, known: Iterable[KnownCase]) -> None:
        self._path = path
        self._repeats = Repeats()
        self._ids: set[str] = set()
        self._known: defaultdict[_Question, list[str]] = defaultdict(list)
        for case in known:
            self._ids.add(case.id)
            if len(case.inputs) == 1:
                self._known[_known_question(case)].append(case.id)

    def cases(self, traces: Iterable[FluxLoopTrace]) -> list[CaseResult]:
        """Return one case for each trace; traces of the same suite case are its iterations."""
        found: dict[str, list[FluxLoopTrace]] = {}
        for trace in traces:
            found.setdefault(self._id(trace), []).append(trace)
        names = DistinctNames()
        return [_case(case_id, group, names) for case_id, group in found.items()]

    def _id(self, trace: FluxLoopTrace) -> str:
        if trace.meta.case_id:
            return trace.meta.case_id
        if ids := self._known.get(_question(trace)):
            return ids.pop(0) if len(ids) > 1 else ids[0]
        # The suite's id, if a template changes the text of the input.
        case_id = f"{self._path}::{content_id([trace.meta.input, trace.persona or None])}"
        if case_id in self._ids:
            return case_id
        own = content_id(list(_question(trace))) if trace.meta.input else trace.trace_id
        return self._repeats.unique(f"{self._path}::{own}")


def _case(case_id: str, traces: Sequence[FluxLoopTrace], names: DistinctNames) -> CaseResult:
    iterations = [_iteration(index, trace) for index, trace in enumerate(traces)]
    first = traces[0]
    name = first.meta.name or excerpt(first.meta.input) or first.trace_id or case_id
    return CaseResult(
        id=case_id,
        name=names.distinct(asked_by(name, first.persona)),
        tags=[persona_tag(first.persona)] if first.persona else [],
        cluster=content_id(list(_question(first))) if first.meta.input else None,
        status=case_status([iteration.status for iteration in iterations]),
        score=mean(iteration.score for iteration in iterations),
        iterations=iterations,
    )


def _iteration(index: int, trace: FluxLoopTrace) -> IterationResult:
    grades = [_grade(name, value, _reason(trace, name)) for name, value in trace.scores.items()]
    lost = [grade for grade in grades if grade.absent or grade.error]
    absent = [ImportedScore(id=name, kind=_KIND, value=None, absent=why or "") for name, why in trace.absent.items()]
    scores = [grade.score for grade in (*grades, *absent)]
    turn = TurnResult(
        index=0,
        input=trace.meta.input,
        ground_truth=None,
        response=trace.meta.output,
        latency_ms=trace.duration_ms,
        scores=scores,
    )
    status = _status(trace, scores, lost)
    # The final score counts a missing judgement as 0, so it is not usable.
    final = None if lost else share(trace.final_score)
    return IterationResult(index=index, status=status, score=final, turns=[turn])


def _grade(name: str, value: float | None, reason: str | None) -> ImportedScore:
    """Return the score of an evaluator; ``None`` if its 0 means a missing judgement."""
    if value == 0 and reason is not None:
        if _NOT_ASKED.match(reason):
            return ImportedScore(id=name, kind=_KIND, value=None, absent=reason)
        if _BROKEN.match(reason):
            return ImportedScore(id=name, kind=_KIND, value=None, error=reason)
    return ImportedScore(id=name, kind=_KIND, value=value, reason=reason)


def _reason(trace: FluxLoopTrace, name: str) -> str | None:
    reasons = trace.reasons.get(name)
    if isinstance(reasons, list):
        return "; ".join(map(text_of, reasons))
    return None if reasons is None else text_of(reasons)


def _status(trace: FluxLoopTrace, scores: Sequence[Score], lost: Sequence[ImportedScore]) -> CaseStatus:
    """Return FluxLoop's verdict; a failure that missing judgements may have caused is not used."""
    scored = any(score.status == "scored" for score in scores)
    if trace.passed is None or (trace.passed and not scored):
        return "skipped"
    if trace.passed:
        return "passed"
    if lost:
        return "error" if any(grade.error for grade in lost) else "skipped"
    return "failed" if scored else "error"
