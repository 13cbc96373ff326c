"""Converts a FluxLoop ``evaluation.yaml`` to a suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval.core.documents.document import Document
from agenteval.core.documents.validation import not_a_mapping, validate
from agenteval.core.documents.yaml.read import read_yaml
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.files.boundary import outside_problem
from agenteval.suite.agents import CREDENTIALS as AGENT_CREDENTIALS
from agenteval.suite.agents import is_inline_agent, read_agent
from agenteval.suite.evaluation import Aggregate, JudgeLimits
from agenteval.suite.formats.fluxloop.cases import read_cases
from agenteval.suite.formats.fluxloop.env_files import read_env_files
from agenteval.suite.formats.fluxloop.evaluation import EvaluationReader
from agenteval.suite.formats.fluxloop.metrics import Evaluator, EvaluatorReader
from agenteval.suite.formats.fluxloop.project import root_of
from agenteval.suite.formats.fluxloop.schema import EvaluationFile, LimitsEntry
from agenteval.suite.model import AgentSpec, Suite

FORMAT = "fluxloop"
_CREDENTIALS = tuple(f"agent.{key}" for key in AGENT_CREDENTIALS)


def load_fluxloop(path: Path, shown_as: str) -> Suite:
    """Load one suite.

    Its metrics score recorded traces. Its cases, from inputs beside it, are for running the agent.

    Args:
        path: the ``evaluation.yaml``.
        shown_as: path in the repository; part of every case id.

    Raises:
        ConfigError: with every problem of the file and its project.
    """
    problems: list[Problem] = []
    document = read_yaml(path, shown_as=shown_as, unset=problems, credentials=_CREDENTIALS)
    return _Loader(document, problems).load()


@dataclass
class _Loader:
    """Collects problems and warnings while one file is read."""

    document: Document
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def load(self) -> Suite:
        document = self.document
        self.warnings.extend(document.warnings)
        if not isinstance(document.data, dict):
            raise ConfigError([*self.problems, document.problem((), not_a_mapping(document.data, "evaluators"))])
        entry, problems = validate(EvaluationFile, document.data, document)
        self.problems += problems
        # Read evaluators and inputs even with other problems, to report every mistake at once.
        limits = _limits(entry.limits if entry is not None else LimitsEntry())
        env = read_env_files(root_of(document))
        self.warnings.extend(env.warnings)
        reader = EvaluatorReader(document, limits, self.problems, self.warnings, env.variables)
        if limits.cache and (problem := outside_problem(document.directory / limits.cache)):
            self.problems.append(document.problem(("limits", "cache"), problem))
        evaluators = reader.read(document.data.get("evaluators"))
        running = [evaluator for evaluator in evaluators if evaluator.enabled]
        metrics = tuple(evaluator.metric for evaluator in running)
        aggregate = _aggregate(entry, running)
        asked = read_cases(document, metrics, aggregate, env, self.problems)
        evaluation = None
        if entry is not None:
            names = _written_names(entry.evaluators)
            enabled: dict[str, list[str]] = {}
            for evaluator in running:
                enabled.setdefault(evaluator.name, []).append(evaluator.metric.id)
            evaluation = EvaluationReader(entry, document, names, enabled, self.problems, self.warnings).read()
        if evaluators and not any(evaluator.weight > 0 for evaluator in running):
            message = f"{_unscored(evaluators, running)}, so nothing can be scored"
            self.warnings.append(str(document.problem(("evaluators",), message)))
        if aggregate.threshold == 0:
            message = "every case reaches 0, so no case can fail"
            self.warnings.append(str(document.problem(("aggregate", "threshold"), message)))
        agent = self._agent(document.data)
        if self.problems:
            raise ConfigError(self.problems)
        return Suite(
            path=document.file,
            name=asked.name or root_of(document).name,
            format=FORMAT,
            cases=asked.cases,
            agent=agent,
            fallback_agent=asked.agent,
            iterations=asked.iterations,
            concurrency=asked.concurrency,
            metrics=metrics,
            aggregate=aggregate,
            evaluation=evaluation,
            warnings=(*self.warnings, *asked.warnings),
            secrets=document.secrets | asked.secrets | reader.secrets | env.secrets,
        )

    def _agent(self, data: Mapping[str, Any]) -> AgentSpec | str | None:
        value = data.get("agent")
        if value is None or (isinstance(value, str) and not is_inline_agent(value)):
            return value
        spec, problems = read_agent(value, self.document, ("agent",))
        self.problems += problems
        return spec


def _written_names(evaluators: list[Any]) -> list[str]:
    """Return the names of all evaluators, including invalid ones."""
    return [str(value["name"]) for value in evaluators if isinstance(value, dict) and "name" in value]


def _unscored(evaluators: list[Evaluator], running: list[Evaluator]) -> str:
    """Return why no evaluator scores."""
    if running:
        return "no enabled evaluator has a weight above 0"
    return (
        "the only evaluator is disabled" if len(evaluators) == 1 else f"all {len(evaluators)} evaluators are disabled"
    )


def _limits(entry: LimitsEntry) -> JudgeLimits:
    return JudgeLimits(entry.sample_rate, entry.max_llm_calls, entry.timeout_seconds, entry.cache or None)


def _aggregate(entry: EvaluationFile | None, running: list[Evaluator]) -> Aggregate:
    weights = {evaluator.metric.id: evaluator.weight for evaluator in running}
    if entry is None:
        return Aggregate(weights=weights)
    return Aggregate(entry.aggregate.method, entry.aggregate.threshold, weights)
