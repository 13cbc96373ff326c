"""The published JSON Schemas, and the contract of results.json word for word."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError
from tests.end_to_end.conftest import Command
from tests.support import ROOT, agenteval, case, environment, python_agent, write_suite

from agenteval.agents.base import Request, reply_from_json
from agenteval.agents.recorded_cases import read_traces
from agenteval.agents.recording import Trace
from agenteval.cli.explanations import schema_names
from agenteval.core.errors import AgentError
from agenteval.suite.formats.registry import FORMATS

SCHEMAS = ROOT / "schemas"

# The keys of each object; ``[]`` stands for the entries of a list, ``{}`` for the values under free keys.
CONTRACT = {
    "": "schema_version tool run gate summary suites baseline_runs comparison",
    "tool": "name version plugins",
    "run": "id started_at finished_at duration_s complete commit ref repository workflow_run_id coverage",
    "run.coverage": (
        "cases selected finished iterations filter tags max_llm_calls max_cost_usd time_limit_s ended_by"
    ),
    "gate": "verdict exit_status headline reasons conditions rules",
    "summary": "cases passed failed errors skipped pass_rate score metrics usage",
    "summary.metrics{}": "n mean pass_rate",
    "summary.usage": "input_tokens output_tokens llm_calls cost_usd",
    "suites[]": "path name format fingerprint criteria cases",
    "suites[].cases[]": "id name tags cluster line status score iterations",
    "suites[].cases[].iterations[]": "index status score turns",
    "suites[].cases[].iterations[].turns[]": (
        "index input ground_truth response tool_calls retrieval_context latency_ms usage error scores"
    ),
    "suites[].cases[].iterations[].turns[].tool_calls[]": "name args result error duration_ms",
    "suites[].cases[].iterations[].turns[].usage": "input_tokens output_tokens cost_usd",
    "suites[].cases[].iterations[].turns[].scores[]": (
        "id kind score threshold passed status reason error model duration_ms cost_usd details"
    ),
    "baseline_runs[]": "commit run_id created_at made_with cases",
    "baseline_runs[].cases{}": "fingerprint metrics scores",
    "comparison": (
        "baseline state stage why headline sentences unproven metrics cases baseline_runs suspicions family cost "
        "resources"
    ),
    "comparison.baseline": "commit ref run_id created_at file distance",
}


def committed(name: str) -> dict[str, Any]:
    text = (SCHEMAS / name).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@pytest.fixture(scope="module")
def produced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of a run that has some of everything."""
    folder = tmp_path_factory.mktemp("run")
    code = """
import os
def reply(request):
    if request["case"] == "crash":
        raise RuntimeError("no model")
    return {
        "response": os.environ.get("ANSWER", request["input"]),
        "tool_calls": [{"name": "search", "args": {"q": 1}, "result": [float("nan")], "duration_ms": 2}],
        "retrieval_context": ["passage"],
        "usage": {"input_tokens": 10, "output_tokens": 20, "cost_usd": 0.001},
    }
"""
    metrics = [
        {"type": "standard", "metric": "equality"},
        {"type": "standard", "metric": "rouge", "threshold": 0.5},
        {"type": "standard", "metric": "bleu", "enabled": False},
    ]
    cases = [
        {**case("pass"), "expected_tools": ["search"]},
        {**case("tools"), "expected_tools": [{"name": "pay", "args": {"sum": {"regex": "1."}}}]},
        case("crash"),
        case("skipped", ground_truth=None),
        {
            "name": "chat",
            "turns": [case("", "one", "one") | {"input": "one"}, {"input": "two", "ground_truth": "two"}],
        },
    ]
    for turn in cases[-1]["turns"]:
        turn.pop("name", None)
    write_suite(folder, cases, agent=python_agent(folder, code), evaluations={"metrics": metrics})
    agenteval("run", "--out", "before", "--iterations", "2", cwd=folder)
    agenteval("run", "--baseline", "before", cwd=folder, env=environment(ANSWER="other"))
    text = (folder / "agenteval-report" / "results.json").read_text(encoding="utf-8")
    assert "NaN" not in text
    results: dict[str, Any] = json.loads(text)
    return results


FILES = {name: f"{'agenteval' if name == 'config' else name}.schema.json" for name in schema_names()}


def test_every_schema_is_published() -> None:
    assert {file.name for file in SCHEMAS.iterdir()} == set(FILES.values())


@pytest.mark.parametrize(("name", "file"), FILES.items())
def test_the_committed_schema_is_that_of_the_program(name: str, file: str, command: Command) -> None:
    done = command("schema", name)
    assert (done.status, done.err) == (0, "")
    assert done.out == (SCHEMAS / file).read_text(encoding="utf-8"), "run `make schemas`"


@pytest.mark.parametrize("file", FILES.values())
def test_the_schema_is_one(file: str) -> None:
    schema = committed(file)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


def test_a_run_writes_what_the_schema_says(produced: dict[str, Any]) -> None:
    Draft202012Validator(committed("results.schema.json")).validate(produced)


def test_the_schema_is_no_empty_promise(produced: dict[str, Any]) -> None:
    validator = Draft202012Validator(committed("results.schema.json"))
    for path, value in ((("summary", "passed"), "many"), (("run", "id"), None), (("schema_version",), 4)):
        broken = json.loads(json.dumps(produced))
        place = broken
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        with pytest.raises(ValidationError):
            validator.validate(broken)


def found_at(value: Any, path: str) -> list[dict[str, Any]]:
    """Every object at a path of the contract."""
    places = [value]
    for step in path.split(".") if path else []:
        name = step.removesuffix("[]").removesuffix("{}")
        places = [place[name] for place in places]
        if step.endswith("[]"):
            places = [item for place in places for item in place]
        elif step.endswith("{}"):
            places = [item for place in places for item in place.values()]
    return [place for place in places if place is not None]


@pytest.mark.parametrize("path", CONTRACT)
def test_results_have_the_keys_of_the_contract(produced: dict[str, Any], path: str) -> None:
    objects = found_at(produced, path)
    assert objects
    for item in objects:
        assert " ".join(item) == CONTRACT[path]


DATA = ROOT / "tests" / "data"
STARTERS = ROOT / "src" / "agenteval" / "cli" / "starters"
FORMATS_FOLDER = ROOT / "src" / "agenteval" / "suite" / "formats"
SUITES = [
    ("holodeck", DATA / "holodeck" / "complete.yaml"),
    ("holodeck", ROOT / "examples" / "quickstart" / "agent.yaml"),
    ("holodeck", FORMATS_FOLDER / "holodeck" / "starter" / "agent.yaml"),
    ("fluxloop", ROOT / "examples" / "fluxloop" / "configs" / "evaluation.yaml"),
    ("fluxloop", FORMATS_FOLDER / "fluxloop" / "starter" / "configs" / "evaluation.yaml"),
    ("agentci", FORMATS_FOLDER / "agentci" / "starter" / ".agentci" / "evals" / "answers.toml"),
    *(("fluxloop", file) for file in sorted((DATA / "fluxloop").glob("*.yaml"))),
    *(("agentci", file) for file in sorted((DATA / "agentci" / "guides").glob("*.toml"))),
    *(("agentci", file) for file in sorted((ROOT / "examples" / "agentci").rglob("*.toml"))),
]


@pytest.mark.parametrize(("name", "file"), SUITES, ids=lambda item: item.name if isinstance(item, Path) else item)
def test_suites_that_load_follow_the_schema_of_their_format(name: str, file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    suite = tomllib.loads(text) if file.suffix == ".toml" else yaml.safe_load(text)

    Draft202012Validator(committed(FILES[name])).validate(suite)


MISTAKES: list[tuple[str, dict[str, Any]]] = [
    ("holodeck", {"test_case": []}),
    ("holodeck", {"test_cases": [{"inptu": "a"}]}),
    ("holodeck", {"test_cases": [{"input": "a", "evaluations": [{"metric": "blue"}]}]}),
    ("holodeck", {"evaluations": {"metrics": [{"type": "geval", "name": "a"}]}}),
    ("holodeck", {"agent": {"comand": ["a"]}}),
    ("agentci", {"eval": {"description": "a", "type": "acuracy", "targets": {"agents": ["*"]}}}),
    ("agentci", {"eval": {"description": "a", "type": "accuracy", "targets": {"agents": "*"}}}),
    (
        "agentci",
        {"eval": {"description": "a", "type": "accuracy", "targets": {}, "cases": [{"output": {"contain": "a"}}]}},
    ),
    ("fluxloop", {"evaluators": []}),
    ("fluxloop", {"evaluators": [{"name": "a", "type": "rule_based", "rules": [{"check": "sucess"}]}]}),
    ("fluxloop", {"evaluators": [{"name": "a", "type": "rule_based", "rules": [{"check": "latency_under"}]}]}),
    ("request", {"input": "a"}),
    ("reply", {"tool_calls": []}),
    ("recording", {"case": "a"}),
    ("trace", {"input": "a"}),
]


@pytest.mark.parametrize(("name", "document"), MISTAKES)
def test_an_editor_sees_mistakes(name: str, document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Draft202012Validator(committed(FILES[name])).validate(document)


def test_variables_and_spellings_of_the_formats_are_no_mistakes() -> None:
    holodeck = Draft202012Validator(committed(FILES["holodeck"]))
    metric = {"type": "standard", "metric": "${METRIC}", "threshold": "${THRESHOLD}"}
    case = {"input": 42, "ground_truth": 60.94, "expected_tools": ["search", {"name": "pay", "count": 2}]}
    holodeck.validate({"instructions": "Be kind.", "evaluations": {"metrics": [metric]}, "test_cases": [case]})
    rules = [{"check": "contains", "keywords": "a", "target": None}, {"check": "matches_regex", "pattern": 1}]
    evaluator = {"name": "a", "type": "rule_based", "weight": None, "rules": rules}
    fluxloop = Draft202012Validator(committed(FILES["fluxloop"]))
    fluxloop.validate({"evaluators": [evaluator], "limits": None, "success_criteria": {"quality": {"a": "yes"}}})


def test_an_agent_gets_what_the_schema_says() -> None:
    history = ({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"})
    sent = Request("c", case="x", turn=1, session="s", history=history, files=("/a",), config={"k": 1}).to_json()
    described = committed(FILES["request"])

    Draft202012Validator(described).validate(sent)
    assert set(sent) == set(described["properties"]) == set(described["required"])


CALL: dict[str, Any] = {"name": "search", "args": {}, "result": None, "error": "no", "duration_ms": 3}
REPLIES: list[tuple[bool, dict[str, Any]]] = [
    (True, {"response": "a"}),
    (True, {"response": {"answer": 1}, "tool_calls": None, "usage": None, "retrieval_context": "a", "model": "x"}),
    (True, {"response": "a", "tool_calls": [CALL], "usage": {"input_tokens": 1.0, "cost_usd": 0.1}}),
    (False, {"response": "a", "tool_calls": CALL}),
    (False, {"response": "a", "tool_calls": [{"args": {}}]}),
    (False, {"response": "a", "tool_calls": [{"name": "search", "duration_ms": "3"}]}),
    (False, {"response": "a", "usage": {"input_tokens": 1.5}}),
    (False, {"response": "a", "usage": {"output_tokens": -1}}),
    (False, {"response": "a", "usage": {"cost_usd": "1"}}),
    (False, {"response": "a", "usage": [1]}),
    (False, {"response": "a", "retrieval_context": {"a": 1}}),
]


@pytest.mark.parametrize(("is_fine", "reply"), REPLIES)
def test_a_reply_is_read_if_the_schema_allows_it(is_fine: bool, reply: dict[str, Any]) -> None:
    assert Draft202012Validator(committed(FILES["reply"])).is_valid(reply) == is_fine
    recorded = {"case": "a", **reply}
    assert Draft202012Validator(committed(FILES["recording"])).is_valid(recorded) == is_fine
    if is_fine:
        reply_from_json(reply)
    else:
        with pytest.raises(AgentError):
            reply_from_json(reply)


TRACES: list[tuple[bool, dict[str, Any]]] = [
    (True, {"input": "a", "output": None}),
    (True, {"input": {"q": 1}, "final_output": "b", "trace_id": 7, "iteration": 0, "persona": "p", "x": [1]}),
    (False, {"output": "a"}),
    (False, {"input": "a", "output": "b", "iteration": -1}),
    (False, {"input": "a", "output": "b", "duration_ms": "3"}),
    (False, {"input": "a", "output": "b", "success": "yes"}),
]


@pytest.mark.parametrize(("is_fine", "trace"), TRACES)
def test_a_trace_is_read_if_the_schema_allows_it(is_fine: bool, trace: dict[str, Any], tmp_path: Path) -> None:
    assert Draft202012Validator(committed(FILES["trace"])).is_valid(trace) == is_fine
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps(trace), encoding="utf-8")
    (read,) = read_traces(file)
    assert isinstance(read, Trace) == is_fine


def test_what_the_starters_name_is_published() -> None:
    folders = (STARTERS, *(item.starter for item in FORMATS if item.starter is not None))
    files = (file for folder in folders for file in folder.rglob("*") if file.suffix in {".yaml", ".toml"})
    texts = [file.read_text(encoding="utf-8") for file in files]
    named = [
        name for text in texts for name in re.findall(r"(?m)^# ?(?:yaml-language-server: \$|:)schema[= ](\S+)", text)
    ]
    base = "https://raw.githubusercontent.com/org/agenteval-action/v1/schemas/"
    assert sorted(named) == sorted(base + FILES[name] for name in ("config", "holodeck", "agentci", "fluxloop"))
