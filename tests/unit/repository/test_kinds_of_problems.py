"""Each kind of message has a section in the troubleshooting page, and each problem names its kind."""

from __future__ import annotations

import ast
import re

from tests.support import ROOT

from agenteval.core.errors import Kind

_PAGE = ROOT / "docs" / "troubleshooting.md"
_SOURCE = ROOT / "src" / "agenteval"


def _anchor(heading: str) -> str:
    """The anchor that GitHub and mkdocs give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def _sections() -> list[str]:
    text = _PAGE.read_text(encoding="utf-8")
    messages = text[text.index("## Messages") : text.index("## Before the run")]
    return [_anchor(heading) for heading in re.findall(r"(?m)^### (.+)$", messages)]


def test_each_kind_has_a_section_and_no_section_is_left_over() -> None:
    assert sorted(_sections()) == sorted(Kind)


def test_anchors_are_unique_on_the_page() -> None:
    anchors = [_anchor(heading) for heading in re.findall(r"(?m)^#+ (.+)$", _PAGE.read_text(encoding="utf-8"))]
    assert [anchor for anchor in Kind if anchors.count(anchor) != 1] == []


def test_each_kind_is_used() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in _SOURCE.rglob("*.py"))
    assert [kind.name for kind in Kind if f"Kind.{kind.name}" not in text] == []


def test_each_problem_names_its_kind() -> None:
    found = {
        f"{path.relative_to(_SOURCE).as_posix()}:{node.lineno}"
        for path in _SOURCE.rglob("*.py")
        if "Problem" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and _name(node.func) == "Problem"
        if "kind" not in {keyword.arg for keyword in node.keywords}
    }
    assert found == set(), "say kind=Kind.…, or use Document.problem or agent_problem"


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else ""
