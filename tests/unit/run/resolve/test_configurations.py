"""Each suite has the nearest configuration; settings of the run as a whole come from one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from tests.support import case, write_suite
from tests.unit import runs

from agenteval.core.errors import ConfigError
from agenteval.core.secrets import masking, redactor
from agenteval.gate.values import ComparePolicy
from agenteval.results.case import SuiteResult
from agenteval.run.config import Settings
from agenteval.run.evaluate import load_suites
from agenteval.run.resolve.configurations import Sources, find_configurations
from agenteval.run.resolve.spec import RunSpec
from agenteval.run.resolve_run import resolve_files
from agenteval.run.resolve_saved import resolve_saved

CONFIG = "agenteval.yaml"


def configure(folder: Path, **keys: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(yaml.safe_dump(keys, sort_keys=False), encoding="utf-8")


def suite(folder: Path, *names: str, **keys: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_suite(folder, [case(name) for name in names or ("a",)], **keys)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the suites support and shop, and a configuration above it that belongs to nobody."""
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    configure(tmp_path, agents={"default": {"command": ["above"]}})
    for name in ("support", "shop"):
        suite(root / name, name)
    monkeypatch.chdir(root)
    return root


class Layout(NamedTuple):
    """Directories by role.

    Attributes:
        files: those with a configuration.
        here: the working directory.
        explicit: the one whose configuration the caller names.
        suites: those of the suites.
        of_suites: those whose configuration each suite has.
        of_run: the one whose configuration decides for the run.
    """

    files: Sequence[str]
    here: str
    explicit: str | None
    suites: Sequence[str]
    of_suites: Sequence[str | None]
    of_run: str | None


@pytest.mark.parametrize(
    "layout",
    [
        # The nearest at or above the directory of the suite.
        Layout(["support", "shop"], ".", None, ["support", "shop"], ["support", "shop"], None),
        Layout([".", "shop"], ".", None, ["support", "shop"], [".", "shop"], "."),
        Layout(["."], "shop", None, ["support", "shop"], [".", "."], "."),
        # Never beyond the repository.
        Layout(["support"], ".", None, ["support", "shop"], ["support", None], None),
        Layout([".", "nested"], ".", None, ["nested/inner", "shop"], [None, "."], "."),
        # The working directory decides for the run; else the directory that the suites share.
        Layout(["support", "shop"], "shop", None, ["support", "shop"], ["support", "shop"], "shop"),
        Layout(["."], "/", None, ["support", "shop"], [".", "."], "."),
        Layout(["support"], "/", None, ["support"], ["support"], "support"),
        Layout(["support"], "/", None, ["support", "nested/inner"], ["support", None], None),
        # A file that the caller names replaces all others.
        Layout(["support", "shop"], ".", "shop", ["support", "shop"], ["shop", "shop"], "shop"),
        # Links are followed: a suite has one configuration, by whichever name it is given.
        Layout(["support", "shop", "linked"], ".", None, ["linked", "folder"], ["shop", "shop"], "shop"),
    ],
)
def test_where_configurations_are_found(repository: Path, layout: Layout) -> None:
    (repository / "nested" / "inner" / ".git").mkdir(parents=True)
    suite(repository / "nested" / "inner")
    (repository / "linked").mkdir()
    (repository / "linked" / "agent.yaml").symlink_to(repository / "shop" / "agent.yaml")
    (repository / "folder").symlink_to(repository / "shop")
    for name in layout.files:
        configure(repository / name)

    def found(name: str | None) -> Path | None:
        return None if name is None else (repository / name / CONFIG).resolve()

    paths = [repository / name / "agent.yaml" for name in layout.suites]
    places = find_configurations(Sources(repository / layout.here, config=found(layout.explicit)), paths)
    assert [places.of_suites[path] for path in paths] == [found(name) for name in layout.of_suites]
    assert places.of_run == found(layout.of_run)


def resolved(*suites: str, **settings: Any) -> RunSpec:
    return resolve_files(Settings(tuple(map(Path, suites)), **settings))


EACH = {
    "support": {
        "agents": {"default": {"command": ["support"]}, "other": {"command": ["support", "other"]}},
        "judge": {"model": "openai/support", "endpoint": "http://support"},
        "embeddings": "openai/support",
        "metrics": [{"type": "bleu", "id": "support"}],
        "criteria": {"max_response_ms": 1.0},
        "personas": {"support": ["*"]},
        "iterations": 2,
        "case_timeout": 20,
        "pass_env": ["SUPPORT_KEY"],
        "limits": {"memory_mb": 200},
    },
    "shop": {
        "agents": {"default": {"command": ["shop"]}, "other": {"command": ["shop", "other"]}},
        "judge": {"model": "openai/shop", "endpoint": "http://shop"},
        "embeddings": "openai/shop",
        "metrics": [{"type": "bleu", "id": "shop"}],
        "criteria": {"max_response_ms": 2.0},
        "personas": {"shop": ["*"]},
        "iterations": 3,
        "case_timeout": 30,
        "pass_env": ["SHOP_KEY"],
        "limits": {"cpu_s": 30},
    },
}


def facts(spec: RunSpec) -> Mapping[str, Any]:
    """What was resolved for each suite."""
    found = {}
    for item in spec.cases:
        settings = spec.settings[item.suite.path]
        assert settings.judge is not None
        assert settings.embeddings is not None
        assert item.suite.evaluation is not None
        assert item.suite.evaluation.criteria is not None
        found[item.case.name] = (
            item.agent.target,
            item.agent.directory,
            (settings.judge.label, settings.judge.endpoint, settings.embeddings.label),
            [metric.id for metric in item.case.all_metrics],
            (item.suite.evaluation.criteria.max_response_ms, item.case.persona, item.iterations, settings.case_s),
            (settings.rules.pass_env, settings.rules.memory_mb, settings.rules.cpu_s),
            settings.config,
        )
    return found


@pytest.mark.parametrize("agent", [None, "other"])
def test_all_that_concerns_a_suite_comes_from_its_configuration(repository: Path, agent: str | None) -> None:
    for name, keys in EACH.items():
        configure(repository / name, **keys)
    alone = {**facts(resolved("support", agent=agent)), **facts(resolved("shop", agent=agent))}
    assert alone["support"] != alone["shop"]
    assert alone["shop"][0] == (("shop", agent) if agent else ("shop",))
    for order in permutations(EACH):
        assert facts(resolved(*order, agent=agent)) == alone
    # One file for all suites.
    found = facts(resolved("support", "shop", agent=agent, config=Path("shop", CONFIG)))
    assert found["support"] == found["shop"] == alone["shop"]


def test_suites_may_use_the_variables_that_their_configuration_lists(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANY_KEY", "sk-0123456789")
    for name in EACH:
        suite(repository / name, name="${ANY_KEY}", agent={"command": ["x"]})
    monkeypatch.setenv("CI", "true")
    configure(repository / "support", pass_env=["ANY_KEY"])
    configure(repository / "shop")
    for order in permutations(EACH):
        with masking(), pytest.raises(ConfigError) as caught:
            resolved(*order)
        assert [problem.file for problem in caught.value.problems] == ["shop/agent.yaml"]
        with pytest.raises(ConfigError, match=r"shop/agent\.yaml"):
            load_suites(*order)
    assert [loaded.path for loaded in load_suites("support")] == ["support/agent.yaml"]


def test_a_listed_secret_is_masked_everywhere(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE_WORD", "open-sesame")
    command = {"command": ["x", "${CODE_WORD}"]}
    agent = {"default": {"command": ["x"], "env": {"WORD": "${CODE_WORD}"}}}
    configure(repository / "support", agents=agent, secrets=["CODE_WORD"])
    configure(repository / "shop", agents={"default": command})
    for order in permutations(EACH):
        with masking():
            spec = resolved(*order)
            found = {item.case.name: (item.agent.target, dict(item.agent.env)) for item in spec.cases}
            assert found == {"support": (("x",), {"WORD": "open-sesame"}), "shop": (("x", "open-sesame"), {})}
            assert spec.redact("say open-sesame") == "say ***"
    # The message about a file can contain the secret of another one.
    configure(repository / "support", agents=agent, secrets=["CODE_WORD"], concurrency=-1)
    configure(repository / "shop", agents={"default": {"command": ["x"], "${CODE_WORD}": "${CODE_WORD}"}})
    for order in permutations(EACH):
        with masking():
            with pytest.raises(ConfigError):
                resolved(*order)
            assert redactor()("say open-sesame") == "say ***"


WIDE = {
    "gate": {"pairs": 8},
    "llm": {"max_calls": 7},
    "concurrency": 3,
    "time_limit": 90,
    "templates": {"comment": "mine.md.j2"},
    "max_answer_bytes": 2048,
}


def of_run(spec: RunSpec) -> Sequence[Any]:
    pairs, limits = spec.compare.pairs, spec.limits
    comment = spec.presentation.comment_template
    return (
        pairs,
        spec.llm.limits.max_calls,
        limits.concurrency,
        limits.run_s,
        bool(comment),
        limits.max_answer_bytes,
    )


CHANGED = (8, 7, 3, 90, True, 2048)


@pytest.mark.parametrize("here", [".", "support"])
def test_the_run_as_a_whole_has_the_settings_of_the_working_directory(
    repository: Path, monkeypatch: pytest.MonkeyPatch, here: str
) -> None:
    agents = {"default": {"command": ["x"]}}
    for name in EACH:
        configure(repository / name, agents=agents)
    (repository / here / "mine.md.j2").write_text("x", encoding="utf-8")
    configure(repository / here, agents=agents, **WIDE)
    monkeypatch.chdir(repository / here)
    spec = resolved(str(repository / "support"), str(repository / "shop"))
    assert of_run(spec) == CHANGED
    assert spec.warnings == ()
    # Others have no effect, and this is said.
    configure(repository / "shop", agents=agents, llm={"max_calls": 1}, concurrency=3)
    spec = resolved(str(repository / "support"), str(repository / "shop"))
    assert of_run(spec) == CHANGED
    by = "agenteval.yaml" if here == "." else "support/agenteval.yaml"
    (warning,) = spec.warnings
    assert warning.startswith(f"shop/agenteval.yaml:5: llm: has no effect: {by} decides it for the whole run")


def test_the_directory_that_all_suites_share_decides_for_the_run(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "elsewhere").mkdir()
    monkeypatch.chdir(repository / "elsewhere")
    for name in EACH:
        suite(repository / "evals" / name)
        configure(repository / "evals" / name, agents={"default": {"command": [name]}})
    (repository / "evals" / "mine.md.j2").write_text("x", encoding="utf-8")
    configure(repository / "evals", **WIDE)
    spec = resolved("../evals/support", "../evals/shop")
    assert of_run(spec) == CHANGED
    assert [item.agent.target for item in spec.cases] == [("support",), ("shop",)]


@pytest.mark.parametrize("key", WIDE)
def test_else_the_configurations_must_agree(repository: Path, key: str) -> None:
    agents = {"default": {"command": ["x"]}}
    (repository / "mine.md.j2").write_text("x", encoding="utf-8")
    wide = {**WIDE, "templates": {"comment": str(repository / "mine.md.j2")}}
    for name in EACH:
        configure(repository / name, agents=agents, **wide)
    assert of_run(resolved("support", "shop")) == CHANGED
    configure(repository / "shop", agents=agents, **{name: wide[name] for name in wide if name != key})
    for order in permutations(EACH):
        with pytest.raises(ConfigError) as caught:
            resolved(*order)
        (problem,) = caught.value.problems
        assert (problem.file, problem.path) == ("support/agenteval.yaml", key)
        assert problem.line is not None
        assert "shop/agenteval.yaml does not" in problem.message
    # The caller decides.
    assert of_run(resolved("support", "shop", config=Path("support", CONFIG))) == CHANGED
    suite(repository / "shop", agent={"command": ["x"]})
    (repository / "shop" / CONFIG).unlink()
    with pytest.raises(ConfigError, match=r"shop/agent\.yaml has no agenteval\.yaml"):
        resolved("support", "shop")


def test_saved_results_have_the_gate_of_their_run(repository: Path) -> None:
    agents = {"default": {"command": ["x"]}}
    configure(repository / "support", agents=agents, gate={"pairs": 8})
    saved = runs.results()

    def of(*paths: str) -> float:
        suites = [SuiteResult(path=path, name="s", format="holodeck", fingerprint="f", cases=[]) for path in paths]
        found = resolve_saved(saved.model_copy(update={"suites": suites}), Settings(), {})
        return found.compare.pairs

    assert of("support/agent.yaml") == resolved("support").compare.pairs == 8
    # Results may be forged: their paths lead nowhere outside of the repository.
    configure(repository.parent / "outside", gate={"pairs": 4})
    suite(repository.parent / "outside")
    assert of("../outside/agent.yaml") == of("no/such/agent.yaml") == ComparePolicy().pairs
    with pytest.raises(ConfigError, match=r"shop/agent\.yaml has no agenteval\.yaml"):
        of("support/agent.yaml", "shop/agent.yaml")
