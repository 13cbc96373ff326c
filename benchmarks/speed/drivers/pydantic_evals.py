"""pydantic-evals: a dataset, a task, evaluators. It writes no report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.speed.drivers.common import (
    AT_ONCE,
    arguments,
    ask,
    open_client,
    overlap_scores,
    read_cases,
    reply,
    write_outcome,
)
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected, Evaluator, EvaluatorContext


@dataclass
class Overlap(Evaluator[str, str, None]):
    """BLEU, ROUGE-L and token F1."""

    def evaluate(self, ctx: EvaluatorContext[str, str, None]) -> dict[str, float]:
        """Return the scores of one case."""
        return overlap_scores(ctx.output, ctx.expected_output or "")


def main() -> None:
    """Evaluate, and count the results in the report."""
    kind, url = arguments()
    cases = read_cases()
    dataset = Dataset(
        name="speed",
        cases=[
            Case(name=f"case-{number}", inputs=case.question, expected_output=case.expected)
            for number, case in enumerate(cases)
        ],
        evaluators=[Overlap()] if kind == "overlap" else [EqualsExpected()],
    )
    if kind == "overlap":
        recorded = {case.question: case.answer for case in cases}
        report = dataset.evaluate_sync(recorded.__getitem__, task_name="speed", progress=False)
        rows = [{name: score.value for name, score in case.scores.items()} for case in report.cases]
        write_outcome(len(report.cases), len(rows), rows)
        return
    report = _evaluate_http(dataset, url) if url else dataset.evaluate_sync(reply, progress=False)
    passed = sum(all(result.value for result in case.assertions.values()) for case in report.cases)
    write_outcome(len(report.cases), passed)


def _evaluate_http(dataset: Any, url: str) -> Any:
    client = open_client()

    async def task(question: str) -> str:
        return await ask(client, url, question)

    return dataset.evaluate_sync(task, max_concurrency=AT_ONCE, progress=False)


if __name__ == "__main__":
    main()
