"""The fenced blocks of the documentation, and what each of them is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.support import ROOT

from agenteval.run.config_file import ConfigFile
from agenteval.run.rules.accepted_file import AcceptedFile

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("examples/*/README.md")])

_BLOCK = re.compile(r"(?ms)(?:^<!-- run: ([\d ]+) -->\n)?^```(\w+)\n(.*?)^```$")
_SUITE_KEYS = frozenset({"evaluations", "test_cases"})
_ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
_HEAD = {"name": "documented", "on": "push", "permissions": {}}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``statuses`` are those with which its commands end, if it can be run."""

    page: Path
    line: int
    language: str
    text: str
    statuses: tuple[int, ...] | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    """All blocks in one of some languages."""
    return [block for page in PAGES for block in _blocks(page) if block.language in languages]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        statuses = tuple(int(status) for status in match[1].split()) if match[1] else None
        yield Block(page, text.count("\n", 0, match.start(2)) + 1, match[2], match[3], statuses)


def kind_of(document: Any) -> str:
    """What a YAML block is: workflow, config, accepted changes, suite, or something of another program."""
    if isinstance(document, list):
        return "workflow"
    keys = set(document)
    if keys == set(AcceptedFile.model_fields):
        return "accepted"
    if keys <= set(ConfigFile.model_fields):
        return "config"
    if keys & _SUITE_KEYS:
        return "suite"
    if "jobs" in keys or keys <= {"services", "steps", "strategy"} or keys <= set(_ACTION["inputs"]):
        return "workflow"
    return f"foreign: {', '.join(sorted(keys))}"


def as_workflow(document: Any) -> dict[str, Any]:
    """A whole workflow around a part of one: steps, keys of a job, or inputs of the action."""
    if isinstance(document, list):
        document = {"steps": document}
    elif set(document) <= set(_ACTION["inputs"]):
        document = {"steps": [{"uses": "org/agenteval-action@v1", "with": document}]}
    if "jobs" not in document and True not in document:
        job = {"runs-on": "ubuntu-latest", "steps": [{"run": "true"}], **document}
        document = {"jobs": {"job": job}}
    # YAML 1.1 reads the key ``on`` as true.
    given = {"on" if key is True else key: value for key, value in document.items()}
    return {**_HEAD, **given}


def inputs_of(workflow: dict[str, Any]) -> set[str]:
    """The inputs that a workflow gives to the action."""
    steps = [step for job in workflow["jobs"].values() for step in job.get("steps", ())]
    ours = [step for step in steps if step.get("uses", "").startswith("org/agenteval-action@")]
    return {name for step in ours for name in step.get("with", {})}


def known_inputs() -> set[str]:
    """The inputs that the action has."""
    return set(_ACTION["inputs"])
