"""Issue forms, dependabot and pre-commit settings are what their programs accept."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import ROOT

FORMS = sorted(file for file in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if file.name != "config.yml")
# https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests/syntax-for-githubs-form-schema
TYPES = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def loaded(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.name)
def test_forms_are_those_of_github(file: Path) -> None:
    form = loaded(file)
    assert set(form) <= {"name", "description", "title", "labels", "assignees", "projects", "type", "body"}
    assert form["name"]
    assert form["description"]
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids)) > 0
    for field in form["body"]:
        assert set(field) <= {"type", "id", "attributes", "validations"}
        assert field["type"] in TYPES
        assert field["attributes"]["label"]
        if field["type"] == "dropdown":
            options = field["attributes"]["options"]
            assert all(isinstance(option, str) for option in options)
            assert len(options) == len(set(options)) > 1
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_dependabot_accepts_its_settings() -> None:
    # The schema ships with the checker, so nothing is fetched.
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.dependabot"]
    file = ROOT / ".github" / "dependabot.yml"

    checked = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    for update in loaded(file)["updates"]:
        assert (ROOT / update["directory"].strip("/")).is_dir()


def test_hooks_are_programs_of_the_tests() -> None:
    hooks = [hook for repo in loaded(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    locked = (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8")
    assert {hook["id"] for hook in hooks} >= {"ruff-check", "ruff-format", "mypy", "zizmor"}
    for hook in hooks:
        program = hook["entry"].split()[0]
        assert program.startswith(".venv/bin/")
        assert program.endswith("python") or f"\n{Path(program).name}==" in locked


def test_forms_use_documented_labels() -> None:
    labels = loaded(ROOT / ".github" / "labels.yml")
    names = [label["name"] for label in labels]
    assert len(names) == len(set(names))
    for label in labels:
        assert set(label) == {"name", "color", "description"}
        assert re.fullmatch(r"[0-9a-f]{6}", str(label["color"]))
        assert 0 < len(label["description"]) <= 100  # GitHub's limit
    assert {label for file in FORMS for label in loaded(file)["labels"]} <= set(names)
