"""The parts of HoloDeck's test report that are read.

The shape is that of ``holodeck.models.test_result`` and ``eval_run`` in HoloDeck 0.7.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import AliasChoices, Field

from agenteval.results.importers.values import Amount, AnyText, Count, Listed, Number, OptionalText, Shape
from agenteval.results.values import Json, Text


class Metric(Shape):
    """The result of a metric."""

    metric_name: Text
    kind: OptionalText = None
    score: Number = None
    threshold: Number = None
    passed: bool | None = None
    scale: OptionalText = None
    error: OptionalText = None
    evaluation_time_ms: Amount = None
    model_used: OptionalText = None
    reasoning: OptionalText = None


class Invocation(Shape):
    """A call of a tool."""

    name: Text
    args: Json = None
    result: Json = None
    error: OptionalText = None
    duration_ms: Amount = None


class Tokens(Shape):
    """The token usage of an answer."""

    prompt_tokens: Count = None
    completion_tokens: Count = None


class Answer(Shape):
    """A turn, or a single-turn test: they have different names for input and response."""

    input: AnyText = Field("", validation_alias=AliasChoices("test_input", "input"))
    response: OptionalText = Field(None, validation_alias=AliasChoices("agent_response", "response"))
    ground_truth: OptionalText = None
    tool_calls: Listed[Text] = ()
    tool_invocations: Listed[Invocation] = ()
    tools_matched: bool | None = None
    metric_results: Listed[Metric] = ()
    passed: bool
    execution_time_ms: Amount = None
    errors: Listed[AnyText] = ()
    token_usage: Tokens | None = None


class Test(Answer):
    """A test; if it has several turns, they contain the answers."""

    test_name: OptionalText = None
    turns: Listed[Answer] = ()

    @property
    def answers(self) -> Sequence[Answer]:
        """The answers, one for each turn."""
        return self.turns or [self]


class Totals(Shape):
    """The summary, without figures that other parts contain."""

    total_duration_ms: Amount = None


class Report(Shape):
    """A test report."""

    agent_name: AnyText = ""
    agent_config_path: AnyText = ""
    results: list[Test]
    summary: Totals = Totals()
    timestamp: OptionalText = None
    holodeck_version: AnyText = ""


class Metadata(Shape):
    """The origin of a report."""

    git_commit: OptionalText = None


class EvalRun(Shape):
    """A file of HoloDeck's history: the report and its origin."""

    report: Report
    metadata: Metadata = Metadata()
