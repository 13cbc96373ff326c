"""`agenteval validate` names everything that is wrong, in all files, in one pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command

EQUAL = """
evaluations: {metrics: [{type: standard, metric: equality}]}
test_cases: [{name: a, input: hi, ground_truth: hi}]
"""


CORPUS = Path(__file__).parents[1]
BROKEN = sorted(
    path
    for folder in (
        "data/holodeck",
        "data/agentci/guides",
        "data/fluxloop",
        "fuzz/corpus/agentci",
        "fuzz/corpus/fluxloop",
        "fuzz/corpus/holodeck",
        "fuzz/corpus/config",
    )
    for path in (CORPUS / folder).glob("*.*")
)


@pytest.mark.parametrize("file", BROKEN, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_validate_says_what_run_says_about_files_of_the_tests(file: Path, tmp_path: Path, command: Command) -> None:
    places = {"agentci": ".agentci/evals/a.toml", "guides": ".agentci/evals/a.toml", "config": "agenteval.yaml"}
    named = places.get(
        file.parent.name, "configs/evaluation.yaml" if file.parent.name == "fluxloop" else "agent.yaml"
    )
    (tmp_path / ".git").mkdir()
    (tmp_path / named).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / named).write_bytes(file.read_bytes())
    if named == "agenteval.yaml":
        (tmp_path / "agent.yaml").write_text(EQUAL, encoding="utf-8")
    for arguments in ((), ("-k", "no case has this name", "--agent", "replay:nothing.jsonl")):
        checked = command("validate", *arguments)
        ended = command("run", "--max-llm-calls", "0", "--out", f"report-{len(arguments)}", *arguments)
        assert (checked.status == 2) == (ended.status == 2)
        assert checked.status in {0, 2}
        assert not checked.status or (checked.out, checked.err) == (ended.out, ended.err)
