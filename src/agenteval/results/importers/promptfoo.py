"""Reads the output of ``promptfoo eval --output results.json``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.results.case import (
    CaseResult,
    CaseStatus,
    IterationResult,
    Json,
    Score,
    SuiteResult,
    TurnResult,
    Usage,
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
    Listed,
    Mapped,
    Number,
    OptionalText,
    Repeats,
    text_of,
)
from agenteval.results.rollup import case_status, mean, mean_score
from agenteval.suite.cases import content_id, excerpt
from agenteval.suite.model import MetricKind

_TYPES: Mapping[MetricKind, frozenset[str]] = {
    "match": frozenset(
        {
            "contains",
            "contains-all",
            "contains-any",
            "equals",
            "icontains",
            "icontains-all",
            "icontains-any",
            "levenshtein",
            "regex",
            "similar",
            "similar:cosine",
            "similar:dot",
            "similar:euclidean",
            "starts-with",
            "word-count",
        }
    ),
    "schema": frozenset(
        {
            "contains-html",
            "contains-json",
            "contains-sql",
            "contains-xml",
            "is-html",
            "is-json",
            "is-sql",
            "is-valid-function-call",
            "is-valid-openai-function-call",
            "is-valid-openai-tools-call",
            "is-xml",
        }
    ),
    "code": frozenset({"javascript", "python", "ruby", "webhook"}),
    "geval": frozenset({"g-eval"}),
    "judge": frozenset(
        {
            "agent-rubric",
            "conversation-relevance",
            "factuality",
            "llm-rubric",
            "model-graded-closedqa",
            "model-graded-factuality",
            "search-rubric",
        }
    ),
    "rag": frozenset({"answer-relevance", "context-faithfulness", "context-recall", "context-relevance"}),
    "standard": frozenset({"bleu", "gleu", "meteor", "rouge-n"}),
    "performance": frozenset({"cost", "latency"}),
    "safety": frozenset({"guardrails", "is-refusal", "moderation"}),
    "tools": frozenset({"tool-call-f1"}),
}
_KINDS: Mapping[str, MetricKind] = {name: kind for kind, names in _TYPES.items() for name in names}
# Their thresholds are edits, words, milliseconds, dollars and the like, not scores.
_OTHER_UNITS = frozenset({"cost", "latency", "levenshtein", "perplexity", "word-count"})


def kind_of(assertion: str) -> MetricKind:
    """Return the metric kind of an assertion type, negated or not."""
    return _KINDS.get(assertion.removeprefix("not-"), "custom")


def threshold_of(assertion: str, threshold: float | None) -> float | None:
    """Return the score that an assertion needs; ``None`` if its threshold is not a score, or it is negated."""
    if threshold is None or assertion.startswith("not-") or assertion in _OTHER_UNITS:
        return None
    return threshold if 0 <= threshold <= 1 else None


# ResultFailureReason.ERROR
_BROKEN = 2


class Assertion(ImportedShape):
    """One assertion."""

    type: AnyText = ""
    metric: OptionalText = None
    threshold: Number = None
    weight: Number = None


class AssertionSet(ImportedShape):
    """Assertions that are judged together."""

    metric: OptionalText = None


class ComponentData(ImportedShape):
    """Details of a verdict."""

    assertion_set: AssertionSet | None = Field(None, alias="assertionSet")


class Component(ImportedShape):
    """The verdict of one assertion, or of a set."""

    passed: bool | None = Field(None, alias="pass")
    score: Number = None
    reason: OptionalText = None
    assertion: Assertion | None = None
    metadata: ComponentData | None = None


class Grading(ImportedShape):
    """All verdicts of an answer."""

    components: Listed[Component | None] = Field((), alias="componentResults")


class PromptfooTokens(ImportedShape):
    """The token usage of an answer."""

    prompt: Count = None
    completion: Count = None


class Response(ImportedShape):
    """A provider's response."""

    output: Json = None
    cached: bool | None = None


class PromptfooProvider(ImportedShape):
    """A provider."""

    id: OptionalText = None
    label: OptionalText = None


class Prompt(ImportedShape):
    """A prompt."""

    raw: AnyText = ""
    label: AnyText = ""


class PromptfooTest(ImportedShape):
    """A test of the suite."""

    description: OptionalText = None
    checks: Listed[Json] = Field((), alias="assert")


class PromptfooRow(ImportedShape):
    """One answer: a test for a provider with a prompt."""

    success: bool
    index: Count = Field(None, alias="testIdx")
    failure_reason: Count = Field(None, alias="failureReason")
    error: OptionalText = None
    description: OptionalText = None
    test: PromptfooTest = Field(PromptfooTest(), alias="testCase")
    provider: PromptfooProvider | str = PromptfooProvider()
    prompt: Prompt = Prompt()
    vars: Mapped[Json] = Field({})
    response: Response | None = None
    grading: Grading | None = Field(None, alias="gradingResult")
    named_scores: Mapped[Number] = Field({}, alias="namedScores")
    latency_ms: Amount = Field(None, alias="latencyMs")
    tokens: PromptfooTokens | None = Field(None, alias="tokenUsage")
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


class PromptfooStats(ImportedShape):
    """The run in numbers."""

    duration_ms: Amount = Field(None, alias="durationMs")


class PromptfooSummary(ImportedShape):
    """``EvaluateSummaryV3``, or the older V2."""

    timestamp: OptionalText = None
    results: tuple[PromptfooRow, ...]
    stats: PromptfooStats = PromptfooStats()


class PromptfooOrigin(ImportedShape):
    """The origin of a file."""

    version: AnyText = Field("", alias="promptfooVersion")


class File(ImportedShape):
    """``OutputFile``."""

    results: PromptfooSummary
    metadata: PromptfooOrigin = PromptfooOrigin()


FORMAT: Final = "promptfoo"


def is_promptfoo(content: Any) -> bool:
    """Return whether JSON is results of promptfoo, from a file or from ``evaluate()``."""
    if not isinstance(content, dict):
        return False
    evaluation = content["results"] if isinstance(content.get("results"), dict) else content
    return isinstance(evaluation.get("results"), list) and {"stats", "timestamp"} <= evaluation.keys()


def read_promptfoo(content: Mapping[str, Any], suites: Sequence[KnownSuite]) -> ImportedRun:
    """Return results as a recording.

    A test matches the known case that its description names, else the case whose question is in a variable or the
    prompt. Other tests form a separate suite for each provider and prompt.

    Raises:
        ValidationError: a required part is missing or has another type.
        ConfigError: several providers or prompts answered the same known case.
    """
    file = File.model_validate(content if isinstance(content.get("results"), dict) else {"results": content})
    columns = _columns(file.results.results)
    found = [answer for name, rows in columns.items() for answer in _answers(name, rows, suites)]
    _require_one_agent(found)
    groups: dict[str, list[CaseResult]] = defaultdict(list)
    known = {suite.path: suite for suite in suites}
    for answer in found:
        groups[answer.suite].append(answer.case)
    return ImportedRun(
        tool=FORMAT,
        version=file.metadata.version,
        started_at=file.results.timestamp,
        duration_s=(file.results.stats.duration_ms or 0.0) / 1000,
        suites=[
            SuiteResult(
                path=path,
                name=known[path].name if path in known else path,
                format=known[path].format if path in known else FORMAT,
                fingerprint="",
                cases=cases,
            )
            for path, cases in groups.items()
        ],
        questions={answer.case.id: answer.question for answer in found if answer.question is not None},
    )


@dataclass(frozen=True)
class _Answered:
    """A case, the path of its suite, and the provider and prompt that answered it."""

    suite: str
    column: str
    case: CaseResult
    question: str | None = None


def _columns(rows: Iterable[PromptfooRow]) -> dict[str, list[PromptfooRow]]:
    """Return the answers of one provider to one prompt, by the path of a suite."""
    found: dict[tuple[str, str], list[PromptfooRow]] = {}
    # Rows are in the order in which they finished.
    for row in sorted(rows, key=lambda row: row.index or 0):
        found.setdefault((row.agent, row.prompt.label), []).append(row)
    if len(found) == 1:
        return dict(zip([FORMAT], found.values(), strict=True))
    prompts = Counter(agent for agent, _ in found)
    repeats = Repeats()
    return {
        repeats.unique(f"{FORMAT}[{agent if prompts[agent] == 1 else f'{agent}, {excerpt(prompt)}'}]"): answers
        for (agent, prompt), answers in found.items()
    }


def _answers(column: str, rows: Sequence[PromptfooRow], suites: Sequence[KnownSuite]) -> Iterator[_Answered]:
    tests: dict[str, list[PromptfooRow]] = {}
    for row in rows:
        # A repeated test has another index and is otherwise the same.
        tests.setdefault(content_id([row.title, row.vars, row.test.checks]), []).append(row)
    titles = Counter(repeated[0].title for repeated in tests.values())
    # Cases of other promptfoo results get the same ids.
    known = _Known(suite for suite in suites if suite.path != FORMAT and not suite.path.startswith(f"{FORMAT}["))
    repeats = Repeats()
    for repeated in tests.values():
        row = repeated[0]
        named = row.title if titles[row.title] == 1 else None
        same = known.case(named, row)
        if same is not None:
            question = None if _asks_the_same(same[1], row) else row.prompt.raw
            yield _Answered(same[0], column, _case(same[1].id, same[1].name, repeated), question)
            continue
        own = named or " ".join(filter(None, (row.title, content_id(row.vars))))
        name = row.title or excerpt(_said(row)) or own
        yield _Answered(column, column, _case(repeats.unique(f"{column}::{own}"), name, repeated))


class _Known:
    """Finds the known case of a test, each once; an ambiguous name or question finds none."""

    def __init__(self, suites: Iterable[KnownSuite]) -> None:
        self._found: set[str] = set()
        self._named: defaultdict[str, list[tuple[str, KnownCase]]] = defaultdict(list)
        self._asking: defaultdict[str, list[tuple[str, KnownCase]]] = defaultdict(list)
        for suite in suites:
            for case in suite.cases:
                self._named[case.name].append((suite.path, case))
                if len(case.inputs) == 1:
                    self._asking[case.inputs[0]].append((suite.path, case))

    def case(self, name: str | None, row: PromptfooRow) -> tuple[str, KnownCase] | None:
        """Return the case with the path of its suite."""
        texts = {row.prompt.raw, *(value for value in row.vars.values() if isinstance(value, str))}
        named = self._named.get(name, []) if name is not None else []
        asking = [one for text in texts for one in self._asking.get(text, [])]
        for found in (named, asking):
            if len(found) == 1 and found[0][1].id not in self._found:
                self._found.add(found[0][1].id)
                return found[0]
        return None


def _asks_the_same(case: KnownCase, row: PromptfooRow) -> bool:
    """Return whether a variable or the prompt contains the question of a case; multi-turn cases never match."""
    texts = (row.prompt.raw, *map(text_of, row.vars.values()))
    return len(case.inputs) != 1 or any(case.inputs[0] in text for text in texts)


def _require_one_agent(found: Iterable[_Answered]) -> None:
    columns: defaultdict[str, list[str]] = defaultdict(list)
    for answer in found:
        columns[answer.case.id].append(answer.column)
    several = next((names for names in columns.values() if len(set(names)) > 1), None)
    if several is not None:
        raise ConfigError(
            Problem(
                f"has answers of several providers or prompts to the same cases ({', '.join(several)}), and a run is "
                "compared with one; keep one with --filter-providers or --filter-prompts of promptfoo",
                kind=Kind.RESULTS,
            )
        )


def _case(case_id: str, name: str, rows: Sequence[PromptfooRow]) -> CaseResult:
    iterations = [_iteration(index, row) for index, row in enumerate(rows)]
    return CaseResult(
        id=case_id,
        name=name,
        status=case_status([iteration.status for iteration in iterations]),
        score=mean(iteration.score for iteration in iterations),
        iterations=iterations,
    )


def _iteration(index: int, row: PromptfooRow) -> IterationResult:
    scores = _scores(row)
    response = row.response or Response()
    turn = TurnResult(
        index=0,
        input=row.prompt.raw or _said(row),
        ground_truth=None,
        response=None if row.is_broken else text_of(response.output),
        # A cached answer took no time.
        latency_ms=None if response.cached or row.is_broken else row.latency_ms,
        usage=_usage(row),
        # Further lines are the stack trace of promptfoo.
        error=(row.error or "no answer").partition("\n")[0] if row.is_broken else None,
        scores=scores,
    )
    return IterationResult(index=index, status=_status(row, scores), score=mean_score([turn]), turns=[turn])


def _status(row: PromptfooRow, scores: Sequence[Score]) -> CaseStatus:
    """Return promptfoo's verdict; a test without checks counts as passed."""
    if row.is_broken:
        return "error"
    if not row.success:
        return "failed"
    return "passed" if row.test.checks or any(score.status == "scored" for score in scores) else "skipped"


def _scores(row: PromptfooRow) -> list[Score]:
    """Return one score for each assertion; without assertions, the scores of named metrics."""
    repeats = Repeats()
    components = [component for component in (row.grading.components if row.grading else ()) if component is not None]
    if components:
        return [_grade(component, repeats).score for component in components]
    return [ImportedScore(id=name, kind="custom", value=value).score for name, value in row.named_scores.items()]


def _grade(component: Component, repeats: Repeats) -> ImportedScore:
    assertion, data = component.assertion or Assertion(), component.metadata
    group = data.assertion_set if data else None
    name = assertion.metric or assertion.type or (group and group.metric) or "assert-set"
    return ImportedScore(
        id=repeats.unique(name),
        kind=kind_of(assertion.type),
        value=component.score,
        threshold=threshold_of(assertion.type, assertion.threshold),
        # Without weight an assertion always passes: it only informs.
        passed=None if assertion.weight == 0 else component.passed,
        reason=component.reason,
    )


def _usage(row: PromptfooRow) -> Usage | None:
    """Return tokens and cost; promptfoo writes 0 for unknown values."""
    tokens = row.tokens or PromptfooTokens()
    found = Usage(
        input_tokens=tokens.prompt or None, output_tokens=tokens.completion or None, cost_usd=row.cost or None
    )
    return None if found == Usage() else found


def _said(row: PromptfooRow) -> str:
    """Return the variables of a test as text; a single variable by itself."""
    values = [text_of(value) for value in row.vars.values()]
    return values[0] if len(values) == 1 else ", ".join(map(": ".join, zip(row.vars, values, strict=True)))
