"""Converts a HoloDeck ``agent.yaml`` to a suite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.documents.allowed import KeyPatterns
from agenteval.core.documents.document import Document, KeyPath, dotted
from agenteval.core.documents.validation import validate
from agenteval.core.documents.yaml.large_list import ListInFile, NotInPartsError, ReadList, read_in_parts, read_whole
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.spec import ModelSpec
from agenteval.suite.agents import CREDENTIALS as AGENT_CREDENTIALS
from agenteval.suite.agents import is_inline_agent, read_agent
from agenteval.suite.case_ids import excerpt, turns_id
from agenteval.suite.formats.holodeck.agent import fallback_agent, repeated_names, validate_file, written_secrets
from agenteval.suite.formats.holodeck.files import FileReader
from agenteval.suite.formats.holodeck.legacy import LegacyMetrics, is_legacy
from agenteval.suite.formats.holodeck.metrics import (
    NEED_GROUND_TRUTH,
    default_judge,
    expected_tools,
    judge_of,
    metric_config,
    metric_name,
)
from agenteval.suite.formats.holodeck.schema import (
    MATCHERS,
    AgentFile,
    AnyMetric,
    CaseEntry,
    StandardMetric,
    TurnEntry,
)
from agenteval.suite.model import AgentSpec, AnswerPlace, Case, MetricConfig, Place, Scope, Suite, Turn

if TYPE_CHECKING:
    from agenteval.suite.formats.holodeck.tools_schema import ToolEntry

FORMAT = "holodeck"

_CASES = "test_cases"

_METRICS = (
    "evaluations",
    "evaluations.metrics.*",
    "test_cases.*.evaluations.*",
    "test_cases.*.turns.*.evaluations.*",
)
# Sections of HoloDeck that agenteval does not use; real files have credentials there.
_UNUSED = ("embedding_provider", "claude", "openai", "observability", "deployment", "tools.*.database")
_CREDENTIALS = KeyPatterns.of(
    (
        "model.api_key",
        "tools.*.env.*",
        "tools.*.headers.*",
        "tools.*.model.api_key",
        *(f"{metric}.model.api_key" for metric in _METRICS),
        *(f"{section}.**" for section in _UNUSED),
        *(f"agent.{key}" for key in AGENT_CREDENTIALS),
    )
)
# A file of cases may have the list at its top.
_CASE_CREDENTIALS = KeyPatterns.of(
    f"{cases}.{key}.model.api_key"
    for cases in ("test_cases.*", "*")
    for key in ("evaluations.*", "turns.*.evaluations.*")
)

# Keys whose YAML numbers and booleans are read as text, as written.
_TEXT_KEYS = ("name", "input", "ground_truth")


def load_holodeck(path: Path, shown_as: str) -> Suite:
    """Load one suite.

    Args:
        path: the ``agent.yaml``.
        shown_as: path in the repository; part of every case id.

    Raises:
        ConfigError: with every problem of the file.
    """
    try:
        return _loaded(path, shown_as, read_in_parts)
    except NotInPartsError:
        return _loaded(path, shown_as, read_whole)


def _loaded(path: Path, shown_as: str, read: ReadList) -> Suite:
    problems: list[Problem] = []
    found = read(path, _CASES, shown_as=shown_as, unset=problems, credentials=_CREDENTIALS)
    return _Loader(found, read, problems).load()


@dataclass
class _Loader:
    """Collects problems and warnings while one file is read."""

    found: ListInFile
    read: ReadList
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set)
    judge: ModelSpec = field(default_factory=lambda: default_judge(None))
    legacy: LegacyMetrics = field(default_factory=LegacyMetrics)

    @property
    def document(self) -> Document:
        """The suite's file."""
        return self.found.document

    def load(self) -> Suite:
        document = self.document
        self.warnings.extend(document.warnings)
        if not isinstance(document.data, dict):
            raise ConfigError([*self.problems, document.problem((), "must be a mapping with `test_cases`")])
        entry, problems = validate_file(_named_as_written(document, ()), document)
        self.problems += problems
        self.judge = default_judge(entry)
        source = self._case_source(document.data)
        # Read cases even with other problems, to report every mistake at once.
        cases = self._cases(source, entry)
        agent = self._agent(document.data.get("agent"))
        self.problems += repeated_names(entry, document) if entry else []
        if self.problems or entry is None:
            raise ConfigError(self.problems)
        fallback = fallback_agent(entry, document)
        return Suite(
            path=document.file,
            name=entry.name or document.directory.name,
            format=FORMAT,
            cases=cases,
            agent=agent,
            fallback_agent=fallback,
            retrieval_tools=_retrieval_tools(entry.tools or ()),
            turn_timeout_s=entry.execution.llm_timeout if entry.execution else None,
            concurrency=entry.execution.parallel_test_cases if entry.execution else None,
            warnings=tuple(self.warnings),
            secrets=document.secrets | self.secrets | _written_keys(cases) | written_secrets(fallback),
        )

    def _case_source(self, data: Mapping[str, Any]) -> ListInFile:
        """Return the source of the cases: inline, or the file that ``test_cases_file`` names."""
        file = data.get("test_cases_file")
        if not isinstance(file, str):
            return self.found
        if _CASES in data:
            self._problem(("test_cases_file",), "give `test_cases` or `test_cases_file`, not both")
            return self.found
        shown_as = str(Path(self.document.file).parent / file)
        try:
            path = self.document.directory / file
            source = self.read(path, _CASES, shown_as=shown_as, unset=self.problems, credentials=_CASE_CREDENTIALS)
        except ConfigError as error:
            self.problems += [
                replace(problem, message=f"test_cases_file: {problem.message}") for problem in error.problems
            ]
            return ListInFile(Document(file=shown_as, directory=self.document.directory, data=[]), (), [])
        document = source.document
        self.warnings.extend(document.warnings)
        self.secrets |= document.secrets
        listed = document.data[_CASES] if source.at else document.data
        if listed is not None and not isinstance(listed, list):
            self.problems.append(
                document.problem(source.at, "must be a list of cases, or a mapping with `test_cases`")
            )
        return source

    def _cases(self, source: ListInFile, entry: AgentFile | None) -> tuple[Case, ...]:
        shared = entry.evaluations.metrics if entry and entry.evaluations else []
        shared_configs = self.metrics(shared, "suite", self.document, ("evaluations", "metrics"), report=True)
        files = FileReader(entry.execution if entry else None, self.warnings)
        cases: list[Case] = []
        for part in source.parts:
            reader = _CaseReader(self, part.document, shared_configs, files)
            read = [reader.read((*source.at, index)) for index in part.items]
            cases += [case for case in read if case is not None]
            self.warnings.extend(part.document.warnings)
            self.secrets |= part.document.secrets
        return self._with_unique_ids(cases, source.document)

    def _with_unique_ids(self, cases: list[Case], source: Document) -> tuple[Case, ...]:
        prefix = f"{self.document.file}::"
        lines: dict[str, int | None] = {}
        repeats: dict[str, int] = {}
        result = []
        for case in cases:
            if case.id not in lines:
                lines[case.id] = case.line
                result.append(case)
            elif case.id != f"{prefix}{case.name}":
                # A repeated question without names: all run, and their order distinguishes them.
                repeats[case.id] = repeats.get(case.id, 1) + 1
                result.append(replace(case, id=f"{case.id}#{repeats[case.id]}"))
            else:
                first = f" (first in line {lines[case.id]})" if lines[case.id] else ""
                self.problems.append(
                    Problem(
                        f"the name {case.name!r} is given twice{first}; names identify cases, so choose another one",
                        file=source.file,
                        line=case.line,
                        path="test_cases",
                    )
                )
        return tuple(result)

    def _agent(self, value: Any) -> AgentSpec | str | None:
        if value is None:
            return None
        if isinstance(value, str) and not is_inline_agent(value):
            return value
        spec, problems = read_agent(value, self.document, ("agent",))
        self.problems += problems
        return spec

    def metrics(
        self, entries: Iterable[AnyMetric], scope: Scope, document: Document, at: KeyPath, *, report: bool = False
    ) -> tuple[MetricConfig, ...]:
        """Return metric configurations with ids unique inside their case; disabled metrics are omitted."""
        configs: list[MetricConfig] = []
        used: dict[str, int] = {}
        for index, entry in enumerate(entries):
            if not entry.enabled:
                continue
            where = (*at, index)
            if isinstance(entry, StandardMetric) and not self._can_run(entry, document, where, report=report):
                continue
            self._warn_of_zero(entry, document, where)
            name = metric_name(entry)
            used[name] = used.get(name, 0) + 1
            unique = name if used[name] == 1 else f"{name}#{used[name]}"
            place = Place(str(self.document.directory), document.file, document.line(where))
            configs.append(metric_config(entry, unique, scope, self.judge, place))
        return tuple(configs)

    def _can_run(self, entry: StandardMetric, document: Document, at: KeyPath, *, report: bool) -> bool:
        """Return whether a standard metric is available; unusual settings cause warnings."""
        if is_legacy(entry):
            problem = self.legacy.problem(entry, judge_of(entry, self.judge))
            if problem and report:
                self.problems.append(document.problem(at, problem))
            if not problem and (warning := self.legacy.warning(entry)):
                self.warnings.append(str(document.problem(at, warning)))
            return problem is None
        for key, what in (("model", "model"), ("custom_prompt", "prompt")):
            if getattr(entry, key) is not None:
                message = f"{entry.metric} needs no {what}; this one is not used"
                self.warnings.append(str(document.problem((*at, key), message)))
        if entry.threshold is not None and entry.threshold > 1 and entry.scale is None:
            message = f"scores are 0 to 1, so {entry.metric} can never reach {entry.threshold:g}"
            self.warnings.append(str(document.problem((*at, "threshold"), message)))
        for key in ("absolute_tolerance", "relative_tolerance"):
            if math.isinf(getattr(entry, key)):
                message = "every number is within this tolerance, so any number passes"
                self.warnings.append(str(document.problem((*at, key), message)))
        return True

    def _warn_of_zero(self, entry: AnyMetric, document: Document, at: KeyPath) -> None:
        if entry.threshold is not None and entry.threshold <= 0:
            message = f"every score reaches {entry.threshold:g}, so {metric_name(entry)} decides nothing"
            self.warnings.append(str(document.problem((*at, "threshold"), message)))

    def _problem(self, path: KeyPath, message: str) -> None:
        self.problems.append(self.document.problem(path, message))


@dataclass
class _CaseReader:
    """Reads the entries of a case list."""

    loader: _Loader
    source: Document
    shared: tuple[MetricConfig, ...]
    files: FileReader

    def read(self, at: KeyPath) -> Case | None:
        written = _written_case(self.source, at)
        entry, problems = validate(CaseEntry, written, self.source, at)
        self.loader.problems += problems
        if entry is None:
            return None
        case_metrics = self._own_metrics(entry, at)
        if entry.turns is None:
            turns = [self._turn(entry, at, self.shared if case_metrics is None else case_metrics)]
        else:
            turns = [
                self._multi_turn(turn, (*at, "turns", index), case_metrics) for index, turn in enumerate(entry.turns)
            ]
        self._require_ground_truth(turns, at)
        own_id = entry.name or turns_id([turn.input for turn in turns])
        return Case(
            id=f"{self.loader.document.file}::{own_id}",
            name=entry.name or excerpt(turns[0].input),
            turns=tuple(turns),
            line=self.source.line(at),
        )

    def _own_metrics(self, entry: CaseEntry, at: KeyPath) -> tuple[MetricConfig, ...] | None:
        if not entry.evaluations:
            return None
        return self.loader.metrics(entry.evaluations, "case", self.source, (*at, "evaluations"), report=True)

    def _multi_turn(self, entry: TurnEntry, at: KeyPath, case_metrics: tuple[MetricConfig, ...] | None) -> Turn:
        metrics = case_metrics if case_metrics is not None else self.shared
        if entry.evaluations:
            metrics = self.loader.metrics(entry.evaluations, "turn", self.source, (*at, "evaluations"), report=True)
        return self._turn(entry, at, metrics)

    def _turn(self, entry: CaseEntry | TurnEntry, at: KeyPath, metrics: tuple[MetricConfig, ...]) -> Turn:
        files, problems = self.files.read(entry.files or (), self.source, (*at, "files"))
        self.loader.problems += problems
        if entry.expected_tools:
            where = Place(line=self.source.line((*at, "expected_tools")), file=self.source.file)
            metrics = (*metrics, expected_tools(entry.expected_tools, metrics, where))
        return Turn(
            input=entry.input or "",
            ground_truth=entry.ground_truth,
            retrieval_context=None if entry.retrieval_context is None else tuple(entry.retrieval_context),
            files=files,
            config=(entry.turn_config or {}) if isinstance(entry, TurnEntry) else {},
            metrics=metrics,
            answer_at=_answer_place(entry.ground_truth, self.source, at),
        )

    def _require_ground_truth(self, turns: Sequence[Turn], at: KeyPath) -> None:
        """Check that a case that lists a comparison metric has a ground truth."""
        for turn, metric in _asked_metrics(turns):
            if metric.requested_by == "suite" or metric.type not in NEED_GROUND_TRUTH:
                continue
            asked = turns if metric.requested_by == "case" else (turn,)
            if any(candidate.ground_truth is not None for candidate in asked):
                continue
            problem = Problem(
                f"{metric.id} compares with `ground_truth`, and this {metric.requested_by} has none; "
                "add one, or drop the metric",
                file=self.source.file,
                line=metric.where.line or self.source.line(at),
                path=dotted(at),
            )
            if problem not in self.loader.problems:
                self.loader.problems.append(problem)


def _answer_place(text: str | None, source: Document, at: KeyPath) -> AnswerPlace | None:
    return None if text is None else AnswerPlace(source.file, (*at, "ground_truth"), text)


def _asked_metrics(turns: Sequence[Turn]) -> list[tuple[Turn, MetricConfig]]:
    return [(turn, metric) for turn in turns for metric in turn.metrics]


def _written_keys(cases: Iterable[Case]) -> frozenset[str]:
    """Return API keys in the file; they are as secret as those from the environment."""
    metrics = (metric for case in cases for turn in case.turns for metric in turn.metrics)
    models = (metric.options.get("model") for metric in metrics)
    return frozenset(model.api_key for model in models if isinstance(model, ModelSpec) and model.api_key)


def _retrieval_tools(tools: Iterable[ToolEntry]) -> frozenset[str]:
    """Return the tools whose results are passages: vector stores, and tools with ``is_retrieval``."""
    return frozenset(tool.name for tool in tools if tool.type in _RETRIEVING or getattr(tool, "is_retrieval", False))


_RETRIEVING = frozenset({"vectorstore", "hierarchical_document"})


def _written_case(source: Document, at: KeyPath) -> Any:
    written = _named_as_written(source, at)
    if isinstance(written, dict) and isinstance(written.get("turns"), list):
        turns = [_named_as_written(source, (*at, "turns", index)) for index in range(len(written["turns"]))]
        written = {**written, "turns": turns}
    return written


def _named_as_written(source: Document, at: KeyPath) -> Any:
    """Return a mapping with the written form of texts that YAML read as numbers or booleans."""
    value = source.data
    for step in at:
        value = value[step]
    if not isinstance(value, dict):
        return value
    # Nearly all values are texts already.
    others = [key for key in _TEXT_KEYS if key in value and not isinstance(value[key], str)]
    texts = {key: source.as_written(value[key], (*at, key)) for key in others}
    if isinstance(value.get("expected_tools"), list):
        place = (*at, "expected_tools")
        texts["expected_tools"] = [
            _patterns_as_written(source, tool, (*place, index)) for index, tool in enumerate(value["expected_tools"])
        ]
    return {**value, **texts} if texts else value


def _patterns_as_written(source: Document, tool: Any, at: KeyPath) -> Any:
    """Return an expected tool with the written form of patterns that YAML read as numbers (``fuzzy: 60.940``)."""
    args = tool.get("args") if isinstance(tool, dict) else None
    if not isinstance(args, dict):
        return tool
    patterns = {
        key: source.as_written(matcher, (*at, "args", key))
        for key, matcher in args.items()
        if isinstance(matcher, dict) and not MATCHERS.isdisjoint(matcher)
    }
    return {**tool, "args": {**args, **patterns}}
