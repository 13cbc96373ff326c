"""A suite's results in results.json: cases, iterations, turns, scores and tool calls."""

from __future__ import annotations

import re
from operator import not_
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from agenteval.suite.model import MetricKind

_SURROGATE = re.compile("[\ud800-\udfff]")
# JSON parsers limit the nesting; a common limit is 200, and these values are nested in other levels.
_MAX_DEPTH = 100
_TOO_DEEP = "… (nested too deeply)"
_PLAIN = frozenset({type(None), bool, int, float})


# Larger than any sum over a run, and a number that formats, divides and rounds.
_LARGEST_NUMBER = 10**24


def _bound(schema: Any) -> None:
    if isinstance(schema, dict):
        if schema.get("type") in {"list", "dict"}:
            schema["fail_fast"] = True
        elif schema.get("type") in {"int", "float"}:
            if "gt" not in schema:
                schema.setdefault("ge", -_LARGEST_NUMBER)
            schema.setdefault("le", _LARGEST_NUMBER)
            if schema["type"] == "float":
                schema["allow_inf_nan"] = False
        for part in schema.values():
            # The schema of another model is done already.
            if not (isinstance(part, dict) and part.get("type") == "model"):
                _bound(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            _bound(part)


class ResultsModel(BaseModel):
    """The base of the models of results.json; keys of later versions are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Bound numbers, and stop at the first invalid item of a list: an error per item would fill the memory."""
        schema = handler(source)
        _bound(schema)
        return schema


def _clean_text(text: str) -> str:
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def clean_json(value: Any, depth: int = 0) -> Any:
    """Return a value as valid JSON: without lone surrogates and deep nesting."""
    # Every detail of every score passes here, so the types of most values come first, and not by isinstance.
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _clean_text(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, dict):
        if depth == _MAX_DEPTH:
            return _TOO_DEEP
        return {
            key if type(key) is str and key.isascii() else _clean_text(str(key)): clean_json(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return _TOO_DEEP if depth == _MAX_DEPTH else [clean_json(item, depth + 1) for item in value]
    return _clean_text(value) if isinstance(value, str) else value


# Output of agents is untrusted. These types keep only valid JSON.
Text = Annotated[str, AfterValidator(_clean_text)]
Json = Annotated[Any, AfterValidator(clean_json)]

CaseStatus = Literal["passed", "failed", "error", "skipped"]
ScoreStatus = Literal["scored", "skipped", "error"]
NotAskedCause = Literal["budget", "time", "limit", "sample", "key"]


#: The most tokens, and US dollars, of a reply: their sums over a run are numbers too.
MOST_USED: Final = 10**15


class Usage(ResultsModel):
    """Tokens and cost of one reply or one run; ``None`` if unknown."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class NotAsked(ResultsModel):
    """Why a judge or an agent was not called.

    Attributes:
        cause: the run's budget or time limit, the suite's limit of calls or sample, or the missing key of a model.
        limit: the same with its size, for instance ``limit of 50 calls``.
    """

    cause: NotAskedCause
    limit: Text


class ToolCall(ResultsModel):
    """One tool call of the agent."""

    name: Text
    args: Json = None
    result: Json = None
    error: Text | None = None
    duration_ms: float | None = None


class Score(ResultsModel):
    """The result of one metric for one reply.

    Attributes:
        gating: whether the metric can decide about the case; otherwise it is only reported.
        not_asked: why the judge was not called; set for skipped scores only.
    """

    id: str
    kind: MetricKind
    score: float | None
    threshold: float | None = None
    passed: bool | None
    status: ScoreStatus
    # Omitted if true.
    gating: bool = Field(default=True, exclude_if=bool)
    reason: Text | None = None
    error: Text | None = None
    # Omitted if the judge was called, or if the metric does not apply.
    not_asked: NotAsked | None = Field(default=None, exclude_if=not_)
    model: str | None = None
    duration_ms: float | None = None
    cost_usd: float | None = None
    details: Annotated[dict[str, Any] | None, AfterValidator(clean_json)] = None


class Shortened(ResultsModel):
    """The size and hash of a value whose beginning alone is kept.

    Attributes:
        characters: number of characters of the whole text; of a list or structure, of its JSON.
        bytes: number of bytes in UTF-8.
        sha256: hash of these bytes, in hexadecimal digits.
    """

    characters: int
    bytes: int
    sha256: str


class TurnResult(ResultsModel):
    """One turn: the question, the answer, and the scores.

    Attributes:
        shortened: the fields of which only the beginning is kept, by name; a field of a score is called
            ``scores.0.reason``. Metrics read the whole values.
    """

    index: int
    input: Text
    ground_truth: Text | None
    response: Text | None
    tool_calls: list[ToolCall] = Field(default=[])
    retrieval_context: list[Text] = Field(default=[])
    latency_ms: float | None = None
    usage: Usage | None = None
    error: Text | None = None
    # The limit of the run that is the cause of the error; omitted if none is.
    not_asked: NotAsked | None = Field(default=None, exclude_if=not_)
    # Number of retries; omitted if there were none.
    retries: int = Field(default=0, exclude_if=not_)
    # Whether the agent could not be reached or was overloaded: then ``error`` says nothing about its answers.
    unavailable: bool = Field(default=False, exclude_if=not_)
    # Whether a cache answered a model call of the agent: then there is no latency and no cost. Omitted if false.
    cached: bool = Field(default=False, exclude_if=not_)
    scores: list[Score] = Field(default=[])
    # Omitted if every value is whole.
    shortened: dict[str, Shortened] = Field(default_factory=dict, exclude_if=not_)


class IterationResult(ResultsModel):
    """One execution of all turns of a case, in a separate session."""

    index: int
    status: CaseStatus
    score: float | None
    turns: list[TurnResult]


class CaseResult(ResultsModel):
    """A case over all its iterations. ``strict``: one failed iteration fails it; else the majority decides.

    Attributes:
        unneeded: iterations that were not made, because the first run ended early (``gate.first``).
    """

    id: str
    name: str
    tags: list[str] = Field(default=[])
    cluster: str | None = None
    line: int | None = None
    # Omitted if false.
    strict: bool = Field(default=False, exclude_if=not_)
    status: CaseStatus
    score: float | None
    iterations: list[IterationResult]
    # Omitted if all were made.
    unneeded: int = Field(default=0, ge=0, exclude_if=not_)

    @property
    def planned(self) -> int:
        """The number of iterations of a whole run."""
        return len(self.iterations) + self.unneeded

    @property
    def telling_iteration(self) -> IterationResult | None:
        """The first iteration with the status of the case; of a passed case, the first that did not pass, if any."""
        failed = [iteration for iteration in self.iterations if iteration.status != "passed"]
        own = [iteration for iteration in failed if iteration.status == self.status]
        return next(iter(own or failed or self.iterations), None)

    @property
    def turns(self) -> list[TurnResult]:
        """The turns of all iterations, in order."""
        # Most cases have one iteration, and every count of a run asks for its turns.
        if len(self.iterations) == 1:
            return self.iterations[0].turns
        return [turn for iteration in self.iterations for turn in iteration.turns]

    @property
    def scores(self) -> list[Score]:
        """The scores of all turns of all iterations, in order."""
        return [score for turn in self.turns for score in turn.scores]

    @property
    def is_fully_evaluated(self) -> bool:
        """Whether no metric that can decide ended in an error beside others that decided."""
        decided = [iteration for iteration in self.iterations if iteration.status in {"passed", "failed"}]
        scores = (score for iteration in decided for turn in iteration.turns for score in turn.scores)
        return not any(score.status == "error" and score.gating for score in scores)

    @property
    def is_open(self) -> bool:
        """Whether the case failed, or was not evaluated; a case without a metric that applies is neither."""
        if self.status == "skipped":
            return any(turn.not_asked or any(score.not_asked for score in turn.scores) for turn in self.turns)
        return self.status != "passed"

    @property
    def reason(self) -> str:
        """Why the case did not pass: errors of the agent, then the failed scores; empty for a passed case."""
        if self.status == "passed":
            return ""
        errors = [turn.error for turn in self.turns if turn.error]
        scores = [score for score in self.scores if score.passed is not True]
        not_asked = [score for score in scores if score.not_asked] if self.status == "skipped" else []
        decisive = not_asked or [score for score in scores if score.status == "error" or score.passed is False]
        return "; ".join(dict.fromkeys((*errors, *map(_reason, decisive or scores))))


def _reason(score: Score) -> str:
    found = score.error or score.reason or (score.status if score.score is None else f"scored {score.score:.2f}")
    return f"{score.id}: {found}"


class Criterion(ResultsModel):
    """A condition on the whole suite."""

    name: str
    met: bool | None
    value: float | None = None
    threshold: float | None = None


class SuiteResult(ResultsModel):
    """One suite file.

    Attributes:
        threshold: the required score of a case if the suite aggregates scores.
        unmeasured: ids of the metrics that can decide and were skipped for every reply, and their parts that measured
            nothing, such as ``basic (rule 1: not_contains)``; empty in a shard.
        undecided: number of cases that passed although no metric gave a verdict.
        goal: the suite's description of what the evaluation is for.
    """

    path: str
    name: str
    format: str
    fingerprint: str
    criteria: list[Criterion] = Field(default=[])
    # Omitted if empty.
    threshold: float | None = Field(default=None, exclude_if=lambda value: value is None)
    unmeasured: list[str] = Field(default=[], exclude_if=not_)
    undecided: int = Field(default=0, exclude_if=not_)
    goal: str | None = Field(default=None, exclude_if=lambda value: value is None)
    cases: list[CaseResult]
