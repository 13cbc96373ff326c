"""Reads the output of ``promptfoo eval --output results.json``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import AliasChoices, AliasPath, Field

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.text import text_of
from agenteval.results.case import CaseResult, CaseStatus, IterationResult, Json, Score, TurnResult, Usage
from agenteval.results.importers import base
from agenteval.results.rollup import mean_score
from agenteval.suite.cases import content_id, excerpt

# Their thresholds are edits, words, milliseconds, dollars and the like, not scores.
_OTHER_UNITS = frozenset({"cost", "latency", "levenshtein", "perplexity", "word-count"})
_FORMAT: Final = "promptfoo"
# ResultFailureReason.ERROR
_BROKEN = 2
_TITLES = AliasChoices(AliasPath("testCase", "description"), "description")


class _Component(base.ImportedShape):
    passed: bool | None = base.at("pass")
    score: base.Number = None
    reason: base.OptionalText = None
    type: base.AnyText = base.at("assertion", "type", default="")
    metric: base.OptionalText = base.at("assertion", "metric")
    threshold: base.Share = base.at("assertion", "threshold")
    weight: base.Number = base.at("assertion", "weight")
    set_metric: base.OptionalText = base.at("metadata", "assertionSet", "metric")

    def score_of(self, repeats: base.Repeats) -> Score:
        positive = self.type.removeprefix("not-")
        has_threshold = positive == self.type and positive not in _OTHER_UNITS
        return base.score_of(
            repeats.unique(self.metric or self.type or self.set_metric or "assert-set"),
            "custom",
            self.score,
            threshold=self.threshold if has_threshold else None,
            # Without weight an assertion always passes: it only informs.
            passed=None if self.weight == 0 else self.passed,
            reason=self.reason,
        )


class _Row(base.ImportedShape):
    success: bool
    index: base.Count = base.at("testIdx")
    failure_reason: base.Count = base.at("failureReason")
    error: base.OptionalText = None
    title: base.OptionalText = Field(None, validation_alias=_TITLES)
    checks: base.Listed[Json] = base.at("testCase", "assert", default=())
    provider: Any = None
    prompt: base.AnyText = base.at("prompt", "raw", default="")
    label: base.AnyText = base.at("prompt", "label", default="")
    vars: base.Mapped[Json] = base.at("vars", default={})
    output: Json = base.at("response", "output")
    is_cached: bool | None = base.at("response", "cached")
    grading: Any = base.at("gradingResult")
    components: base.Listed[_Component | None] = base.at("gradingResult", "componentResults", default=())
    latency_ms: base.Amount = base.at("latencyMs")
    input_tokens: base.Count = base.at("tokenUsage", "prompt")
    output_tokens: base.Count = base.at("tokenUsage", "completion")
    cost: base.Amount = None

    @property
    def agent(self) -> str:
        named = self.provider if isinstance(self.provider, dict) else {"id": self.provider}
        return text_of(named.get("label")) or text_of(named.get("id"))

    @property
    def is_broken(self) -> bool:
        """Whether an error prevented the verdict. Older versions do not record the kind of failure."""
        if self.failure_reason is None:
            return bool(self.error) and self.grading is None
        return self.failure_reason == _BROKEN

    @property
    def has_one_text(self) -> bool:
        return len(self.vars) == 1 and all(isinstance(value, str) for value in self.vars.values())

    @property
    def asked(self) -> str:
        """The variables as text; a single one by itself."""
        values = [text_of(value) for value in self.vars.values()]
        return values[0] if len(values) == 1 else ", ".join(map(": ".join, zip(self.vars, values, strict=True)))

    def iteration(self, index: int) -> IterationResult:
        repeats = base.Repeats()
        scores = [one.score_of(repeats) for one in self.components if one is not None]
        # promptfoo writes 0 for unknown values.
        used = (self.input_tokens or None, self.output_tokens or None, self.cost or None)
        turn = TurnResult(
            index=0,
            # The prompt is the template around the question.
            input=self.asked if self.has_one_text else self.prompt or self.asked,
            ground_truth=None,
            response=None if self.is_broken else text_of(self.output),
            # A cached answer took no time.
            latency_ms=None if self.is_cached or self.is_broken else self.latency_ms,
            usage=Usage(input_tokens=used[0], output_tokens=used[1], cost_usd=used[2]) if any(used) else None,
            # Further lines are the stack trace of promptfoo.
            error=(self.error or "no answer").partition("\n")[0] if self.is_broken else None,
            scores=scores,
        )
        # promptfoo passes a test without checks.
        has_checks = self.checks or any(score.status == "scored" for score in scores)
        status: CaseStatus = "failed" if not self.success else "passed" if has_checks else "skipped"
        status = "error" if self.is_broken else status
        return IterationResult(index=index, status=status, score=mean_score([turn]), turns=[turn])


class _File(base.ImportedShape):
    rows: tuple[_Row, ...] = base.at("results", "results", default=...)
    timestamp: base.OptionalText = base.at("results", "timestamp")
    duration_ms: base.Amount = base.at("results", "stats", "durationMs")
    version: base.AnyText = base.at("metadata", "promptfooVersion", default="")


def _whole(content: Any) -> Any:
    # promptfoo's `evaluate()` returns a part of a file.
    return content if isinstance(content.get("results"), dict) else {"results": content}


def _recognises(content: Any) -> bool:
    results = _whole(content)["results"] if isinstance(content, dict) else {}
    return {"stats", "timestamp"} <= results.keys() and isinstance(results.get("results"), list)


def _read(content: Mapping[str, Any], suites: Sequence[base.KnownSuite]) -> base.ImportedRun:
    file = _File.model_validate(_whole(content))
    found = [(column, *case) for column, rows in _columns(file.rows) for case in _cases(column, rows, suites)]
    columns: defaultdict[str, list[str]] = defaultdict(list)
    for column, _, case, _ in found:
        columns[case.id].append(column)
    if several := next((names for names in columns.values() if len(set(names)) > 1), None):
        raise ConfigError(Problem(base.SEVERAL.format(", ".join(several)), kind=Kind.RESULTS))
    return base.ImportedRun(
        version=file.version,
        started_at=file.timestamp,
        duration_s=(file.duration_ms or 0.0) / 1000,
        suites=base.suites_with(((path, case) for _, path, case, _ in found), suites, _FORMAT),
        questions={case.id: question for _, _, case, question in found if question is not None},
    )


def _columns(rows: Iterable[_Row]) -> Iterable[tuple[str, list[_Row]]]:
    found: dict[tuple[str, str], list[_Row]] = {}
    # Rows are in the order in which they finished.
    for row in sorted(rows, key=lambda row: row.index or 0):
        found.setdefault((row.agent, row.label), []).append(row)
    prompts = Counter(agent for agent, _ in found)
    repeats = base.Repeats()
    for (agent, prompt), answers in found.items():
        name = agent if prompts[agent] == 1 else f"{agent}, {excerpt(prompt)}"
        yield _FORMAT if len(found) == 1 else repeats.unique(f"{_FORMAT}[{name}]"), answers


def _cases(
    column: str, rows: list[_Row], suites: Sequence[base.KnownSuite]
) -> Iterator[tuple[str, CaseResult, str | None]]:
    tests: dict[str, list[_Row]] = {}
    for row in rows:
        # A repeated test has another index and is otherwise the same.
        tests.setdefault(content_id([row.title, row.vars, row.checks]), []).append(row)
    titles = Counter(repeated[0].title for repeated in tests.values())
    # Cases of other promptfoo results get the same ids.
    known = base.KnownCases(suite for suite in suites if suite.path.partition("[")[0] != _FORMAT)
    repeats = base.Repeats()
    for repeated in tests.values():
        row = repeated[0]
        iterations = [each.iteration(index) for index, each in enumerate(repeated)]
        title = row.title if titles[row.title] == 1 else None
        texts = {row.prompt, *(value for value in row.vars.values() if isinstance(value, str))}
        same = known.take(title, texts)
        if same is None:
            own = title or " ".join(filter(None, (row.title, content_id(row.vars))))
            name = row.title or excerpt(row.asked) or own
            yield column, base.case_of(repeats.unique(f"{column}::{own}"), name, iterations), None
            continue
        path, case = same
        said = (row.prompt, *map(text_of, row.vars.values()))
        asks_the_same = len(case.inputs) != 1 or any(case.inputs[0] in text for text in said)
        yield path, base.case_of(case.id, case.name, iterations), None if asks_the_same else row.prompt


_WHAT = "results of promptfoo (promptfoo eval --output results.json)"
IMPORTER = base.Importer(_FORMAT, "promptfoo", _WHAT, _recognises, _read)
