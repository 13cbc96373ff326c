"""The JSON Schemas of suite files, for editors: what the loaders accept, and with every key they know.

The loaders read their files in pieces, so that one mistake hides no other, and take some values in several spellings.
Here the pieces are put together, and the spellings are added. What only a loader can see (that a name is given twice,
that a pattern is none) is not said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, create_model

from agenteval.suite.agents import AgentEntry
from agenteval.suite.formats.agentci import schema as agentci_schema
from agenteval.suite.formats.fluxloop import schema as fluxloop_schema
from agenteval.suite.formats.fluxloop.evaluator_schema import RULES, JudgeEvaluatorEntry, RuleEvaluatorEntry
from agenteval.suite.formats.holodeck import schema as holodeck_schema
from agenteval.suite.formats.holodeck.tools_schema import AgentFileWithTools

_AGENT = AgentEntry | list[str] | str
_VARIABLE = {"type": "string", "pattern": r"\$\{"}
# Texts that may be written as YAML numbers and booleans.
_HOLODECK_TEXTS = frozenset({"name", "input", "ground_truth"})
_FLUXLOOP_LISTS = frozenset({"flags", "keywords"})
_FLUXLOOP_TEXTS = frozenset({"name", "model", "prompt_template", "keywords", "pattern", "target", "expected_path"})
_BARE_TEXTS = ("ExpectedTool", "Instructions")
_NUMBERS = frozenset({"number", "integer", "boolean"})

Node = dict[str, Any]


class _HolodeckFile(AgentFileWithTools):
    agent: _AGENT | None = Field(None, description="agenteval: how the agent under test is reached")
    test_cases: list[holodeck_schema.CaseEntry] | None = None


class _AgentciCase(agentci_schema.CaseEntry):
    output: str | agentci_schema.OutputEntry | None = None


class _AgentciEval(agentci_schema.EvalEntry):
    cases: list[_AgentciCase] = Field(default_factory=list)


class _AgentciFile(agentci_schema.EvalFile):
    eval: _AgentciEval


def holodeck() -> Node:
    """The schema of ``agent.yaml``."""
    body = _with_variables(_HolodeckFile.model_json_schema())
    for name in _BARE_TEXTS:
        body["$defs"][name] = {"anyOf": [{"type": "string"}, body["$defs"][name]]}
    return _each_property(body, lambda key, value: _or_scalar(value) if key in _HOLODECK_TEXTS else value)


def agentci() -> Node:
    """The schema of the files in ``.agentci/evals``."""
    return _with_variables(_AgentciFile.model_json_schema())


def fluxloop() -> Node:
    """The schema of ``evaluation.yaml``."""
    rule: Any = Union[tuple(_rule(check, entry) for check, entry in RULES.items())]  # noqa: UP007 - made of a tuple
    rules: Any = (Annotated[list[rule], Field(min_length=1)], ...)
    by_rules: Any = create_model("RuleEvaluator", __base__=RuleEvaluatorEntry, rules=rules)
    evaluators: Any = (Annotated[list[by_rules | JudgeEvaluatorEntry], Field(min_length=1)], ...)
    agent: Any = (_AGENT | None, Field(None, description="agenteval: how the agent under test is reached"))
    base = fluxloop_schema.EvaluationFile
    file = create_model("EvaluationFile", __base__=base, evaluators=evaluators, agent=agent)
    return _each_property(_with_variables(file.model_json_schema()), _fluxloop_spelling)


def _rule(check: str, entry: type[BaseModel]) -> type[BaseModel]:
    """The entry of one check, which says its name."""
    name: Any = (Literal[check], ...)
    rule: type[BaseModel] = create_model(f"Rule_{check}", __base__=entry, check=name)
    return rule


def _fluxloop_spelling(key: str, value: Node) -> Node:
    """A key without a value means its default, and one text stands for a list of one."""
    if value.get("type") == "array" and value.get("items", {}).get("type") in {"string", None}:
        value = _or(value, {"type": "string"})
    if key in _FLUXLOOP_LISTS:
        # Flags in lower case, words that YAML takes for numbers.
        value = {"type": ["array", "string"]}
    if key == "quality":
        value = _or(value, {"type": "object"})
    if key in _FLUXLOOP_TEXTS:
        value = _or_scalar(value)
    return _or(value, {"type": "null"}) if "const" not in value else value


def _with_variables(schema: Node) -> Node:
    """The same schema, in which ``${VARIABLE}`` may stand for every number, word of a choice, and boolean."""
    if schema.get("type") in _NUMBERS or "enum" in schema:
        return _or(schema, _VARIABLE)
    return _below(schema, _with_variables)


def _each_property(schema: Node, change: Callable[[str, Node], Node]) -> Node:
    """The same schema with each property of each object replaced by what a function makes of it."""
    changed = _below(schema, lambda part: _each_property(part, change))
    if "properties" in changed:
        changed["properties"] = {key: change(key, value) for key, value in changed["properties"].items()}
    return changed


def _below(schema: Node, change: Callable[[Node], Node]) -> Node:
    """A copy of a schema, with the schemas right below it replaced by what a function makes of them."""
    copy = dict(schema)
    for key in ("properties", "$defs"):
        if key in copy:
            copy[key] = {name: change(part) for name, part in copy[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(copy.get(key), dict):
            copy[key] = change(copy[key])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in copy:
            copy[key] = [change(part) for part in copy[key]]
    return copy


def _or_scalar(value: Node) -> Node:
    return _or(value, {"type": ["number", "boolean"]})


def _or(
    value: Node, other: Mapping[str, Any], outside: Collection[str] = ("description", "default", "title")
) -> Node:
    """What either schema allows; what is said about the first is said about both."""
    said = {key: value[key] for key in outside if key in value}
    inner = {key: item for key, item in value.items() if key not in said}
    members = inner["anyOf"] if set(inner) == {"anyOf"} else [inner]
    return {**said, "anyOf": [*members, dict(other)]}
