"""The agent that a HoloDeck ``agent.yaml`` describes: values and mistakes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agenteval.agents.model_client import filled, ollama_address, parameters_schema
from agenteval.agents.worker.metrics import call, describe
from agenteval.agents.worker.references import MissingError
from agenteval.core.errors import ConfigError
from agenteval.core.llm.models import ModelSpec
from agenteval.run.config import Config
from agenteval.run.resolve.agents import resolve_agent
from agenteval.suite.agent_definitions import ModelAgentSpec, model_agent_of
from agenteval.suite.formats.holodeck.suite import load_holodeck
from agenteval.suite.model import AgentSpec, Suite
from agenteval.suite.model_tools import FunctionTool, McpServer, PromptTool

MODEL = "model: {provider: openai, name: gpt-4.1-mini}\n"
AGENT = MODEL + "instructions: Answer briefly.\n"
FUNCTION = "name: price, description: d, type: function, file: tools.py, function: price"
SERVER = "name: notes, description: d, type: mcp, command: npx"
PROMPT = "name: sum_up, description: d, type: prompt, parameters: {text: {type: string}}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text("def price(item): return 5\n")
    return tmp_path


def load(folder: Path, text: str) -> Suite:
    (folder / "agent.yaml").write_text(text)
    return load_holodeck(folder / "agent.yaml", "agent.yaml")


def fallback(folder: Path, text: str = "") -> AgentSpec:
    found = load(folder, AGENT + text).fallback_agent
    assert found is not None
    return found


def agent(folder: Path, text: str = "") -> ModelAgentSpec:
    return model_agent_of(fallback(folder, text))


def tool(folder: Path, fields: str) -> Any:
    found = agent(folder, f"tools:\n- {{{fields}}}\n")
    assert found.problems == ()
    (only,) = found.tools
    return only


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    return [str(problem).removeprefix("agent.yaml:") for problem in caught.value.problems]


def agent_problems(folder: Path, text: str) -> list[str]:
    return [str(problem).removeprefix("agent.yaml:") for problem in agent(folder, text).problems]


class TestModelAndInstructions:
    def test_the_model_has_holodecks_defaults(self, folder: Path) -> None:
        assert agent(folder).model == ModelSpec("openai", "gpt-4.1-mini", temperature=0.3, max_tokens=1000)

    def test_given_values_override_defaults(self, folder: Path) -> None:
        text = AGENT.replace("}", ", temperature: null, max_tokens: 5, top_p: 0.5, endpoint: 'http://x/v1'}")
        found = model_agent_of(load(folder, text).fallback_agent or fallback(folder))
        assert found.model == ModelSpec("openai", "gpt-4.1-mini", None, 5, 0.5, "http://x/v1")

    @pytest.mark.parametrize(
        ("written", "expected"),
        [("Be brief.", "Be brief."), ("{inline: Be brief.}", "Be brief."), ("{file: prompt.md}", "From a file.\n")],
    )
    def test_instructions(self, folder: Path, written: str, expected: str) -> None:
        (folder / "prompt.md").write_text("From a file.\n")
        found = load(folder, f"{MODEL}instructions: {written}\n").fallback_agent
        assert found is not None
        assert model_agent_of(found).instructions == expected

    def test_a_missing_file_keeps_only_this_agent_from_running(self, folder: Path) -> None:
        suite = load(folder, f"{MODEL}instructions: {{file: none.md}}\n")
        assert resolve_agent("name", Config(agents={"name": fallback(folder)}), "agent.yaml")
        with pytest.raises(ConfigError, match=r"agent\.yaml:2: instructions\.file: none\.md: no such file"):
            resolve_agent(None, Config(), "agent.yaml", suite.fallback_agent)

    def test_api_keys_in_the_file_are_secrets(self, folder: Path) -> None:
        text = AGENT.replace("}", ", api_key: sk-written}") + (
            "tools:\n"
            f"- {{{SERVER}, env: {{API_TOKEN: token-written, PLACE: here}}}}\n"
            "- {name: web, description: d, type: mcp, transport: http, url: 'https://x/y',"
            " headers: {Authorization: Bearer b, Accept: json}}\n"
        )
        assert load(folder, text).secrets == {"sk-written", "token-written", "Bearer b"}


class TestResponseFormat:
    SCHEMA = "{type: object, properties: {total: {type: number}}}"

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("format.yaml", SCHEMA),
            ("format.json", '{"type": "object", "properties": {"total": {"type": "number"}}}'),
        ],
    )
    def test_inline_or_in_a_file(self, folder: Path, name: str, content: str) -> None:
        (folder / name).write_text(content)
        expected = {"type": "object", "properties": {"total": {"type": "number"}}}
        assert agent(folder, f"response_format: {self.SCHEMA}\n").response_schema == expected
        assert agent(folder, f"response_format: {name}\n").response_schema == expected
        assert agent(folder).response_schema is None

    @pytest.mark.parametrize(
        ("written", "problem"),
        [
            ("none.json", "3: response_format: none.json: no such file"),
            ("{type: array}", "3: response_format: must be a JSON Schema of `type: object`"),
            ("{}", "3: response_format: must be a JSON Schema of `type: object`"),
            ("list.json", "3: response_format: must be a JSON Schema of `type: object`"),
            (
                "{type: object}\ntools: [{" + FUNCTION.replace("tools.py", "list.json") + "}]",
                "4: tools[0].file: list.json is not a Python file (.py)",
            ),
        ],
    )
    def test_reasons_why_it_cannot_run(self, folder: Path, written: str, problem: str) -> None:
        (folder / "list.json").write_text("[1]")
        assert agent_problems(folder, f"response_format: {written}\n") == [problem]


class TestTools:
    def test_a_function(self, folder: Path) -> None:
        assert tool(folder, FUNCTION) == FunctionTool(
            name="price",
            description="d",
            file=str(folder / "tools.py"),
            function="price",
            where="agent.yaml:4",
        )
        found = tool(folder, FUNCTION + ", is_retrieval: true, parameters: {item: {type: string}}")
        assert (found.is_retrieval, found.parameters) == (True, {"item": {"type": "string"}})

    def test_a_server_that_is_a_program(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BRAVE_KEY", "b-1")
        (folder / "server.env").write_text("PORT=1\nMODE=quiet\n")
        found = tool(
            folder,
            SERVER + ", args: [-y, '@a/b', 8080], env: {KEY: '${BRAVE_KEY}', PORT: 080}, env_file: server.env,"
            " config: {allowed_tools: [read]}, request_timeout: 5, registry_name: io.x/y, load_prompts: false",
        )
        assert found == McpServer(
            name="notes",
            transport="stdio",
            command=("npx", "-y", "@a/b", "8080"),
            env={"PORT": "080", "MODE": "quiet", "KEY": "b-1", "MCP_CONFIG": '{"allowed_tools": ["read"]}'},
            request_timeout_s=5,
            allowed_tools=frozenset({"read"}),
            where="agent.yaml:4",
        )

    def test_a_server_behind_an_address(self, folder: Path) -> None:
        fields = "name: web, description: d, type: mcp, url: 'https://x/mcp', headers: {X-Id: 1}, is_retrieval: true"
        found = tool(folder, f"{fields}, transport: http, timeout: 3, sse_read_timeout: 9")
        assert (found.transport, found.url, found.headers) == ("http", "https://x/mcp", {"X-Id": "1"})
        assert (found.connect_timeout_s, found.read_timeout_s, found.is_retrieval) == (3, 9, True)
        assert tool(folder, f"{fields}, transport: sse").transport == "sse"

    def test_a_prompt(self, folder: Path) -> None:
        (folder / "sum_up.md").write_text("Sum up: {{text}}")
        expected = PromptTool(
            name="sum_up",
            description="d",
            template="Sum up: {{text}}",
            parameters={"text": {"type": "string"}},
            model=agent(folder).model,
            where="agent.yaml:4",
        )
        assert tool(folder, PROMPT + ", template: 'Sum up: {{text}}'") == expected
        assert tool(folder, PROMPT + ", file: sum_up.md") == expected

    def test_a_prompt_tool_with_a_separate_model(self, folder: Path) -> None:
        found = tool(folder, PROMPT + ", template: t, model: {name: gpt-4.1, temperature: 0}")
        assert found.model == ModelSpec("openai", "gpt-4.1", temperature=0, max_tokens=1000)
        found = tool(folder, PROMPT + ", template: t, model: {provider: ollama, name: llama3}")
        assert found.model == ModelSpec("ollama", "llama3", temperature=0.3, max_tokens=1000)
        (problem,) = agent_problems(folder, f"tools:\n- {{{PROMPT}, template: t, model: {{nam: x}}}}\n")
        assert problem.startswith("4: tools[0].model.nam: unknown key; did you mean 'name'?")

    def test_keys_that_mean_nothing_here_are_accepted(self, folder: Path) -> None:
        tool(folder, FUNCTION + ", defer_loading: false")
        tool(folder, SERVER + ", encoding: utf-8, terminate_on_close: true, load_prompts: true")
        text = (
            "tools:\n"
            "- {name: kb, description: d, type: vectorstore, source: data, top_k: 3, database: chroma}\n"
            "- {name: law, description: d, type: hierarchical_document, source: a.md, search_mode: hybrid}\n"
        )
        suite = load(folder, AGENT + text)
        # HoloDeck's backend for OpenAI appends `_search`.
        assert suite.retrieval_tools == {"kb", "kb_search", "law", "law_search"}

    @pytest.mark.parametrize("kind", ["vectorstore", "hierarchical_document"])
    def test_holodeck_runs_an_agent_that_searches_documents(self, folder: Path, kind: str) -> None:
        tools = f"- {{{FUNCTION}, is_retrieval: true}}\n- {{name: kb, description: d, type: {kind}, source: data}}\n"
        text = f"{AGENT}tools:\n{tools}claude: {{max_turns: 3}}\ntest_cases: [{{input: hi}}]\n"
        found = load(folder, text).fallback_agent
        assert found is not None
        assert (found.kind, found.target, found.timeout_s) == ("holodeck", "agent.yaml", 300)
        assert found.where == "agent.yaml:5"
        project = found.options["agent"]
        assert project.problems == ()
        assert project.to_json() == {
            # Without the evaluation, and without the key that HoloDeck does not know.
            "agent": {
                "name": "agent",
                "model": {"provider": "openai", "name": "gpt-4.1-mini"},
                "instructions": {"inline": "Answer briefly."},
                "tools": [
                    {
                        "name": "price",
                        "description": "d",
                        "type": "function",
                        "file": "tools.py",
                        "function": "price",
                    },
                    {"name": "kb", "description": "d", "type": kind, "source": "data"},
                ],
                "claude": {"max_turns": 3},
            },
            "config": {},
            "directory": str(folder),
        }

    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ("name: a, description: d, type: mcp", "1: tools[0]: `command` is required for the transport stdio"),
            (
                "name: a, description: d, type: mcp, transport: http, url: 'http://x/mcp'",
                "1: tools[0].url: 'http://x/mcp' must begin with https:// (http:// only for localhost)",
            ),
            (
                "name: a, description: d, type: mcp, transport: http, url: 'http://localhost.x/mcp'",
                "1: tools[0].url: 'http://localhost.x/mcp' must begin with https:// (http:// only for localhost)",
            ),
            (PROMPT, "1: tools[0]: exactly one of `template` and `file` is needed"),
            (
                "name: a, description: d, type: mcp, transport: http",
                "1: tools[0]: `url` is required for the transport http",
            ),
            (FUNCTION.replace("price,", "a-b,", 1), "1: tools[0].name: 'a-b' may consist of letters, digits and"),
            (FUNCTION.replace("tools.py", "' '"), "1: tools[0].file: must not be empty"),
            ("}, text, {", "1: tools[1]: must be a mapping"),
        ],
    )
    def test_values_that_holodeck_refuses_are_refused(self, folder: Path, fields: str, problem: str) -> None:
        found = problems(folder, f"tools: [{{{fields}}}]\n")
        assert [text for text in found if text.startswith(problem)], found


CODE = """
from __future__ import annotations
import datetime
from dataclasses import dataclass
from typing import Any, List, Literal, Optional

@dataclass
class Found:
    total: int

def plain(text, number: int, share: float = 0.5, *, on: bool = False): ...
def typed(names: list[str], rows: List[dict], how: Literal["a", "b"], maybe: Optional[int], other: str | None): ...
def free(first: dict[str, int], when: datetime.date, **others: Any): ...
def unknown(value: NoSuchType): ...
def positional(value, /): ...
def shout(text): return text.upper()
async def wait(text): return [text, datetime.date(2026, 1, 2), Found(3)]
counted = 0
def count():
    global counted
    counted += 1
    return counted
constant = 5
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("functions") / "functions.py"
    path.write_text(CODE)
    return str(path)


class TestFunctions:
    def test_the_schema_follows_the_signature(self, file: str) -> None:
        assert describe(file, "plain") == {
            "type": "object",
            "properties": {
                "text": {},
                "number": {"type": "integer"},
                "share": {"type": "number"},
                "on": {"type": "boolean"},
            },
            "required": ["text", "number"],
            "additionalProperties": False,
        }
        assert describe(file, "typed")["properties"] == {
            "names": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": {"type": "object"}},
            "how": {"enum": ["a", "b"]},
            "maybe": {"type": "integer"},
            "other": {"type": "string"},
        }

    def test_types_without_a_json_schema_accept_any_value(self, file: str) -> None:
        found = describe(file, "free")
        assert found["properties"] == {"first": {"type": "object"}, "when": {}}
        assert found["additionalProperties"] is True
        assert describe(file, "unknown")["properties"] == {"value": {}}

    @pytest.mark.parametrize(
        ("name", "error", "said"),
        [
            ("positional", TypeError, "positional-only parameter 'value'"),
            ("constant", TypeError, "is not callable"),
            ("none", AttributeError, "has no attribute 'none'"),
        ],
    )
    def test_what_cannot_be_called(self, file: str, name: str, error: type[Exception], said: str) -> None:
        with pytest.raises(error, match=said):
            describe(file, name)

    def test_a_tool_file_without_python(self, tmp_path: Path) -> None:
        (tmp_path / "tools.txt").write_text("")
        with pytest.raises(MissingError, match="is not a Python file"):
            describe(str(tmp_path / "tools.txt"), "any")

    def test_calls(self, file: str) -> None:
        assert asyncio.run(call(file, "shout", {"text": "a"})) == "A"
        # Values without a JSON type become text.
        assert asyncio.run(call(file, "wait", {"text": "a"})) == ["a", "2026-01-02", "Found(total=3)"]
        assert [asyncio.run(call(file, "count", {})) for _ in range(2)] == [1, 2]


class TestParts:
    def test_parameters_are_required_unless_they_say_otherwise(self) -> None:
        found = parameters_schema(
            {
                "a": {"type": "string"},
                "b": {"default": 1},
                "c": {"required": False},
                "d": {"required": True, "default": 1},
            }
        )
        assert found == {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"default": 1}, "c": {}, "d": {"default": 1}},
            "required": ["a", "d"],
            "additionalProperties": False,
        }

    def test_templates(self) -> None:
        arguments = {"text": "{{how}}", "rows": [1, "é"]}
        assert filled("{{ text }}, {{rows}}, {{none}}, {text}", arguments) == '{{how}}, [1, "é"], , {text}'

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (None, "http://localhost:11434/v1"),
            ("http://localhost:11434", "http://localhost:11434/v1"),
            ("http://localhost:11434/v1", "http://localhost:11434/v1"),
            ("https://ollama.example/", "https://ollama.example/v1"),
            ("box", "http://box:11434/v1"),
            ("0.0.0.0:8000", "http://0.0.0.0:8000/v1"),
            ("box/api", "http://box:11434/api/v1"),
        ],
    )
    def test_where_ollama_speaks_openais_protocol(self, given: str | None, expected: str) -> None:
        assert ollama_address(given) == expected
