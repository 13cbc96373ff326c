"""Analyses each suite of a run as a whole, and writes its reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.results.model import Results
from agenteval.suite.model import Suite

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer
    from agenteval.results.analysis.evaluate import EvaluationResult

FOLDER = "evaluation"


@dataclass(frozen=True)
class SuiteAnalyses:
    """The evaluations of a run.

    Attributes:
        results: the run, with the criteria of its suites.
        warnings: alerts, and what could not be computed.
    """

    results: Results
    warnings: tuple[str, ...] = ()
    of_suites: Sequence[tuple[Suite, Sequence[EvaluatedAnswer], EvaluationResult]] = field(default_factory=tuple)

    def write(self, directory: Path) -> None:
        """Write the reports that suites ask for: below ``evaluation``, each suite in a folder of its own if several.

        Raises:
            InfrastructureError: a file cannot be written.
        """
        asking = [item for item in self.of_suites if item[0].evaluation and item[0].evaluation.report]
        for suite, answers, result in asking:
            folder = directory / FOLDER / (_slug(suite.path) if len(asking) > 1 else "")
            report = suite.evaluation.report if suite.evaluation else None
            if report is not None:
                from agenteval.report.evaluation.write import write_evaluation

                write_evaluation(result, answers, report, suite.name, folder)


def _slug(path: str) -> str:
    return re.sub(r"[^\w.-]+", "_", path).strip("_.") or "suite"


def evaluate_suites(
    suites: Sequence[Suite], answers: Mapping[str, Sequence[EvaluatedAnswer]], results: Results
) -> SuiteAnalyses:
    """Evaluate every suite that asks for it.

    Args:
        suites: the suites of the run.
        answers: by suite path.
        results: the run.
    """
    from agenteval.results.analysis.evaluate import evaluate
    from agenteval.suite.evaluation import Aggregate

    done = [
        (suite, answers[suite.path], evaluate(answers[suite.path], suite.evaluation, suite.aggregate or Aggregate()))
        for suite in suites
        if suite.evaluation is not None and suite.path in answers
    ]
    criteria = {suite.path: list(result.criteria) for suite, _, result in done}
    with_criteria = [
        suite.model_copy(update={"criteria": criteria[suite.path]}) if suite.path in criteria else suite
        for suite in results.suites
    ]
    return SuiteAnalyses(
        results=results.model_copy(update={"suites": with_criteria}),
        warnings=tuple(f"{suite.path}: {text}" for suite, _, result in done for text in result.warnings),
        of_suites=done,
    )
