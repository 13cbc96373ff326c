"""Patterns of suites that need exponential time or all memory."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest
from tests.mistakes import shown
from tests.support import AGENTEVAL, PATIENCE_S, agenteval, environment, results_in

from agenteval.results.case import CaseResult

_AGENT = "agents:\n  bot:\n    command: [sh, -c, 'cat > /dev/null; echo %s']\n"
_SLOW = r"(a|a|aa)+$"
_ANSWER = "a" * 60 + "b"


def _write(folder: Path, *patterns: str) -> None:
    cases = "".join(f"\n[[eval.cases]]\nprompt = 'case {n}'\noutput.match = '{p}'\n" for n, p in enumerate(patterns))
    suite = folder / ".agentci" / "evals" / "slow.toml"
    suite.parent.mkdir(parents=True)
    suite.write_text(f"[eval]\ndescription = 'slow'\ntype = 'accuracy'\ntargets.agents = ['bot']\n{cases}")
    (folder / "agenteval.yaml").write_text(_AGENT % _ANSWER)


def _errors(cases: list[CaseResult]) -> list[str]:
    return [str(score.error) for case in cases for score in case.iterations[0].turns[0].scores]


@pytest.mark.long
def test_one_pattern_of_many_cases_costs_three_searches(tmp_path: Path) -> None:
    _write(tmp_path, *[_SLOW] * 30)
    ended = agenteval("run", "--concurrency", "1", cwd=tmp_path)
    assert ended.status in {1, 3}, ended.text
    errors = _errors(results_in(tmp_path).suites[0].cases)
    assert len(errors) == 30
    assert sum("takes too long" in error for error in errors) == 3
    given_up = [error for error in errors if "is not tried again" in error]
    assert len(given_up) == 27
    assert all(error.startswith(".agentci/evals/slow.toml:") for error in given_up)


def test_different_patterns_are_searched_while_agents_answer(tmp_path: Path) -> None:
    _write(tmp_path, *(f"{_SLOW}{n}" for n in range(8)))
    ended = agenteval("run", "--concurrency", "8", cwd=tmp_path)
    assert ended.status in {1, 3}, ended.text
    assert all("takes too long" in error for error in _errors(results_in(tmp_path).suites[0].cases))


@pytest.mark.parametrize("pattern", ["(a{65000}){65000}", "(?=(a{65000}){65000})b"])
def test_a_pattern_that_needs_all_memory_is_refused(tmp_path: Path, pattern: str) -> None:
    _write(tmp_path, pattern)
    done = subprocess.run(
        [str(AGENTEVAL), "run"],
        cwd=tmp_path,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    (mistake,) = shown(done.stderr)
    assert mistake.place == ".agentci/evals/slow.toml:8"
    assert "at most 100,000 are allowed" in mistake.title
