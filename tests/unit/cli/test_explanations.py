"""`agenteval explain` knows every concept, metric and setting, and has the texts of the documentation."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from scripts.reference import ROOT

from agenteval.cli.explanations import all_names, config_mappings, explain
from agenteval.core.errors import ConfigError
from agenteval.metrics.registry import METRICS
from agenteval.results.case import CaseStatus
from agenteval.results.comparison import CaseChange, CaseNote, State
from agenteval.results.verdict import CONCEPTS, Verdict

WIDTH = 80
SETTINGS = [
    f"{place}.{key.name}".lstrip(".") for item in config_mappings() for place in item.places for key in item.keys
]


def joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


# Imports every metric, deepeval's among them.
@pytest.mark.slow
def test_everything_can_be_explained_in_a_few_short_lines() -> None:
    values = [name for concept in CONCEPTS for name in concept.values]
    names = [*(item.name for item in (*CONCEPTS, *METRICS)), *SETTINGS, *values]
    texts = {name: explain([name]) for name in names}
    assert [name for name in names if name not in joined(texts[name])] == []
    assert [name for name in names if not 1 < len(texts[name]) < 40] == []
    # A name is never broken, so only a line of one name can be longer.
    assert [line for lines in texts.values() for line in lines if len(line) > WIDTH and " " in line.strip()] == []


def test_the_values_of_results_files_have_a_meaning() -> None:
    values = {concept.name: set(concept.values) for concept in CONCEPTS}
    assert (values["run"], values["comparison"]) == ({*get_args(Verdict)}, {*get_args(State)})
    known = values["case"] | values["comparison"] | {"accepted"}
    assert {*get_args(CaseStatus), *get_args(CaseNote), *get_args(CaseChange)} <= known


def test_the_meanings_are_those_of_the_documentation() -> None:
    for name, page in (
        *((concept.name, "index.md") for concept in CONCEPTS),
        ("cleared", "gate.md"),
        ("skipped", "metrics.md"),
        ("geval", "metrics.md"),
        ("llm.requests_per_minute", "configuration.md"),
    ):
        heading, *lines = explain([name])
        assert heading.startswith(f"{name}: "), heading
        rows = re.findall(r"(?m)^\| [*`]+([^*`]+).* \| (.+) \|$", (ROOT / "docs" / page).read_text(encoding="utf-8"))
        assert any(joined(lines).startswith(meaning) for found, meaning in rows if found == name), name


def test_names_are_found_as_people_write_them() -> None:
    for written, name in (
        ("Fail-On", "gate.fail_on"),
        ("`f1_score`", "f1_score"),
        ("Cleared", "cleared"),
        ("agents.NAME.timeout", "agents.NAME.timeout"),
        ("Known-Failure", "known failure"),
    ):
        assert explain([written])[0].startswith(name), written
    # Everything with the name is explained.
    assert [line for line in explain(["unproven"]) if not line.startswith(" ")] == [
        "unproven: said of a run",
        "",
        "unproven: said of a comparison",
    ]
    table = {
        "f1_scor": "did you mean 'f1_score'?",
        "fial_on": "did you mean 'fail_on'",
        "??": "all names: agenteval explain",
    }
    for wrong, hint in table.items():
        with pytest.raises(ConfigError, match=re.escape(f"no concept, metric or setting is named {wrong!r}; {hint}")):
            explain([wrong])
    groups = [line.partition(":")[0] for line in all_names() if not line.startswith(" ")]
    assert groups == ["concepts", "metrics", "settings"]
