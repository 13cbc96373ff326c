"""What surrounds a HoloDeck ``agent.yaml``: ``config.yaml``, ``.env`` files, and variables that are not set."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agenteval.core.errors import ConfigError
from agenteval.core.files import bounded
from agenteval.core.llm.models import ModelSpec
from agenteval.core.secrets import mask, masking
from agenteval.run.config import Config
from agenteval.run.resolve.agents import resolve_agent
from agenteval.suite.agent_definitions import HolodeckProject, ModelAgentSpec
from agenteval.suite.formats.holodeck.suite import load_holodeck
from agenteval.suite.model import Suite

AGENT = "model: {provider: openai, name: gpt-4.1-mini}\ninstructions: Answer.\n"
CASES = "test_cases: [{name: a, input: hi, ground_truth: hello}]\n"
JUDGED = "evaluations: {metrics: [{type: geval, name: Tone, criteria: Is it kind?}]}\n"
SEARCH = "tools: [{name: kb, description: d, type: vectorstore, source: data}]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in a folder of the working directory; the user's directory is another."""
    for name in ("home", "work/.git", "work/shop"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work/shop"


def load(folder: Path, text: str) -> Suite:
    (folder / "agent.yaml").write_text(text)
    return load_holodeck(folder / "agent.yaml", "shop/agent.yaml")


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    return [str(problem) for problem in caught.value.problems]


def model(suite: Suite) -> ModelSpec:
    assert suite.fallback_agent is not None
    found: ModelAgentSpec = suite.fallback_agent.options["agent"]
    assert found.problems == ()
    return found.model


def judge(suite: Suite) -> ModelSpec:
    found: ModelSpec = suite.cases[0].turns[0].metrics[0].options["model"]
    return found


def user_file(folder: Path, name: str, text: str) -> None:
    directory = folder.parents[1] / "home/.holodeck"
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(text)


class TestGlobalConfig:
    def test_missing_keys_of_the_models_are_filled(self, folder: Path) -> None:
        (folder / "config.yaml").write_text(
            "providers:\n"
            "  openai: {provider: openai, name: o, temperature: 0.9, endpoint: 'http://llm/v1', api_key: sk-file}\n"
            "  fast: {provider: ollama, name: llama3.2, max_tokens: 50}\n"
        )
        text = AGENT.replace("}", ", temperature: 0.5}") + JUDGED.replace(
            "{metrics", "{model: {provider: ollama}, metrics"
        )
        suite = load(folder, text + CASES)
        assert model(suite) == ModelSpec(
            "openai", "gpt-4.1-mini", temperature=0.5, max_tokens=1000, endpoint="http://llm/v1", api_key="sk-file"
        )
        # By the entry's provider, because no entry has the name. Only HoloDeck's key `name` is missing in the suite.
        assert judge(suite) == ModelSpec("ollama", "llama3.2", temperature=0.0, max_tokens=50)
        assert "sk-file" in suite.secrets
        assert suite.warnings == ()

    def test_the_project_precedes_the_user(self, folder: Path) -> None:
        user_file(
            folder, "config.yaml", "providers: {openai: {provider: openai, name: u, top_p: 0.5, max_tokens: 7}}\n"
        )
        (folder / "config.yaml").write_text("providers: {openai: {provider: openai, name: p, max_tokens: 8}}\n")
        found = model(load(folder, AGENT + CASES))
        assert (found.name, found.top_p, found.max_tokens) == ("gpt-4.1-mini", 0.5, 8)

    def test_the_action_reads_no_file_of_the_user(self, folder: Path) -> None:
        user_file(folder, "config.yaml", "providers: {openai: {provider: openai, name: u, top_p: 0.5}}\n")
        with bounded([folder.parent], None):
            assert model(load(folder, AGENT + CASES)).top_p is None

    def test_execution_and_servers(self, folder: Path) -> None:
        (folder / "config.yaml").write_text(
            "execution: {llm_timeout: 9, parallel_test_cases: 3}\n"
            "mcp_servers: [{name: notes, description: d, type: mcp, command: npx},"
            " {name: own, description: d, type: mcp, command: npx}]\n"
        )
        tools = "tools: [{name: own, description: d, type: mcp, command: uvx}]\n"
        suite = load(folder, f"{AGENT}{tools}execution: {{llm_timeout: 4}}\n{CASES}")
        assert (suite.turn_timeout_s, suite.concurrency) == (4, 3)
        assert suite.fallback_agent is not None
        servers = suite.fallback_agent.options["agent"].tools
        assert [(tool.name, tool.command) for tool in servers] == [("own", ("uvx",)), ("notes", ("npx",))]

    def test_holodeck_gets_the_file(self, folder: Path) -> None:
        text = "vectorstores: {main: {provider: postgres, connection_string: 'postgres://u:pw@db/x'}}\n"
        (folder / "config.yaml").write_text(text)
        suite = load(folder, AGENT + SEARCH + CASES)
        assert suite.fallback_agent is not None
        project: HolodeckProject = suite.fallback_agent.options["agent"]
        assert project.config["vectorstores"]["main"]["provider"] == "postgres"
        assert "postgres://u:pw@db/x" in suite.secrets

    @pytest.mark.parametrize("text", ["", "theme: dark\n", "[1]\n", "plain\n"])
    def test_files_of_other_programs(self, folder: Path, text: str) -> None:
        (folder / "config.yaml").write_text(text)
        suite = load(folder, AGENT + CASES)
        assert (model(suite).endpoint, suite.warnings) == (None, ())

    def test_unknown_keys_are_warnings_and_mistakes_are_errors(self, folder: Path) -> None:
        (folder / "config.yaml").write_text("provider: x\nexecution: {llm_timeout: 5}\n")
        assert load(folder, AGENT + CASES).warnings == (
            "shop/config.yaml:1: provider: HoloDeck has no such key; it is not used; did you mean 'providers'?",
        )
        (folder / "config.yaml").write_text("providers:\n  openai: {provider: openia, name: m}\n")
        (problem,) = problems(folder, AGENT + CASES)
        assert problem.startswith("shop/config.yaml:2: providers.openai.provider: ")
        (folder / "config.yaml").write_text("providers: [\n")
        (problem,) = problems(folder, AGENT + CASES)
        assert problem.startswith("shop/config.yaml:")


class TestEnvFiles:
    def test_variables_of_the_files(self, folder: Path) -> None:
        user_file(folder, ".env", "A=user\nB=user\nC=user\n")
        (folder / ".env").write_text("A=project\nB=project\n")
        (folder.parent / ".env").write_text("export A='working directory' # first\n")
        cases = "test_cases: [{name: a, input: '${A}, ${B}, ${C}', ground_truth: '${NONE:-none}'}]\n"
        suite = load(folder, AGENT + cases)
        assert suite.cases[0].turns[0].input == "working directory, project, user"
        assert suite.fallback_agent is not None
        assert suite.fallback_agent.env == {"A": "working directory", "B": "project", "C": "user"}
        # agenteval's own environment stays as it is.
        assert "A" not in os.environ

    def test_they_replace_no_variable_of_the_environment(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP", "of the job")
        monkeypatch.setenv("EMPTY", "")
        (folder / ".env").write_text("SHOP=of the file\nEMPTY=of the file\n")
        suite = load(folder, AGENT + "test_cases: [{name: a, input: '${SHOP}${EMPTY}'}]\n")
        assert suite.cases[0].turns[0].input == "of the job"
        assert suite.fallback_agent is not None
        assert suite.fallback_agent.env == {}

    def test_they_configure_neither_agenteval_nor_the_runner(self, folder: Path) -> None:
        names = ("AGENTEVAL_PYTHON", "GITHUB_OUTPUT", "INPUT_TOKEN", "ACTIONS_RUNTIME_TOKEN", "RUNNER_TEMP")
        (folder / ".env").write_text("".join(f"{name}=x\n" for name in names) + "SHOP=x\n")
        suite = load(folder, AGENT + CASES)
        assert suite.fallback_agent is not None
        assert suite.fallback_agent.env == {"SHOP": "x"}
        assert suite.warnings == (
            f"shop/.env: {', '.join(sorted(names))}: a file cannot set variables of agenteval and of the runner",
        )

    def test_secrets_are_masked(self, folder: Path) -> None:
        (folder / ".env").write_text("OPENAI_API_KEY=sk-from-the-file-42\n")
        with masking():
            suite = load(folder, AGENT.replace("}", ", api_key: '${OPENAI_API_KEY}'}") + CASES)
            assert model(suite).api_key == "sk-from-the-file-42"
            assert "sk-from-the-file-42" in suite.secrets
            assert "sk-from" not in mask("the key is sk-from-the-file-42")

    def test_keys_of_models(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / ".env").write_text("OPENAI_API_KEY=sk-from-the-file-42\n")
        suite = load(folder, AGENT + JUDGED + CASES)
        judge = suite.cases[0].turns[0].metrics[0].options["model"]
        assert (model(suite).api_key, judge.api_key) == ("sk-from-the-file-42",) * 2
        # A written key precedes, and the environment's key is the provider's default.
        written = AGENT.replace("}", ", api_key: sk-written-42}")
        assert model(load(folder, written + CASES)).api_key == "sk-written-42"
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-job-42")
        assert model(load(folder, AGENT + CASES)).api_key is None

    def test_files_of_the_base_commit_have_no_variables_of_the_change(self, folder: Path, tmp_path: Path) -> None:
        base = tmp_path / "base/shop"
        base.mkdir(parents=True)
        cases = "test_cases: [{name: a, input: '${WHO:-nobody}'}]\n"
        (folder.parent / ".env").write_text("WHO=change\n")
        assert load(folder, AGENT + cases).cases[0].turns[0].input == "change"
        assert load(base, AGENT + cases).cases[0].turns[0].input == "nobody"
        (base.parent / ".env").write_text("WHO=base\n")
        assert load(base, AGENT + cases).cases[0].turns[0].input == "base"


class TestUnsetVariables:
    """A variable stops a run only if something needs it that runs."""

    @pytest.mark.parametrize(
        "section",
        [
            "observability: {endpoint: '${UNSET}'}\n",
            "deployment: {registry: {url: '${UNSET}'}}\n",
            "claude: {env: '${UNSET}'}\n",
            "embedding_provider: {provider: openai, name: e, api_key: '${UNSET}'}\n",
        ],
    )
    def test_sections_that_only_holodeck_reads(self, folder: Path, section: str) -> None:
        assert model(load(folder, AGENT + section + CASES)).name == "gpt-4.1-mini"
        suite = load(folder, AGENT + SEARCH + section + CASES)
        with pytest.raises(ConfigError, match="environment variable UNSET is not set"):
            resolve_agent(None, Config(), "agent.yaml", suite.fallback_agent)

    @pytest.mark.parametrize("key", ["context_model", "keyword_index", "database"])
    def test_models_and_stores_of_tools(self, folder: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
        tool = SEARCH.replace("vectorstore", "hierarchical_document").replace(
            "}]", f", {key}: {{api_key: '${{KEY}}'}}}}]"
        )
        suite = load(folder, AGENT + tool + CASES)
        with pytest.raises(ConfigError, match="environment variable KEY is not set"):
            resolve_agent(None, Config(), "agent.yaml", suite.fallback_agent)
        monkeypatch.setenv("KEY", "sk-0123456789")
        suite = load(folder, AGENT + tool + CASES)
        assert resolve_agent(None, Config(), "agent.yaml", suite.fallback_agent) is suite.fallback_agent
        assert suite.secrets == {"sk-0123456789"}

    @pytest.mark.parametrize(
        "text",
        [
            AGENT.replace("}", ", api_key: '${UNSET}'}"),
            AGENT.replace("Answer.", "'Answer for ${UNSET}.'"),
            AGENT + "tools: [{name: web, description: d, type: mcp, transport: http, url: '${UNSET}'}]\n",
        ],
    )
    def test_parts_of_the_agent(self, folder: Path, text: str) -> None:
        suite = load(folder, text + CASES)
        assert suite.fallback_agent is not None
        other = Config(agents={"default": suite.fallback_agent})
        assert resolve_agent(None, other, "agent.yaml", suite.fallback_agent) is suite.fallback_agent
        with pytest.raises(ConfigError, match="environment variable UNSET is not set"):
            resolve_agent(None, Config(), "agent.yaml", suite.fallback_agent)

    def test_a_model_that_judges(self, folder: Path) -> None:
        text = AGENT.replace("}", ", api_key: '${UNSET}'}") + JUDGED + CASES
        (problem,) = problems(folder, text)
        assert problem.startswith("shop/agent.yaml:1: environment variable UNSET is not set")
        # Another judge needs no key of the agent's model.
        load(folder, text.replace("{metrics", "{model: {provider: ollama, name: m}, metrics"))

    def test_providers_of_the_configuration(self, folder: Path) -> None:
        (folder / "config.yaml").write_text(
            "providers:\n  openai: {provider: openai, name: m, api_key: '${UNSET}'}\n"
            "  ollama: {provider: ollama, name: m, endpoint: '${UNUSED}'}\n"
        )
        suite = load(folder, AGENT + CASES)
        with pytest.raises(ConfigError) as caught:
            resolve_agent(None, Config(), "agent.yaml", suite.fallback_agent)
        (problem,) = caught.value.problems
        assert str(problem).startswith("shop/config.yaml:2: environment variable UNSET is not set")
        judged = JUDGED.replace("{metrics", "{model: {provider: openai, name: m}, metrics")
        (found,) = problems(folder, AGENT + judged + CASES)
        assert found.startswith("shop/config.yaml:2: environment variable UNSET is not set")


class TestOtherKeys:
    @pytest.mark.parametrize(
        ("ground_truth", "flags", "why"),
        [
            ("5%", "", "'5%' is a percentage, and accept_percent is off"),
            ("5%", ", accept_percent: true", None),
            ("'1,000'", "", "'1,000' has thousands separators, and accept_thousands_separators is off"),
            ("'1,000'", ", accept_thousands_separators: true", None),
        ],
    )
    def test_a_number_is_needed_where_numbers_are_compared(
        self, folder: Path, ground_truth: str, flags: str, why: str | None
    ) -> None:
        metric = f"evaluations: {{metrics: [{{type: standard, metric: numeric{flags}}}]}}\n"
        text = f"{AGENT}{metric}test_cases:\n- {{name: a, input: q, ground_truth: {ground_truth}}}\n"
        if why is None:
            load(folder, text)
        else:
            assert problems(folder, text) == [
                f"shop/agent.yaml:5: test_cases[0].ground_truth: numeric compares numbers, and {why}; write a number"
            ]
