"""The names of the public API: they exist, are documented, and are imported only on use."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import agenteval

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


def documented() -> list[str]:
    table = PAGE.read_text(encoding="utf-8").partition("## Public names")[2]
    return re.findall(r"(?m)^\| `(\w+)` \| .", table)


def test_the_page_lists_every_name() -> None:
    assert documented() == sorted(agenteval.__all__)


@pytest.mark.parametrize("name", agenteval.__all__)
def test_every_name_can_be_imported_and_explains_itself(name: str) -> None:
    found = getattr(agenteval, name)
    assert not isinstance(found, ModuleType)
    assert getattr(agenteval, name) is found
    assert name == "API_VERSION" or inspect.getdoc(found)


def test_dir_lists_every_name() -> None:
    assert {*agenteval.__all__, "__version__"} <= set(dir(agenteval))


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        _ = agenteval.evaluat  # type: ignore[attr-defined]


def test_compare_is_the_function_whatever_was_imported_before() -> None:
    package = importlib.import_module("agenteval.gate.verdict")
    from agenteval import compare

    assert inspect.isfunction(compare)
    assert package.GatePolicy is agenteval.GatePolicy


def test_the_import_loads_no_other_module() -> None:
    program = "import sys, agenteval; print(*sorted(n for n in sys.modules if n.startswith('agenteval.')))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["agenteval.core", "agenteval.core.version"]
