"""The parts of FluxLoop's evaluation files that are read, as FluxLoop CLI 0.2.30 writes them."""

from __future__ import annotations

from pydantic import Field

from agenteval.results.importers.values import Amount, AnyText, Count, Mapped, Number, OptionalText, Shape
from agenteval.results.values import Json


class Meta(Shape):
    """The input and persona of a trace."""

    input: AnyText = ""
    output: OptionalText = None
    case_id: OptionalText = None
    name: OptionalText = None


class Trace(Shape):
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


class Stats(Shape):
    """One metric."""

    average: Number = None
    count: Count = None


class EvaluationSummary(Shape):
    """A summary.json."""

    total_traces: Count = None
    passed_traces: Count = None
    judged_traces: Count = None
    pass_rate: Number = None
    average_score: Number = None
    threshold: Number = None
    evaluation_goal: OptionalText = None
    evaluator_stats: Mapped[Stats] = Field({})
    success_criteria_results: Mapped[Json] = Field({})


class Evaluation(Shape):
    """Both files; one may be missing."""

    summary: EvaluationSummary | None = None
    traces: tuple[Trace, ...] = ()
