"""deepeval's ``evaluate()``: test cases with the agent's answers in them, results written to a folder."""

from __future__ import annotations

import asyncio
from typing import Any

from benchmarks.speed.drivers.common import (
    Case,
    arguments,
    ask_all,
    bleu,
    read_cases,
    reply,
    rouge_l,
    token_f1,
    write_outcome,
)
from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric, ExactMatchMetric
from deepeval.test_case import LLMTestCase

_SCORES = {"bleu": bleu, "rougeL": rouge_l, "f1": token_f1}


class Overlap(BaseMetric):
    """One of the three scores as a metric."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.threshold = 0.0
        self.async_mode = False

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """Return the score of one case."""
        self.score = _SCORES[self.name](test_case.actual_output or "", test_case.expected_output or "")
        self.success = True
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """Return the score of one case."""
        return self.measure(test_case)

    def is_successful(self) -> bool:
        """Return true, because there is no threshold."""
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return self.name


def main() -> None:
    """Evaluate, and count the results."""
    kind, url = arguments()
    cases = read_cases()
    metrics: list[BaseMetric] = [Overlap(name) for name in _SCORES] if kind == "overlap" else [ExactMatchMetric()]
    result = evaluate(
        [
            LLMTestCase(input=case.question, actual_output=answer, expected_output=case.expected)
            for case, answer in zip(cases, _answers(cases, kind, url), strict=True)
        ],
        metrics,
        async_config=AsyncConfig(run_async=False),
        display_config=DisplayConfig(
            show_indicator=False, print_results=False, inspect_after_run=False, results_folder="results"
        ),
        cache_config=CacheConfig(write_cache=False),
    )
    rows = []
    if kind == "overlap":
        rows = [{data.name: data.score or 0.0 for data in case.metrics_data or []} for case in result.test_results]
    write_outcome(len(result.test_results), sum(case.success for case in result.test_results), rows)


def _answers(cases: list[Case], kind: str, url: str) -> list[str]:
    if kind == "overlap":
        return [case.answer for case in cases]
    if url:
        return asyncio.run(ask_all(cases, url))
    return [reply(case.question) for case in cases]


if __name__ == "__main__":
    main()
