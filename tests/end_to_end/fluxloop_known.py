"""Traces whose scores are known beforehand, by the rules of FluxLoop's documentation, in exact fractions.

Nothing here uses the program: every number is computed once more, from what the generator put into a trace.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.end_to_end.exact_statistics import mean

QUESTIONS = 20
PERSONAS = ("novice", "expert", None)
ITERATIONS = 4
COUNT = QUESTIONS * len(PERSONAS) * ITERATIONS
BROKEN_REPLIES = ("excellent", "Score: 85", "I would say 4/5.")
# What a trace says of its success, and what that means.
SAID: Sequence[tuple[Mapping[str, Any], bool | None]] = (
    ({"success": True}, True),
    ({"success": False}, False),
    ({"status": "SUCCESS"}, True),
    ({"status": "ERROR"}, False),
    ({"success": True, "error": "the connection broke"}, False),
    ({}, None),
)


@dataclass(frozen=True)
class Known:
    """One trace and what was put into it.

    Attributes:
        output: as text, which holds the number of the trace if it is not empty.
        reported_success: what it says of itself; ``None`` where it says nothing.
        tokens: wherever they stand in the record.
    """

    number: int
    persona: str | None
    iteration: int
    question: str
    output: Any
    reported_success: bool | None
    duration_ms: int | None
    tokens: int | None
    record: Mapping[str, Any] = field(repr=False)

    @property
    def trace_id(self) -> str:
        return f"trace-{self.number:03d}"

    @property
    def is_blank(self) -> bool:
        return self.output is None or (isinstance(self.output, str) and not self.output.strip())


def _usage(prompt: int, completion: int) -> Sequence[Mapping[str, Any]]:
    """The same tokens in every place where a trace may have them."""
    total = prompt + completion
    openai = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    parts = [
        {"id": "a", "type": "generation", "usage": {"input_tokens": prompt, "output_tokens": completion // 2}},
        {"id": "b", "type": "tool", "name": "search"},
        {"id": "c", "type": "generation", "token_usage": {"total_tokens": completion - completion // 2}},
    ]
    return (
        {"token_usage": openai},
        {"usage": {"input_tokens": prompt, "output_tokens": completion}},
        {"summary": {"token_usage": {"total_tokens": total}}},
        {"summary": {"raw": {"token_usage": openai}}},
        {"timeline": parts},
        {"token_usage": openai, "timeline": parts},
        {"timeline": [*parts, parts[0]]},
    )


def make_traces(seed: int) -> list[Known]:
    """Every question of every persona in every iteration; later iterations are slower and worse."""
    draw = random.Random(seed)
    found = []
    for number in range(COUNT):
        iteration, rest = divmod(number, QUESTIONS * len(PERSONAS))
        persona = PERSONAS[rest % len(PERSONAS)]
        question = f"How do I do task {rest // len(PERSONAS)}?"
        text = f"Do it like this [{number}]."
        output = draw.choices([text, "", "  \n", None, {"text": text}], [88, 4, 2, 2, 4])[0]
        said, reported_success = draw.choices(SAID, [80, 4, 6, 3, 2, 5])[0]
        usual = round(draw.lognormvariate(math.log(900 + 60 * iteration), 0.3))
        duration = draw.choices([usual, 2000, draw.randint(2001, 9000), 60_000, None], [85, 3, 7, 2, 3])[0]
        prompt, completion = draw.randint(200, 3200), draw.randint(50, 1500)
        usage: Mapping[str, Any] = draw.choice([*_usage(prompt, completion), {}])
        record = {
            "trace_id": f"trace-{number:03d}",
            "iteration": iteration,
            "persona": persona,
            "input": question,
            "output": output,
            **({} if duration is None else {"duration_ms": duration}),
            **said,
            **usage,
        }
        tokens = prompt + completion if usage else None
        found.append(Known(number, persona, iteration, question, output, reported_success, duration, tokens, record))
    return found


def raw_score(judge: str, number: int) -> Fraction | None:
    """What a judge thinks of a trace, 0 to 10 in halves; ``None`` where it does not say it in a way that counts."""
    draw = random.Random(f"{judge}/{number}")
    if draw.random() < 0.04:
        return None
    worse = number // (QUESTIONS * len(PERSONAS)) * 0.4
    return min(Fraction(10), max(Fraction(0), Fraction(round(2 * draw.gauss(9 - worse, 1.5)), 2)))


def reply(judge: str, number: int) -> str:
    """The same in a judge's words."""
    raw = raw_score(judge, number)
    if raw is None:
        return BROKEN_REPLIES[number % len(BROKEN_REPLIES)]
    words = (
        "Score: {}\nReason: as good as that",
        "{}/10",
        "On a scale of 1-10 I give {}.",
        "{}",
        "**Score:** {} out of 10",
    )
    return words[number % len(words)].format(f"{float(raw):g}")


Rule = Callable[[Known], Fraction]


def not_empty(trace: Known) -> Fraction:
    return Fraction(not trace.is_blank)


def success(trace: Known) -> Fraction:
    return Fraction(trace.reported_success is True)


def _within(value: int | None, budget: int) -> Fraction:
    if value is None:
        return Fraction(0)
    return Fraction(1) if value <= budget else Fraction(budget, value)


def latency_under(budget: int) -> Rule:
    return lambda trace: _within(trace.duration_ms, budget)


def tokens_under(budget: int) -> Rule:
    return lambda trace: _within(trace.tokens, budget)


@dataclass(frozen=True)
class Plan:
    """An evaluation as a reader of its file understands it.

    Attributes:
        rules: evaluator → its rules.
        judges: evaluator → the model that is asked.
        weights: in the order of the file.
    """

    rules: Mapping[str, Sequence[Rule]]
    weights: Mapping[str, Fraction]
    threshold: Fraction
    judges: Mapping[str, str] = field(default_factory=dict)
    sample_rate: float = 1.0
    max_calls: int = 50


@dataclass(frozen=True)
class Row:
    """One trace with its scores; a judge without a score is in ``absent``."""

    trace: Known
    scores: Mapping[str, Fraction]
    absent: frozenset[str]
    final: Fraction | None
    passed: bool | None
    is_skipped: bool = False

    @property
    def was_successful(self) -> bool:
        said = self.trace.reported_success
        return self.passed is not False and self.trace.output is not None if said is None else said

    @property
    def status(self) -> str:
        """The status of its case."""
        if self.passed is None:
            return "skipped" if self.is_skipped else "error"
        return "passed" if self.passed else "failed"


def judged(rows: Iterable[Row]) -> list[Row]:
    """The traces of which everything that has a weight was measured."""
    return [row for row in rows if row.final is not None]


def draw(trace: Known) -> float:
    return random.Random(int(hashlib.sha256(trace.trace_id.encode()).hexdigest(), 16)).random()


def sampled(plan: Plan, traces: Iterable[Known]) -> frozenset[str]:
    """The traces with the lowest draws, as many as the sample and the calls allow."""
    drawn = sorted((draw(trace), trace.trace_id) for trace in traces)
    most = plan.max_calls // len(plan.judges) if plan.judges else len(drawn)
    return frozenset(name for value, name in drawn[:most] if value < plan.sample_rate)


def score_all(plan: Plan, traces: Sequence[Known], *, broken: bool = True) -> list[Row]:
    """Every score; some replies of the judges are broken."""
    chosen = sampled(plan, traces)
    rows = []
    for trace in traces:
        scores: dict[str, Fraction] = {
            name: mean([rule(trace) for rule in rules]) for name, rules in plan.rules.items()
        }
        for judge in plan.judges if trace.trace_id in chosen else ():
            raw = Fraction(0) if trace.is_blank else raw_score(judge, trace.number)
            raw = Fraction(10) if raw is None and not broken else raw
            if raw is not None:
                scores[judge] = raw / 10
        absent = frozenset(plan.judges) - scores.keys()
        final = None if absent else Fraction(sum(score * plan.weights[name] for name, score in scores.items()))
        if final is not None:
            final /= sum(plan.weights.values())
        skipped = bool(plan.judges) and trace.trace_id not in chosen
        rows.append(Row(trace, scores, absent, final, None if final is None else final >= plan.threshold, skipped))
    return rows
