"""The import contracts cover every package that they are about."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support import ROOT


def contract(name: str) -> Mapping[str, Any]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    (found,) = (item for item in contracts if item["id"] == name)
    return found


@pytest.mark.parametrize(
    ("name", "parent"), [("formats-private", "suite.formats"), ("importers-private", "results.importers")]
)
def test_every_package_is_private(name: str, parent: str) -> None:
    directory = Path(ROOT, "src/agenteval", *parent.split("."))
    shared = {"__init__", "base", "detect", "files", "registry"}
    packages = {
        f"agenteval.{parent}.{file.stem}" for file in directory.iterdir() if file.stem not in {*shared, "__pycache__"}
    }
    assert len(packages) > 2
    assert set(contract(name)["forbidden_modules"]) == packages


@pytest.mark.parametrize("name", ["floors", "core", "formats", "importers"])
def test_every_module_has_a_layer(name: str) -> None:
    assert contract(name)["exhaustive"] is True
