"""`agenteval explain` knows every metric, setting and word, and has the texts of the documentation."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from scripts.reference import ROOT

from agenteval.cli.explanations import all_names, config_mappings, explain
from agenteval.core.errors import ConfigError
from agenteval.metrics.registry import METRICS
from agenteval.results.case import CaseStatus
from agenteval.results.comparison import CaseChange, CaseNote, Word
from agenteval.results.verdict import WORDS, Verdict

WIDTH = 80
SETTINGS = [
    f"{place}.{key.name}".lstrip(".") for item in config_mappings() for place in item.places for key in item.keys
]


def joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


# Imports every metric, deepeval's among them.
@pytest.mark.slow
def test_everything_can_be_explained_in_a_few_short_lines() -> None:
    words = [name for word in WORDS for name in (word.name, *word.also)]
    names = [*(item.name for item in METRICS), *SETTINGS, *words]
    texts = {name: explain(name) for name in names}
    assert [name for name in names if name not in joined(texts[name])] == []
    assert [name for name in names if not 2 < len(texts[name]) < 40] == []
    # A name is never broken, so only a line of one name can be longer.
    assert [line for lines in texts.values() for line in lines if len(line) > WIDTH and " " in line.strip()] == []


def test_the_words_of_results_files_have_a_meaning() -> None:
    known = {name for word in WORDS for name in (word.name, *word.also)}
    of_cases = {name for word in WORDS if word.kind == "case" for name in (word.name, *word.also)}
    assert {*get_args(Verdict), *get_args(Word), *get_args(CaseStatus)} <= known
    assert {*get_args(CaseNote), *get_args(CaseChange)} <= of_cases


def test_the_meanings_are_those_of_the_documentation() -> None:
    for name, page in (
        ("cleared", "gate.md"),
        ("unproven", "gate.md"),
        ("skipped", "metrics.md"),
        ("geval", "metrics.md"),
        ("llm.requests_per_minute", "configuration.md"),
    ):
        heading, meaning, *others = explain(name)
        assert heading.startswith(f"{name}: "), heading
        assert f"| {meaning.strip()} |" in (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert f"  more: docs/{page}" in others


def test_names_are_found_as_people_write_them() -> None:
    for written, name in (
        ("Fail-On", "gate.fail_on"),
        ("`f1_score`", "f1_score"),
        ("Cleared", "cleared"),
        ("agents.NAME.timeout", "agents.NAME.timeout"),
        ("Broke", "broke"),
    ):
        assert explain(written)[0].startswith(name), written
    # Everything with the name is explained.
    assert [line for line in explain("unproven") if not line.startswith(" ")] == [
        "unproven: a verdict of the gate",
        "",
        "unproven: a result of the comparison with the baseline",
    ]
    table = {
        "f1_scor": "did you mean 'f1_score'?",
        "fial_on": "did you mean 'fail_on'",
        "??": "all names: agenteval explain",
    }
    for wrong, hint in table.items():
        with pytest.raises(ConfigError, match=re.escape(f"no metric, setting or word is named {wrong!r}; {hint}")):
            explain(wrong)
    groups = [line.partition(":")[0] for line in all_names() if not line.startswith(" ")]
    assert groups == ["metrics", "settings", "words"]
