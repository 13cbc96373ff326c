"""What follows for a run from the attempt of the pull request before it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.git_server import commit, git
from tests.support import case, echo_agent, results_in, write_suite

from agenteval.gate.integrity import Accepted, Integrity
from agenteval.gate.values import Quarantine
from agenteval.results.model import Proven, Results
from agenteval.results.verdict import Gate, Verdict
from agenteval.run.attempt import begin_attempt
from agenteval.run.config import Settings
from agenteval.run.context import Attempt, Recollection, RunContext
from agenteval.run.outcome import RunOutcome
from agenteval.run.pipeline import run
from agenteval.run.resolve.draft import read_draft
from agenteval.run.resolve_run import resolve

PROVEN = [Proven(metric="equality", case=None, fall=0.4), Proven(metric="equality", case="agent.yaml::c1", fall=0.75)]


@dataclass
class Source:
    """Keeps the newest attempt in memory."""

    found: Recollection = field(default_factory=Recollection)

    def recall(self) -> Recollection:
        return self.found

    def keep(self, results: Results, journal: str = "") -> None:
        """Make results the newest attempt."""
        assert results.memory is not None

        def restore(directory: Path) -> bool:
            (directory / "journal.jsonl").write_text(journal, encoding="utf-8")
            return bool(journal)

        self.found = Recollection(results, restore)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a suite whose agent is right, as the current directory."""
    made = tmp_path / "project"
    made.mkdir()
    write_suite(made, [case("c1"), case("c2")], agent=echo_agent(made))
    (made / ".gitignore").write_text("agenteval-report\n__pycache__\nbase.json\n", encoding="utf-8")
    git(made, "init", "--quiet", "--initial-branch", "main")
    commit(made)
    monkeypatch.chdir(made)
    return made


def evaluated(source: Source, **settings: Any) -> RunOutcome:
    return run(Settings(quiet=True, **settings), RunContext(attempts=source.recall))


def begun(source: Source, **settings: Any) -> Attempt:
    """The attempt that a run with these settings begins."""
    with resolve(Settings(**settings), RunContext(attempts=source.recall)) as spec:
        assert spec.earlier.attempt is not None
        return spec.earlier.attempt


def decided(outcome: RunOutcome, verdict: Verdict) -> Results:
    """The results of an attempt with another verdict, and with something that was proven."""
    memory = outcome.results.memory
    assert memory is not None
    gate = Gate(verdict=verdict, exit_status=1, headline=f"it {verdict}", reasons=(f"it {verdict}", "and why"))
    results = outcome.results.model_copy(
        update={"gate": gate, "memory": memory.model_copy(update={"proven": PROVEN})}
    )
    if verdict == "unproven":
        return results.model_copy(update={"run": results.run.model_copy(update={"complete": False})})
    if verdict != "failed":
        return results
    summary = results.summary.model_copy(update={"passed": 0, "failed": results.summary.cases})
    return results.model_copy(update={"summary": summary})


def asked(folder: Path) -> Sequence[str]:
    lines = (folder / "agenteval-report" / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["case"]["name"] for line in lines if '"case"' in line]


def test_a_red_attempt_is_shown_again(folder: Path) -> None:
    source = Source()
    source.keep(decided(evaluated(source), "failed"))
    (folder / "agenteval-report" / "journal.jsonl").unlink()

    for _ in range(2):
        again = evaluated(source)

        assert (again.exit_status, again.gate.verdict) == (1, "failed")
        commit_id = git(folder, "rev-parse", "--short=7", "HEAD")
        said = f"it failed; already shown in attempt 1 for commit {commit_id}: push a change or accept it"
        assert again.gate.headline == said
        assert again.gate.reasons == (again.gate.headline, "and why")
        assert again.results.memory is not None
        assert again.results.memory.repeats
        assert not (folder / "agenteval-report" / "journal.jsonl").exists()
        assert results_in(folder).gate == again.gate
        # The next run finds the repeated results.
        source.keep(again.results)


@pytest.mark.parametrize("verdict", ["failed", "unproven"])
def test_another_attempt_knows_what_was_proven(folder: Path, verdict: Verdict) -> None:
    source = Source()
    source.keep(decided(evaluated(source), verdict))
    (folder / "agent.py").write_text("def reply(request):\n    return request['input'] + ''\n", encoding="utf-8")

    attempt = begun(source)

    assert (attempt.shown, attempt.restore, attempt.memory.attempt) == (None, None, 2)
    assert attempt.memory.proven == PROVEN


def test_a_verdict_ends_with_what_it_rests_on(folder: Path) -> None:
    draft = read_draft(Settings(), RunContext())
    entry = Accepted(change="worse", reason="known", until=date(2999, 1, 1), case="agent.yaml::c1")

    def key(*quarantine: Quarantine, accepted: tuple[Accepted, ...] = ()) -> str:
        gate = replace(draft.spec.gate, quarantine=quarantine)
        asked = replace(draft.spec, gate=gate, integrity=Integrity(accepted=accepted))
        return begin_attempt(asked, draft.of_run.name, None, Recollection()).memory.key

    first = key()
    assert key(Quarantine("c1", date(2000, 1, 1))) == first
    assert first not in {key(Quarantine("c1", date(2999, 1, 1))), key(accepted=(entry,))}


def test_an_open_attempt_is_resumed(folder: Path) -> None:
    source = Source()
    results = decided(evaluated(source), "unproven")
    journal = (folder / "agenteval-report" / "journal.jsonl").read_text(encoding="utf-8")
    [kept] = [line for line in journal.splitlines() if '"name": "c1"' in line or '"name":"c1"' in line]
    source.keep(results, f"{journal.splitlines()[0]}\n{kept}\n")

    outcome = evaluated(source)

    assert outcome.results.run.id == results.run.id
    assert outcome.results.memory is not None
    assert outcome.results.memory.attempt == 1
    # The journal continues with what was missing.
    assert asked(folder) == ["c1", "c2"]


@pytest.mark.parametrize("journal", ["", "no journal\n", '{"run": "another", "started": 1, "conditions": {}}\n'])
def test_an_open_attempt_without_a_usable_journal_is_evaluated(folder: Path, journal: str) -> None:
    source = Source()
    source.keep(decided(evaluated(source), "unproven"), journal)

    outcome = evaluated(source)

    assert outcome.gate.verdict == "passed"
    assert sorted(asked(folder)) == ["c1", "c2"]


@pytest.mark.parametrize(
    "settings",
    [{"iterations": 2}, {"filter": "c1"}, {"fail_on": frozenset({"errors"})}, {"baseline": Path("base.json")}],
    ids=lambda settings: next(iter(settings)),
)
def test_other_conditions_are_another_attempt(folder: Path, settings: dict[str, Any]) -> None:
    source = Source()
    outcome = evaluated(source)
    (folder / "base.json").write_text(outcome.results.model_dump_json(), encoding="utf-8")
    source.keep(decided(outcome, "failed"))

    assert begun(source).shown is not None
    assert begun(source, **settings).shown is None


@pytest.mark.parametrize(
    ("named", "control"),
    [("--upload-pack=x", None), ("HEAD", None), (None, None), ("a" * 40, "a" * 40)],
)
def test_a_baseline_of_an_unknown_commit_is_no_obstacle(folder: Path, named: str | None, control: str | None) -> None:
    results = evaluated(Source()).results
    results = results.model_copy(update={"run": results.run.model_copy(update={"commit": named})})
    (folder / "base.json").write_text(results.model_dump_json(), encoding="utf-8")

    attempt = begun(Source(), baseline=Path("base.json"))

    assert (attempt.memory.control, attempt.warnings) == (control, ())


def test_without_a_repository_every_run_is_another_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    write_suite(folder, [case("c1")], agent=echo_agent(folder))
    monkeypatch.chdir(folder)
    source = Source()
    source.keep(decided(evaluated(source), "failed"))

    attempt = begun(source)

    assert (attempt.shown, attempt.memory.attempt, attempt.memory.proven) == (None, 2, PROVEN)
    [warning] = attempt.warnings
    assert warning.startswith("it is unknown whether the files of this pull request have changed since its last run")


def test_who_made_it_forget_is_told(folder: Path) -> None:
    outcome = evaluated(Source(Recollection(forgotten_by="someone", warnings=("a note",))))

    said = "the earlier runs of this pull request were forgotten: someone set `agenteval: forget`"
    assert outcome.warnings[:2] == ("a note", said)
    assert outcome.results.memory is not None
    assert outcome.results.memory.forgotten_by == "someone"


def broken_agent(folder: Path, broken: Sequence[str]) -> None:
    """Commit an agent that never answers some cases right, and repeats no answer."""
    code = (
        "import random\n"
        "def reply(request):\n"
        f"    wrong = request['case'] in {list(broken)!r} or random.random() < 0.02\n"
        "    return 'wrong' if wrong else request['input']\n"
    )
    (folder / "agent.py").write_text(code, encoding="utf-8")
    commit(folder)


@pytest.mark.long
def test_a_proven_regression_is_proven_or_cleared_in_the_next_attempt(folder: Path) -> None:
    write_suite(folder, [case(f"c{number}") for number in range(20)], agent=echo_agent(folder))
    (folder / "agenteval.yaml").write_text("gate: {fail_on: [regressions]}\niterations: 3\n", encoding="utf-8")
    broken_agent(folder, [])
    run(Settings(quiet=True, out=Path("agenteval-report/base")))
    git(folder, "checkout", "--quiet", "-b", "feature")
    baseline = Path("agenteval-report/base/results.json")
    source = Source()

    def attempt() -> RunOutcome:
        outcome = evaluated(source, baseline=baseline)
        source.keep(outcome.results)
        return outcome

    broken_agent(folder, ["c1", "c2", "c3", "c4", "c5"])
    first = attempt()
    assert first.gate.verdict == "failed", first.gate
    assert first.results.memory is not None
    assert first.results.memory.proven

    broken_agent(folder, ["c1", "c2", "c3", "c4", "c5", "none"])
    second = attempt()
    assert second.gate.verdict == "failed"
    assert second.results.memory is not None
    assert second.results.memory.attempt == 2
    assert second.results.memory.proven
    assert attempt().results.memory == second.results.memory.model_copy(update={"repeats": True})

    broken_agent(folder, [])
    mended = attempt()
    assert mended.gate.verdict == "passed", mended.gate
    assert mended.results.memory is not None
    assert (mended.results.memory.attempt, mended.results.memory.proven) == (3, [])
    assert mended.results.comparison is not None
    assert mended.results.comparison.cost is not None
