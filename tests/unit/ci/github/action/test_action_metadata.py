"""action.yml matches the documentation, and GitHub accepts it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest
import yaml
from tests.support import ROOT

from agenteval.github.inputs import Inputs
from agenteval.run.options import INPUTS

ACTION = ROOT / "action.yml"

OUTPUTS = [
    "verdict",
    "pass-rate",
    "score",
    "passed",
    "failed",
    "errors",
    "skipped",
    "total",
    "suite-total",
    "regressions",
    "improvements",
    "prove",
    "baseline-sha",
    "cost-usd",
    "results-path",
    "junit-path",
    "summary-path",
    "report-path",
    "comment-url",
]


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    return loaded


def test_github_accepts_it_and_that_without_a_container() -> None:
    # The schema ships with the checker, so nothing is fetched.
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions"]

    files = [str(ACTION), str(ROOT / "native" / "action.yml")]
    checked = subprocess.run([*command, *files], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_outputs_are_the_contract(action: dict[str, Any]) -> None:
    assert list(action["outputs"]) == OUTPUTS


def test_defaults_are_text(action: dict[str, Any]) -> None:
    # YAML must not turn a default into something else than the text GitHub passes on.
    assert all(isinstance(described["default"], str) for described in action["inputs"].values())


def test_inputs_are_never_required(action: dict[str, Any]) -> None:
    # GitHub does not enforce it, so it would only promise something.
    assert not [name for name, described in action["inputs"].items() if "required" in described]


def test_everything_is_described(action: dict[str, Any]) -> None:
    described = action["inputs"] | action["outputs"]

    assert [name for name, entry in described.items() if not entry["description"].strip()] == []
    assert all(set(entry) == {"description"} for entry in action["outputs"].values())
    assert len(action["description"]) < 125


def test_every_input_is_read() -> None:
    assert {field.name for field in fields(Inputs)} == {option.name for option in INPUTS.values()}


def test_it_runs_in_the_container_and_gets_inputs_by_environment_only(action: dict[str, Any]) -> None:
    clean_up = "/usr/local/bin/agenteval-clean-up"
    assert action["runs"] == {"using": "docker", "image": "Dockerfile", "post-entrypoint": clean_up}
    assert clean_up in ACTION.with_name("Dockerfile").read_text(encoding="utf-8")
