"""Whole runs against the mock of the providers: what it plays, a project whose model it is, and what a run led to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.peers.aimock import Aimock, Fixture

from agenteval.cli.main import main
from agenteval.results.case import CaseResult, Score, TurnResult
from agenteval.results.model import Results
from agenteval.results.store import read_results

INPUT_TOKENS, OUTPUT_TOKENS = 100, 10
USAGE = {
    "prompt_tokens": INPUT_TOKENS,
    "completion_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}


def says(said: Any, match: str = "", **gates: Any) -> Fixture:
    """What the model says, JSON or text, to a prompt that contains something."""
    user = {"userMessage": match} if match else {}
    return {"match": {**user, **gates}, "response": {"content": said, "usage": USAGE}}


def calls(name: str, arguments: Mapping[str, Any], match: str = "", **gates: Any) -> Fixture:
    """The model wants a tool called."""
    asked = {"name": name, "arguments": json.dumps(arguments)}
    return {**says(None, match, **gates), "response": {"toolCalls": [asked], "usage": USAGE}}


def refuses(status: int, message: str, match: str = "", **error: Any) -> Fixture:
    """An error; with ``sequence`` only for the request of that number."""
    gates = {"sequenceIndex": error.pop("sequence")} if "sequence" in error else {}
    retry = {"retryAfter": error.pop("retry_after")} if "retry_after" in error else {}
    response = {"error": {"message": message, **error}, "status": status, **retry}
    return {**says(None, match, **gates), "response": response}


#: What a judge says to each prompt of deepeval.
JUDGES = [
    says(item["response"]["content"], item["match"]["userMessage"])
    for item in json.loads((Path(__file__).parent / "fixtures" / "judges.json").read_text("utf-8"))["fixtures"]
]


@dataclass(frozen=True)
class Model:
    """A model of the mock, and what one answer of it takes."""

    provider: str
    name: str
    cost_usd: float | None
    tokens: tuple[int, int] = (INPUT_TOKENS, OUTPUT_TOKENS)

    @property
    def label(self) -> str:
        return f"{self.provider}/{self.name}"


GPT = Model("openai", "gpt-4.1", 0.00028)
AZURE = Model("azure_openai", "gpt-4.1", 0.00028)
CLAUDE = Model("anthropic", "claude-sonnet-4-6", 0.00045)


@dataclass(frozen=True)
class Ran:
    """What a run led to."""

    status: int
    results: Results
    shown: str

    @property
    def cases(self) -> list[CaseResult]:
        return [case for _, case in self.results.cases()]

    @property
    def statuses(self) -> list[str]:
        return [case.status for case in self.cases]

    @property
    def scores(self) -> list[Score]:
        """All scores of the first iterations, in the order of the suites."""
        return [score for case in self.cases for turn in case.iterations[0].turns for score in turn.scores]

    @property
    def turns(self) -> dict[str, list[TurnResult]]:
        """The turns of the first iteration by the name of the case."""
        return {case.name: list(case.iterations[0].turns) for case in self.cases}

    @property
    def turn(self) -> TurnResult:
        """The only one."""
        ((only,),) = self.turns.values()
        return only


@dataclass
class Bench:
    """A directory with suites, run by the command in this process."""

    mock: Aimock
    directory: Path
    _capture: pytest.CaptureFixture[str] = field(repr=False)

    def model(self, model: Model, **fields: Any) -> dict[str, Any]:
        """A model as a suite names it."""
        return self.mock.model(model.provider, model.name, **fields)

    def file(self, name: str, content: Any) -> None:
        """Write text, or what becomes YAML."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")

    def answers(self, answers: Mapping[str, str], iterations: int = 3) -> None:
        """Record an agent's answers by the name of the case, the same for each iteration."""
        lines = [
            json.dumps({"case": name, "iteration": iteration, "response": text})
            for name, text in answers.items()
            for iteration in range(iterations)
        ]
        self.file("answers.jsonl", "\n".join(lines))

    def run(self, *options: str) -> Ran:
        status = main(["run", *options])
        captured = self._capture.readouterr()
        shown = captured.out + captured.err
        assert status in {0, 1, 3}, shown
        return Ran(status, read_results(self.directory / "agenteval-report"), shown)

    def refused(self, *options: str) -> str:
        """What is said where nothing is run."""
        assert main(["run", *options]) == 2
        assert self.mock.requests() == []
        captured = self._capture.readouterr()
        return captured.out + captured.err

    def files_with(self, text: str) -> list[str]:
        """The files of the report that contain a text."""
        report = [path for path in (self.directory / "agenteval-report").rglob("*") if path.is_file()]
        assert len(report) >= 5
        return [path.name for path in report if text in path.read_text(encoding="utf-8")]
