"""A key that an agent repeats in every form: nothing that GitHub gets and nobody who reads its pages sees one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.peers.action_step import Runner, Step, as_process, job_environment, of_pull_request
from tests.peers.github_markdown import rendered
from tests.peers.github_service import GithubService
from tests.unit.core.text.test_redact import FORMS, SECRET

from agenteval.core.escape import visible

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("cmark-gfm") is None, reason="needs cmark-gfm"),
]

# Every form has a case of its own.
SPELLINGS = {name: form(SECRET) for name, form in FORMS.items()}
AGENT = """
import json, os, pathlib, sys
request = json.loads(sys.stdin.readline())
name = os.environ.get("SHOP_KEY") or os.environ["SHOP_NAME"]
text = json.loads(pathlib.Path("spellings.json").read_text())[request["input"]]
print(text, file=sys.stderr)
call = {"name": text, "arguments": {"a": text, text: [1]}, "error": text}
print(json.dumps({"response": text, "tool_calls": [call]}))
"""


def texts(value: Any) -> Iterator[str]:
    """The texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def read(markdown: str) -> str:
    """What a page shows, its attributes included."""
    page = rendered(markdown, hardbreaks=True)
    return "\n".join([page.text_content(), *(value for element in page.iter() for value in element.attrib.values())])


WAYS: Mapping[str, Callable[[str], str]] = {"source": str, "rendered": read}
PLACES = [f"{page}, {way}" for page in ("comment", "check run", "summary") for way in WAYS]
PLACES += ["annotations", "log", "requests", "results.json", "junit.xml", "report.html", "journal.jsonl"]


def places(github: GithubService, step: Step, workspace: Path) -> Mapping[str, str]:
    """Everything that a step wrote for others, by place."""
    bodies = [(request.route, request.body.decode()) for request in github.proxy.requests if request.body]
    comments = [text for route, body in bodies if "/comments" in route for text in texts(json.loads(body))]
    checks = [json.loads(body)["output"] for route, body in bodies if "/check-runs" in route and '"output"' in body]
    pages = {
        "comment": comments,
        "check run": [output.get(name, "") for output in checks for name in ("summary", "text")],
        "summary": [step.summary],
    }
    found = {
        f"{name}, {way}": "\n".join(how(text) for text in many)
        for name, many in pages.items()
        for way, how in WAYS.items()
    }
    found["annotations"] = "\n".join(texts([output.get("annotations", []) for output in checks]))
    found["outputs"] = json.dumps(dict(step.outputs))
    found["log"] = step.log
    found["requests"] = "\n".join(body for _, body in bodies)
    found |= {path.name: path.read_text(encoding="utf-8") for path in (workspace / "agenteval-report").iterdir()}
    return found


def remaining(text: str) -> set[str]:
    """The forms of the key of which a text has more than half, whatever stands between the characters."""
    cleaned = {"".join(item.split()).lower() for item in (text, visible(text))}
    return {
        form
        for form in SPELLINGS.values()
        if any(form[at : at + len(form) // 2 + 1] in item for at in range((len(form) + 1) // 2) for item in cleaned)
    }


def evaluated(runner: Runner, github: GithubService, workspace: Path, folder: Path, name: str) -> Mapping[str, str]:
    """Run the action with the key in a variable of a name; return what it wrote."""
    agents = {"default": {"command": ["/usr/bin/env", "python3", "agent.py"]}}
    config = {"agents": agents, "pass_env": ["SHOP_KEY", "SHOP_NAME"]}
    suite = {
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": [{"name": f"case {n}", "input": n, "ground_truth": "x"} for n in SPELLINGS],
    }
    (workspace / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (workspace / "agent.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
    (workspace / "agent.py").write_text(AGENT, encoding="utf-8")
    (workspace / "spellings.json").write_text(json.dumps(SPELLINGS), encoding="utf-8")
    pull = github.emulator.pull_request()
    github.proxy.forget()
    inputs = {"suite": "agent.yaml", "check_name": "evaluation", "baseline": "none"}
    given = job_environment(github.url, "pull_request", **inputs) | {name: SECRET}
    step = runner(workspace, given, of_pull_request(pull, folder))
    assert step.outputs["verdict"] == "failed", step.log
    return places(github, step, workspace)


def test_no_form_of_a_key_is_on_github(
    github: GithubService, runner: Runner, workspace: Path, tmp_path: Path
) -> None:
    found = evaluated(runner, github, workspace, tmp_path, "SHOP_KEY")

    assert {place: remaining(text) for place, text in found.items() if remaining(text)} == {}
    # In the source of a page, the sign of a masked key can be escaped.
    assert [place for place in PLACES if "***" not in found[place] and not place.endswith("source")] == []


def test_the_check_itself_finds_them(github: GithubService, workspace: Path, tmp_path: Path) -> None:
    found = evaluated(as_process, github, workspace, tmp_path, "SHOP_NAME")

    # Comments show an example of each cause, and the source of a page has escapes between the characters of a form.
    shown = {place: remaining(found[place]) for place in PLACES if not place.endswith("source")}
    assert [place for place, forms in shown.items() if not forms] == []
    # Texts are compared in small letters, so that base64 and codes with capital letters are not seen.
    visible_forms = set().union(*map(remaining, SPELLINGS.values()))
    assert {"as it is", "HTML", "JSON", "Python"} <= {
        name for name, form in SPELLINGS.items() if form in visible_forms
    }
    assert set().union(*shown.values()) == visible_forms
