"""The documentation says what action.yml, agenteval.yaml and the command line say: `make reference` writes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.reference import LLMS, ROOT, SECTIONS, commands, configuration, llms_txt, with_sections

from agenteval.run.config_file import PublishedConfig

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("examples/*/README.md")])


@pytest.mark.parametrize("name", SECTIONS)
def test_generated_parts_are_those_of_the_program(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == with_sections(name, text), "run make reference"


def test_the_list_of_pages_for_language_models_is_up_to_date() -> None:
    assert LLMS.read_text(encoding="utf-8") == llms_txt(), "run make reference"


def test_every_key_and_every_command_is_there() -> None:
    keys = set(re.findall(r"(?m)^\| `([\w.[\]]+)`", configuration()))
    assert {*PublishedConfig.model_fields, "command", "http", "gate.quarantine[].until", "llm.max_cost_usd"} <= keys
    assert re.findall(r"(?m)^## `agenteval (\w+)", commands())[:5] == ["run", "validate", "list", "probe", "compare"]


def test_every_key_is_described() -> None:
    rows = re.findall(r"(?m)^\| (`.*) \|$", configuration())
    assert len(rows) > 80
    assert [row for row in rows if not re.fullmatch(r"`[^`]+` \| \w.*|`[^`]+` \| `.*", row)] == []


def test_files_without_markers_are_refused() -> None:
    with pytest.raises(ValueError, match="needs one pair"):
        with_sections("docs/command-line.md", "# Commands")


def _anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings of a page."""
    prose = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    heads = re.findall(r"(?m)^#+ (.+)$", prose)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_local_link_leads_somewhere(page: Path) -> None:
    prose = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    broken = []
    pictures = re.findall(r'(?:src|srcset)="([^"]*)()"', prose)
    for target, anchor in [*re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)", prose), *pictures]:
        file = page.parent / target if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in _anchors(file)):
            broken.append(f"{target}#{anchor}" if anchor else target)
    assert broken == []
