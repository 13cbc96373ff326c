"""Reads evaluations of FluxLoop: ``summary.json`` and ``per_trace.jsonl`` of ``fluxloop evaluate experiment``.

The files that agenteval writes for FluxLoop suites can be read too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.text import text_of
from agenteval.results.case import CaseStatus, Criterion, IterationResult, Json, Text, TurnResult
from agenteval.results.importers import base
from agenteval.results.model import MetricSummary, RunUsage, Summary
from agenteval.suite.cases import DistinctNames, asked_by, content_id, excerpt, persona_tag

_FORMAT: Final = "fluxloop"
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
_SECTIONS = {"performance": "", "quality": "quality.", "functionality": "tool_calling."}
# The keys of value and threshold of each criterion, and the divisor for seconds and 0..1.
_VALUES = {"average_ms": 1000, "max_ms": 1000, "error_rate_percent": 100, "average_score": 1, "ratio": 1}
_THRESHOLDS = {"threshold_ms": 1000, "threshold_percent": 100, "threshold": 1}
# These criteria require all calls; the file does not record that.
_ALL = ("all_traces_successful", "tool_calling.")
_Question = tuple[str | None, str]


def _reason(why: Any) -> str | None:
    return "; ".join(map(text_of, why)) if isinstance(why, list) else None if why is None else text_of(why)


class _Trace(base.ImportedShape):
    trace_id: base.AnyText = ""
    persona: base.OptionalText = None
    duration_ms: base.Amount = None
    scores: base.Mapped[base.Number]
    final_score: base.Share = None
    passed: bool | None = base.at("pass")
    reasons: base.Mapped[Annotated[Text | None, BeforeValidator(_reason)]] = base.at("reasons", default={})
    absent: base.Mapped[base.OptionalText] = base.at("absent", default={})
    input: base.AnyText = base.at("meta", "input", default="")
    output: base.OptionalText = base.at("meta", "output")
    case_id: base.OptionalText = base.at("meta", "case_id")
    name: base.OptionalText = base.at("meta", "name")

    @property
    def question(self) -> _Question:
        return self.persona or None, self.input

    def iteration(self, index: int) -> IterationResult:
        # A failure that missing judgements may have caused is not used.
        zeros = {name: self.reasons.get(name) or "" for name, value in self.scores.items() if value == 0}
        not_asked = {name: why for name, why in zeros.items() if _NOT_ASKED.match(why)}
        broken = {name: why for name, why in zeros.items() if _BROKEN.match(why)}
        scores = [
            base.score_of(name, _KIND, value, reason=why, absent=not_asked.get(name), error=broken.get(name))
            for name, value, why in ((name, value, self.reasons.get(name)) for name, value in self.scores.items())
        ]
        scores += [base.score_of(name, _KIND, None, absent=why or "") for name, why in self.absent.items()]
        scored = any(score.status == "scored" for score in scores)
        status: CaseStatus = "failed" if scored else "error"
        if self.passed is not False:
            status = "passed" if self.passed and scored else "skipped"
        elif broken or not_asked:
            status = "error" if broken else "skipped"
        answer = {"input": self.input, "ground_truth": None, "response": self.output, "latency_ms": self.duration_ms}
        # The final score counts a missing judgement as 0, so it is not usable.
        final = None if broken or not_asked else self.final_score
        return IterationResult(
            index=index, status=status, score=final, turns=[TurnResult(index=0, scores=scores, **answer)]
        )


class _Stats(base.ImportedShape):
    average: base.Share = None
    count: base.Count = None


class _Summary(base.ImportedShape):
    total_traces: base.Count = None
    passed_traces: base.Count = None
    judged_traces: base.Count = None
    pass_rate: base.Share = None
    average_score: base.Share = None
    threshold: base.Share = None
    goal: base.OptionalText = base.at("evaluation_goal")
    evaluator_stats: base.Mapped[_Stats] = base.at("evaluator_stats", default={})
    success_criteria_results: base.Mapped[Json] = base.at("success_criteria_results", default={})

    def numbers(self) -> Summary:
        total = self.total_traces or 0
        judged = total if self.judged_traces is None else min(self.judged_traces, total)
        passed = min(self.passed_traces or 0, judged)
        counts = {"cases": total, "passed": passed, "failed": judged - passed, "skipped": total - judged, "errors": 0}
        metrics = {
            name: MetricSummary(n=stats.count or 0, mean=stats.average, pass_rate=None)
            for name, stats in self.evaluator_stats.items()
        }
        return Summary(
            **counts, pass_rate=self.pass_rate, score=self.average_score, metrics=metrics, usage=RunUsage()
        )

    def criteria(self) -> Iterator[Criterion]:
        for section, prefix in _SECTIONS.items():
            checks = self.success_criteria_results.get(section)
            for key, details in checks.items() if isinstance(checks, dict) else ():
                if isinstance(details, dict):
                    yield _criterion(f"{prefix}{key}", details)


class _Files(base.ImportedShape):
    summary: _Summary | None = None
    traces: tuple[_Trace, ...] = ()


def _criterion(name: str, details: Mapping[str, Any]) -> Criterion:
    value, threshold = _first(details, _VALUES), _first(details, _THRESHOLDS)
    if name.startswith(_ALL):
        part, total = base.finite(details.get("successful_traces")), base.finite(details.get("total_traces"))
        value = part / total if value is None and part is not None and total and 0 <= part / total <= 1 else value
        threshold = 1.0
    met = details.get("met")
    return Criterion(name=name, met=met if isinstance(met, bool) else None, value=value, threshold=threshold)


def _first(details: Mapping[str, Any], units: Mapping[str, float]) -> float | None:
    found = ((base.finite(details.get(key)), unit) for key, unit in units.items())
    return next((number / unit for number, unit in found if number is not None), None)


def is_summary(content: Any) -> bool:
    """Return whether JSON is the summary of an evaluation."""
    return isinstance(content, dict) and {"total_traces", "evaluator_stats"} <= content.keys()


def is_trace(content: Any) -> bool:
    """Return whether JSON is a line of per_trace.jsonl."""
    return isinstance(content, dict) and {"scores", "final_score", "pass"} <= content.keys()


def _read(content: Mapping[str, Any], suites: Sequence[base.KnownSuite]) -> base.ImportedRun:
    files = _Files.model_validate(content if "traces" in content else {"summary": content})
    summary = files.summary or _Summary()
    suite = _suite_of(files, suites) or base.KnownSuite(_FORMAT, "evaluation", _FORMAT)
    names = DistinctNames()
    cases = []
    for case_id, traces in _by_case(files.traces, suite).items():
        first, iterations = traces[0], [trace.iteration(index) for index, trace in enumerate(traces)]
        name = asked_by(first.name or excerpt(first.input) or first.trace_id or case_id, first.persona)
        tags = [persona_tag(first.persona)] if first.persona else []
        cluster = content_id(list(first.question)) if first.input else None
        cases.append(base.case_of(case_id, names.distinct(name), iterations, tags=tags, cluster=cluster))
    result = suite.result(cases, criteria=list(summary.criteria()), threshold=summary.threshold, goal=summary.goal)
    duration_s = sum(trace.duration_ms or 0.0 for trace in files.traces) / 1000
    return base.ImportedRun("", [result], duration_s=duration_s, summary=None if cases else summary.numbers())


def _suite_of(files: _Files, suites: Sequence[base.KnownSuite]) -> base.KnownSuite | None:
    """Return the only suite of FluxLoop; of several, the only one that has most of the evaluation's metrics."""
    metrics = {name for trace in files.traces for name in trace.scores}
    metrics |= files.summary.evaluator_stats.keys() if files.summary else set()
    shared = [(len(metrics & suite.metrics), suite) for suite in suites if suite.format == _FORMAT]
    best = max((amount for amount, _ in shared), default=0)
    meant = [suite for amount, suite in shared if amount == best]
    if len(meant) > 1:
        paths = ", ".join(suite.path for suite in meant)
        message = f"does not say which suite it evaluates ({paths}); compare one at a time"
        raise ConfigError(Problem(message, kind=Kind.RESULTS))
    return next(iter(meant), None)


def _by_case(traces: Sequence[_Trace], suite: base.KnownSuite) -> dict[str, list[_Trace]]:
    ids = {case.id for case in suite.cases}
    known: defaultdict[_Question, list[str]] = defaultdict(list)
    for case in (case for case in suite.cases if len(case.inputs) == 1):
        known[case.persona, case.inputs[0]].append(case.id)
    repeats = base.Repeats()
    found: defaultdict[str, list[_Trace]] = defaultdict(list)
    for trace in traces:
        # The suite's id, if a template changes the text of the input.
        case_id = trace.case_id or f"{suite.path}::{content_id([*reversed(trace.question)])}"
        if not trace.case_id and (same := known.get(trace.question)):
            case_id = same.pop(0) if len(same) > 1 else same[0]
        elif not trace.case_id and case_id not in ids:
            own = content_id(list(trace.question)) if trace.input else trace.trace_id
            case_id = repeats.unique(f"{suite.path}::{own}")
        found[case_id].append(trace)
    return found


_WHAT = "an evaluation of FluxLoop (summary.json, per_trace.jsonl or their folder)"
IMPORTER = base.Importer(_FORMAT, "FluxLoop", _WHAT, is_summary, _read)
