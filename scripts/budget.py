"""Compares the project's sizes with ``requirements/ceilings.toml``; ``--lower`` lowers ceilings to what is there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
CEILINGS = ROOT / "requirements" / "ceilings.toml"
SRC = ROOT / "src" / "agenteval"
# Further below its ceiling, a size could grow again unseen.
_LEAST = 0.97
_TOO_MUCH = "take something away, or raise it in requirements/ceilings.toml with a `why`"
_TOO_LITTLE = "lower it with `python -m scripts.budget --lower`"
# What a user must learn.
_LEARNT = """
import argparse
from agenteval.cli.main import command_line
from agenteval.results.verdict import CONCEPTS
commands, = (action for action in command_line()._actions if isinstance(action, argparse._SubParsersAction))
options = sum(bool(action.option_strings) for command in commands.choices.values() for action in command._actions)
hidden = sum(len(command.experts) for command in commands.choices.values())
print(len(CONCEPTS), sum(len(concept.values) for concept in CONCEPTS), options - hidden, options)
"""
_ONE_CASE = """
import pathlib, sys, tempfile
from agenteval.cli.main import main
suite = pathlib.Path(tempfile.mkdtemp(), "agent.yaml")
suite.write_text("agent: {command: [cat]}\\nevaluations: {metrics: [{type: standard, metric: equality}]}\\n"
    "test_cases: [{name: a, input: hi, ground_truth: hi}]\\n")
main(["run", str(suite), "--out", str(suite.parent / "out"), "--quiet"])
print(sum(name.partition(".")[0] == "agenteval" for name in sys.modules))
"""


def sizes() -> dict[str, int]:
    """Return the lines, modules and records of each package, and the sizes of the project, by name."""
    found: dict[str, int] = {}
    for package in sorted({path.relative_to(SRC).parts[0].removesuffix(".py") for path in SRC.rglob("*.py")}):
        texts = [file.read_text("utf-8") for file in [*SRC.glob(f"{package}.py"), *(SRC / package).rglob("*.py")]]
        found |= {f"{package}.lines": sum(text.count("\n") for text in texts), f"{package}.modules": len(texts)}
        found[f"{package}.records"] = sum(map(_records, texts))
    pages = [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts)]
    tests = [file for file in (ROOT / "tests").rglob("*.py") if not {"scenarios", "node_modules"} & set(file.parts)]
    inputs = (ROOT / "action.yml").read_text("utf-8").partition("\ninputs:\n")[2].partition("\noutputs:\n")[0]
    (modules_of_one_case,) = _printed(_ONE_CASE)
    concepts, values, visible, options = _printed(_LEARNT)
    modules = [file.read_text("utf-8") for file in SRC.rglob("*.py") if file.stem not in {"__init__", "__main__"}]
    types = Counter(name for text in modules for name in _public_types(text))
    return found | {
        # A module has 80 to 450 lines, and a type has a name of its own.
        "project.modules_of_odd_size": sum(not 80 <= text.count("\n") <= 450 for text in modules),
        "project.type_names_twice": sum(number > 1 for number in types.values()),
        "project.modules_of_one_case": modules_of_one_case,
        "project.concepts": concepts,
        "project.values_of_concepts": values,
        "project.options_visible": visible,
        "project.options": options,
        "project.words_of_documentation": sum(len(page.read_text("utf-8").split()) for page in pages),
        "project.action_inputs": len(re.findall(r"(?m)^  [\w-]+:", inputs)),
        "project.lines_of_tests": sum(file.read_text("utf-8").count("\n") for file in tests),
    }


def _printed(program: str) -> list[int]:
    """Return the numbers in the last line that a program prints."""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return [int(number) for number in shown.splitlines()[-1].split()]


def _public_types(text: str) -> set[str]:
    """Return the names of a module's classes that others may import."""
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name[0] != "_"}


def _records(text: str) -> int:
    """Count the data classes and named tuples of a module."""
    classes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))
    kinds = (" ".join(ast.unparse(node) for node in [*found.decorator_list, *found.bases]) for found in classes)
    return sum("dataclass" in kind or "NamedTuple" in kind for kind in kinds)


def lowered(text: str, found: dict[str, int]) -> str:
    """Return the ceilings file with each ceiling that is above its size lowered to it."""
    packages = {name.partition(".")[0] for name in found}
    table, lines = "", []
    for line in text.splitlines():
        if header := re.fullmatch(r"\[(\w+)\]", line):
            table = header[1]
        if table and table not in packages:
            # The package is gone.
            continue
        name, _, ceiling = line.partition(" = ")
        size = found.get(f"{table}.{name}")
        lines.append(line if size is None or size >= int(ceiling) else f"{name} = {size}")
    return "\n".join([*lines, ""])


def misses(text: str, found: dict[str, int]) -> list[str]:
    """Return what is above its ceiling or more than 3 % below it, in sentences."""
    ceilings = {
        f"{table}.{name}": ceiling
        for table, values in tomllib.loads(text).items()
        for name, ceiling in values.items()
        if name != "why"
    }
    return [
        f"{name} is {size}, its ceiling {ceiling}: {_TOO_MUCH if size > ceiling else _TOO_LITTLE}"
        for name in sorted(ceilings.keys() | found.keys())
        for size, ceiling in [(found.get(name, 0), ceilings.get(name, 0))]
        if size > ceiling or size < int(ceiling * _LEAST)
    ]


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--lower"]):
        sys.exit("usage: python -m scripts.budget [--lower]")
    measured = sizes()
    if sys.argv[1:] == ["--lower"]:
        CEILINGS.write_text(lowered(CEILINGS.read_text("utf-8"), measured), "utf-8")
    sys.exit("\n".join(misses(CEILINGS.read_text("utf-8"), measured)) or 0)
