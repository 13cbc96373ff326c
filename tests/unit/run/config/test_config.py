"""``agenteval.yaml``: finding it, reading it, and resolving agents."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from agenteval.core.errors import ConfigError
from agenteval.core.files import bounded
from agenteval.gate.values import ComparePolicy, Quarantine
from agenteval.gate.verdict import GatePolicy
from agenteval.run.config import CONFIG_FILE, Config
from agenteval.run.config_keys import GateEntry
from agenteval.run.resolve.configurations import read_config


def read(folder: Path, text: str) -> Config:
    path = folder / CONFIG_FILE
    path.write_text(text)
    return read_config(path)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    return [str(problem).removeprefix(f"{folder / CONFIG_FILE}:") for problem in caught.value.problems]


@pytest.mark.parametrize("cache", ["/etc/evil", "../evil", "in/../../evil"])
def test_a_cache_outside_of_the_boundary_is_refused(tmp_path: Path, cache: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with bounded([workspace], None):
        [problem] = problems(workspace, f"llm:\n  cache: {cache}\n")
        read(workspace, "llm:\n  cache: in/../here\n")
    assert problem.startswith("2: llm.cache: ")
    assert "evil is outside of the directories that may be written" in problem


class TestReading:
    def test_everything(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_TOKEN", "s3cr3t-s3cr3t")
        config = read(
            tmp_path,
            "agents:\n  default: {command: [python, agent.py], timeout: 5}\n"
            "  remote: {http: 'https://example.org', headers: {Authorization: 'Bearer ${SHOP_TOKEN}'}}\n"
            "  replayed: replay:answers.jsonl\n"
            "iterations: 3\nconcurrency: 2\n"
            "gate: {fail_on: [regressions], pairs: 8, max_error_rate: 0.2}\n",
        )
        assert (config.iterations, config.concurrency, config.compare.pairs) == (3, 2, 8)
        assert config.gate == GatePolicy(frozenset({"regressions"}), 0.2)
        assert {name: agent.kind for name, agent in config.agents.items()} == {
            "default": "command",
            "remote": "http",
            "replayed": "replay",
        }
        assert config.agents["default"].where == f"{tmp_path / CONFIG_FILE}:2"
        assert config.agents["replayed"].target == str(tmp_path / "answers.jsonl")
        assert config.secrets >= {"s3cr3t-s3cr3t"}
        assert "s3cr3t" not in repr(config)

    def test_how_runs_are_compared(self, tmp_path: Path) -> None:
        config = read(
            tmp_path,
            """
gate:
  pairs: 8
  first: whole
  require: no-worse-than 0.03
  metrics: {bleu: {gating: false}}
  resources: {latency: 0.2}
  quarantine:
    - {case: "ch*", until: 2026-03-31, reason: the judge disagrees with itself}
""",
        )
        policy = config.compare
        assert (policy.pairs, policy.first, policy.no_worse_than) == (8, "whole", 0.03)
        assert (dict(policy.gating), dict(policy.resources)) == ({"bleu": False}, {"latency": 0.2})
        assert policy.rules.looks == (4, 8)
        expected = Quarantine("ch*", date(2026, 3, 31), "the judge disagrees with itself")
        assert policy.quarantine == config.gate.quarantine == (expected,)

    def test_the_defaults_of_the_file_are_those_of_the_gate(self) -> None:
        assert GateEntry().compare_policy() == ComparePolicy()
        assert GateEntry().gate_policy() == GatePolicy()

    def test_repeated_keys_are_errors(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            read(tmp_path, "iterations: 1\ngate: {pairs: 4,\n  pairs: 8}\niterations: 2\n")
        message = "the key {!r} is given twice, first in line {}; remove one of them"
        assert [(problem.message, problem.line) for problem in caught.value.problems] == [
            (message.format("iterations", 1), 4),
            (message.format("pairs", 2), 3),
        ]

    @pytest.mark.parametrize(
        ("written", "fail_on"),
        [
            ("fail_on: failures,errors", {"failures", "errors"}),
            ("fail_on: none", set()),
            ("fail_on: [none]", set()),
        ],
    )
    def test_what_fails_the_gate(self, tmp_path: Path, written: str, fail_on: set[str]) -> None:
        assert read(tmp_path, f"gate:\n  {written}\n").gate.fail_on == fail_on

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("agents:\n  1: {command: [x]}", ["2: agents[1]: a key must be text; put it in quotes"]),
            ("gate:", ["1: gate: must be a mapping (key: value), not empty"]),
            ("gate: {fail_on: }", ["1: gate.fail_on: 'None' is not allowed"]),
            ("gate: {fail_on: [failures, none]}", ["1: gate.fail_on: 'none' is not allowed"]),
            ("fail_on: errors", ["1: fail_on: unknown key; write `gate: {fail_on: LIST}` in agenteval.yaml"]),
            ("baseline: a", ["1: baseline: unknown key; write --baseline on the command line"]),
        ],
    )
    def test_mistakes(self, tmp_path: Path, text: str, expected: list[str]) -> None:
        found = problems(tmp_path, text)
        assert len(found) == len(expected)
        assert all(problem.startswith(start) for problem, start in zip(found, expected, strict=True))
