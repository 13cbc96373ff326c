"""Converts a FluxLoop ``evaluation.yaml`` to a suite."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.files import outside_problem
from agenteval.core.records import dataclass
from agenteval.core.text import choices, join_choices
from agenteval.core.validation import not_a_mapping, validate
from agenteval.core.yaml import read_yaml
from agenteval.suite.agents import CREDENTIALS as AGENT_CREDENTIALS
from agenteval.suite.agents import is_inline_agent, read_agent
from agenteval.suite.cases import exists, is_file
from agenteval.suite.evaluation import (
    Aggregate,
    AlertRule,
    Analyses,
    Criteria,
    Evaluation,
    EvaluationReport,
    JudgeLimits,
    Section,
    ToolCheck,
    alert_problem,
)
from agenteval.suite.formats.base import Findings
from agenteval.suite.formats.fluxloop import FORMAT
from agenteval.suite.formats.fluxloop.cases import read_cases
from agenteval.suite.formats.fluxloop.metrics import Evaluator, EvaluatorReader, prebuilt_names
from agenteval.suite.formats.fluxloop.newer import as_older, is_newer
from agenteval.suite.formats.fluxloop.project import read_env_files, root_of
from agenteval.suite.formats.fluxloop.schema import (
    ErrorRateCriterion,
    EvaluationFile,
    JudgeLimitsEntry,
    TimeCriterion,
)
from agenteval.suite.model import Suite

_TOOL_CHECKS: tuple[ToolCheck, ...] = (
    "all_calls_successful",
    "appropriate_selection",
    "correct_parameters",
    "proper_timing",
    "handles_failures",
)
_ALL_PERCENT = 100
_PERFORMANCE: KeyPath = ("success_criteria", "performance")
_TOOL_CALLING: KeyPath = ("success_criteria", "functionality", "tool_calling")


@dataclass
class EvaluationReader(Findings):
    """Reads the run-level settings of one file."""

    entry: EvaluationFile
    document: Document
    evaluators: Collection[str]
    enabled: Mapping[str, Sequence[str]]
    problems: list[Problem]
    warnings: list[str]

    def read(self) -> Evaluation:
        """Return everything except the evaluators."""
        return Evaluation(
            goal=self.entry.evaluation_goal.text.strip() or None,
            criteria=self._criteria(),
            analyses=self._analyses(),
            report=self._report(),
        )

    def _criteria(self) -> Criteria:
        performance = self.entry.success_criteria.performance
        return Criteria(
            all_successful=performance.all_traces_successful,
            avg_response_ms=self._limit(performance.avg_response_time, "avg_response_time"),
            max_response_ms=self._limit(performance.max_response_time, "max_response_time"),
            error_rate_percent=self._limit(performance.error_rate, "error_rate"),
            quality=dict(self._quality()),
            tool_calls=self._tool_calls(),
        )

    def _limit(self, criterion: TimeCriterion | ErrorRateCriterion, name: str) -> float | None:
        """Return the threshold of a criterion; ``None`` if it is not enabled, or if every run meets it."""
        key = "threshold_ms" if isinstance(criterion, TimeCriterion) else "threshold_percent"
        value: float | None = getattr(criterion, key)
        at = (*_PERFORMANCE, name)
        if criterion.enabled and value is None:
            self._problem(at, f"needs `{key}` if it is enabled")
        if value is not None and "enabled" not in criterion.model_fields_set:
            self._warn(at, "is not used without `enabled: true`")
        if criterion.enabled and key == "threshold_percent" and value == _ALL_PERCENT:
            self._warn((*at, key), "no error rate is above 100 %, so this checks nothing")
            return None
        return value if criterion.enabled else None

    def _quality(self) -> Iterator[tuple[str, float | None]]:
        for name, goal in self.entry.success_criteria.quality.items():
            at = ("success_criteria", "quality", name)
            if name not in self.evaluators and name not in prebuilt_names():
                self._problem(at, f"no evaluator has this name{choices(name, self.evaluators, 'known')}")
            elif goal is not False:
                if name not in self.enabled:
                    self._warn(at, "cannot be checked: no evaluator of this name is enabled")
                if goal == 0:
                    self._warn(at, "every mean score reaches 0, so this checks nothing")
                else:
                    for own in self.enabled.get(name, (name,)):
                        yield own, None if goal is True else float(goal)

    def _tool_calls(self) -> tuple[ToolCheck, ...]:
        entry = self.entry.success_criteria.functionality.tool_calling
        asked = tuple(check for check in _TOOL_CHECKS if getattr(entry, check))
        if entry.enabled and not asked:
            self._warn(_TOOL_CALLING, f"is enabled without a check; set one of {join_choices(_TOOL_CHECKS)}")
        if asked and "enabled" not in entry.model_fields_set:
            self._warn(_TOOL_CALLING, "is not used without `enabled: true`")
        return asked if entry.enabled else ()

    def _analyses(self) -> Analyses:
        wanted, advanced = self.entry.additional_analysis, self.entry.advanced
        tests, outliers = advanced.statistical_tests, advanced.outliers
        return Analyses(
            personas=self.entry.aggregate.by_persona or wanted.persona.enabled,
            focus_personas=tuple(wanted.persona.focus_personas) if wanted.persona.enabled else (),
            outliers=wanted.performance.detect_outliers or outliers.detection,
            outlier_handling=outliers.handling,
            trend=wanted.performance.trend_analysis,
            failures=wanted.failures.enabled,
            failure_causes=wanted.failures.enabled and wanted.failures.categorize_causes,
            baseline=self._baseline(),
            statistics=tests.enabled,
            significance=tests.significance_level,
            confidence=tests.confidence_interval,
            alerts=tuple(self._alerts()),
        )

    def _baseline(self) -> str | None:
        comparison = self.entry.additional_analysis.comparison
        if not comparison.enabled:
            return None
        if not comparison.baseline_path:
            at = ("additional_analysis", "comparison")
            self._problem(at, "needs `baseline_path`, an earlier summary.json, if it is enabled")
            return None
        return str(self._path(comparison.baseline_path))

    def _alerts(self) -> Iterator[AlertRule]:
        alerts = self.entry.advanced.alerts
        at = ("advanced", "alerts", "conditions")
        for index, condition in enumerate(alerts.conditions if alerts.enabled else ()):
            rule = AlertRule(condition.metric, condition.operator, condition.threshold)
            problem = alert_problem(rule, self.evaluators)
            if problem is not None:
                self._problem((*at, index), problem)
            yield rule
        if alerts.enabled and not alerts.conditions:
            self._warn(("advanced", "alerts"), "is enabled but has no `conditions`")

    def _report(self) -> EvaluationReport:
        report = self.entry.report
        if self.entry.advanced.statistical_tests.enabled and report.sections.statistical_analysis is False:
            message = "is off, so the report shows none of advanced.statistical_tests, which are enabled"
            self._warn(("report", "sections", "statistical_analysis"), message)
        template = None
        if report.template_path:
            template = self._path(report.template_path)
            if not is_file(template):
                self._problem(("report", "template_path"), f"there is no file {report.template_path}")
        return EvaluationReport(
            style=report.style,
            tone=report.tone,
            sections={
                name: shown for name in get_args(Section) if (shown := getattr(report.sections, name)) is not None
            },
            charts=report.visualizations.charts_and_graphs,
            tables=report.visualizations.tables,
            interactive=report.visualizations.interactive,
            markdown=report.output in {"md", "both"},
            html=report.output in {"html", "both"},
            template=None if template is None else str(template),
        )

    def _path(self, written: str) -> Path:
        """Return a path relative to the file or, if missing, to the project, as in FluxLoop's documentation."""
        path = self.document.directory / written
        if not exists(path) and self.document.directory.name == "configs":
            in_project = self.document.directory.parent / written
            return in_project if exists(in_project) else path
        return path


_CREDENTIALS = tuple(f"agent.{key}" for key in AGENT_CREDENTIALS)


def _read(path: Path, shown_as: str, problems: list[Problem]) -> Document:
    document = read_yaml(path, shown_as=shown_as, unset=problems, credentials=_CREDENTIALS)
    if not isinstance(document.data, dict):
        raise ConfigError([*problems, document.problem((), not_a_mapping(document.data, "evaluators"))])
    if document.data.keys().isdisjoint((*FORMAT.keys, *EvaluationFile.model_fields)):
        raise ConfigError([*problems, document.problem((), FORMAT.why_foreign)])
    return as_older(document, problems) if is_newer(document.data) else document


def load_fluxloop(path: Path, shown_as: str) -> Suite:
    """Load one suite.

    Its metrics score recorded traces. Its cases, from inputs beside it, are for running the agent.
    """
    problems: list[Problem] = []
    document = _read(path, shown_as, problems)
    warnings = list(document.warnings)
    entry, found = validate(EvaluationFile, document.data, document)
    problems += found
    # Read evaluators and inputs even with other problems, to report every mistake at once.
    most = entry.limits if entry is not None else JudgeLimitsEntry()
    limits = JudgeLimits(most.sample_rate, most.max_llm_calls, most.timeout_seconds, most.cache or None)
    env = read_env_files(root_of(document))
    warnings.extend(env.warnings)
    reader = EvaluatorReader(document, limits, problems, warnings, env.variables)
    if limits.cache and (problem := outside_problem(document.directory / limits.cache)):
        problems.append(document.problem(("limits", "cache"), problem))
    evaluators = reader.read(document.data.get("evaluators"))
    running = [evaluator for evaluator in evaluators if evaluator.enabled]
    metrics = tuple(evaluator.metric for evaluator in running)
    aggregate = _aggregate(entry, running)
    asked = read_cases(document, metrics, aggregate, env, problems)
    evaluation = None
    if entry is not None:
        names = [str(value["name"]) for value in entry.evaluators if isinstance(value, dict) and "name" in value]
        enabled: dict[str, list[str]] = {}
        for evaluator in running:
            enabled.setdefault(evaluator.name, []).append(evaluator.metric.id)
        evaluation = EvaluationReader(entry, document, names, enabled, problems, warnings).read()
    if evaluators and not any(evaluator.weight > 0 for evaluator in running):
        message = f"{_unscored(evaluators, running)}, so nothing can be scored"
        warnings.append(str(document.problem(("evaluators",), message)))
    if aggregate.threshold == 0:
        message = "every case reaches 0, so no case can fail"
        warnings.append(str(document.problem(("aggregate", "threshold"), message)))
    agent = document.data.get("agent")
    if agent is not None and not (isinstance(agent, str) and not is_inline_agent(agent)):
        agent, found = read_agent(agent, document, ("agent",))
        problems += found
    if problems:
        raise ConfigError(problems)
    return Suite(
        path=document.file,
        name=asked.name or root_of(document).name,
        format=FORMAT.name,
        cases=asked.cases,
        agent=agent,
        fallback_agent=asked.agent,
        iterations=asked.iterations,
        concurrency=asked.concurrency,
        metrics=metrics,
        aggregate=aggregate,
        evaluation=evaluation,
        warnings=(*warnings, *asked.warnings),
        secrets=document.secrets | asked.secrets | reader.secrets | env.secrets,
    )


def _unscored(evaluators: list[Evaluator], running: list[Evaluator]) -> str:
    if running:
        return "no enabled evaluator has a weight above 0"
    return (
        "the only evaluator is disabled" if len(evaluators) == 1 else f"all {len(evaluators)} evaluators are disabled"
    )


def _aggregate(entry: EvaluationFile | None, running: list[Evaluator]) -> Aggregate:
    weights = {evaluator.metric.id: evaluator.weight for evaluator in running}
    if entry is None:
        return Aggregate(weights=weights)
    return Aggregate(entry.aggregate.method, entry.aggregate.threshold, weights)
