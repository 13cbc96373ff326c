"""What a suite is, whatever format it was written in.

Everything here is data: the loaders in this package make it, the rest of the program reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from agenteval.suite.evaluation import Aggregate, Evaluation

DEFAULT_TURN_TIMEOUT_S = 60.0

# Further attempts where an agent's definition says nothing: what is reached over a network fails in passing.
_DEFAULT_RETRIES = {"http": 2, "http_tool": 2}

# The same text for the same values, in every process.
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)

Scope = Literal["suite", "case", "turn"]

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
    """Where in the suite's files something stands."""

    directory: str = ""
    file: str = ""
    line: int | None = None


@dataclass(frozen=True)
class MetricConfig:
    """One metric as a suite asks for it.

    Attributes:
        id: stable id inside its case, used to pair scores with a baseline.
        type: name in the metric registry, for instance ``numeric``.
        kind: family shown in reports (``standard``, ``geval``, ``rag``, ``code``, ...).
        threshold: score needed to pass, 0..1; ``None`` leaves the verdict to the metric.
        options: constructor arguments of the metric.
        response_path: leaf of a JSON response that is scored instead of the whole text.
        fail_on_error: an error of the metric makes the case an error; otherwise it is a warning.
        retries: further attempts after an error of the metric.
        timeout_s: limit for one attempt, in seconds.
        requested_by: the level of the suite that asked for this metric.
        where: where it stands; relative references start in that directory.
        metric: the metric itself, where a caller in this process gave one; ``options`` are its fields then.
    """

    id: str
    type: str
    kind: MetricKind
    threshold: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    response_path: str | None = None
    fail_on_error: bool = False
    retries: int = 0
    timeout_s: float | None = None
    requested_by: Scope = "suite"
    where: Place = Place()
    metric: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def content(self) -> str:
        """What of it shapes the score, as JSON. Most cases share their metrics, so it is kept."""
        return _json([self.id, self.type, self.threshold, _text_keys(self.options), self.response_path])


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file that belongs to the input of a turn: a path on this machine, or an address to download from.

    Attributes:
        name: what the agent is told it is called: the path as written, or the address without its secrets.
        kind: what it holds.
        path: absolute.
        url: ``http`` or ``https``.
        description: what it is, in the suite's words.
        pages: numbers of pages or slides, from 1; ``None`` is all.
        sheet: of a workbook; ``None`` is all, or the active one where there is a ``range``.
        range: cells of a sheet, like ``A1:E100``.
        digest: hash of the content; ``None`` for what is not downloaded yet.
        cache: keep the download for later runs.
        download_s: limit for a download, in seconds.
        convert_s: limit for reading its text, in seconds.
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
        """What of it shapes the question: the same on every machine that has the same file."""
        name = self.url or PurePath(self.name).name
        return [name, self.kind, self.digest, self.description, self.pages, self.sheet, self.range]


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange with the agent and what is expected of it.

    Attributes:
        input: what is sent to the agent, or to a tool that is called without ``context``.
        ground_truth: the expected answer.
        retrieval_context: passages given by the suite; they win over what the agent retrieved.
        files: what belongs to the input.
        context: named values for the agent or tool under test.
        config: free-form values for code graders.
        metrics: what is measured on the reply.
        exception_is_answer: an exception that a tool under test raises is its answer: it refused.
    """

    input: str
    ground_truth: str | None = None
    retrieval_context: tuple[str, ...] | None = None
    files: tuple[FileRef, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[MetricConfig, ...] = ()
    exception_is_answer: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Who answers a case: an agent, or a tool that is called directly.

    Attributes:
        name: as ``agenteval.yaml`` or a framework of the repository knows it; ``*`` stands for all that are known.
        line: where the suite names it; it makes no other target.
    """

    kind: Literal["agent", "tool"]
    name: str
    line: int | None = field(default=None, compare=False)

    @property
    def is_pattern(self) -> bool:
        """Whether it stands for all that are known."""
        return self.name == "*"


@dataclass(frozen=True, slots=True)
class Case:
    """A named exchange of one or more turns in one session.

    Attributes:
        metrics: what is measured once all iterations are done, over all their last answers together.
        strict: one failed iteration fails the case; else the majority of the iterations decides.
        target: who answers; ``None`` is the suite's agent.
        persona: who asks, where a suite tells several kinds of users apart.
        aggregate: makes one score of all, which alone decides; ``None``: every metric must pass.
        fingerprint: hash of what is asked and how it is judged, without the agent. Two runs of a case are comparable
            only where it is the same.
    """

    id: str
    name: str
    turns: tuple[Turn, ...]
    tags: tuple[str, ...] = ()
    cluster: str | None = None
    line: int | None = None
    iterations: int | None = None
    metrics: tuple[MetricConfig, ...] = ()
    strict: bool = False
    target: Target | None = None
    persona: str | None = None
    aggregate: Aggregate | None = None
    fingerprint: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        content = [*map(_turn_content, self.turns), *(metric.content for metric in self.metrics)]
        object.__setattr__(self, "fingerprint", _digest(content))

    @property
    def all_metrics(self) -> tuple[MetricConfig, ...]:
        """The metrics of all turns, then those over all iterations."""
        return (*(metric for turn in self.turns for metric in turn.metrics), *self.metrics)


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """How an agent, or a tool under test, is reached.

    Attributes:
        kind: ``command``, ``http``, ``python``, ``model``, ``replay``, or ``callable`` for a function of the caller.
        target: argv, URL, ``module:callable``, model or path, by kind.
        directory: where relative paths start and commands run: the directory of the file that
            names the agent.
        timeout_s: limit for one turn, in seconds; ``None`` takes the suite's, else ``DEFAULT_TURN_TIMEOUT_S``.
        concurrency: conversations with it at once; ``None`` takes the run's.
        retries: further attempts after a passing failure; ``None`` takes the default of the kind.
        config: free-form values handed to the agent with every request.
        env: additional environment variables.
        options: what only this kind knows (``headers``, ``response_path``, ``interpreter``, ...).
        where: ``file:line`` of the definition, for messages.
        function: called in this process; for ``callable`` alone.
    """

    kind: str
    target: str | tuple[str, ...]
    directory: str
    timeout_s: float | None = None
    concurrency: int | None = None
    retries: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    where: str = ""
    function: Callable[..., Any] | None = field(default=None, repr=False)

    @property
    def limit_s(self) -> float:
        """The limit for one turn that is in force, in seconds."""
        return DEFAULT_TURN_TIMEOUT_S if self.timeout_s is None else self.timeout_s

    @property
    def retry_limit(self) -> int:
        """How often a turn is asked again after a passing failure."""
        return _DEFAULT_RETRIES.get(self.kind, 0) if self.retries is None else self.retries


@dataclass(frozen=True)
class Suite:
    """Every case of one suite file, ready to run.

    Attributes:
        path: the file, relative to the repository, with forward slashes.
        root: the directory whose source code its targets stand in, where it has some.
        agent: an agent of its own, the name of one in ``agenteval.yaml``, or ``None`` for the default.
        fallback_agent: what the suite itself describes, for where there is no default either.
        concurrency: cases at once, where the suite says so.
        turn_timeout_s: limit for one turn, for agents that say none themselves.
        retrieval_tools: names of tools whose results are retrieved passages.
        metrics: what is measured on recorded traces, where the format can score them.
        aggregate: how these scores become one.
        evaluation: what is wanted of the run as a whole.
        warnings: what is worth saying but no error.
        secrets: values that came from secret-looking environment variables; masked in every report.
    """

    path: str
    name: str
    format: str
    cases: tuple[Case, ...]
    root: str = ""
    agent: AgentSpec | str | None = None
    fallback_agent: AgentSpec | None = None
    iterations: int | None = None
    concurrency: int | None = None
    turn_timeout_s: float | None = None
    retrieval_tools: frozenset[str] = frozenset()
    metrics: tuple[MetricConfig, ...] = ()
    aggregate: Aggregate | None = None
    evaluation: Evaluation | None = None
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @cached_property
    def fingerprint(self) -> str:
        """Hash over the fingerprints of all cases."""
        return _digest(_json([case.id, case.fingerprint]) for case in self.cases)


def _turn_content(turn: Turn) -> str:
    """What of it shapes the question and the verdict, as JSON."""
    parts = (
        _json(turn.input),
        _json(turn.ground_truth),
        _json(turn.retrieval_context),
        _array(_json(file.content) for file in turn.files),
        _json(_text_keys(turn.context)) if turn.context else "{}",
        _json(_text_keys(turn.config)) if turn.config else "{}",
        _array(metric.content for metric in turn.metrics),
    )
    return _array(parts)


def _text_keys(value: Any) -> Any:
    """The value with every key as text: YAML has keys of all kinds, and only texts can be sorted."""
    if isinstance(value, Mapping):
        return {str(key): _text_keys(item) for key, item in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list | tuple) else value


def _json(value: Any) -> str:
    return "null" if value is None else _ENCODER.encode(value)


def _array(items: Iterable[str]) -> str:
    """JSON of a list whose items are JSON."""
    return f"[{','.join(items)}]"


def _digest(items: Iterable[str]) -> str:
    """The hash of a list whose items are JSON."""
    return hashlib.sha256(_array(items).encode("utf-8", "surrogatepass")).hexdigest()[:16]
