"""How an agent is named in a file and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from agenteval.agents.http_shapes import SHAPES
from agenteval.core.yaml import read_yaml
from agenteval.suite.agent_keys import ShapeName
from agenteval.suite.agents import agent_from_text, is_inline_agent, read_agent, read_tool
from agenteval.suite.model import AgentSpec


def read(folder: Path, text: str) -> tuple[AgentSpec | None, list[str]]:
    path = folder / "agents.yaml"
    path.write_text(f"agents:\n  mine:\n{text}\n")
    document = read_yaml(path, shown_as="agents.yaml", environment={})
    spec, problems = read_agent(document.data["agents"]["mine"], document, ("agents", "mine"))
    return spec, [str(problem) for problem in problems]


def agent(folder: Path, text: str) -> AgentSpec:
    spec, problems = read(folder, text)
    assert problems == []
    assert spec is not None
    return spec


class TestForms:
    @pytest.mark.parametrize(
        ("text", "kind", "target"),
        [
            ("    command: [python, agent.py]", "command", ("python", "agent.py")),
            ("    [python, agent.py]", "command", ("python", "agent.py")),
            ("    command:python 'my agent.py' -v", "command", ("python", "my agent.py", "-v")),
            ("    url: http://localhost:80", "http", "http://localhost:80"),
            ("    https://example.org/run", "http", "https://example.org/run"),
            ("    python: package.module:make_agent", "python", "package.module:make_agent"),
            ("    python:module:Agent.reply", "python", "module:Agent.reply"),
            ("    type: python\n    python: m:f", "python", "m:f"),
            ("    python: agents/my-agent.py:Bot.reply", "python", "agents/my-agent.py:Bot.reply"),
        ],
    )
    def test_targets(self, tmp_path: Path, text: str, kind: str, target: str | tuple[str, ...]) -> None:
        spec = agent(tmp_path, text)
        assert (spec.kind, spec.target) == (kind, target)
        assert (spec.limit_s, spec.directory) == (60.0, str(tmp_path))
        lines = (tmp_path / "agents.yaml").read_text(encoding="utf-8").splitlines()
        line = int(spec.where.partition(":")[2])
        # A short form begins below the name.
        assert str(target if isinstance(target, str) else target[0]) in "".join(lines[line - 1 : line + 1])

    @pytest.mark.parametrize("text", ["    replay: data/answers.jsonl", "    replay:data/answers.jsonl"])
    def test_a_recording_lies_beside_the_file(self, tmp_path: Path, text: str) -> None:
        assert agent(tmp_path, text).target == str(tmp_path / "data" / "answers.jsonl")

    def test_requests_and_replies_of_another_form(self, tmp_path: Path) -> None:
        spec = agent(
            tmp_path,
            "    http: https://example.org/{session}\n    method: PUT\n    shape: openai-chat\n"
            "    body: {n: 1.5, q: '{input}'}\n"
            "    response: {answer: a.b, tool_calls: {path: c, args: d}, usage: {cost_usd: e}}",
        )
        assert spec.options["method"] == "PUT"
        assert spec.options["shape"] == "openai-chat"
        assert spec.options["body"] == {"n": 1.5, "q": "{input}"}
        paths = {"path": "c", "name": "name", "args": "d"}
        assert spec.options["response"] == {"answer": "a.b", "tool_calls": paths, "usage": {"cost_usd": "e"}}

    @pytest.mark.parametrize("name", SHAPES)
    def test_every_shape_has_a_name_in_files(self, tmp_path: Path, name: str) -> None:
        assert agent(tmp_path, f"    {{http: 'http://x', shape: {name}}}").options["shape"] == name
        assert tuple(SHAPES) == get_args(ShapeName)

    @pytest.mark.parametrize(
        "key", ["method: PUT", "body: {a: 1}", "shape: ag-ui", "response_path: a", "response: {}"]
    )
    def test_tools_have_requests_and_replies_of_their_own(self, tmp_path: Path, key: str) -> None:
        file = tmp_path / "agents.yaml"
        file.write_text(f"tools:\n  mine: {{http: 'http://x', {key}}}\n", encoding="utf-8")
        document = read_yaml(file, shown_as="agents.yaml")
        _, problems = read_tool(document.data["tools"]["mine"], document, ("tools", "mine"))
        assert [str(problem).partition(";")[0] for problem in problems] == [
            f"agents.yaml:2: tools.mine.{key.partition(':')[0]}: this key is for agents"
        ]

    def test_arguments_variables_and_headers_are_what_is_written(self, tmp_path: Path) -> None:
        command = agent(tmp_path, "    command: [run, 1.10, yes, 010]\n    env: {DEBUG: yes, PORT: 0080, V: 3.10}")
        assert command.target == ("run", "1.10", "yes", "010")
        assert command.env == {"DEBUG": "yes", "PORT": "0080", "V": "3.10"}
        assert agent(tmp_path, "    [run, 2024-01-01, 0x1F]").target == ("run", "2024-01-01", "0x1F")
        assert agent(tmp_path, "    {http: 'http://x', headers: {A: 1.0}}").options["headers"] == {"A": "1.0"}

    def test_secrets_do_not_show_in_the_repr(self, tmp_path: Path) -> None:
        spec = agent(tmp_path, "    {http: 'http://x', headers: {Authorization: s3cr3t}, env: {A: s3cr3t}}")
        assert "s3cr3t" not in repr(spec)


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("    'command:'", "agents.yaml:2: agents.mine.command: must name a program"),
            (
                '    "command:say \'hello"',
                'agents.yaml:2: agents.mine: "command:say \'hello" cannot be split into arguments: No closing',
            ),
            ("    {http: 'http://a', url: 'http://b'}", "agents.yaml:2: agents.mine: give `http` or `url`, not both"),
            (
                "    {type: http, python: 'm:f'}",
                "agents.yaml:2: agents.mine: type is 'http', but the keys describe an agent of type 'python'",
            ),
            (
                "    http: http://{session}.example/",
                "agents.yaml:3: agents.mine.http: placeholders may follow the host only",
            ),
            (
                "    http: http://x\n    response:\n      tool_calls: {path: 'a['}",
                "agents.yaml:5: agents.mine.response.tool_calls.path: 'a[' is not a path like answer",
            ),
            (
                "    {http: 'http://x', response_path: a, response: {answer: b}}",
                "agents.yaml:2: agents.mine: give `response_path` or `response.answer`, not both",
            ),
        ],
    )
    def test_each_problem_has_its_line(self, tmp_path: Path, text: str, problem: str) -> None:
        spec, problems = read(tmp_path, text)
        assert spec is None
        assert len(problems) == 1
        assert problems[0].startswith(problem)


class TestCommandLine:
    def test_paths_start_where_it_was_typed(self, tmp_path: Path) -> None:
        spec = agent_from_text("replay:answers.jsonl", tmp_path)
        assert (spec.kind, spec.target, spec.where) == ("replay", str(tmp_path / "answers.jsonl"), "--agent")

    @pytest.mark.parametrize(
        ("text", "inline"),
        [
            ("replay:x", True),
            ("python:m:f", True),
            ("command:x", True),
            ("http://x", True),
            ("https://x", True),
            ("default", False),
            ("replay", False),
            ("my:agent", False),
            ("", False),
        ],
    )
    def test_a_name_is_not_an_inline_agent(self, text: str, inline: bool) -> None:
        assert is_inline_agent(text) is inline
