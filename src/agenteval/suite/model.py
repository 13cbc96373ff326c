"""The model of a suite, independent of its format.

Everything here is data. The loaders in this package create it, and the rest of the program reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from json.encoder import encode_basestring
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Aggregate, Evaluation, JudgeLimits

DEFAULT_TURN_TIMEOUT_S = 60.0

#: Id of the score into which an `Aggregate` combines the scores of a case.
OVERALL = "score"

# Digits of the hashes that results.json keeps for each case and metric.
_SHORT = 12

# Default retries by kind: network agents fail transiently.
_DEFAULT_RETRIES = {"http": 2, "http_tool": 2}

# The same text for the same values, in every process.
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)

# The constraints hold for suites that programs make; formats report their mistakes with file and line.
MOST = 1_000_000
Count = Annotated[int, Field(ge=1, le=MOST)]
Seconds = Annotated[float, Field(gt=0)]

Scope = Literal["suite", "case", "turn", "config"]

FileKind = Literal["image", "pdf", "text", "excel", "word", "powerpoint", "csv"]

MetricKind = Literal[
    "standard",
    "geval",
    "rag",
    "code",
    "tools",
    "match",
    "schema",
    "rule",
    "judge",
    "performance",
    "safety",
    "consistency",
    "custom",
]


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a suite file.

    Attributes:
        directory: directory of the file, from which modules are imported.
        variables: additional environment variables of user code that the suite names here.
    """

    directory: str = ""
    file: str = ""
    line: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """Which cases a metric is for; ``*`` matches any text.

    Attributes:
        cases: names or ids; empty means all.
        tags: one of the case's tags must match; empty means all.
    """

    cases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def allows(self, case_id: str, name: str, tags: Iterable[str]) -> bool:
        """Return whether the metric scores a case."""
        named = not self.cases or any(fnmatchcase(text, item) for item in self.cases for text in (name, case_id))
        return named and (not self.tags or any(fnmatchcase(tag, item) for tag in tags for item in self.tags))


@dataclass(frozen=True)
class MetricConfig:
    """Configuration of a metric in a suite.

    Attributes:
        id: stable id inside its case, used to pair scores with a baseline.
        threshold: score required to pass, 0..1; with ``None`` the metric decides.
        response_path: leaf of a JSON response that is scored instead of the whole text.
        fail_on_error: an error of the metric makes the case an error; otherwise the other metrics decide.
        timeout_s: limit for one attempt, in seconds.
        requested_by: level of the suite that lists this metric; ``config`` is ``agenteval.yaml``.
        gating: whether the metric gates; otherwise the score is only reported.
        only: the cases that an entry of ``agenteval.yaml`` selects.
        metric: the metric object, if a caller in this process passed one; ``options`` are its fields.
    """

    id: str
    type: str
    kind: MetricKind
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    response_path: str | None = None
    fail_on_error: bool = True
    retries: Annotated[int, Field(ge=0)] = 0
    timeout_s: Seconds | None = None
    requested_by: Scope = "suite"
    gating: bool = True
    only: CaseFilter | None = None
    where: Place = Place()
    metric: Any = field(default=None, repr=False, compare=False)

    def is_for(self, case_id: str, name: str, tags: Iterable[str]) -> bool:
        """Return whether the metric scores a case."""
        return self.only is None or self.only.allows(case_id, name, tags)

    @property
    def judge_limits(self) -> JudgeLimits | None:
        """The limits that the metric shares with the other judges of its suite, if it has such limits."""
        limits = self.options.get("limits")
        if limits is None:
            return None
        # Imported here: few suites have such judges.
        from agenteval.suite.evaluation import JudgeLimits

        return limits if isinstance(limits, JudgeLimits) else None

    @cached_property
    def content(self) -> str:
        """Return the parts that affect the score, as JSON. Cached, because most cases share their metrics."""
        return _json([self.id, self.type, self.threshold, _text_keys(self.options), self.response_path])


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file that belongs to the input of a turn: a path on this machine, or an address to download from.

    Attributes:
        name: name of the file for the agent: the path as written, or the address without secrets.
        pages: numbers of pages or slides, from 1; ``None`` means all.
        sheet: sheet of a workbook; ``None`` means all, or the active one with a ``range``.
        range: cells of a sheet, like ``A1:E100``.
        digest: hash of the content; ``None`` before the download.
        cache: whether to keep the download for later runs.
        download_s: limit for a download, in seconds.
        convert_s: limit for reading the text, in seconds.
    """

    name: str
    kind: FileKind
    path: str | None = None
    url: str | None = None
    description: str | None = None
    pages: tuple[int, ...] | None = None
    sheet: str | None = None
    range: str | None = None
    digest: str | None = None
    cache: bool = True
    download_s: float = 30.0
    convert_s: float = 30.0

    @property
    def content(self) -> list[Any]:
        """Return the parts that affect the question; the same on every machine with the same file."""
        name = self.url or PurePath(self.name).name
        return [name, self.kind, self.digest, self.description, self.pages, self.sheet, self.range]


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """Where a file contains the expected answer of a turn as one text."""

    file: str
    keys: tuple[str | int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange with the agent and its expectations.

    Attributes:
        input: what is sent to the agent, or to a tool that is called without ``context``.
        retrieval_context: passages in the suite; they override those that the agent retrieved.
        context: named values for the agent or tool under test.
        config: free-form values for code graders.
        exception_is_answer: whether an exception of a tool under test is its answer (a refusal).
        answer_at: where the expected answer can be changed; ``None`` if the file has none that is one whole text.
    """

    input: str
    ground_truth: str | None = None
    retrieval_context: tuple[str, ...] | None = None
    files: tuple[FileRef, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[MetricConfig, ...] = ()
    exception_is_answer: bool = False
    answer_at: AnswerPlace | None = field(default=None, compare=False, repr=False)

    @property
    def expects_json(self) -> bool:
        """Whether a JSON object is the expected answer, or a metric reads the answer as JSON."""
        if any(metric.kind == "schema" or metric.response_path is not None for metric in self.metrics):
            return True
        return self.ground_truth is not None and _is_json_object(self.ground_truth)


@dataclass(frozen=True, slots=True)
class Target:
    """Target of a case: an agent, or a tool that is called directly.

    Attributes:
        name: name in ``agenteval.yaml`` or in the source code; ``*`` means all targets.
    """

    kind: Literal["agent", "tool"]
    name: str
    line: int | None = field(default=None, compare=False)

    @property
    def is_pattern(self) -> bool:
        """Return whether the target means all targets."""
        return self.name == "*"


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Short hashes that show which parts of two runs of a case can be compared.

    Attributes:
        question: hash of the input to the agent in every turn.
        metrics: metric id → hash of its configuration and expected values, in every turn that it scores.
    """

    question: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """A named conversation of one or more turns in one session.

    Attributes:
        metrics: metrics over the last answers of all iterations together.
        strict: whether one failed iteration fails the case; otherwise the majority decides.
        target: agent or tool that answers; ``None`` means the suite's agent.
        aggregate: combines all scores into the one that decides; with ``None`` every metric must pass.
    """

    id: str
    name: str
    turns: tuple[Turn, ...]
    tags: tuple[str, ...] = ()
    cluster: str | None = None
    line: int | None = None
    iterations: Count | None = None
    metrics: tuple[MetricConfig, ...] = ()
    strict: bool = False
    target: Target | None = None
    persona: str | None = None
    aggregate: Aggregate | None = None
    # Computed on first use: most copies of a case are never asked for it. A copy with changes computes its own.
    _fingerprint: str | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """The hash of the question and the metrics, without the agent.

        Runs can be resumed or merged only if it is equal; see `fingerprints` for comparisons.
        """
        if self._fingerprint is None:
            parts = [
                (
                    *_question_content(turn),
                    *_expected_content(turn),
                    _array(metric.content for metric in turn.metrics),
                )
                for turn in self.turns
            ]
            content = [*map(_array, parts), *(metric.content for metric in self.metrics)]
            object.__setattr__(self, "_fingerprint", _digest(content))
        return str(self._fingerprint)

    @property
    def fingerprints(self) -> Fingerprints:
        """The hashes of the question and of each metric; a metric does not affect the hashes of others."""
        contents: dict[str, list[str]] = {}
        weighed: list[str] = []
        for index, turn in enumerate(self.turns):
            expected = _array(_expected_content(turn))
            for metric in turn.metrics:
                content = _array((str(index), metric.content, expected))
                contents.setdefault(metric.id, []).append(content)
                if metric.requested_by != "config":
                    weighed.append(content)
        for metric in self.metrics:
            contents.setdefault(metric.id, []).append(metric.content)
        if self.aggregate is not None:
            contents[OVERALL] = [_json(_text_keys(asdict(self.aggregate))), *weighed]
        return Fingerprints(
            question=_digest(_array(_question_content(turn)) for turn in self.turns)[:_SHORT],
            metrics={name: _digest(parts)[:_SHORT] for name, parts in contents.items()},
        )

    @property
    def compared_metrics(self) -> tuple[str, ...]:
        """The ids of the metrics that have a fingerprint."""
        ids = dict.fromkeys(metric.id for metric in self.all_metrics)
        return (*ids, OVERALL) if self.aggregate is not None else tuple(ids)

    @property
    def all_metrics(self) -> tuple[MetricConfig, ...]:
        """Return the metrics of all turns, then those over all iterations."""
        if len(self.turns) == 1 and not self.metrics:
            # Most cases; every step of a run asks.
            return self.turns[0].metrics
        return (*(metric for turn in self.turns for metric in turn.metrics), *self.metrics)


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """Definition of an agent or a tool under test.

    Attributes:
        kind: ``command``, ``http``, ``python``, ``model``, ``replay``, or ``callable`` for a function of the caller.
        target: argv, URL, ``module:callable``, model or path, by kind.
        directory: where relative paths start and commands run: the directory of the file that
            names the agent.
        timeout_s: limit for one turn, in seconds; ``None`` uses the suite's, else ``DEFAULT_TURN_TIMEOUT_S``.
        concurrency: conversations at the same time; ``None`` uses the run's.
        retries: retries after a transient failure; ``None`` uses the default of the kind.
        config: free-form values that the agent gets with every request.
        options: options of this kind (``headers``, ``response_path``, ``interpreter``, ...).
        where: ``file:line`` of the definition, for messages.
        function: called in this process; for ``callable`` alone.
        control: name of the agent that is a deployment of the base commit; empty if there is none on purpose.
    """

    kind: str
    target: str | tuple[str, ...]
    directory: str
    timeout_s: Seconds | None = None
    concurrency: Count | None = None
    retries: Annotated[int, Field(ge=0)] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    where: str = ""
    function: Callable[..., Any] | None = field(default=None, repr=False)
    control: str | None = None

    @property
    def limit_s(self) -> float:
        """Return the effective limit for one turn, in seconds."""
        return DEFAULT_TURN_TIMEOUT_S if self.timeout_s is None else self.timeout_s

    @property
    def retry_limit(self) -> int:
        """Return the number of retries after a transient failure."""
        return _DEFAULT_RETRIES.get(self.kind, 0) if self.retries is None else self.retries


@dataclass(frozen=True)
class Suite:
    """Every case of one suite file, ready to run.

    Attributes:
        root: directory with the source code of its targets, if any.
        agent: the suite's agent, the name of one in ``agenteval.yaml``, or ``None`` for the default.
        fallback_agent: the agent that the suite describes, used without a default agent.
        concurrency: cases at the same time, if the suite sets it.
        turn_timeout_s: limit for one turn, for agents without a limit.
        retrieval_tools: names of tools whose results are retrieved passages.
        metrics: metrics of recorded traces, if the format can score them.
        secrets: values of secret-like environment variables, masked in every report.
    """

    path: str
    name: str
    format: str
    cases: tuple[Case, ...]
    root: str = ""
    agent: AgentSpec | str | None = None
    fallback_agent: AgentSpec | None = None
    iterations: Count | None = None
    concurrency: Count | None = None
    turn_timeout_s: Seconds | None = None
    retrieval_tools: frozenset[str] = frozenset()
    metrics: tuple[MetricConfig, ...] = ()
    aggregate: Aggregate | None = None
    evaluation: Evaluation | None = None
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the fingerprints of all cases."""
        return _digest(_array((_json(case.id), f'"{case.fingerprint}"')) for case in self.cases)


def _question_content(turn: Turn) -> tuple[str, ...]:
    """Return the parts that are sent to the agent or tool, as JSON."""
    return (
        _json(turn.input),
        _array(_json(file.content) for file in turn.files) if turn.files else "[]",
        _json(_text_keys(turn.context)) if turn.context else "{}",
    )


def _expected_content(turn: Turn) -> tuple[str, ...]:
    """Return the expected values, which metrics read and the agent does not see, as JSON."""
    return (
        _json(turn.ground_truth),
        _json(turn.retrieval_context),
        _json(_text_keys(turn.config)) if turn.config else "{}",
    )


def _text_keys(value: Any) -> Any:
    """Return the value with text keys, because YAML keys of other types cannot be sorted."""
    if isinstance(value, Mapping):
        return {str(key): _text_keys(item) for key, item in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list | tuple) else value


def _json(value: Any) -> str:
    if value is None:
        return "null"
    return encode_basestring(value) if type(value) is str else _ENCODER.encode(value)


def _array(items: Iterable[str]) -> str:
    return f"[{','.join(items)}]"


def _is_json_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _digest(items: Iterable[str]) -> str:
    return hashlib.sha256(_array(items).encode("utf-8", "surrogatepass")).hexdigest()[:16]
