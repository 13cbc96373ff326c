"""Framework descriptions, and the agents and tools that the scan finds without running code."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from agenteval.agents.frameworks.outline import MAX_FILE
from agenteval.agents.frameworks.scan import (
    AmbiguousNameError,
    Discovered,
    FoundAgent,
    built_in_frameworks,
    discover_targets,
    load_frameworks,
    lookup,
)
from agenteval.core.errors import ConfigError

DESCRIPTION = """\
[framework]
name = "acme"
dependencies = ["acme-ai"]

[[agents]]
path = "acme.Bot"
args.model = "llm"
execution.method = "talk"
execution.args.prompt = "text"
"""


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return root


def describe(root: Path, text: str, name: str = "acme.toml") -> Path:
    return write(root, {f".agentci/frameworks/{name}": text})


def scan(root: Path, code: str, *dependencies: str, file: str = "app.py") -> Discovered:
    """The agents and tools in one file of a project with these dependencies."""
    return discover_targets(write(root, {file: code, "requirements.txt": "\n".join(dependencies)}))


def problems(root: Path, text: str) -> list[str]:
    describe(root, text)
    with pytest.raises(ConfigError) as caught:
        load_frameworks(root)
    # The folder of the test is not part of the comparison.
    return [str(problem).rpartition("acme.toml:")[2] for problem in caught.value.problems]


# Descriptions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[framework]\nname = 'x'\ndependencies = ['x']\n", "needs at least one [[agents]] or [[tools]]"),
        (
            DESCRIPTION.replace('args.model = "llm"', "args = {}"),
            "7: agents[0].args: needs at least one of model, prompt, tools",
        ),
        (
            DESCRIPTION.replace('"acme.Bot"', '"Bot"\ntype = "class_method"'),
            "5: agents[0]: type 'class_method' needs a path of the form Class.method, not 'Bot'",
        ),
        (
            DESCRIPTION + "[[tools]]\ntype = 'decorator'\nexecution.method = 'run'\n",
            "10: tools[0]: type 'decorator' needs a path",
        ),
        (
            DESCRIPTION.replace("execution.args.prompt", "execution.args.promt"),
            "9: agents[0].execution.args.promt: unknown key; did you mean 'prompt'?; allowed: prompt",
        ),
    ],
)
def test_messages_about_invalid_descriptions(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in [problem.strip() for problem in problems(tmp_path, text)]


@pytest.mark.parametrize(
    ("file", "name"),
    [("langchain.toml", "my-own"), ("mine.toml", "langchain"), ("llama_index.toml", "x"), ("x.toml", "Llama-Index")],
)
def test_users_description_replaces_the_built_in_one(tmp_path: Path, file: str, name: str) -> None:
    describe(tmp_path, DESCRIPTION.replace('"acme"', f'"{name}"'), file)
    names = [framework.name for framework in load_frameworks(tmp_path)]
    assert names[0] == name
    assert {"langchain", "llamaindex"} - {*names[1:]} == {"langchain" if "lang" in file + name else "llamaindex"}


def test_built_in_descriptions_name_each_path_once() -> None:
    for stem, framework in built_in_frameworks().items():
        paths = [*(agent.path for agent in framework.agents), *(tool.path for tool in framework.tools)]
        assert len(set(paths)) == len(paths), stem


def test_the_warning_says_that_no_framework_is_used(tmp_path: Path) -> None:
    found = scan(tmp_path, "bot = Agent()\n")
    assert (found.agents, found.tools) == ({}, {})
    assert found.warnings[0].startswith("no module imports langchain, ")


def test_a_package_of_the_repository_is_no_framework(tmp_path: Path) -> None:
    write(tmp_path, {"agents/__init__.py": "class Agent: ..."})
    assert scan(tmp_path, "from agents import Agent\nbot = Agent()\n").agents == {}


# Agents


@pytest.mark.parametrize(
    "code",
    [
        "import acme as a\nbot = a.Bot()",
        "from acme import Bot as B\nbot: B = B()",
        "from acme import Bot\nbot = Bot[str, int]()",
        "from acme import Bot\nfirst = bot = Bot()",
        "from acme.bots.base import Bot\nbot = Bot()",
        "import acme.bots\nbot = acme.Bot()",
        "try:\n    from acme import Bot\nexcept ImportError:\n    class Bot: ...\nbot = Bot()",
        "from acme import Bot\nif True:\n    with open('x'):\n        bot = Bot()",
    ],
)
def test_finds_a_variable_made_by_the_path(tmp_path: Path, code: str) -> None:
    describe(tmp_path, DESCRIPTION)
    found = lookup(scan(tmp_path, code).agents, "bot")
    assert found is not None
    line = max(number for number, text in enumerate(code.splitlines(), 1) if "bot" in text.replace("bots", ""))
    assert found == FoundAgent("bot", "app:bot", "app.py", line, "talk", "text")


@pytest.mark.parametrize(
    "code",
    [
        "from acme import Bot\ndef make():\n    bot = Bot()\n    return bot",
        "from acme import Bot\nclass Holder:\n    bot = Bot()",
        "from acme import Bot\nif __name__ == '__main__':\n    bot = Bot()",
        "from acme import Bot\nbot = Bot",
        "from acme import Robot as Bot\nbot = Bot()",
        "from .acme import Bot\nbot = Bot()",
        "from acme_tools import Bot\nbot = Bot()",
    ],
)
def test_takes_nothing_else_for_an_agent(tmp_path: Path, code: str) -> None:
    describe(tmp_path, DESCRIPTION)
    found = scan(tmp_path, code)
    assert found.agents == {}
    assert all(warning.startswith("no module imports ") for warning in found.warnings)


def test_finds_class_methods_and_functions(tmp_path: Path) -> None:
    describe(
        tmp_path,
        """\
        [framework]
        name = "acme"
        dependencies = ["acme"]
        [[agents]]
        path = "acme.bots.Bot.from_tools"
        type = "class_method"
        args.tools = "tools"
        execution.method = "chat"
        [[agents]]
        path = "acme.make_bot"
        args.tools = "tools"
        execution.method = "invoke"
        execution.args.prompt = "input"
        """,
    )
    code = "from acme.bots import Bot\nimport acme\none = Bot.from_tools([])\ntwo = acme.make_bot()\nno = Bot()\n"
    found = scan(tmp_path, code)
    assert {name: (item.method, item.prompt_argument) for name, item in found.agents.items()} == {
        "one": ("chat", None),
        "two": ("invoke", "input"),
    }


def test_the_same_path_wins_over_one_that_may_be_a_re_export(tmp_path: Path) -> None:
    inner = DESCRIPTION[DESCRIPTION.index("[[agents]]") :].replace("acme.Bot", "acme.v2.Bot").replace("talk", "ask")
    describe(tmp_path, f"{DESCRIPTION}\n{inner}")
    found = scan(tmp_path, "import acme, acme.v2\nold = acme.Bot()\nnew = acme.v2.Bot()\n")
    assert {name: item.method for name, item in found.agents.items()} == {"old": "talk", "new": "ask"}


BUILT_IN_AGENTS = [
    (
        "langgraph",
        "from langgraph.prebuilt import create_react_agent as make\nit = make(model, [])",
        "ainvoke",
        "messages",
    ),
    ("langchain", "from langchain.agents import create_react_agent as c\nit = c(a, [], p)", "ainvoke", "input"),
    ("langchain", "from langchain.agents import AgentExecutor\nit = AgentExecutor(agent=a)", "ainvoke", "input"),
    ("llama-index", "from llama_index.core.agent.workflow import FunctionAgent as F\nit = F()", "run", "user_msg"),
    ("llama-index", "from llama_index.core.agent import ReActAgent as R\nit = R.from_tools([])", "chat", "message"),
    ("pydantic-ai", "from pydantic_ai import Agent\nit = Agent('openai:gpt-5')", "run", "user_prompt"),
    ("openai-agents", "from agents import Agent\nit = Agent(name='x')", "run", "input"),
    ("google-adk", "from google.adk.agents.llm_agent import Agent\nit = Agent(name='x')", "run", None),
    ("agno", "from agno.agent import Agent\nit = Agent()", "run", None),
]


@pytest.mark.parametrize(("dependency", "code", "method", "prompt"), BUILT_IN_AGENTS)
def test_finds_agents_of_known_frameworks(
    tmp_path: Path, dependency: str, code: str, method: str, prompt: str | None
) -> None:
    found = scan(tmp_path, code, f"{dependency}>=1")
    assert found.agents["it"] == FoundAgent("it", "app:it", "app.py", 2, method, prompt)


# Tools


def tools(found: Discovered) -> dict[str, tuple[str, bool]]:
    return {name: (item.method, item.instantiate) for name, item in found.tools.items()}


def test_finds_class_tools_of_agno(tmp_path: Path) -> None:
    code = """\
    from agno.tools import Toolkit
    class Shop(Toolkit):
        pass
    class Big(Shop):
        pass
    shop = Shop()
    """
    found = tools(scan(tmp_path, code, "agno"))
    assert found == {"Shop": ("__call__", True), "Big": ("__call__", True), "shop": ("__call__", False)}


def test_finds_decorated_constructed_and_inherited_tools(tmp_path: Path) -> None:
    code = """\
    from langchain_core.tools import BaseTool, StructuredTool, tool
    import langchain_core.tools as lc

    @tool
    def bare(x: str) -> str: ...

    @tool("other", return_direct=True)
    def called(x: str) -> str: ...

    @lc.tool
    async def later(x: str) -> str: ...

    def plain(x: str) -> str: ...

    constructed = StructuredTool.from_function(plain)

    class _Base(BaseTool): ...
    class Search(_Base): ...
    class Generic(BaseTool[int]): ...
    search: Search = Search(limit=3)
    """
    assert tools(scan(tmp_path, code, "langchain")) == {
        "bare": ("invoke", False),
        "called": ("invoke", False),
        "later": ("invoke", False),
        "constructed": ("invoke", False),
        "Search": ("invoke", True),
        "Generic": ("invoke", True),
        "search": ("invoke", False),
    }


def test_finds_instances_of_tool_classes_of_other_files(tmp_path: Path) -> None:
    files = {
        "requirements.txt": "langchain-core",
        "bot/base.py": "from langchain_core.tools.base import BaseTool\nclass Base(BaseTool): ...\n",
        "bot/search.py": "from .base import Base as B\nclass Search(B): ...\n",
        "bot/__init__.py": "from .search import Search\nown = Search()\n",
        "main.py": "import bot.search\nsearch = bot.search.Search()\n",
        "other.py": "class Search: ...\nwrong = Search()\n",
    }
    found = discover_targets(write(tmp_path, files))
    assert {name: item.reference for name, item in found.tools.items()} == {
        "own": "bot:own",
        "Base": "bot.base:Base",
        "Search": "bot.search:Search",
        "search": "main:search",
    }


def test_plain_functions_are_tools_where_the_framework_is_imported(tmp_path: Path) -> None:
    code = """\
    from agents import Agent, function_tool

    def plain(x): ...
    async def later(x): ...
    def _private(x): ...

    @function_tool
    def decorated(x): ...

    class Holder:
        def method(self): ...

    def outer():
        def inner(): ...
    """
    found = scan(tmp_path, code, "openai-agents")
    assert tools(found) == dict.fromkeys(["plain", "later", "decorated", "outer"], ("__call__", False))
    write(tmp_path, {"app.py": "def plain(x): ...\nagents = 'not imported'\n"})
    assert discover_targets(tmp_path).tools == {}


def test_a_specific_tool_pattern_precedes_plain_functions(tmp_path: Path) -> None:
    code = "from langchain_core.tools import tool\nimport pydantic_ai\n@tool\ndef search(x): ...\ndef plain(x): ...\n"
    assert tools(scan(tmp_path, code, "pydantic-ai", "langchain")) == {
        "search": ("invoke", False),
        "plain": ("__call__", False),
    }


# Files


AGENT = "from acme import Bot\n{} = Bot()\n"


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("app.py", "app"),
        ("pkg/__init__.py", "pkg"),
        ("pkg/sub/app.py", "pkg.sub.app"),
        ("my-scripts/app.py", "my-scripts.app"),
        ("src/pkg/app.py", "pkg.app"),
    ],
)
def test_modules_are_named_as_they_are_imported(tmp_path: Path, file: str, module: str) -> None:
    describe(tmp_path, DESCRIPTION)
    found = scan(tmp_path, AGENT.format("bot"), file=file)
    assert (found.agents["bot"].reference, found.agents["bot"].place) == (f"{module}:bot", f"{file}:2")


def test_src_may_be_a_package(tmp_path: Path) -> None:
    describe(write(tmp_path, {"src/__init__.py": ""}), DESCRIPTION)
    found = scan(tmp_path, AGENT.format("bot"), file="src/pkg/app.py")
    assert found.agents["bot"].reference == "src.pkg.app:bot"


@pytest.mark.parametrize(
    "file",
    [
        ".hidden/app.py",
        "venv/app.py",
        "node_modules/x/app.py",
        "build/app.py",
        "setup.py",
        "pkg/__main__.py",
        "v1.0/app.py",
    ],
)
def test_installed_and_generated_code_is_skipped(tmp_path: Path, file: str) -> None:
    describe(tmp_path, DESCRIPTION)
    assert scan(tmp_path, AGENT.format("bot"), file=file).agents == {}


def test_leaves_out_virtual_environments_of_any_name(tmp_path: Path) -> None:
    describe(write(tmp_path, {"tools/env/pyvenv.cfg": ""}), DESCRIPTION)
    assert scan(tmp_path, AGENT.format("bot"), file="tools/env/lib/app.py").agents == {}


def test_skips_files_that_cannot_be_read_with_a_warning(tmp_path: Path) -> None:
    describe(tmp_path, DESCRIPTION)
    write(tmp_path, {"broken.py": "import acme\nprint 'x'\n", "old.py": "print 'nothing of the framework'\n"})
    (tmp_path / "nul.py").write_bytes(b"import acme\n\0")
    (tmp_path / "big.py").write_text(AGENT.format("big") + "#" * MAX_FILE)
    (tmp_path / "latin.py").write_bytes(b"# coding: latin-1\n" + AGENT.format("latin").encode() + b"x = '\xe9'\n")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    found = scan(tmp_path, AGENT.format("bot"))
    assert sorted(found.agents) == ["bot", "latin"]
    assert [warning.partition(":")[0] for warning in found.warnings] == ["big.py", "broken.py", "gone.py", "nul.py"]


def test_scanning_runs_nothing(tmp_path: Path) -> None:
    describe(tmp_path, DESCRIPTION)
    scan(tmp_path, f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n{AGENT.format('bot')}")
    assert not (tmp_path / "ran").exists()


# Names


def test_dashes_and_underscores_are_the_same(tmp_path: Path) -> None:
    describe(tmp_path, DESCRIPTION)
    found = scan(tmp_path, AGENT.format("my_bot"))
    assert lookup(found.agents, "my-bot") is found.agents["my_bot"]
    assert lookup(found.agents, "app:my_bot") is found.agents["my_bot"]
    assert lookup(found.agents, "mybot") is None


def test_a_name_in_two_modules_is_ambiguous(tmp_path: Path) -> None:
    describe(tmp_path, DESCRIPTION)
    write(tmp_path, {"one.py": AGENT.format("bot"), "pkg/two.py": AGENT.format("bot"), "x.py": AGENT.format("other")})
    found = discover_targets(tmp_path)
    assert sorted(found.agents) == ["one:bot", "other", "pkg.two:bot"]
    with pytest.raises(AmbiguousNameError) as caught:
        lookup(found.agents, "bot")
    assert "one.py:2 (one:bot), pkg/two.py:2 (pkg.two:bot)" in str(caught.value)
    chosen = lookup(found.agents, "pkg.two:bot")
    assert chosen is not None
    assert chosen.file == "pkg/two.py"
