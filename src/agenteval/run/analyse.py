"""Analyses each suite of a run as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agenteval.results.model import Results
from agenteval.suite.model import Suite

if TYPE_CHECKING:
    from agenteval.results.analysis.answers import EvaluatedAnswer
    from agenteval.results.analysis.result import AnalysedSuite


@dataclass(frozen=True)
class SuiteAnalyses:
    """The analyses of a run.

    Attributes:
        results: the run, with the criteria of its suites.
        warnings: alerts of the analyses, and the values that could not be computed.
    """

    results: Results
    warnings: tuple[str, ...] = ()
    of_suites: tuple[AnalysedSuite, ...] = ()


def evaluate_suites(
    suites: Sequence[Suite], answers: Mapping[str, Sequence[EvaluatedAnswer]], results: Results
) -> SuiteAnalyses:
    """Evaluate every suite that defines an analysis or criteria.

    Args:
        suites: the suites of the run.
        answers: the evaluated answers, by suite path.
        results: the run.
    """
    from agenteval.results.analysis.evaluate import evaluate
    from agenteval.results.analysis.result import AnalysedSuite
    from agenteval.suite.evaluation import Aggregate

    done = tuple(
        AnalysedSuite(
            path=suite.path,
            name=suite.name,
            answers=answers[suite.path],
            result=evaluate(answers[suite.path], suite.evaluation, suite.aggregate or Aggregate()),
            report=suite.evaluation.report,
        )
        for suite in suites
        if suite.evaluation is not None and suite.path in answers
    )
    criteria = {suite.path: list(suite.result.criteria) for suite in done}
    with_criteria = [
        suite.model_copy(update={"criteria": criteria[suite.path]}) if suite.path in criteria else suite
        for suite in results.suites
    ]
    return SuiteAnalyses(
        results=results.model_copy(update={"suites": with_criteria}),
        warnings=tuple(f"{suite.path}: {text}" for suite in done for text in suite.result.warnings),
        of_suites=done,
    )
