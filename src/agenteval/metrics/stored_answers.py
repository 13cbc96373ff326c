"""Tells which metrics can score answers that results store, at any time and with the same score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agenteval.metrics.rules.rules import needs_model
from agenteval.metrics.schema import has_reference_texts
from agenteval.suite.model import MetricConfig

# All other types ask a model, reach a service, or run user code. `schema` and `rules` depend on their options.
_ALWAYS: Final = frozenset(
    {
        *("equality", "numeric", "f1_score", "bleu", "rouge", "meteor"),
        *("text_match", "tools", "tool_calls", "latency", "tokens"),
    }
)
# The field of a reply that results do not store.
_NOT_STORED: Final = "metadata"


def scores_stored_answers(config: MetricConfig) -> bool:
    """Return whether a metric needs only a stored answer: no model, no service and no user code."""
    if config.metric is not None:
        return False
    if config.type == "schema":
        return not has_reference_texts(config.options["schema"])
    if config.type == "rules":
        return not any(needs_model(rule) or _reads_metadata(rule) for rule in config.options["rules"])
    return config.type in _ALWAYS


def _reads_metadata(rule: Mapping[str, Any]) -> bool:
    paths = (rule.get(name) for name in ("target", "expected_path"))
    return any(_NOT_STORED in path for path in paths if isinstance(path, str))
