"""Maps promptfoo's assertion types to metric kinds."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval.suite.model import MetricKind

_TYPES: Mapping[MetricKind, frozenset[str]] = {
    "match": frozenset(
        {
            "contains",
            "contains-all",
            "contains-any",
            "equals",
            "icontains",
            "icontains-all",
            "icontains-any",
            "levenshtein",
            "regex",
            "similar",
            "similar:cosine",
            "similar:dot",
            "similar:euclidean",
            "starts-with",
            "word-count",
        }
    ),
    "schema": frozenset(
        {
            "contains-html",
            "contains-json",
            "contains-sql",
            "contains-xml",
            "is-html",
            "is-json",
            "is-sql",
            "is-valid-function-call",
            "is-valid-openai-function-call",
            "is-valid-openai-tools-call",
            "is-xml",
        }
    ),
    "code": frozenset({"javascript", "python", "ruby", "webhook"}),
    "geval": frozenset({"g-eval"}),
    "judge": frozenset(
        {
            "agent-rubric",
            "conversation-relevance",
            "factuality",
            "llm-rubric",
            "model-graded-closedqa",
            "model-graded-factuality",
            "search-rubric",
        }
    ),
    "rag": frozenset({"answer-relevance", "context-faithfulness", "context-recall", "context-relevance"}),
    "standard": frozenset({"bleu", "gleu", "meteor", "rouge-n"}),
    "performance": frozenset({"cost", "latency"}),
    "safety": frozenset({"guardrails", "is-refusal", "moderation"}),
    "tools": frozenset({"tool-call-f1"}),
}
_KINDS: Mapping[str, MetricKind] = {name: kind for kind, names in _TYPES.items() for name in names}
# Their thresholds are edits, words, milliseconds, dollars and the like, not scores.
_OTHER_UNITS = frozenset({"cost", "latency", "levenshtein", "perplexity", "word-count"})


def kind_of(assertion: str) -> MetricKind:
    """Return the metric kind of an assertion type, negated or not."""
    return _KINDS.get(assertion.removeprefix("not-"), "custom")


def threshold_of(assertion: str, threshold: float | None) -> float | None:
    """Return the score that an assertion needs; ``None`` if its threshold is not a score, or it is negated."""
    if threshold is None or assertion.startswith("not-") or assertion in _OTHER_UNITS:
        return None
    return threshold if 0 <= threshold <= 1 else None
