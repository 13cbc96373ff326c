"""What a change may not do silently: each way to hide a broken case, through the program in a git repository."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.end_to_end.judged_repository import EQUALITY, GATE, GRADED, NAMES, WORKFLOW, Repository, made_repository
from tests.git_server import commit
from tests.support import ROOT, case

from agenteval.results.model import Results


@pytest.fixture
def repository(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return made_repository(command, tmp_path, monkeypatch)


Dodge = Callable[[Repository], None]


def metrics(repository: Repository, *entries: dict[str, Any]) -> None:
    repository.write_suite({**repository.suite, "evaluations": {"metrics": list(entries)}})


def without_configuration(repository: Repository) -> None:
    (repository.folder / "agenteval.yaml").unlink()


def grader_that_passes(repository: Repository) -> None:
    metrics(repository, GRADED)
    (repository.folder / "grader.py").write_text("def check(context):\n    return True\n", encoding="utf-8")


def renamed(repository: Repository) -> None:
    repository.edit_case("c0", name="other")


def everything(repository: Repository) -> None:
    metrics(repository, {**EQUALITY, "threshold": 0.0})
    repository.configure(fail_on=["errors"], quarantine=[{"case": "c0", "until": "2999-01-01"}])
    repository.edit_case("c0", ground_truth="wrong")


DODGES: dict[str, tuple[Dodge, str]] = {
    "the threshold": (lambda it: metrics(it, {**EQUALITY, "threshold": 0.0}, GRADED), "metric"),
    "a removed metric": (lambda it: metrics(it, GRADED), "metric"),
    "a metric that does not gate": (lambda it: it.configure(metrics={"equality": {"gating": False}}), "setting"),
    "fail_on": (lambda it: it.configure(fail_on=["errors"]), "setting"),
    "quarantine": (lambda it: it.configure(quarantine=[{"case": "*", "until": "2999-01-01"}]), "setting"),
    "no configuration": (without_configuration, "setting"),
    "an expected answer": (lambda it: it.edit_case("c0", ground_truth="wrong"), "edited"),
    "a grader": (grader_that_passes, "setting"),
    "another name": (renamed, "renamed"),
    "everything": (everything, "metric"),
}


@pytest.mark.parametrize("name", DODGES)
def test_a_broken_case_stays_red(repository: Repository, name: str) -> None:
    dodge, kind = DODGES[name]
    repository.break_agent("question c0")
    dodge(repository)
    ended = repository.compared()
    assert ended.status == 1, ended.text
    assert repository.results.gate is not None
    assert repository.results.gate.verdict == "failed", ended.text
    assert repository.differences(kind), ended.text


def test_a_case_that_must_pass_stays_required(repository: Repository) -> None:
    repository.break_agent("question c5")
    repository.configure(must_pass=[])
    assert repository.compared().status == 1
    assert [item.setting for item in repository.differences("setting")] == ["gate.must_pass"]


@pytest.mark.parametrize(
    ("dodge", "said"),
    [
        (lambda suite: suite["test_cases"].pop(0), "1 case that passed before is no longer in the suite: c0"),
        (
            lambda suite: suite["test_cases"][0].update(name="other", input="easy", ground_truth="easy"),
            "1 case that passed before is no longer in the suite: c0",
        ),
    ],
)
def test_a_case_that_disappears_is_unproven(
    repository: Repository, dodge: Callable[[dict[str, Any]], None], said: str
) -> None:
    repository.break_agent("question c0")
    suite = repository.suite
    dodge(suite)
    repository.write_suite(suite)
    ended = repository.compared()
    assert ended.status == 1, ended.text
    assert said in ended.text
    gate = repository.results.gate
    assert gate is not None
    assert gate.verdict == "unproven"
    assert [(item.case, item.effect) for item in repository.differences("removed")] == [
        ("agent.yaml::c0", "unproven")
    ]


def test_a_suite_that_disappears_is_unproven(repository: Repository) -> None:
    repository.break_agent("question c0")
    suite = repository.suite
    suite["test_cases"] = [case("easy")]
    (repository.folder / "agent.yaml").unlink()
    folder = repository.folder / "other"
    folder.mkdir()
    repository.write_suite({**suite, "evaluations": {"metrics": [EQUALITY]}}, "other/agent.yaml")
    (folder / "agent.py").write_text((repository.folder / "agent.py").read_text(), encoding="utf-8")
    ended = repository.compared("other/agent.yaml")
    assert ended.status == 1, ended.text
    assert "6 of 6 cases of the baseline cannot be compared" in ended.text


@pytest.mark.parametrize(
    ("dodge", "kind", "setting", "values"),
    [
        (lambda it: metrics(it, {**EQUALITY, "threshold": 0.5}, GRADED), "metric", "threshold", ("1", "0.5")),
        (lambda it: it.configure(fail_on=["errors"]), "setting", "gate.fail_on", None),
        (lambda it: it.configure(strict=True), "setting", "gate.strict", ("false", "true")),
        (renamed, "renamed", None, ("agent.yaml::c0", "agent.yaml::other")),
        (lambda it: (it.folder / WORKFLOW).write_text("agenteval: off\n"), "workflow", str(WORKFLOW), None),
    ],
)
def test_what_changes_is_listed_and_green(
    repository: Repository, dodge: Dodge, kind: str, setting: str | None, values: tuple[str, str] | None
) -> None:
    dodge(repository)
    ended = repository.compared()
    assert ended.status == 0, ended.text
    (found,) = repository.results.run.integrity
    assert (found.kind, found.setting) == (kind, setting)
    assert values is None or (found.before, found.after) == values


def test_the_base_decides_how_often_a_case_runs(repository: Repository) -> None:
    (repository.folder / "agenteval.yaml").write_text(
        yaml.safe_dump({"iterations": 1, "gate": GATE}), encoding="utf-8"
    )
    ended = repository.compared()
    assert ended.status == 0, ended.text
    assert len(repository.asked()) == 3 * len(NAMES)
    (found,) = repository.results.run.integrity
    assert (found.setting, found.before, found.after, found.loosens, found.cases) == ("iterations", "3", "1", True, 6)


def test_an_edited_case_runs_in_both_versions(repository: Repository) -> None:
    repository.edit_case("c0", ground_truth="something else")
    ended = repository.compared()
    assert ended.status == 1, ended.text
    statuses = {found.name: found.status for _, found in repository.results.cases()}
    assert (statuses["c0"], statuses["c0 (edited)"]) == ("passed", "failed")
    assert "1 of 7 cases fails" in ended.text


def test_a_new_metric_is_only_reported_until_it_is_merged(repository: Repository) -> None:
    bleu = {"type": "standard", "metric": "bleu", "threshold": 1.0}
    metrics(repository, EQUALITY, GRADED, bleu)
    ended = repository.compared()
    assert ended.status == 0, ended.text
    assert "bleu" in repository.results.summary.metrics
    assert {score.gating for score in scores(repository.results) if score.id == "bleu"} == {False}


def scores(results: Results) -> list[Any]:
    return [
        score
        for _, found in results.cases()
        for iteration in found.iterations
        for turn in iteration.turns
        for score in turn.scores
    ]


@pytest.mark.parametrize("lost", [False, True])
def test_merged_shards_are_judged_by_the_base_too(repository: Repository, lost: bool) -> None:
    repository.configure(fail_on=["none"])
    if lost:
        suite = repository.suite
        suite["test_cases"].pop(0)
        repository.write_suite(suite)
    else:
        repository.break_agent("question c0")
    commit(repository.folder)
    parts = [f"../part-{number}" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        assert repository.run("--shard", f"{number}/2", "--out", part).status == 0
    merged = ("merge", *parts, "--baseline", "../base", "-o", "agenteval-report")
    ended = repository.command(*merged)
    assert ended.status == (1 if lost else 0), ended.text
    assert lost or "agenteval prove" in ended.text


def test_comparing_two_files_pairs_renamed_cases_and_misses_removed_ones(repository: Repository) -> None:
    renamed(repository)
    commit(repository.folder)
    assert repository.run("--out", "../renamed").status == 0
    ended = repository.command("compare", "../renamed", "../base")
    assert ended.status == 0, ended.text
    suite = repository.suite
    suite["test_cases"].pop(0)
    repository.write_suite(suite)
    assert repository.run("--out", "../removed").status == 0
    ended = repository.command("compare", "../removed", "../base")
    assert ended.status == 1, ended.text
    assert "1 case that passed before is no longer in the suite: c0" in ended.text


def test_recorded_traces_are_scored_by_the_bases_suite(repository: Repository) -> None:
    folder = repository.folder
    shutil.copytree(ROOT / "examples" / "fluxloop", folder, dirs_exist_ok=True)
    repository.configure()
    scored = ("configs/evaluation.yaml", "--traces", "traces")
    commit(folder)
    assert repository.run(*scored, "--out", "../base").status == 1
    suite = folder / "configs" / "evaluation.yaml"
    text = suite.read_text(encoding="utf-8")
    suite.write_text(text.replace("threshold: 0.7", "threshold: 0.01"), encoding="utf-8")
    repository.configure(strict=True)
    ended = repository.compared(*scored)
    assert ended.status == 0, ended.text
    assert "1 of 6 cases fails as it does on feature" in ended.text
    (found,) = repository.differences("metric")
    assert (found.metric, found.setting) == ("score", "aggregation")
