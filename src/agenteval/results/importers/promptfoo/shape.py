"""The parts of promptfoo's results that are read, as promptfoo 0.121 and older versions write them."""

from __future__ import annotations

from pydantic import Field

from agenteval.results.importers.values import Amount, AnyText, Count, Listed, Mapped, Number, OptionalText, Shape
from agenteval.results.values import Json

# ResultFailureReason.ERROR
_BROKEN = 2


class Assertion(Shape):
    """One assertion."""

    type: AnyText = ""
    metric: OptionalText = None
    threshold: Number = None
    weight: Number = None


class AssertionSet(Shape):
    """Assertions that are judged together."""

    metric: OptionalText = None


class ComponentData(Shape):
    """Details of a verdict."""

    assertion_set: AssertionSet | None = Field(None, alias="assertionSet")


class Component(Shape):
    """The verdict of one assertion, or of a set."""

    passed: bool | None = Field(None, alias="pass")
    score: Number = None
    reason: OptionalText = None
    assertion: Assertion | None = None
    metadata: ComponentData | None = None


class Grading(Shape):
    """All verdicts of an answer."""

    components: Listed[Component | None] = Field((), alias="componentResults")


class Tokens(Shape):
    """The token usage of an answer."""

    prompt: Count = None
    completion: Count = None


class Response(Shape):
    """A provider's response."""

    output: Json = None
    cached: bool | None = None


class Provider(Shape):
    """A provider."""

    id: OptionalText = None
    label: OptionalText = None


class Prompt(Shape):
    """A prompt."""

    raw: AnyText = ""
    label: AnyText = ""


class Test(Shape):
    """A test of the suite."""

    description: OptionalText = None
    checks: Listed[Json] = Field((), alias="assert")


class Row(Shape):
    """One answer: a test for a provider with a prompt."""

    success: bool
    index: Count = Field(None, alias="testIdx")
    failure_reason: Count = Field(None, alias="failureReason")
    error: OptionalText = None
    description: OptionalText = None
    test: Test = Field(Test(), alias="testCase")
    provider: Provider | str = Provider()
    prompt: Prompt = Prompt()
    vars: Mapped[Json] = Field({})
    response: Response | None = None
    grading: Grading | None = Field(None, alias="gradingResult")
    named_scores: Mapped[Number] = Field({}, alias="namedScores")
    latency_ms: Amount = Field(None, alias="latencyMs")
    tokens: Tokens | None = Field(None, alias="tokenUsage")
    cost: Amount = None

    @property
    def title(self) -> str | None:
        """The description of the test."""
        return self.test.description or self.description or None

    @property
    def agent(self) -> str:
        """The name of the provider."""
        if isinstance(self.provider, str):
            return self.provider
        return self.provider.label or self.provider.id or ""

    @property
    def is_broken(self) -> bool:
        """Whether an error prevented the verdict. Older versions do not record the kind of failure."""
        if self.failure_reason is not None:
            return self.failure_reason == _BROKEN
        return bool(self.error) and self.grading is None


class Stats(Shape):
    """The run in numbers."""

    duration_ms: Amount = Field(None, alias="durationMs")


class Evaluation(Shape):
    """``EvaluateSummaryV3``, or the older V2."""

    timestamp: OptionalText = None
    results: tuple[Row, ...]
    stats: Stats = Stats()


class Metadata(Shape):
    """The origin of a file."""

    version: AnyText = Field("", alias="promptfooVersion")


class File(Shape):
    """``OutputFile``."""

    results: Evaluation
    metadata: Metadata = Metadata()
