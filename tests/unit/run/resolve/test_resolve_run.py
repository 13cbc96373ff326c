"""Settings, configuration and suites become one specification, or every problem at once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import case, write_suite
from tests.unit import runs

from agenteval.core.confine import UserCodeRules
from agenteval.core.errors import ConfigError
from agenteval.core.llm.budget import Limits
from agenteval.results.model import Results, RunShard
from agenteval.run.config import Settings
from agenteval.run.context import FoundBaseline, RunContext, Search
from agenteval.run.git import Provenance
from agenteval.run.plan import Shard
from agenteval.run.progress import LiveProgress
from agenteval.run.resolve.configurations import Sources
from agenteval.run.resolve.control import read_control_cases
from agenteval.run.resolve.selection import Selection
from agenteval.run.resolve.spec import RunSpec, TraceFiles, make_plan
from agenteval.run.resolve_run import resolve_files
from agenteval.run.setup import Setup

SUITE = Path("agent.yaml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suite(folder: Path, *names: str, **keys: Any) -> None:
    write_suite(folder, [case(name) for name in names], **{"agent": {"command": ["cat"]}, **keys})


def configure(folder: Path, **keys: Any) -> None:
    (folder / "agenteval.yaml").write_text(yaml.safe_dump(keys), encoding="utf-8")


def names(spec: RunSpec) -> list[str]:
    return [item.case.name for item in spec.cases]


def test_the_command_line_comes_first_also_with_zero(folder: Path) -> None:
    suite(folder, "a")
    configure(folder, concurrency=3, llm={"max_calls": 7, "max_cost_usd": 2.5})
    spec = resolve_files(Settings(concurrency=1, max_llm_calls=0, max_cost_usd=0.0))
    assert (spec.limits.concurrency, spec.llm.limits) == (1, Limits(0, 0.0))


def test_a_terminal_shows_what_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    def first_line(*suites: Path, iterations: int = 1) -> str:
        progress = make_plan(resolve_files(Settings(suites=suites, iterations=iterations))).progress
        assert isinstance(progress, LiveProgress)
        return "".join(text for text, _ in progress.lines(80)[0])

    suite(folder, "a", "b", name="shop")
    assert first_line() == "shop · 2 cases · command cat"
    assert first_line(iterations=3) == "shop · 2 cases × 3 · command cat"
    more = folder / "more"
    more.mkdir()
    suite(more, "c", name="shop", agent={"command": ["tee"]})
    assert first_line(SUITE, more) == "shop · 3 cases"
    suite(more, "c", name="desk")
    assert first_line(SUITE, more).endswith("─  0/3")


def test_every_problem_is_named_at_once(folder: Path) -> None:
    suite(folder, "a", agent="nobody")
    (folder / "broken.yaml").write_text("test_cases: 7\n", encoding="utf-8")
    settings = Settings(
        suites=(SUITE, Path("broken.yaml"), Path("missing.yaml")),
        control="neither",
        baseline=Path("nothing.json"),
    )
    (folder / "agenteval.yaml").write_text("templates: {comment: none.md}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        resolve_files(settings)
    text = str(caught.value)
    for part in ("'nobody'", "broken.yaml", "missing.yaml", "--control", "'neither'", "--baseline: ", "none.md"):
        assert part in text, part


def evaluation(folder: Path, name: str = "evaluation.yaml", **keys: Any) -> Path:
    """A suite that scores all answers, and has no inputs."""
    rules = [{"check": "output_not_empty"}]
    evaluators = [{"name": "answered", "type": "rule_based", "enabled": True, "rules": rules}]
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump({"evaluators": evaluators, **keys}), encoding="utf-8")
    return Path(name)


RECORDED = {"default": {"replay": "t.jsonl"}}


@pytest.mark.parametrize(
    ("keys", "agents", "settings"),
    [
        ({}, {}, Settings(traces=Path("t.jsonl"))),
        ({}, {}, Settings(agent="replay:./t.jsonl")),
        ({"agent": {"replay": "t.jsonl"}}, {}, Settings()),
        ({}, RECORDED, Settings()),
        ({"agent": {"command": ["cat"]}}, {"mine": {"replay": "t.jsonl"}}, Settings(agent="mine")),
    ],
)
def test_all_ways_to_name_recorded_answers_are_equal(
    folder: Path, keys: dict[str, Any], agents: dict[str, Any], settings: Settings
) -> None:
    evaluation(folder, **keys)
    configure(folder, agents=agents, gate={"pairs": 8})
    settings = replace(settings, suites=(Path("evaluation.yaml"),), filter="x", keep_going=True)
    spec = resolve_files(settings)
    assert spec.traces is not None
    expected = TraceFiles({"evaluation.yaml": Path("t.jsonl")}, Selection("x"), keep_going=True)
    assert spec.traces == expected
    assert (spec.cases, spec.compare.can_run) == ((), False)
    with pytest.raises(ConfigError, match="--shard: recorded traces cannot be divided"):
        resolve_files(replace(settings, shard=Shard(1, 2)))


def test_a_shard_has_some_cases_and_no_baseline(folder: Path) -> None:
    suite(folder, "a", "b", "c")
    context = RunContext(baseline=Remote(base()).search)
    parts = [resolve_files(Settings(shard=Shard(index, 2)), context) for index in (1, 2)]
    assert sorted(name for part in parts for name in names(part)) == ["a", "b", "c"]
    for index, part in enumerate(parts, 1):
        assert part.baseline is None
        assert part.shard is not None
        assert (part.shard.index, part.shard.count) == (index, 2)
        assert sorted(part.shard.cases) == ["agent.yaml::a", "agent.yaml::b", "agent.yaml::c"]


@dataclass(frozen=True)
class Remote:
    """A baseline that is not in a file."""

    results: Results

    def search(self, cases: Collection[str]) -> Search:
        assert cases
        return Search(FoundBaseline(self.results, distance=3), ("one run was left out",))


def base(shard: RunShard | None = None) -> Results:
    """A run of one case."""
    found = runs.results(runs.case("a"), run_id="base")
    return found.model_copy(update={"run": found.run.model_copy(update={"shard": shard})})


def test_the_context_contributes_baseline_commit_setup_and_warnings(folder: Path) -> None:
    suite(folder, "a")
    configure(folder, pass_env=["KEY"], limits={"memory_mb": 100})
    place = Provenance("c" * 40, "refs/heads/x", "o/r", "1")
    context = RunContext(place, Remote(base()).search, "pip install .", ("look here",))
    spec = resolve_files(Settings(), context)
    assert spec.provenance == place
    assert spec.baseline is not None
    assert (spec.baseline.results.run.id, spec.baseline.distance) == ("base", 3)
    assert spec.setup == Setup("pip install .", UserCodeRules(("KEY",), 100))
    assert spec.warnings[0] == "look here"
    assert "one run was left out" in spec.warnings
    assert "pip install ." not in f"{spec.setup!r}{context!r}"


@pytest.mark.parametrize(("recorded", "can_run"), [("ab", False), ("a", True), ("", True)])
def test_a_run_of_recorded_answers_alone_cannot_run_again(folder: Path, recorded: str, can_run: bool) -> None:
    (folder / "answers.jsonl").write_text('{"case": "a", "response": "hello"}\n', encoding="utf-8")
    for name in "ab":
        (folder / name).mkdir()
        suite(folder / name, name, agent={"replay": "../answers.jsonl"} if name in recorded else {"command": ["cat"]})
    policy = resolve_files(Settings(suites=(Path("a"), Path("b")))).compare
    assert policy.can_run is can_run
    assert policy.recorded == {f"{name}/agent.yaml::{name}" for name in recorded}


def test_agents_are_read_again_in_another_checkout(folder: Path) -> None:
    suite(folder, "a")
    there = folder / "there"
    there.mkdir()
    suite(there, "a", "b", agent={"command": ["tac"]})
    spec = resolve_files(Settings(suites=(SUITE,)))
    moved = spec.control.sources.moved(lambda path: there / path.resolve().relative_to(folder))
    assert moved == Sources(there, (there / SUITE,))
    cases = read_control_cases(moved)
    assert {case.agent.target for case in cases.values()} == {("tac",)}
    assert len(cases) == 2
    (there / SUITE).write_text("test_cases: 7\n", encoding="utf-8")
    (there / "agenteval.yaml").write_text("agents: 7\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_control_cases(moved)
    assert {Path(problem.file).name for problem in caught.value.problems} == {"agent.yaml", "agenteval.yaml"}


def test_a_suite_without_cases_is_a_problem_beside_the_configuration(folder: Path) -> None:
    suite(folder)
    configure(folder, iterationz=2)
    with pytest.raises(ConfigError) as raised:
        resolve_files(Settings(suites=(SUITE,)))
    assert [problem.file for problem in raised.value.problems] == ["agenteval.yaml", "agent.yaml"]


def test_names_of_the_gate_that_match_nothing_are_told(folder: Path) -> None:
    suite(folder, "refund", "refund-late", "night")
    configure(
        folder,
        gate={
            "must_pass": ["refund*", "agent.yaml::night", "*", "rfund-late", "day*"],
            "metrics": {"equality": {"gating": True}, "equalty": {"gating": False}},
            "quarantine": [{"case": name, "until": "2999-01-01"} for name in ("night", "nihgt", "elsewhere")],
        },
    )
    for only in (None, "refund-late"):
        # Also the cases that are not selected are known.
        assert resolve_files(Settings(suites=(SUITE,), filter=only)).warnings == (
            "the quarantine of 'nihgt' matches no case; did you mean 'night'?",
            "the quarantine of 'elsewhere' matches no case",
            "`must_pass` of the gate: 'rfund-late' matches no case; did you mean 'refund-late'?",
            "`must_pass` of the gate: 'day*' matches no case",
            "`metrics` of the gate: 'equalty' is no metric of the suites; did you mean 'equality'?",
        )


def test_no_secret_is_in_the_representation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "geheim-12345678")
    agent = {"http": "https://example.org/chat", "headers": {"Authorization": "Bearer ${SERVICE_API_KEY}"}}
    suite(folder, "a", agent=agent)
    assert "geheim-12345678" not in repr(resolve_files(Settings()))
