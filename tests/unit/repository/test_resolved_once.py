"""What a run is made of is resolved once: it has few parts, and nothing replaces one afterwards."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

from tests.support import ROOT

from agenteval.run.resolve.spec import RunSpec

_MOST_FIELDS = 20
# They resolve it.
_RESOLVING = frozenset({"accepted_file.py", "resolve_run.py", "resolve_saved.py", "under_base.py"})
_REPLACES = frozenset({"replace", "copy.replace", "dataclasses.replace"})


def test_it_has_few_parts() -> None:
    assert len(fields(RunSpec)) <= _MOST_FIELDS


def test_nothing_replaces_a_part_of_it() -> None:
    paths = sorted(path for path in Path(ROOT, "src/agenteval").rglob("*.py") if path.name not in _RESOLVING)
    found = [place for path in paths for place in _replaced(path)]
    assert found == []


def _replaced(path: Path) -> list[str]:
    """Return where a module replaces a parameter or a variable that is a specification."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        specs = {item.arg for item in arguments if item.annotation and "RunSpec" in ast.unparse(item.annotation)}
        specs |= {
            item.optional_vars.id
            for node in ast.walk(function)
            if isinstance(node, ast.With)
            for item in node.items
            if isinstance(item.optional_vars, ast.Name) and ast.unparse(item.context_expr).startswith("resolve(")
        }
        found += [
            f"{path.name}:{node.lineno}"
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _REPLACES and node.args
            if ast.unparse(node.args[0]) in {*specs, "self.spec", "spec", "run"} - _OTHER.get(path.name, frozenset())
        ]
    return found


# There, ``spec`` is the definition of an agent or of a model, and ``run`` a run of a check.
_OTHER = {
    "python.py": frozenset({"spec"}),
    "model_client.py": frozenset({"spec"}),
    "model_agent.py": frozenset({"spec"}),
    "agents.py": frozenset({"spec"}),
    "config_keys.py": frozenset({"spec"}),
    "check_run.py": frozenset({"run"}),
}
