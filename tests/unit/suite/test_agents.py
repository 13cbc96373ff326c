"""How an agent is named in a file and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.documents.yaml.read import read_yaml
from agenteval.core.errors import ConfigError
from agenteval.suite.agents import agent_from_text, is_inline_agent, read_agent
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
            ("    http: https://example.org/run", "http", "https://example.org/run"),
            ("    url: http://localhost:80", "http", "http://localhost:80"),
            ("    https://example.org/run", "http", "https://example.org/run"),
            ("    http://localhost:8000/a?b=c", "http", "http://localhost:8000/a?b=c"),
            ("    python: package.module:make_agent", "python", "package.module:make_agent"),
            ("    python:module:Agent.reply", "python", "module:Agent.reply"),
            ("    type: python\n    python: m:f", "python", "m:f"),
        ],
    )
    def test_targets(self, tmp_path: Path, text: str, kind: str, target: str | tuple[str, ...]) -> None:
        spec = agent(tmp_path, text)
        assert (spec.kind, spec.target) == (kind, target)
        assert (spec.limit_s, spec.directory) == (60.0, str(tmp_path))
        assert spec.where == "agents.yaml:2"

    @pytest.mark.parametrize(
        ("more", "concurrency", "retries"),
        [("", None, 2), ("    concurrency: 3\n    retries: 0", 3, 0), ("    retries: 5", None, 5)],
    )
    def test_how_much_at_once_and_how_often_again(
        self, tmp_path: Path, more: str, concurrency: int | None, retries: int
    ) -> None:
        spec = agent(tmp_path, f"    http: https://example.org/run\n{more}")
        assert (spec.concurrency, spec.retry_limit) == (concurrency, retries)

    @pytest.mark.parametrize("line", ["concurrency: 0", "retries: -1", "retries: 11", "retries: many"])
    def test_numbers_that_cannot_be(self, tmp_path: Path, line: str) -> None:
        _, problems = read(tmp_path, f"    http: https://example.org/run\n    {line}")
        assert len(problems) == 1
        assert line.partition(":")[0] in problems[0]

    @pytest.mark.parametrize("text", ["    replay: data/answers.jsonl", "    replay:data/answers.jsonl"])
    def test_a_recording_lies_beside_the_file(self, tmp_path: Path, text: str) -> None:
        assert agent(tmp_path, text).target == str(tmp_path / "data" / "answers.jsonl")

    def test_an_absolute_path_stays(self, tmp_path: Path) -> None:
        assert agent(tmp_path, "    replay: /data/answers.jsonl").target == "/data/answers.jsonl"

    @pytest.mark.parametrize(
        ("written", "program"),
        [
            ("python3.12", "python3.12"),
            (".venv/bin/python", "{folder}/.venv/bin/python"),
            ("/usr/bin/py", "/usr/bin/py"),
        ],
    )
    def test_interpreter(self, tmp_path: Path, written: str, program: str) -> None:
        spec = agent(tmp_path, f"    {{python: 'm:f', interpreter: {written}}}")
        assert spec.options["interpreter"] == program.format(folder=tmp_path)

    def test_options(self, tmp_path: Path) -> None:
        spec = agent(
            tmp_path,
            "    http: https://example.org\n    timeout: 2.5\n    headers: {X-Team: a}\n"
            "    response_path: data.answer\n    config: {depth: 3, nested: [1.5]}\n    env: {MODE: fast}",
        )
        assert spec.timeout_s == 2.5
        assert spec.options["headers"] == {"X-Team": "a"}
        assert spec.options["response_path"] == "data.answer"
        assert spec.config == {"depth": 3, "nested": [1.5]}
        assert spec.env == {"MODE": "fast"}

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
            (
                "    comand: [x]",
                "agents.yaml:3: agents.mine.comand: unknown key; did you mean 'command'?;",
            ),
            (
                "    command: python agent.py",
                "agents.yaml:3: agents.mine.command: must be a list of arguments, for instance [python, agent.py]",
            ),
            ("    command: []", "agents.yaml:3: agents.mine.command: must name a program"),
            ("    []", "agents.yaml:2: agents.mine.command: must name a program"),
            ("    'command:'", "agents.yaml:2: agents.mine.command: must name a program"),
            ("    command: [a, [b]]", "agents.yaml:3: agents.mine.command[1]: must be text, not a list"),
            (
                '    "command:say \'hello"',
                'agents.yaml:2: agents.mine: "command:say \'hello" cannot be split into arguments: No closing',
            ),
            ("    python: module", "agents.yaml:3: agents.mine.python: 'module' is not of the form module:callable"),
            ("    http: example.org", "agents.yaml:3: agents.mine.http: 'example.org' is not an http:// or https://"),
            (
                "    {http: 'http://a', python: 'm:f'}",
                "agents.yaml:2: agents.mine: exactly one of command, http, python, replay, kind is needed, 2 given",
            ),
            ("    {http: 'http://a', url: 'http://b'}", "agents.yaml:2: agents.mine: give `http` or `url`, not both"),
            (
                "    timeout: 5",
                "agents.yaml:2: agents.mine: exactly one of command, http, python, replay, kind is needed, none",
            ),
            (
                "    {type: http, python: 'm:f'}",
                "agents.yaml:2: agents.mine: type is 'http', but the keys describe an agent of type 'python'",
            ),
            (
                "    {command: [x], headers: {a: b}}",
                "agents.yaml:2: agents.mine: `headers` is for agents of type http, not command",
            ),
            (
                "    {http: 'http://x', interpreter: py}",
                "agents.yaml:2: agents.mine: `interpreter` is for agents of type python or plugin, not http",
            ),
            (
                "    {python: 'm:f', response_path: a}",
                "agents.yaml:2: agents.mine: `response_path` is for agents of type http, not python",
            ),
            (
                "    {http: 'http://x', response_path: 'a['}",
                "agents.yaml:3: agents.mine.response_path: 'a[' is not a path",
            ),
            ("    {http: 'http://x', timeout: 0}", "agents.yaml:3: agents.mine.timeout: must be greater than 0"),
            ("    {command: [x], env: {A: }}", "agents.yaml:3: agents.mine.env.A: must be text, not empty"),
            ("    {command: [x], env: {A: [b]}}", "agents.yaml:3: agents.mine.env.A: must be text, not a list"),
            ("    5", "agents.yaml:2: agents.mine: must be a mapping (key: value), not 5"),
        ],
    )
    def test_each_is_named_where_it_stands(self, tmp_path: Path, text: str, problem: str) -> None:
        spec, problems = read(tmp_path, text)
        assert spec is None
        assert len(problems) == 1
        assert problems[0].startswith(problem)


class TestCommandLine:
    def test_paths_start_where_it_was_typed(self, tmp_path: Path) -> None:
        spec = agent_from_text("replay:answers.jsonl", tmp_path)
        assert (spec.kind, spec.target, spec.where) == ("replay", str(tmp_path / "answers.jsonl"), "--agent")

    @pytest.mark.parametrize("text", ["command:'open", "http:nowhere", "python:module"])
    def test_mistakes(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(ConfigError, match=r"^--agent: "):
            agent_from_text(text, tmp_path)

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
    def test_a_name_is_no_agent(self, text: str, inline: bool) -> None:
        assert is_inline_agent(text) is inline
