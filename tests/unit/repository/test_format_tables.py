"""The tables in the documentation of the formats name keys that exist, and every key that is not used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from agenteval.agents.frameworks.scan import Framework
from agenteval.suite.formats.agentci import schema as agentci
from agenteval.suite.formats.fluxloop import project, schema
from agenteval.suite.formats.holodeck import schema as holodeck
from agenteval.suite.formats.holodeck import tools_schema
from agenteval.suite.formats.holodeck.project import GlobalConfigFile

DOCS = Path(__file__).parents[3] / "docs"
START, END = "<!-- keys -->", "<!-- end of keys -->"

# Keys that models read as any value, and what they contain.
OPEN: Mapping[tuple[type[BaseModel], str], tuple[type[BaseModel], ...]] = {
    (agentci.EvalEntry, "cases"): (agentci.EvaluationCase,),
    (agentci.EvaluationCase, "output"): (agentci.OutputEntry,),
    (agentci.OutputEntry, "schema"): (agentci.FieldEntry,),
    (agentci.FieldEntry, "value"): (agentci.TextMatchEntry,),
    (schema.EvaluationFile, "evaluators"): tuple(dict.fromkeys(schema.EVALUATORS.values())),
    (schema.RuleEvaluatorEntry, "rules"): tuple(dict.fromkeys(schema.RULES.values())),
}
ROOTS: Mapping[str, Mapping[str, type[BaseModel]]] = {
    "agentci": {"": agentci.EvalFile, "frameworks/*.toml: ": Framework},
    "fluxloop": {"": schema.EvaluationFile, "project: ": project.ProjectEntry},
}
# Keys that the loader accepts and does not use.
UNUSED: Mapping[str, tuple[str, ...]] = {
    "agentci": (),
    "fluxloop": tuple(
        f"project: {key}"
        for key in (*project._OTHER_KEYS, *(f"runner.{name}" for name in (*project.IGNORED, "args")))
    ),
}


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def keys_of(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the keys of a model and of the tables inside it."""
    for field, info in model.model_fields.items():
        name = info.alias or field
        yield f"{prefix}{name}"
        for part in [*models_in(info.annotation), *OPEN.get((model, name), ())]:
            yield from keys_of(part, f"{prefix}{name}.")


def table(tool: str) -> Iterator[tuple[str, str]]:
    """Yield each key of the table with what agenteval does with it."""
    text = (DOCS / f"{tool}.md").read_text(encoding="utf-8")
    for line in text.partition(START)[2].partition(END)[0].splitlines():
        if line.startswith("| `"):
            keys, here = line.strip("|").split(" | ")
            yield from ((key, here.strip()) for key in re.findall(r"`([^`]+)`", keys))


@pytest.mark.parametrize("tool", ROOTS)
def test_the_table_names_keys_that_exist_and_all_that_are_not_used(tool: str) -> None:
    listed = list(table(tool))
    known = {key for prefix, model in ROOTS[tool].items() for key in keys_of(model, prefix)} | {*UNUSED[tool]}
    assert len(dict(listed)) == len(listed)
    assert dict(listed).keys() <= known
    assert {key for key, here in listed if here.startswith("not used")} >= {*UNUSED[tool]}


HOLODECK: Mapping[str, type[BaseModel]] = {
    "`agent.yaml`": tools_schema.AgentFileWithTools,
    "`model`": holodeck.HoloDeckModel,
    "`execution`": holodeck.Execution,
    "`evaluations`": holodeck.Evaluations,
    "function tool": tools_schema.FunctionEntry,
    "MCP tool": tools_schema.McpEntry,
    "prompt tool": tools_schema.PromptEntry,
    "`config.yaml`": GlobalConfigFile,
}


def test_the_table_of_holodeck_names_keys_that_can_be_written() -> None:
    text = (DOCS / "holodeck.md").read_text(encoding="utf-8").partition(START)[2].partition("<!-- /keys -->")[0]
    rows = [line.strip("|").split(" | ") for line in text.strip().splitlines()[2:]]
    assert {row[0].strip() for row in rows} == HOLODECK.keys()
    for place, keys, _ in rows:
        model = HOLODECK[place.strip()]
        unknown = set(re.findall(r"`(\w+)`", keys)) - model.model_fields.keys()
        assert not unknown or model.model_config.get("extra") != "forbid", (place, unknown)
