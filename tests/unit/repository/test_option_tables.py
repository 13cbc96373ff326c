"""The tables of options in the documentation of HoloDeck and FluxLoop: they list what the tools' commands accept."""

from __future__ import annotations

import argparse
import re
from typing import Any

import pytest
import yaml
from tests.support import ROOT

from agenteval.cli.main import command_line

START, END = "<!-- options -->", "<!-- end of options -->"
TOOLS: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "tests/data/options.yaml").read_text(encoding="utf-8"))


def rows(tool: str) -> list[tuple[str, str]]:
    """The cells of the table of a tool."""
    page = (ROOT / f"docs/{tool}.md").read_text(encoding="utf-8")
    lines = page.partition(START)[2].partition(END)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| `")]
    return [(given, ours) for given, ours in cells]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def own_options(parser: argparse.ArgumentParser) -> set[str]:
    """All commands and options of agenteval."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, inner in action.choices.items():
                found |= {command} | own_options(inner)
    return found


@pytest.mark.parametrize("tool", [name for name, entry in TOOLS.items() if entry["options"]])
def test_the_table_has_every_option_and_nothing_else(tool: str) -> None:
    written = [named(given) for given, _ in rows(tool)]
    options = [names for names in written if names[0].startswith("-")]
    assert sorted(options) == sorted(TOOLS[tool]["options"])
    # The command itself is the first row; others of the same tool may follow.
    assert written[0][0].startswith(TOOLS[tool]["command"])
    assert all(names[0].startswith(f"{tool} ") for names in written if names not in options)


@pytest.mark.parametrize("tool", [name for name, entry in TOOLS.items() if entry["options"]])
def test_every_row_says_what_agenteval_has(tool: str) -> None:
    known = own_options(command_line())
    for given, ours in rows(tool):
        assert ours, given
        used = [word for name in named(ours) for word in name.split() if re.fullmatch(r"--?[a-z][a-z-]*", word)]
        assert set(used) <= known, given
        commands = [name.split()[1] for name in named(ours) if name.startswith("agenteval ")]
        assert set(commands) <= known, given


def test_agentci_has_no_command() -> None:
    assert TOOLS["agentci"]["options"] == []
    assert "AgentCI has no command line" in (ROOT / "docs/agentci.md").read_text(encoding="utf-8")
