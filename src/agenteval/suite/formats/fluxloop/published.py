"""The JSON Schema of ``evaluation.yaml``, for editors."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, create_model

from agenteval.suite.formats.fluxloop.evaluator_schema import RULES, JudgeEvaluatorEntry, RuleEvaluatorEntry
from agenteval.suite.formats.fluxloop.schema import EvaluationFile
from agenteval.suite.formats.json_schema import (
    AGENT_DESCRIPTION,
    AgentKey,
    Node,
    each_property,
    or_else,
    or_scalar,
    with_variables,
)

_LISTS = frozenset({"flags", "keywords"})
# Texts that may be written as YAML numbers and booleans.
_TEXTS = frozenset({"name", "model", "prompt_template", "keywords", "pattern", "target", "expected_path"})


def published() -> Node:
    """Return the schema of a file."""
    rule: Any = Union[tuple(_rule(check, entry) for check, entry in RULES.items())]  # noqa: UP007 - made of a tuple
    rules: Any = (Annotated[list[rule], Field(min_length=1)], ...)
    by_rules: Any = create_model("RuleEvaluator", __base__=RuleEvaluatorEntry, rules=rules)
    evaluators: Any = (Annotated[list[by_rules | JudgeEvaluatorEntry], Field(min_length=1)], ...)
    agent: Any = (AgentKey | None, Field(None, description=AGENT_DESCRIPTION))
    file = create_model("EvaluationFile", __base__=EvaluationFile, evaluators=evaluators, agent=agent)
    return each_property(with_variables(file.model_json_schema()), _spelling)


def _rule(check: str, entry: type[BaseModel]) -> type[BaseModel]:
    """Return the entry of one check, with its name."""
    name: Any = (Literal[check], ...)
    rule: type[BaseModel] = create_model(f"Rule_{check}", __base__=entry, check=name)
    return rule


def _spelling(key: str, value: Node) -> Node:
    """Allow a key without a value, which means its default, and a single text instead of a list."""
    if value.get("type") == "array" and value.get("items", {}).get("type") in {"string", None}:
        value = or_else(value, {"type": "string"})
    if key in _LISTS:
        # Flags in lower case, words that YAML parses as numbers.
        value = {"type": ["array", "string"]}
    if key == "quality":
        value = or_else(value, {"type": "object"})
    if key in _TEXTS:
        value = or_scalar(value)
    return or_else(value, {"type": "null"}) if "const" not in value else value
