"""The figures of a whole run in results.json."""

from __future__ import annotations

from operator import not_

from pydantic import Field

from agenteval.results.case import NotAsked
from agenteval.results.values import ResultsModel


class RunUsage(ResultsModel):
    """Sums over a run, including judges.

    ``cached_calls`` were answered from a cache; the other sums omit them. ``saved_usd`` is what they would have cost,
    as far as the prices are known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    llm_calls: int = 0
    cost_usd: float = 0.0
    # Omitted if there were none.
    cached_calls: int = Field(default=0, exclude_if=not_)
    saved_usd: float = Field(default=0.0, exclude_if=not_)

    def plus(self, other: RunUsage) -> RunUsage:
        """Return the sums of two parts of a run."""
        return RunUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            llm_calls=self.llm_calls + other.llm_calls,
            cost_usd=self.cost_usd + other.cost_usd,
            cached_calls=self.cached_calls + other.cached_calls,
            saved_usd=self.saved_usd + other.saved_usd,
        )


class MetricSummary(ResultsModel):
    """One metric over all cases: number of scores, their mean, and the share that passed.

    Attributes:
        errors: number of answers for which the metric ended in an error.
        gating: whether the metric can decide about a case; otherwise it is only reported.
    """

    n: int
    mean: float | None
    pass_rate: float | None
    errors: int = Field(default=0, exclude_if=not_)
    gating: bool = Field(default=True, exclude_if=bool)


class NotJudged(NotAsked):
    """The number of cases whose judge was not called for one reason."""

    cases: int


class Judging(ResultsModel):
    """How many cases judges should score, and how many they scored.

    Attributes:
        cases: number of cases with a judge.
        judged: number of these whose judges were all called.
        not_judged: the other cases, by reason; a case has one reason.
    """

    cases: int
    judged: int
    not_judged: list[NotJudged]


class Summary(ResultsModel):
    """The figures of the whole run. ``pass_rate`` is the share of passed cases without skipped ones.

    Attributes:
        not_fully_evaluated: number of passed and failed cases in which a metric that can decide ended in an error.
        judging: omitted if every judge was called.
    """

    cases: int
    passed: int
    failed: int
    errors: int
    skipped: int
    pass_rate: float | None
    score: float | None
    metrics: dict[str, MetricSummary]
    usage: RunUsage
    not_fully_evaluated: int = Field(default=0, exclude_if=not_)
    judging: Judging | None = Field(default=None, exclude_if=lambda value: value is None)
