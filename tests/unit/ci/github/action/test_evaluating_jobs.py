"""Which jobs of a workflow write to the comment."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.github.context import evaluating_jobs

WORKFLOW = """
on: pull_request
jobs:
  support:
    if: needs.changes.outputs.support == 'true'
    steps:
      - run: echo ${HOME} ${NOT_SET_ANYWHERE}
      - uses: org/agenteval-action@v1
  search:
    name: Search agent
    strategy: {matrix: {os: [linux]}}
    steps:
      - uses: org/agenteval-action/native@v1
        with: {comment: changes}
  legs:
    name: evaluate ${{ matrix.suite }} on ${{ matrix.os }} now
    steps:
      - uses: ./agenteval-action
  any:
    name: ${{ matrix.suite }}
    steps: [{uses: org/agenteval-action@v1}]
  shard:
    steps:
      - uses: org/agenteval-action@v1
        with: {shard: "${{ matrix.shard }}/4"}
  silent:
    steps:
      - uses: org/agenteval-action@v1
        with: {comment: never}
  deploy:
    steps: [{uses: actions/checkout@v4}, broken]
  called:
    uses: org/agenteval-action/.github/workflows/x.yml@v1
"""


def written(folder: Path, text: str) -> Path:
    file = folder / ".github" / "workflows" / "evals.yml"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("name", "evaluates"),
    [
        ("support", True),
        ("support (linux)", True),
        ("Search agent (linux)", True),
        ("search", False),
        ("evaluate billing on linux now", True),
        ("evaluate ${{ matrix.suite }} on ${{ matrix.os }} now", True),
        ("lint", False),
        ("shard (1)", False),
        ("silent", False),
        ("deploy", False),
        ("called", False),
        ("supporter", False),
    ],
)
def test_names(tmp_path: Path, name: str, evaluates: bool) -> None:
    assert evaluating_jobs(written(tmp_path, WORKFLOW), "evals.yml")(name) is evaluates


@pytest.mark.parametrize("text", ["", "[]", "jobs: 3", "jobs: {a: 1, b: {steps: x}}", "{", "jobs:\n\ta: 1"])
def test_other_files_have_no_jobs(tmp_path: Path, text: str) -> None:
    assert not evaluating_jobs(written(tmp_path, text), "evals.yml")("a")


def test_without_a_file(tmp_path: Path) -> None:
    assert not evaluating_jobs(tmp_path, None)("a")
    assert not evaluating_jobs(tmp_path, "evals.yml")("a")
