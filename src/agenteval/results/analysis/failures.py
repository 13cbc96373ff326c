"""Sorts the reasons of failed answers into categories."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.summary import judged, passed
from agenteval.suite.evaluation import Aggregate

#: A reason belongs to the first category whose words its metric id, else its text contains.
CATEGORIES: Sequence[tuple[str, str]] = (
    ("content", r"keywords?|forbidden|similarity|pattern|regex|contains(?=:)"),
    ("latency", r"latency|time-?outs?|timed out|too slow|response time|duration|\d+ ?ms"),
    ("token_usage", r"tokens?"),
    ("tool_calls", r"tools?|function calls?"),
    ("intent_recognition", r"intents?|intentions?|misunderstood|misunderstands"),
    ("runtime_error", r"errors?|exceptions?|traceback|crash(?:ed|es)?|no answer|success(?=:)"),
    ("empty_output", r"empty|blank"),
)
#: The category of missing answers and of traces that report a failure.
NO_SUCCESS = "runtime_error"
#: The category of all other failures.
GENERAL = "general"

_LONGEST_READ = 400
_EXAMPLES = 3
_RULES = [(name, re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)) for name, pattern in CATEGORIES]


@dataclass(frozen=True, slots=True)
class Cause:
    """One category.

    Attributes:
        count: answers that failed for such a reason; an answer may have several reasons.
        examples: names of some of them.
    """

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failures:
    """The answers that did not pass.

    Attributes:
        count: how many.
        causes: category → cause, the most frequent first; ``None`` if not asked for.
    """

    count: int
    causes: Mapping[str, Cause] | None


def failed(answer: EvaluatedAnswer) -> bool:
    """Return whether the answer was judged and did not pass."""
    return judged(answer) and not passed(answer)


def category(metric: str, reason: str) -> str:
    """Return the category of a reason."""
    for text in (metric.replace("_", " "), reason[:_LONGEST_READ].replace("_", " ")):
        for name, rule in _RULES:
            if rule.search(text):
                return name
    return GENERAL


def count_failures(answers: Iterable[EvaluatedAnswer]) -> Failures:
    """Count failed answers without their causes."""
    return Failures(sum(map(failed, answers)), None)


def find_causes(answers: Iterable[EvaluatedAnswer], aggregate: Aggregate) -> Failures:
    """Count failed answers and their causes, which are the reasons for lost points."""
    found: dict[str, list[EvaluatedAnswer]] = defaultdict(list)
    count = 0
    known: dict[tuple[str, str], str] = {}
    for answer in filter(failed, answers):
        count += 1
        for name in _categories(answer, aggregate, known):
            found[name].append(answer)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return Failures(count, {name: Cause(len(cases), _examples(cases)) for name, cases in ordered})


def _categories(answer: EvaluatedAnswer, aggregate: Aggregate, known: dict[tuple[str, str], str]) -> set[str]:
    found = set() if answer.success else {NO_SUCCESS}
    for item in answer.lost(aggregate).items():
        if item not in known:
            known[item] = category(*item)
        found.add(known[item])
    return found or {GENERAL}


def _examples(answers: Iterable[EvaluatedAnswer]) -> tuple[str, ...]:
    return tuple(heapq.nsmallest(_EXAMPLES, {answer.name for answer in answers}))
