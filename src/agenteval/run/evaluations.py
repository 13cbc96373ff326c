"""Computes what suites want to know of a run as a whole, once it is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agenteval.analysis.evaluate import evaluate
from agenteval.analysis.model import Evaluated
from agenteval.results.model import Results
from agenteval.run.evaluated import Evaluations
from agenteval.suite.evaluation import Aggregate
from agenteval.suite.model import Suite


def evaluate_suites(
    suites: Sequence[Suite], answers: Mapping[str, Sequence[Evaluated]], results: Results
) -> Evaluations:
    """Evaluate every suite that asks for it.

    Args:
        suites: the suites of the run.
        answers: by suite path.
        results: the run.
    """
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
    return Evaluations(
        results=results.model_copy(update={"suites": with_criteria}),
        warnings=tuple(f"{suite.path}: {text}" for suite, _, result in done for text in result.warnings),
        of_suites=done,
    )
