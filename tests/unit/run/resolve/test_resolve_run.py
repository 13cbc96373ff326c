"""Settings, configuration and suites become one specification, or every problem at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import case, write_suite
from tests.unit.runs import results

from agenteval.compare.gate import DEFAULT_FAIL_ON
from agenteval.core.errors import ConfigError
from agenteval.core.llm.budget import Limits
from agenteval.results.model import Results, RunShard, RunUsage
from agenteval.run.baseline import FoundBaseline, Search
from agenteval.run.context import RunContext
from agenteval.run.provenance import Provenance
from agenteval.run.resolve.run import resolve_run
from agenteval.run.resolve.saved import resolve_saved
from agenteval.run.resolve.sources import Sources
from agenteval.run.resolve.spec import RunSpec, Selection
from agenteval.run.resolve.suites import read_agents
from agenteval.run.settings import Settings
from agenteval.run.shard import Shard

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


CONFIGURED = {
    "concurrency": 3,
    "iterations": 4,
    "case_timeout": 5,
    "time_limit": 60,
    "gate": {"fail_on": ["errors"]},
    "llm": {"max_calls": 7, "max_cost_usd": 2.5},
}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (3, 60.0, Limits(7, 2.5), 4, True, {"errors"})),
        ({"concurrency": 1}, (1, 60.0, Limits(7, 2.5), 4, True, {"errors"})),
        ({"max_time_s": 9.0}, (3, 9.0, Limits(7, 2.5), 4, True, {"errors"})),
        ({"max_llm_calls": 0, "max_cost_usd": 0.0}, (3, 60.0, Limits(0, 0.0), 4, True, {"errors"})),
        ({"iterations": 2}, (3, 60.0, Limits(7, 2.5), 2, False, {"errors"})),
        ({"fail_on": frozenset()}, (3, 60.0, Limits(7, 2.5), 4, True, set())),
    ],
)
def test_settings_overrule_the_configuration(
    folder: Path, settings: Mapping[str, Any], expected: tuple[Any, ...]
) -> None:
    suite(folder, "a")
    configure(folder, **CONFIGURED)
    spec = resolve_run(Settings(**settings))
    (item,) = spec.cases
    limits = spec.limits
    found = (limits.concurrency, limits.run_s, limits.models, item.iterations, item.follow_recording)
    assert (*found, spec.gate.fail_on) == expected
    assert limits.case_s == 5


def test_without_a_configuration_there_are_defaults(folder: Path) -> None:
    suite(folder, "a")
    spec = resolve_run(Settings())
    (item,) = spec.cases
    assert (spec.limits.concurrency, spec.limits.run_s, spec.limits.models) == (8, None, Limits())
    assert (item.iterations, spec.gate.fail_on, spec.baseline, spec.shard) == (1, DEFAULT_FAIL_ON, None, None)
    assert spec.llm.cache is not None
    assert resolve_run(Settings(use_cache=False)).llm.cache is None


def test_every_problem_is_named_at_once(folder: Path) -> None:
    suite(folder, "a", agent="nobody")
    (folder / "broken.yaml").write_text("test_cases: 7\n", encoding="utf-8")
    settings = Settings(
        suites=(SUITE, Path("broken.yaml"), Path("missing.yaml")),
        control="neither",
        baseline=Path("nothing.json"),
        comment_template=Path("none.md"),
    )
    with pytest.raises(ConfigError) as caught:
        resolve_run(settings)
    text = str(caught.value)
    for part in ("'nobody'", "broken.yaml", "missing.yaml", "--control", "'neither'", "--baseline: ", "none.md"):
        assert part in text, part


def test_recorded_traces_are_not_divided(folder: Path) -> None:
    suite(folder, "a")
    settings = Settings(traces=Path("t.jsonl"), shard=Shard(1, 2), resume=True, max_time_s=1.0)
    with pytest.raises(ConfigError) as caught:
        resolve_run(settings)
    assert [problem.message.split(" ")[0] for problem in caught.value.problems] == ["--shard", "--traces:"]


@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        (Selection(), ["Refund", "refused", "other"]),
        (Selection("REF"), ["Refund", "refused"]),
        (Selection(tags=("x", "y")), ["Refund", "other"]),
        (Selection("ref", ("x",)), ["Refund"]),
        (Selection("s.yaml::o"), ["other"]),
    ],
)
def test_a_selection_is_by_text_and_tags(selection: Selection, selected: list[str]) -> None:
    tags = {"Refund": ["x"], "refused": [], "other": ["y", "z"]}
    assert [name for name in tags if selection.includes(f"s.yaml::{name}", name, tags[name])] == selected


def test_cases_that_are_not_selected_are_still_known(folder: Path) -> None:
    suite(folder, "one", "two")
    spec = resolve_run(Settings(filter="ONE"))
    assert names(spec) == ["one"]
    assert spec.known == {"agent.yaml::one", "agent.yaml::two"}
    with pytest.raises(ConfigError, match="no case matches --filter 'three'"):
        resolve_run(Settings(filter="three"))


def test_a_shard_has_some_cases_and_no_baseline(folder: Path) -> None:
    suite(folder, "a", "b", "c")
    context = RunContext(baseline=Remote(base()))
    parts = [resolve_run(Settings(shard=Shard(index, 2)), context) for index in (1, 2)]
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
    """A run without cases."""
    found = results(run_id="base")
    return found.model_copy(update={"run": found.run.model_copy(update={"shard": shard})})


def test_the_context_contributes_baseline_commit_setup_and_warnings(folder: Path) -> None:
    suite(folder, "a")
    configure(folder, pass_env=["KEY"], limits={"memory_mb": 100})
    place = Provenance("c" * 40, "refs/heads/x", "o/r", "1")
    context = RunContext(place, Remote(base()), "pip install .", ("look here",))
    spec = resolve_run(Settings(), context)
    assert spec.provenance == place
    assert spec.baseline is not None
    assert (spec.baseline.results.run.id, spec.baseline.distance) == ("base", 3)
    assert (spec.setup.commands, spec.setup.pass_env, spec.setup.memory_mb) == ("pip install .", ("KEY",), 100)
    assert spec.warnings[0] == "look here"
    assert "one run was left out" in spec.warnings
    assert "pip install ." not in f"{spec.setup!r}{context!r}"


def test_a_part_of_a_run_is_no_baseline(folder: Path) -> None:
    suite(folder, "a")
    part = base(shard=RunShard(index=1, count=2, cases=[]))
    with pytest.raises(ConfigError, match="this is shard 1 of 2 of a run; merge them first"):
        resolve_run(Settings(), RunContext(baseline=Remote(part)))
    Path("part.json").write_text(part.model_dump_json(), encoding="utf-8")
    with pytest.raises(ConfigError, match="--baseline: this is shard 1 of 2"):
        resolve_run(Settings(baseline=Path("part.json")))


@pytest.mark.parametrize(("recorded", "confirm"), [("ab", "off"), ("a", "head"), ("", "head")])
def test_a_run_of_recorded_answers_alone_is_not_confirmed(folder: Path, recorded: str, confirm: str) -> None:
    (folder / "answers.jsonl").write_text('{"case": "a", "response": "hello"}\n', encoding="utf-8")
    for name in "ab":
        (folder / name).mkdir()
        suite(folder / name, name, agent={"replay": "../answers.jsonl"} if name in recorded else {"command": ["cat"]})
    policy = resolve_run(Settings(suites=(Path("a"), Path("b")))).compare
    assert policy.parameters.confirm == confirm
    assert policy.recorded == {f"{name}/agent.yaml::{name}" for name in recorded}


def test_a_confirmation_is_the_same_run_with_other_cases_and_what_is_left(folder: Path) -> None:
    suite(folder, "a", "b")
    spec = resolve_run(Settings(max_llm_calls=5, resume=True, seed=3))
    left = spec.limits.minus(RunUsage(llm_calls=2), 1.0)
    again = spec.confirming(spec.cases[:1], left)
    assert names(again) == ["a"]
    assert again.limits.models.max_calls == 3
    assert again.journal.parent == spec.journal.parent
    assert again.journal != spec.journal
    assert not again.resume
    assert (again.seed, again.gate, again.compare, again.suites) == (spec.seed, spec.gate, spec.compare, spec.suites)


def test_agents_are_read_again_in_another_checkout(folder: Path) -> None:
    suite(folder, "a")
    there = folder / "there"
    there.mkdir()
    suite(there, "a", "b", agent={"command": ["tac"]})
    spec = resolve_run(Settings(suites=(SUITE,)))
    moved = spec.sources.moved(lambda path: there / path.resolve().relative_to(folder))
    assert moved == Sources(there, (there / SUITE,))
    agents = read_agents(moved)
    assert {agent.target for agent in agents.values()} == {("tac",)}
    assert len(agents) == 2
    (there / SUITE).write_text("test_cases: 7\n", encoding="utf-8")
    (there / "agenteval.yaml").write_text("agents: 7\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_agents(moved)
    assert {Path(problem.file).name for problem in caught.value.problems} == {"agent.yaml", "agenteval.yaml"}


def test_saved_results_take_the_gate_of_the_configuration(folder: Path) -> None:
    configure(folder, gate={"fail_on": ["errors"], "policy": "any-flip"})
    spec = resolve_saved(Settings(), {"GITHUB_REPOSITORY": "o/r"})
    assert spec.gate.fail_on == {"errors"}
    assert (spec.compare.name, spec.presentation.site.repository) == ("any-flip", "o/r")
    assert resolve_saved(Settings(fail_on=frozenset({"failures"})), {}).gate.fail_on == {"failures"}


def test_no_secret_is_in_the_representation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "geheim-12345678")
    agent = {"http": "https://example.org/chat", "headers": {"Authorization": "Bearer ${SERVICE_API_KEY}"}}
    suite(folder, "a", agent=agent)
    assert "geheim-12345678" not in repr(resolve_run(Settings()))
