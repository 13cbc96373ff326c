"""The examples do what their READMEs say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.support import ROOT, agenteval, verdict_of

EXAMPLES = ROOT / "examples"


@pytest.fixture
def example(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return Path(shutil.copytree(EXAMPLES / request.param, tmp_path / request.param))


@pytest.mark.parametrize("example", ["agentci"], indirect=True)
def test_agentci(example: Path) -> None:
    assert agenteval("validate", cwd=example).status == 0
    done = agenteval("run", "--quiet", cwd=example)
    assert (done.status, done.err) == (0, "")
    summary = json.loads((example / "agenteval-report" / "results.json").read_text(encoding="utf-8"))["summary"]
    assert (summary["cases"], summary["passed"]) == (7, 7)


@pytest.mark.parametrize("example", ["fluxloop"], indirect=True)
def test_fluxloop(example: Path) -> None:
    done = agenteval("run", "configs/evaluation.yaml", "--traces", "traces", "--quiet", cwd=example)
    assert done.status == 1
    assert verdict_of(done.out) == "failed: 1 of 6 cases fails"
    assert "  5 of 6 pass · " in done.out
    report = (example / "agenteval-report" / "evaluation" / "report.md").read_text(encoding="utf-8")
    assert "Travellers get a useful answer, fast." in report
    assert "How do I get a refund?" in report
