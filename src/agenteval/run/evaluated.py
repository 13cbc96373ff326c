"""The evaluations of a run: what its suites wanted to know of it as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.results.model import Results
from agenteval.suite.model import Suite

if TYPE_CHECKING:
    from agenteval.analysis.evaluate import EvaluationResult
    from agenteval.analysis.model import Evaluated

FOLDER = "evaluation"


@dataclass(frozen=True)
class Evaluations:
    """The evaluations of a run.

    Attributes:
        results: the run, with the criteria of its suites.
        warnings: alerts, and what could not be computed.
    """

    results: Results
    warnings: tuple[str, ...] = ()
    of_suites: Sequence[tuple[Suite, Sequence[Evaluated], EvaluationResult]] = field(default_factory=tuple)

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
                from agenteval.report.evaluation import write_evaluation

                write_evaluation(result, answers, report, suite.name, folder)


def _slug(path: str) -> str:
    return re.sub(r"[^\w.-]+", "_", path).strip("_.") or "suite"
