"""Results and journals that somebody changed end as "cannot be used", or do no harm: no command breaks."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tests.scenarios.scenario import Scenario
from tests.scenarios.stage import opened_stage, play

# Of each command; more of them, or others, are tried by hand.
_SAMPLE = int(os.environ.get("FORGERIES", "4"))
_SEED = int(os.environ.get("FORGERY_SEED", "1"))
_SUITE = """name: shop
evaluations:
  metrics: [{type: standard, metric: f1_score, threshold: 0.8}, {type: standard, metric: bleu}]
test_cases:
  - {name: fast, input: a, ground_truth: one two, expected_tools: [look]}
  - {name: late, input: b, ground_truth: one two}
  - {name: talk, turns: [{input: c, ground_truth: one two}, {input: d, ground_truth: one two}]}
"""
_REPLY = {"response": "one two", "usage": {"input_tokens": 5, "cost_usd": 0.01}, "tool_calls": [{"name": "look"}]}
_FIRST = {"files": {"agent.yaml": _SUITE, "agenteval.yaml": "iterations: 2\n"}, "agent": {"*": _REPLY}}
_VALUES: tuple[Any, ...] = (
    None, "", "x", "nowhere::x", "y" * 5000, "\ud800", "9999-12-31T23:59:59Z", -1, 0, 0.5, True, 10**9, 1e23, [], {},
)  # fmt: skip
_COMMANDS = {
    "now/results.json": (
        "compare forged base",
        "merge forged -o out",
        "accept --from forged --reason x",
        "prove forged",
    ),
    "base/results.json": (
        "compare now forged",
        "run --baseline=forged --out out",
        "run --failed-in forged --out out",
    ),
    "now/journal.jsonl": ("run --baseline=base --resume --out forged",),
}


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each list or mapping with each of its keys."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _forged(content: Any, draw: random.Random) -> Any:
    """Return content in which one value is another, is missing, or is there twice."""
    forged = copy.deepcopy(content)
    parent, key = draw.choice(list(_places(forged)))
    if draw.random() < 0.2:
        del parent[key]
    elif isinstance(parent, list) and draw.random() < 0.3:
        parent.append(parent[key])
    else:
        parent[key] = draw.choice(_VALUES)
    return forged


def _steps(folders: list[Path], draw: random.Random) -> Iterator[dict[str, Any]]:
    """Yield real runs with comparison, proofs, a conversation and resources; then commands that read forged files."""
    yield {**_FIRST, "base": {"*": _REPLY}, "run": "run --out base --runs 2"}
    yield {"agent": {"late": "nothing", "*": _REPLY}, "run": "run --baseline base --out now"}
    folder = folders[-1]
    for name, commands in _COMMANDS.items():
        content = [json.loads(line) for line in (folder / name).read_text().splitlines()] if "journal" in name else []
        content = content or [json.loads((folder / name).read_text())]
        for command in commands * _SAMPLE:
            for gone in ("forged", "out", ".agenteval"):
                shutil.rmtree(folder / gone, ignore_errors=True)
            (folder / "forged").mkdir()
            lines = "".join(f"{json.dumps(line)}\n" for line in _forged(content, draw))
            (folder / "forged" / Path(name).name).write_text(lines)
            yield {"run": command}


def test_forged_results_break_no_command() -> None:
    folders: list[Path] = []
    statuses = []
    with opened_stage() as stage:
        # Each step is made when it is played, from what the steps before it wrote.
        steps = cast("Sequence[Mapping[str, Any]]", _steps(folders, random.Random(_SEED)))
        for step, seen in play(Scenario("forged", steps, ""), stage):
            folders.append(seen.folder)
            statuses.append(seen.ended.status)
            assert statuses[-1] in {0, 1, 2, 3}, step
            assert "internal error" not in seen.ended.err, (step, seen.ended.err)
    assert statuses[:2] == [0, 1]
    assert 2 in statuses
