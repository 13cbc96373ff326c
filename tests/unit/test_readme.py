"""README and action.yml say the same; ``UPDATE_GOLDEN=1`` writes README's tables anew."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def _inputs(action: dict[str, Any]) -> str:
    lines = ["| input | default | |", "|---|---|---|"]
    for name, entry in action["inputs"].items():
        default = f"`{entry['default']}`" if entry["default"] else ""
        lines.append(f"| `{name}` | {default} | {' '.join(entry['description'].split())} |")
    return "\n".join(lines)


def _outputs(action: dict[str, Any]) -> str:
    lines = ["| output | |", "|---|---|"]
    lines += [f"| `{name}` | {' '.join(entry['description'].split())} |" for name, entry in action["outputs"].items()]
    return "\n".join(lines)


@pytest.mark.parametrize(("section", "render"), [("inputs", _inputs), ("outputs", _outputs)])
def test_tables_are_those_of_the_action(section: str, render: Any) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    text = README.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {section} -->\n).*?(<!-- /{section} -->)", re.DOTALL)
    expected = pattern.sub(lambda match: f"{match[1]}{render(action)}\n{match[2]}", text)
    if os.environ.get("UPDATE_GOLDEN"):
        README.write_text(expected, encoding="utf-8")
    assert text == expected, "run the tests with UPDATE_GOLDEN=1"


def test_every_local_link_leads_somewhere() -> None:
    text = README.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    assert [target for target in targets if not (ROOT / target).exists()] == []
