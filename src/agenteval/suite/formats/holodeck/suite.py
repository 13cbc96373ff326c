"""Converts a HoloDeck ``agent.yaml`` to a suite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.document import Document, KeyPath, environment_with
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import dataclass, field, replace
from agenteval.core.validation import not_a_mapping, score_message
from agenteval.core.yaml import read_yaml
from agenteval.suite.agents import CREDENTIALS as AGENT_CREDENTIALS
from agenteval.suite.agents import is_inline_agent, read_agent
from agenteval.suite.cases import with_unique_ids
from agenteval.suite.formats.base import EnvFiles, Findings
from agenteval.suite.formats.holodeck.agent import repeated_names, validate_file
from agenteval.suite.formats.holodeck.cases import CaseReader, FileReader, named_as_written
from agenteval.suite.formats.holodeck.metrics import (
    LegacyMetrics,
    default_judge,
    is_legacy,
    judge_of,
    metric_config,
    metric_name,
)
from agenteval.suite.formats.holodeck.project import (
    CREDENTIALS,
    Described,
    Reasons,
    read_env_files,
    read_global_config,
    sections_with_variables,
)
from agenteval.suite.formats.holodeck.schema import INDEXED, AgentFile, AnyMetric, StandardMetric
from agenteval.suite.model import AgentSpec, Case, MetricConfig, Place, Scope, Suite

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
_CREDENTIALS = (
    *CREDENTIALS,
    *(f"{metric}.model.**" for metric in _METRICS),
    *(f"agent.{key}" for key in AGENT_CREDENTIALS),
)
# A file of cases may have the list at its top.
_CASE_CREDENTIALS = tuple(
    f"{cases}.{key}.model.**" for cases in ("test_cases.*", "*") for key in ("evaluations.*", "turns.*.evaluations.*")
)


def load_holodeck(path: Path, shown_as: str) -> Suite:
    """Load one suite."""
    env = read_env_files(path.resolve().parent, str(Path(shown_as).parent))
    problems: list[Problem] = []
    environment = environment_with(env.variables)
    document = read_yaml(path, shown_as=shown_as, environment=environment, unset=problems, credentials=_CREDENTIALS)
    return _HoloDeckLoader(document, env, default_judge(None, env.variables), problems).load()


def _listed(source: Document) -> tuple[KeyPath, Any]:
    """Return the list of the cases of a file, at its top or under a key, and where it is."""
    is_below = isinstance(source.data, dict) and _CASES in source.data
    return ((_CASES,), source.data[_CASES]) if is_below else ((), source.data)


@dataclass
class _HoloDeckLoader(Findings):
    document: Document
    env: EnvFiles
    judge: ModelSpec
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set)
    legacy: LegacyMetrics = field(default_factory=LegacyMetrics)

    def load(self) -> Suite:
        document = self.document
        self.warnings.extend((*document.warnings, *self.env.warnings))
        if not isinstance(document.data, dict):
            raise ConfigError([*self.problems, document.problem((), not_a_mapping(document.data, "test_cases"))])
        config = read_global_config(document.directory, str(Path(document.file).parent), self.env.variables)
        self.warnings.extend(config.warnings)
        self.problems += config.problems
        data = config.filled(named_as_written(document, ()))
        entry, problems = validate_file(data, document)
        self.problems += problems
        if entry is None and (sections := sections_with_variables(self.problems)):
            entry, _ = validate_file({key: value for key, value in data.items() if key not in sections}, document)
        self.judge = default_judge(entry, self.env.variables)
        if entry is not None and entry.evaluations is not None and entry.evaluations.optimizer:
            message = "agenteval evaluates an agent and does not optimise it; run `holodeck test optimize` for that"
            self.warnings.append(str(document.problem(("evaluations", "optimizer"), message)))
        source = self._case_document(document.data)
        # Read cases even with other problems, to report every mistake at once.
        cases = self._cases(source, entry)
        self.warnings += self.legacy.note()
        agent = self._agent(document.data.get("agent"))
        self.problems += repeated_names(entry, document) if entry else []
        reasons = Reasons.of(self.problems, document.data, document.file, config)
        if reasons.suite or entry is None:
            raise ConfigError(reasons.suite or self.problems)
        if reasons.judge and self._agent_judges(entry, cases):
            raise ConfigError(reasons.judge)
        described = Described(document, entry, config, self.env, reasons)
        fallback = described.agent()
        secrets = described.secrets_of(fallback.options["agent"] if fallback else None)
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
            secrets=secrets | self.secrets | _written_keys(cases),
        )

    def _agent_judges(self, entry: AgentFile, cases: Iterable[Case]) -> bool:
        """Return whether a metric asks the agent's model."""
        if entry.evaluations is not None and entry.evaluations.model is not None:
            return False
        return any(
            metric.options.get("model") == self.judge
            for case in cases
            for turn in case.turns
            for metric in turn.metrics
        )

    def _case_document(self, data: Mapping[str, Any]) -> Document:
        """Return the file of the cases: the suite's, or the one that ``test_cases_file`` names."""
        file = data.get("test_cases_file")
        if not isinstance(file, str):
            return self.document
        if _CASES in data:
            self._problem(("test_cases_file",), "give `test_cases` or `test_cases_file`, not both")
            return self.document
        shown_as = str(Path(self.document.file).parent / file)
        try:
            path = self.document.directory / file
            env, keys = environment_with(self.env.variables), _CASE_CREDENTIALS
            found = read_yaml(path, shown_as=shown_as, environment=env, unset=self.problems, credentials=keys)
        except ConfigError as error:
            self.problems += [
                replace(problem, message=f"test_cases_file: {problem.message}") for problem in error.problems
            ]
            return Document(file=shown_as, directory=self.document.directory, data=[])
        self.warnings.extend(found.warnings)
        self.secrets |= found.secrets
        at, listed = _listed(found)
        if listed is not None and not isinstance(listed, list):
            self.problems.append(found.problem(at, "must be a list of cases, or a mapping with `test_cases`"))
        return found

    def _cases(self, source: Document, entry: AgentFile | None) -> tuple[Case, ...]:
        shared = entry.evaluations.metrics if entry and entry.evaluations else []
        shared_configs = self.metrics(shared, "suite", self.document, ("evaluations", "metrics"), report=True)
        files = FileReader(entry.execution if entry else None, self.warnings)
        reader = CaseReader(self, source, shared_configs, files)
        at, listed = _listed(source)
        read = [reader.read((*at, index)) for index in range(len(listed) if isinstance(listed, list) else 0)]
        if reader.without_tools:
            more = f", and of {len(reader.without_tools) - 1} more" if len(reader.without_tools) > 1 else ""
            message = f"an empty list expects no call, and allows each; it checks nothing{more}"
            self.warnings.append(str(source.problem(reader.without_tools[0], message)))
        return with_unique_ids(
            [case for case in read if case is not None],
            lambda case, first, number: self._renamed(case, first, number, source),
        )

    def _renamed(self, case: Case, first: int | None, number: int, source: Document) -> str:
        """Return the name of a case whose id is given twice; one whose inputs are its id keeps its name."""
        if case.id != f"{self.document.file}::{case.name}":
            return case.name
        where = f" (first in line {first})" if first else ""
        message = (
            f"the name {case.name!r} is given twice{where}; this case is called {case.name}#{number}, "
            "so choose another name, which stays the same if cases are moved"
        )
        problem = Problem(message, file=source.file, line=case.line, path="test_cases", kind=Kind.NOT_UNIQUE)
        self.warnings.append(str(problem))
        return f"{case.name}#{number}"

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
            if isinstance(entry, StandardMetric):
                if report:
                    self._check_threshold(entry, document, where)
                self._note_settings(entry, document, where)
            self._warn_of_zero(entry, document, where)
            name = metric_name(entry)
            used[name] = used.get(name, 0) + 1
            unique = name if used[name] == 1 else f"{name}#{used[name]}"
            line = document.line((*where, "grader"))
            place = Place(str(self.document.directory), document.file, line, self.env.variables)
            configs.append(metric_config(entry, unique, scope, self.judge, place))
        return tuple(configs)

    def _note_settings(self, entry: StandardMetric, document: Document, at: KeyPath) -> None:
        if is_legacy(entry):
            self.legacy.add(entry, judge_of(entry, self.judge, self.env.variables), document.problem(at, ""))
            return
        for key, what in (("model", "model"), ("custom_prompt", "prompt")):
            if getattr(entry, key) is not None:
                message = f"{entry.metric} needs no {what}; this one is not used"
                self.warnings.append(str(document.problem((*at, key), message)))
        for key in ("absolute_tolerance", "relative_tolerance"):
            if math.isinf(getattr(entry, key)):
                message = "every number is within this tolerance, so any number passes"
                self.warnings.append(str(document.problem((*at, key), message)))

    def _check_threshold(self, entry: StandardMetric, document: Document, at: KeyPath) -> None:
        """Report a threshold that no score can reach, because it is out of range."""
        if entry.threshold is None or entry.threshold <= (entry.scale or 1):
            return
        message = score_message(entry.threshold)
        if entry.scale is not None:
            of_scale = f"with `scale: {entry.scale:g}`, scores go from 0 to {entry.scale:g}"
            message = f"{entry.threshold:g} is out of range: {of_scale}"
        where = (*at, "threshold")
        written = document.source_text(where) or f"{entry.threshold:g}"
        self.problems.append(document.problem(where, message, Kind.THRESHOLD, written))

    def _warn_of_zero(self, entry: AnyMetric, document: Document, at: KeyPath) -> None:
        if entry.threshold is not None and entry.threshold <= 0:
            message = (
                f"every score reaches {entry.threshold:g}, so {metric_name(entry)} decides nothing: it always passes"
            )
            self.warnings.append(str(document.problem((*at, "threshold"), message)))


def _written_keys(cases: Iterable[Case]) -> frozenset[str]:
    """Return API keys in the file; they are as secret as those from the environment."""
    metrics = (metric for case in cases for turn in case.turns for metric in turn.metrics)
    models = (metric.options.get("model") for metric in metrics)
    return frozenset(model.api_key for model in models if isinstance(model, ModelSpec) and model.api_key)


def _retrieval_tools(tools: Sequence[ToolEntry]) -> frozenset[str]:
    """Return the tools whose results are passages: searches of documents, and tools with ``is_retrieval``.

    HoloDeck's backend for OpenAI calls a search ``NAME_search``.
    """
    if not tools:
        return frozenset()
    searches = [tool.name for tool in tools if tool.type in INDEXED]
    marked = [tool.name for tool in tools if getattr(tool, "is_retrieval", False)]
    return frozenset((*searches, *(f"{name}_search" for name in searches), *marked))
