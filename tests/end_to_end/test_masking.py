"""Agents and judges that repeat their key: no report of a run contains it."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path

import yaml
from tests.support import agenteval, case, environment, write_suite

from agenteval.core.escape import visible

KEY = "sk-Qz7vJ2mXw9LtBn4cRy8K"

BASE64 = base64.b64encode(f"a{KEY}".encode()).decode()

# How an agent may spell its key, and what must not be left of it.
SPELLINGS = [
    (KEY, KEY),
    (f"\x1b[31m{KEY}\x1b[0m", KEY),
    (BASE64, BASE64[2:-2]),
    # Only the beginning or the end is shown of these.
    *((" " * room + "x" * 10 + KEY + "y" * 300 + "\n", KEY) for room in (0, 380, 4000, 70_000)),
    *(("x" * room + KEY + "y" * 390 + "\n", KEY) for room in (0, 70_000)),
]

AGENT = """
import json, os, pathlib, sys
request = json.loads(sys.stdin.readline())
os.environ["SHOP_KEY"]
how, number = request["input"].split()
text = json.loads(pathlib.Path("spellings.json").read_text())[int(number)]
if how == "answers":
    print(json.dumps({"output": text, "tool_calls": [{"name": "t", "arguments": {"a": text, text: [1]}}]}))
elif how == "fails":
    sys.exit(text)
else:
    raise ValueError(text)
"""


def spelled(folder: Path) -> None:
    (folder / "spellings.json").write_text(json.dumps([text for text, _ in SPELLINGS]), encoding="utf-8")
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")


def parts(text: str) -> set[str]:
    """Return pieces of more than half of a text."""
    size = max(6, len(text) // 2 + 1)
    return {text[at : at + size].lower() for at in range(len(text) - size + 1)}


def test_no_spelling_of_a_key_is_in_any_report(tmp_path: Path) -> None:
    spelled(tmp_path)
    config = {"agents": {"default": {"command": [sys.executable, "agent.py"]}}, "pass_env": ["SHOP_KEY"]}
    (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    asked = [f"{how} {number}" for how in ("answers", "fails", "raises") for number in range(len(SPELLINGS))]
    write_suite(tmp_path, [case(text, text, "x") for text in asked])

    ended = agenteval("run", "agent.yaml", "--out", "report", cwd=tmp_path, env=environment(SHOP_KEY=KEY))

    assert ended.status == 3, ended.text
    outlets = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "report").iterdir()}
    assert {"results.json", "junit.xml", "summary.md", "comment.md", "report.html", "journal.jsonl"} <= set(outlets)
    wanted = set().union(*(parts(left) for _, left in SPELLINGS))
    for name, text in {**outlets, "terminal": ended.out + ended.err}.items():
        plain = json.dumps(json.loads(text), ensure_ascii=False) if name == "results.json" else text
        for cleaned in (plain, re.sub(r"\s+|\\[nrtu]0{0,3}[01]?[0-9a-b]?", "", visible(plain))):
            assert not [part for part in wanted if part in cleaned.lower()], name


def test_no_credential_with_a_published_form_is_in_any_report(tmp_path: Path) -> None:
    in_variable, in_file, in_suite = (f"{start}{KEY[3:] * 5}" for start in ("ghp_", "sk-ant-api03-", "npm_"))
    (tmp_path / "token.txt").write_text(f"token: {in_file}\n", encoding="utf-8")
    code = "import os, pathlib\nprint(os.environ.get('GREETING'), pathlib.Path('token.txt').read_text())"
    (tmp_path / "agent.py").write_text(code, encoding="utf-8")
    config = {"agents": {"default": {"command": [sys.executable, "agent.py"]}}}
    (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    write_suite(tmp_path, [case(f"of {in_suite}", "what is it?", "x")])

    variables = environment(CI="true", GREETING=in_variable)
    ended = agenteval("run", "agent.yaml", "--out", "report", cwd=tmp_path, env=variables)

    assert ended.status == 1, ended.text
    outlets = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "report").iterdir()}
    (found,) = json.loads(outlets["results.json"])["suites"][0]["cases"]
    # The agent did not get the variable.
    assert found["iterations"][0]["turns"][0]["response"].split() == ["None", "token:", "***"]
    for name, text in {**outlets, "terminal": ended.out + ended.err}.items():
        assert KEY[3:] not in text, name
