"""The tables of keys in the documentation of AgentCI and FluxLoop: they list what the schemas accept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from agenteval.agents.frameworks.scan import Framework
from agenteval.suite.formats.agentci import schema as agentci
from agenteval.suite.formats.fluxloop import project, schema

DOCS = Path(__file__).parents[3] / "docs"
START, END = "<!-- keys -->", "<!-- end of keys -->"
STATUSES = ("used", "not used", "agenteval's own")

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
# Values of keys that the schema keeps as text.
VALUES: Mapping[str, tuple[str, ...]] = {"evaluators.rules.check": tuple(schema.RULES)}
# Keys that the loader knows besides those of the schema.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "agentci": (),
    "fluxloop": tuple(
        f"project: {key}"
        for key in (*project._OTHER_KEYS, *(f"runner.{name}" for name in (*project.IGNORED, "args")))
    ),
}


@dataclass(frozen=True)
class Row:
    """A key with its default and its values, as the table shows them."""

    default: str = ""
    values: str = ""


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def literals_in(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    elif get_origin(annotation) is Annotated:
        yield from literals_in(get_args(annotation)[0])
    else:
        for inner in get_args(annotation):
            yield from literals_in(inner)


def shown(default: Any) -> str:
    if default is PydanticUndefined or default is None or default in ({}, []) or isinstance(default, BaseModel):
        return ""
    if isinstance(default, float):
        return f"{default:g}"
    return str(default).lower() if isinstance(default, bool) else str(default)


def keys_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Row]]:
    """Yield the keys of a model and of the tables inside it; a table that only contains others has no row."""
    for field, info in model.model_fields.items():
        name = info.alias or field
        inner = [*models_in(info.annotation), *OPEN.get((model, name), ())]
        default = PydanticUndefined if inner or info.is_required() else info.get_default(call_default_factory=True)
        values = VALUES.get(f"{prefix}{name}", tuple(dict.fromkeys(literals_in(info.annotation))))
        if not inner or name in {"output", "value"}:
            yield f"{prefix}{name}", Row(shown(default), ", ".join(values))
        for part in inner:
            yield from keys_of(part, f"{prefix}{name}.")


def expected(tool: str) -> dict[str, Row]:
    found = {key: Row() for key in KNOWN[tool]}
    for prefix, model in ROOTS[tool].items():
        for key, row in keys_of(model, prefix):
            # Keys of several entries, such as `type` of evaluators, are one row.
            known = found.get(key, Row())
            values = dict.fromkeys(filter(None, (*known.values.split(", "), *row.values.split(", "))))
            found[key] = Row(row.default or known.default, ", ".join(values))
    return found


def table(tool: str) -> list[list[str]]:
    text = (DOCS / f"{tool}.md").read_text(encoding="utf-8")
    part = text.partition(START)[2].partition(END)[0]
    rows = [line for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rows]


def plain(cell: str) -> str:
    return re.sub(r"`", "", cell)


@pytest.mark.parametrize("tool", ROOTS)
def test_the_table_has_every_key_with_its_default_and_values(tool: str) -> None:
    rows = {plain(row[0]): Row(plain(row[1]), plain(row[2])) for row in table(tool)}
    assert rows == expected(tool)
    assert len(rows) == len(table(tool))


@pytest.mark.parametrize("tool", ROOTS)
def test_every_row_has_a_status(tool: str) -> None:
    wrong = [row for row in table(tool) if len(row) != 4 or not row[3].startswith(STATUSES)]
    assert wrong == []
