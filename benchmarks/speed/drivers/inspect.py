"""inspect-ai: a task with a solver that asks the agent, and scorers; its log is written."""

from __future__ import annotations

from typing import Any

from benchmarks.speed.drivers.common import (
    AT_ONCE,
    SCORES,
    arguments,
    ask,
    open_client,
    overlap_scores,
    read_cases,
    reply,
    write_outcome,
)
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, exact, mean, scorer
from inspect_ai.solver import solver


@solver
def agent(url: str, recorded: dict[str, str]) -> Any:
    """Ask the HTTP agent, the recording, or the local agent."""
    client = open_client() if url else None

    async def solve(state: Any, _: Any) -> Any:
        question = state.input_text
        if client is not None:
            answer = await ask(client, url, question)
        else:
            answer = recorded[question] if recorded else reply(question)
        state.output = ModelOutput.from_content("agent", answer)
        return state

    return solve


@scorer(metrics={"*": [mean()]})
def overlap() -> Any:
    """Score with BLEU, ROUGE-L and token F1."""

    async def score(state: Any, target: Any) -> Any:
        return Score(value=overlap_scores(state.output.completion, target.text))

    return score


def main() -> None:
    """Evaluate, and count the results in the log."""
    kind, url = arguments()
    cases = read_cases()
    recorded = {case.question: case.answer for case in cases} if kind == "overlap" else {}
    task = Task(
        dataset=MemoryDataset([Sample(input=case.question, target=case.expected) for case in cases]),
        solver=agent(url, recorded),
        scorer=overlap() if recorded else exact(),
    )
    (log,) = evaluate(task, model="mockllm/model", display="none", log_dir="logs", max_samples=AT_ONCE)
    samples = log.samples or []
    values = [score.value for sample in samples for score in (sample.scores or {}).values()]
    if recorded:
        rows = [{name: float(value[name]) for name in SCORES} for value in values if isinstance(value, dict)]
        write_outcome(len(samples), len(rows), rows)
    else:
        write_outcome(len(samples), values.count("C"))


if __name__ == "__main__":
    main()
