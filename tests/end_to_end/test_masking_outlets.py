"""A secret of each kind in every place that users and agents fill: no outlet of any command contains it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.test_action import Runner
from tests.mistakes import shown
from tests.support import agenteval, case, environment, open_folder, python_agent, results_in, write_suite

KEY = "sk-Qz7vJ2mXw9LtBn4cRy8K"
ACCOUNT = {"type": "service_account", "private_key": "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n"}


@dataclass(frozen=True)
class Secret:
    """A secret.

    Attributes:
        variable: the environment variable that contains it.
        value: of the variable.
        shown: what an agent shows of it.
        left: texts that no outlet may contain.
    """

    variable: str
    value: str
    shown: str
    left: tuple[str, ...]


SECRETS = {
    secret.variable: secret
    for secret in (
        Secret("SHOP_KEY", KEY, KEY, (KEY,)),
        Secret("STORE_ADDRESS", "postgres://me:p!a/s@w42rd@db.example/x", "p!a/s@w42rd", ("p!a/s@w42rd",)),
        Secret("STORE_TWO", "amqp://a:one-42-pw@x,amqp://b:two-42-pw@y", "two-42-pw", ("two-42-pw",)),
        Secret("STORE_SQL", "Server=db;Password=sql-42-pw;User Id=me", "sql-42-pw", ("sql-42-pw",)),
        Secret("STORE_PQ", "host=db password='pq-42-pw' user=me", "pq-42-pw", ("pq-42-pw",)),
        Secret("SHOP_ACCOUNT_KEY", json.dumps(ACCOUNT), "hkiG9w0BAQEFAASC", ("hkiG9w0BAQEFAASC",)),
        Secret("SHOP_PIN", "48291377", "48291377", ("48291377",)),
        Secret("TEAM_CODE", "59130266", "59130266", ("59130266",)),
        Secret("SHOP_TOKEN", "grüße-42-key", "grüße-42-key", ("ße-42-key",)),
        Secret("SHOP_PASS", "k9z", "my_k9z_pass", ("k9z_",)),
    )
}

AGENT = """
def reply(request):
    text = request["input"]
    if text.startswith("fails "):
        raise OSError(f"cannot open {text}")
    number = int(text) if text.isascii() and text.isdigit() else 7
    return {
        "response": text,
        "tool_calls": [
            {"name": text, "args": {"n": number, text: [number, text]}, "result": number, "duration_ms": number},
            {"name": "t", "args": number, "result": {"deep": [{"n": number * 1.0}]}, "error": text},
        ],
        "retrieval_context": [text],
        "usage": {"input_tokens": number, "output_tokens": 3},
        "metadata": {"n": number, text: text},
    }
"""


def variables(**more: str) -> dict[str, str]:
    return {secret.variable: secret.value for secret in SECRETS.values()} | more


def written_suite(folder: Path) -> Path:
    """Write a suite with every secret in its path, name, and in the names, inputs and files of its cases."""
    home = folder / f"suite-{KEY}"
    home.mkdir(parents=True)
    cases: list[dict[str, Any]] = []
    for secret in SECRETS.values():
        shown = secret.shown
        cases.append({**case(f"{secret.variable} {shown}", shown, shown)})
        cases.append(case(f"fails {secret.variable} {shown}", f"fails {shown}", f"not {shown}"))
        cases.append({"input": f"a question with a long beginning, as long as names: {shown}", "ground_truth": "x"})
        name = shown.replace("/", "")
        attached = {"files": [{"path": f"{name}.txt", "type": "text"}]}
        cases.append(case(f"file {secret.variable} {shown}", "x") | attached)
        (home / f"{name}.txt").write_text(shown, encoding="utf-8")
    return write_suite(home, cases, name=f"suite {KEY}", agent=python_agent(home, AGENT))


def found_in(text: str) -> set[str]:
    """Return the secrets in a text; also in JSON."""
    texts = {text, text.replace("\\/", "/"), _unescaped(text)}
    return {
        secret.variable for secret in SECRETS.values() for left in secret.left if any(left in item for item in texts)
    }


def _unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)


def outlets(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_text(encoding="utf-8")
            yield f"name of {path.name}", str(path.relative_to(folder))


def test_no_outlet_of_a_run_has_a_secret(tmp_path: Path) -> None:
    suite = written_suite(tmp_path)
    (tmp_path / "agenteval.yaml").write_text("secrets: [TEAM_*]\n", encoding="utf-8")
    env = environment(**variables())
    run = agenteval("run", suite, "--out", "report", cwd=tmp_path, env=env)
    again = agenteval("run", suite, "--out", "again", "--baseline", "report", cwd=tmp_path, env=env)
    seen = dict(outlets(tmp_path / "report")) | {f"again/{name}": text for name, text in outlets(tmp_path / "again")}
    assert run.status == 3, run.text
    assert {"results.json", "junit.xml", "summary.md", "comment.md", "report.html", "journal.jsonl"} <= seen.keys()
    seen |= {"terminal": run.text, "terminal of the second run": again.text}
    place = ("--repository", "o/r", "--commit", "a" * 40)
    for name, arguments in {
        "validate": ("validate", suite),
        "report": ("report", "report", "--out", "reported"),
        "compare": ("compare", "again", "report"),
        "dry run": ("publish", "report", "--dry-run", "--check-name", "x", *place),
        "unknown": ("run", f"{KEY}.yaml"),
        "selection": ("run", suite, "-k", f"nothing {KEY}"),
    }.items():
        seen[name] = agenteval(*arguments, cwd=tmp_path, env=env).text

    assert {name: found for name, text in seen.items() if (found := found_in(text))} == {}
    results = json.loads(seen["results.json"])
    (suite_result,) = results["suites"]
    asked = {item["name"]: item["iterations"][0]["turns"][0] for item in suite_result["cases"]}
    turn = asked["SHOP_PIN ***"]
    assert [call["args"] for call in turn["tool_calls"]] == [{"n": "***", "***": ["***", "***"]}, "***"]
    assert [call["result"] for call in turn["tool_calls"]] == ["***", {"deep": [{"n": "***.0"}]}]
    assert (turn["tool_calls"][0]["duration_ms"], turn["usage"]["input_tokens"]) == (None, None)
    ids = [item["id"] for item in suite_result["cases"]]
    assert len(set(ids)) == len(ids) == 4 * len(SECRETS)
    assert suite_result["path"] == "suite-***/agent.yaml"
    assert "suite-***/agent.yaml::SHOP_PIN ***" in ids
    # Masked ids are the same in both runs.
    compared = json.loads(seen["again/results.json"])["comparison"]
    assert {item["change"] for item in compared["cases"]} == {"same"}


def test_no_outlet_of_the_action_has_a_secret(nothing_there: str) -> None:
    with open_folder() as folder:
        check_action(Runner(folder, nothing_there))


def check_action(runner: Runner) -> None:
    written_suite(runner.workspace)
    (runner.workspace / "agenteval.yaml").write_text("secrets: [TEAM_*]\n", encoding="utf-8")
    suite = f"suite-{KEY}/agent.yaml"
    step = runner.step(variables=variables(), suite=suite)
    broken = runner.step(variables=variables(), suite=f"{KEY}/{suite}")
    assert found_in(step.written(runner.workspace)) == set()
    assert found_in(broken.written(runner.workspace)) == set()
    assert step.outputs["total"] == str(4 * len(SECRETS))
    assert "file=suite-***/agent.yaml" in step.ended.text
    assert broken.ended.status == 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("event", "inputs"),
    [
        ("push", {"baseline-artifact": f"report-{KEY}"}),
        ("pull_request", {"baseline": f"gone-{KEY}.json"}),
        ("pull_request", {"baseline": "none"}),
    ],
)
def test_no_outlet_of_the_action_has_a_secret_of_the_event(
    nothing_there: str, event: str, inputs: dict[str, str]
) -> None:
    branch = {"ref": f"fix-{KEY}", "sha": "d" * 40, "label": f"org:fix-{KEY}", "repo": {"full_name": "org/bot"}}
    names = {"login": f"user-{KEY}", "name": KEY, "title": KEY, "body": KEY, "message": KEY, "label": KEY}
    payload = {
        "ref": f"refs/heads/fix-{KEY}",
        "base_ref": f"refs/heads/fix-{KEY}",
        "before": "e" * 40,
        "after": "c" * 40,
        "sender": names,
        "pusher": names,
        "head_commit": {"id": "c" * 40, **names},
        "commits": [{"id": "c" * 40, **names}],
        "pull_request": {"number": 7, "head": branch, "base": branch, "user": names, **names},
        "repository": {"full_name": "org/bot", "default_branch": f"main-{KEY}"},
    }
    variables = {
        "SHOP_KEY": KEY,
        "GITHUB_REF": f"refs/heads/fix-{KEY}",
        "GITHUB_REF_NAME": f"fix-{KEY}",
        "GITHUB_HEAD_REF": f"fix-{KEY}",
        "GITHUB_BASE_REF": f"main-{KEY}",
        "GITHUB_ACTOR": f"user-{KEY}",
        "GITHUB_WORKFLOW": f"gate {KEY}",
        "GITHUB_WORKFLOW_REF": f"org/bot/.github/workflows/gate-{KEY}.yml@refs/heads/fix-{KEY}",
        "GITHUB_JOB": KEY,
    }
    with open_folder() as folder:
        runner = Runner(folder, nothing_there)
        write_suite(runner.workspace, [case("a")], agent={"command": ["cat"]})
        step = runner.step(event, payload, variables, {"comment": "never", **inputs})
        written = step.written(runner.workspace)
        assert found_in(written) == set()
        assert "***" in written


def test_no_baseline_shows_a_secret_in_its_ref(tmp_path: Path) -> None:
    write_suite(tmp_path, [case("a", "x", "right")], agent={"command": ["/bin/echo", "right"]})
    agenteval("run", "agent.yaml", "--out", "before", cwd=tmp_path)
    file = tmp_path / "before" / "results.json"
    results = json.loads(file.read_text(encoding="utf-8"))
    results["run"] |= {"ref": f"refs/heads/fix-{KEY}", "commit": "d" * 40}
    file.write_text(json.dumps(results), encoding="utf-8")
    arguments = ("run", "agent.yaml", "--out", "now", "--baseline", "before")
    ended = agenteval(*arguments, cwd=tmp_path, env=environment(SHOP_KEY=KEY))
    seen = dict(outlets(tmp_path / "now")) | {"terminal": ended.text}
    assert {name for name, text in seen.items() if found_in(text)} == set()
    assert json.loads(seen["results.json"])["comparison"]["baseline"]["ref"] == "refs/heads/fix-***"


def test_no_outlet_of_recorded_traces_has_a_secret(tmp_path: Path) -> None:
    suite = {
        "evaluators": [{"name": "met", "type": "rule_based", "enabled": True, "rules": [{"check": "success"}]}],
        "aggregate": {"by_persona": True},
        "additional_analysis": {"persona": {"enabled": True}, "failures": {"enabled": True}},
        "report": {"output": "both"},
    }
    (tmp_path / "evaluation.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
    (tmp_path / "agenteval.yaml").write_text("secrets: [TEAM_*]\n", encoding="utf-8")
    lines = [
        {
            "trace_id": text,
            "persona": text,
            "input": f"{text} {number}",
            "output": text,
            "success": number > 3,
            "x": text,
        }
        for number, secret in enumerate(SECRETS.values())
        for text in (secret.shown,)
    ]
    (tmp_path / "traces.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    ended = agenteval(
        "run", "evaluation.yaml", "--traces", "traces.jsonl", cwd=tmp_path, env=environment(**variables())
    )
    seen = dict(outlets(tmp_path / "agenteval-report")) | {"terminal": ended.text}
    assert "results.json" in seen, ended.text
    assert {name: found for name, text in seen.items() if (found := found_in(text))} == {}


def test_ids_that_differ_only_in_secrets_are_a_problem(tmp_path: Path) -> None:
    write_suite(tmp_path, [case(KEY), case("48291377")], agent={"command": ["cat"]})
    ended = agenteval("run", "agent.yaml", cwd=tmp_path, env=environment(**variables()))
    assert ended.status == 2
    (mistake,) = shown(ended.err)
    assert mistake.says("several cases have the id 'agent.yaml::***'; give each case of a run its own id")
    assert found_in(ended.text) == set()


@pytest.mark.parametrize("name", ["author: Bob", "key: C-sharp-minor", "the token_budget, in max_tokens=4096"])
def test_ordinary_names_stay(name: str, tmp_path: Path) -> None:
    write_suite(tmp_path, [case(name)], agent={"command": ["cat"]})
    agenteval("run", "agent.yaml", cwd=tmp_path, env=environment(GREETING=name, **variables()))
    assert [item.name for _, item in results_in(tmp_path).cases()] == [name]
