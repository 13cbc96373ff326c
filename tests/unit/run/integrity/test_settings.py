"""How the settings of the change differ from those of the base commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval.run.config import Config
from agenteval.run.config_file import read_config_file
from agenteval.run.rules.under_base import setting_differences

HELD = {"case": "a", "until": "2999-01-01"}


def config(folder: Path, **keys: Any) -> Config:
    path = folder / "agenteval.yaml"
    path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    return read_config_file(path)


@pytest.mark.parametrize(
    ("before", "after", "setting", "loosens"),
    [
        ({}, {"fail_on": ["errors"]}, "gate.fail_on", True),
        ({"fail_on": ["errors"]}, {}, "gate.fail_on", False),
        ({"pairs": 8}, {}, "gate.pairs", False),
        ({"strict": True}, {}, "gate.strict", True),
        ({"must_pass": ["a"]}, {"must_pass": ["b"]}, "gate.must_pass", True),
        ({}, {"quarantine": [HELD]}, "gate.quarantine", True),
        ({}, {"metrics": {"bleu": {"gating": False}}}, "gate.metrics", True),
    ],
)
def test_a_setting_of_the_gate(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], setting: str, loosens: bool
) -> None:
    old, new = config(tmp_path, gate=before), config(tmp_path, gate=after)
    (found,) = setting_differences(old, new, of_run=True)
    assert (found.kind, found.setting, found.loosens, found.effect) == ("setting", setting, loosens, "base")
    assert found.before != found.after
    assert list(setting_differences(new, new, of_run=True)) == []


def test_the_judge_is_a_setting_of_suites(tmp_path: Path) -> None:
    old, new = config(tmp_path, judge="openai/gpt-4o"), config(tmp_path, judge="openai/gpt-4o-mini")
    (found,) = setting_differences(old, new, of_run=False)
    assert (found.setting, found.before, found.after) == ("judge", "openai/gpt-4o", "openai/gpt-4o-mini")
    assert list(setting_differences(old, old, of_run=False)) == []
