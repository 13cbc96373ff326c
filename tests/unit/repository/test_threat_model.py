"""Every row of the threat model in SECURITY.md names tests, and all of them exist."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from tests.support import ROOT

_TEST = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<name>test_\w+)`")
_SCENARIO = re.compile(r"`(tests/scenarios/[\w/-]+\.yaml)`")
# Each of these controls an input of agenteval.
_WHO = {
    "author of a suite",
    "author of a fork",
    "the agent's output",
    "the agent's process",
    "servers: models, judges, files",
    "artifact",
    "event payload",
    "other commenters",
    "author of a template",
    "author of results, recordings or a journal",
    "author of a dependency",
}


def rows() -> list[list[str]]:
    _, _, model = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("## Who attacks")
    lines = [line for line in model.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@cache
def functions_of(file: str) -> frozenset[str]:
    path = ROOT / file
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions)


def test_everybody_who_is_heard_has_a_row() -> None:
    assert {row[0] for row in rows()} >= _WHO


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]}: {row[1]}")
def test_every_row_is_whole_and_its_tests_exist(row: list[str]) -> None:
    assert len(row) == 5
    assert all(row)
    named = [(match["file"], match["name"]) for match in _TEST.finditer(row[4])]
    scenarios = _SCENARIO.findall(row[4])
    assert _SCENARIO.sub("", _TEST.sub("", row[4])).strip() == ""
    assert named or scenarios
    assert [file for file in scenarios if not (ROOT / file).exists()] == []
    assert [f"{file}::{name}" for file, name in named if name not in functions_of(file)] == []
