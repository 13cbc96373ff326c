"""The table in docs/holodeck.md lists exactly the keys that agenteval does not use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from tests.support import ROOT

from agenteval.suite.formats.holodeck import schema, tools_schema
from agenteval.suite.formats.holodeck.project import GlobalConfigFile
from agenteval.suite.formats.holodeck.suite import load_holodeck
from agenteval.suite.model import Suite

PAGE = (ROOT / "docs/holodeck.md").read_text(encoding="utf-8")

Entry = dict[str, Any]
MODEL = {"provider": "openai", "name": "gpt-4.1-mini"}
AGENT: Entry = {"name": "shop", "model": MODEL, "instructions": {"inline": "Answer."}}
JUDGE = {"provider": "ollama", "name": "llama3.2"}
METRIC = {"type": "standard", "metric": "equality"}
SEARCH = {"name": "kb", "description": "d", "type": "vectorstore", "source": "data"}


def with_metric(entry: Entry) -> Entry:
    return with_case({"name": "a", "input": "q", "ground_truth": "1", "evaluations": [entry]})


def with_case(entry: Entry) -> Entry:
    return {**AGENT, "evaluations": {"model": JUDGE, "metrics": [METRIC]}, "test_cases": [entry]}


def with_tool(entry: Entry) -> Entry:
    return {**AGENT, "tools": [entry], "test_cases": []}


def case_with(key: str) -> Callable[[Entry], Entry]:
    return lambda entry: with_case({"name": "a", "input": "q", key: [entry]})


@dataclass(frozen=True)
class Section:
    """A model of the format, with values that show whether each key is used.

    Attributes:
        model: its fields are the keys.
        base: an entry that is valid.
        samples: by key another value, or a function that changes the entry.
        whole: puts an entry into an agent.yaml.
        more: keys that HoloDeck has and the model does not.
    """

    model: type[BaseModel]
    base: Entry
    samples: Mapping[str, Any]
    whole: Callable[[Entry], Entry]
    more: frozenset[str] = field(default=frozenset())


def only(**entry: Any) -> Callable[[Entry], Entry]:
    """Replace the entry."""
    return lambda _base: entry


def standard(metric: str, **values: Any) -> Callable[[Entry], tuple[Entry, Entry]]:
    """A metric without and with a value."""
    base = {"type": "standard", "metric": metric}
    return lambda _base: (base, {**base, **values})


CASE = {"name": "a", "input": "q", "ground_truth": "1"}
FILE = {"url": "https://x.test/a.pdf", "type": "pdf"}
EXCEL = {"url": "https://x.test/a.xlsx", "type": "excel"}
TOOL = {"name": "t", "description": "d"}
FUNCTION = {**TOOL, "type": "function", "file": "tools.py", "function": "price"}
SERVER = {**TOOL, "type": "mcp", "command": "npx"}
REMOTE = {**TOOL, "type": "mcp", "transport": "http", "url": "https://x.test/mcp"}
PROMPT = {**TOOL, "type": "prompt", "template": "Say {{word}}.", "parameters": {"word": {"type": "string"}}}
GEVAL = {"type": "geval", "name": "Tone", "criteria": "Is it kind?"}
RAG = {"type": "rag", "metric_type": "faithfulness"}
CODE = {"type": "code", "grader": "graders:grade"}
COMMON = {"threshold": 0.9, "enabled": False, "fail_on_error": True, "model": {**JUDGE, "name": "other"}}

SECTIONS = {
    "agent": Section(
        tools_schema.AgentFileWithTools,
        {**AGENT, "evaluations": {"metrics": [METRIC]}, "test_cases": [CASE]},
        {
            "name": "other",
            "description": "d",
            "author": "me",
            "model": {**MODEL, "name": "other"},
            "instructions": "Be brief.",
            "response_format": {"type": "object", "properties": {"a": {"type": "string"}}},
            "tools": [FUNCTION],
            "tool_filtering": {"enabled": True},
            "evaluations": {"metrics": [{"type": "standard", "metric": "bleu"}]},
            "test_cases": [{"name": "b", "input": "q"}],
            "test_cases_file": only(**AGENT, test_cases_file="cases.yaml"),
            "execution": {"llm_timeout": 7},
            "observability": {"enabled": True},
            "deployment": {"target": "aws"},
            "embedding_provider": {**MODEL, "name": "e"},
            "claude": {"max_turns": 3},
            "openai": {"max_turns": 3},
            "agent": {"command": ["python", "agent.py"]},
        },
        dict,
    ),
    "model": Section(
        schema.HoloDeckModel,
        MODEL,
        {
            "provider": "ollama",
            "name": "other",
            "temperature": 0.9,
            "max_tokens": 7,
            "top_p": 0.4,
            "endpoint": "http://x.test/v1",
            "api_key": "sk-0123456789",
            "api_version": "2025-01-01",
            "auth_provider": "custom",
        },
        lambda entry: {**AGENT, "model": entry, "test_cases": []},
    ),
    "instructions": Section(
        schema.Instructions,
        {"inline": "Answer."},
        {"inline": "Be brief.", "file": only(file="prompt.md")},
        lambda entry: {**AGENT, "instructions": entry, "test_cases": []},
    ),
    "execution": Section(
        schema.Execution,
        {},
        {
            "llm_timeout": 7,
            "parallel_test_cases": 3,
            "file_timeout": 7,
            "download_timeout": 7,
            "cache_enabled": False,
            "cache_dir": "x",
            "verbose": True,
            "quiet": True,
        },
        lambda entry: {**AGENT, "execution": entry, "test_cases": [{**CASE, "files": [FILE]}]},
        more=frozenset({"cache_dir", "verbose", "quiet"}),
    ),
    "evaluations": Section(
        schema.Evaluations,
        {"metrics": [GEVAL]},
        {"model": JUDGE, "metrics": [METRIC], "optimizer": {"max_trials": 3}},
        lambda entry: {**AGENT, "evaluations": entry, "test_cases": [CASE]},
    ),
    "standard": Section(
        schema.StandardMetric,
        METRIC,
        {
            **{key: COMMON[key] for key in ("threshold", "enabled", "fail_on_error")},
            "type": only(**GEVAL),
            "metric": "bleu",
            "model": standard("safety", model=COMMON["model"]),
            "scale": standard("bleu", threshold=4, scale=5),
            "retry_on_failure": 2,
            "timeout_ms": 500,
            "custom_prompt": standard("safety", custom_prompt="Is it kind?"),
            "case_insensitive": True,
            "strip_whitespace": True,
            "strip_punctuation": True,
            "absolute_tolerance": standard("numeric", absolute_tolerance=2),
            "relative_tolerance": standard("numeric", relative_tolerance=2),
            "accept_percent": standard("numeric", accept_percent=True),
            "accept_thousands_separators": standard("numeric", accept_thousands_separators=True),
            "response_path": "answer",
            "variant": standard("rouge", variant="rouge1"),
        },
        with_metric,
    ),
    "geval": Section(
        schema.GEvalMetric,
        GEVAL,
        {
            **COMMON,
            "type": only(**METRIC),
            "name": "other",
            "criteria": "Is it short?",
            "evaluation_steps": ["Read it."],
            "evaluation_params": ["input", "actual_output"],
            "strict_mode": True,
        },
        with_metric,
    ),
    "rag": Section(
        schema.RagMetric,
        RAG,
        {**COMMON, "type": only(**METRIC), "metric_type": "answer_relevancy", "include_reason": False},
        with_metric,
    ),
    "code": Section(
        schema.CodeMetric,
        CODE,
        {
            **{key: COMMON[key] for key in ("threshold", "enabled", "fail_on_error")},
            "type": only(**METRIC),
            "grader": "graders:other",
            "name": "other",
        },
        with_metric,
    ),
    "case": Section(
        schema.CaseEntry,
        CASE,
        {
            "name": "b",
            "input": "r",
            "ground_truth": "2",
            "expected_tools": ["t"],
            "files": [FILE],
            "retrieval_context": ["p"],
            "evaluations": [GEVAL],
            "turns": only(name="a", turns=[{"input": "q"}, {"input": "r"}]),
        },
        with_case,
    ),
    "turn": Section(
        schema.TurnEntry,
        {"input": "q", "ground_truth": "1"},
        {
            "input": "r",
            "ground_truth": "2",
            "expected_tools": ["t"],
            "files": [FILE],
            "retrieval_context": ["p"],
            "evaluations": [GEVAL],
            "turn_config": {"a": 1},
        },
        lambda entry: with_case({"name": "a", "turns": [entry]}),
    ),
    "expected_tool": Section(
        schema.ExpectedTool,
        {"name": "t"},
        {"name": "u", "args": {"a": 1}, "count": 2},
        case_with("expected_tools"),
    ),
    "file": Section(
        schema.FileInput,
        FILE,
        {
            "path": only(path="prompt.md", type="text"),
            "url": "https://x.test/b.pdf",
            "type": "word",
            "description": "d",
            "pages": [1],
            "sheet": lambda _base: (EXCEL, {**EXCEL, "sheet": "S"}),
            "range": lambda _base: (EXCEL, {**EXCEL, "range": "A1:B2"}),
            "cache": False,
        },
        case_with("files"),
    ),
    "function": Section(
        tools_schema.FunctionEntry,
        FUNCTION,
        {
            "name": "u",
            "description": "e",
            "type": only(**SERVER),
            "file": "other.py",
            "function": "other",
            "parameters": {"a": {"type": "string"}},
            "is_retrieval": True,
            "defer_loading": False,
        },
        with_tool,
    ),
    "mcp": Section(
        tools_schema.McpEntry,
        SERVER,
        {
            "name": "u",
            "description": "e",
            "type": only(**FUNCTION),
            "transport": lambda _base: (REMOTE, {**REMOTE, "transport": "sse"}),
            "command": "uvx",
            "args": ["a"],
            "env": {"A": "b"},
            "env_file": "tool.env",
            "encoding": "latin-1",
            "url": lambda _base: (REMOTE, {**REMOTE, "url": "https://y.test"}),
            "headers": {"A": "b"},
            "timeout": 7,
            "sse_read_timeout": 7,
            "request_timeout": 7,
            "terminate_on_close": True,
            "config": {"a": 1},
            "load_tools": False,
            "load_prompts": False,
            "is_retrieval": True,
            "registry_name": "r",
            "defer_loading": False,
        },
        with_tool,
    ),
    "prompt": Section(
        tools_schema.PromptEntry,
        PROMPT,
        {
            "name": "u",
            "description": "e",
            "type": only(**FUNCTION),
            "template": "Write {{word}}.",
            "file": only(**{key: value for key, value in PROMPT.items() if key != "template"}, file="prompt.md"),
            "parameters": {"word": {"type": "integer"}},
            "model": {"name": "other"},
            "defer_loading": False,
        },
        with_tool,
    ),
    "config": Section(
        GlobalConfigFile,
        {},
        {
            "providers": {"openai": {**MODEL, "max_tokens": 7}},
            "execution": {"llm_timeout": 7},
            "mcp_servers": [SERVER],
            "vectorstores": {"main": {"provider": "postgres"}},
            "deployment": {"target": "aws"},
        },
        lambda entry: {**AGENT, "test_cases": [CASE], "config.yaml": entry},
    ),
}


# The sections of a place in the table.
PLACES: Mapping[str, str] = {
    "`agent.yaml`": "agent",
    "`model`": "model",
    "`execution`": "execution",
    "`evaluations`": "evaluations",
    "function tool": "function",
    "MCP tool": "mcp",
    "prompt tool": "prompt",
    "`config.yaml`": "config",
}


def listed() -> Iterator[tuple[str, str, str]]:
    """Yield the section, the key and the effect of each key in the table."""
    for line in PAGE.partition("<!-- keys -->")[2].partition("<!-- /keys -->")[0].strip().splitlines()[2:]:
        place, keys, effect = (cell.strip() for cell in line.strip("|").split("|"))
        for key in re.findall(r"`(\w+)`", keys):
            yield PLACES[place], key, effect


EFFECTS = {(section, key): effect for section, key, effect in listed()}
ALL = [(name, key) for name, section in SECTIONS.items() for key in section.samples]


def load(folder: Path, data: Entry) -> Suite:
    data = dict(data)
    config = data.pop("config.yaml", None)
    (folder / "config.yaml").write_text("" if config is None else yaml.safe_dump(config))
    # On one line, so that no key changes the place of another.
    (folder / "agent.yaml").write_text(yaml.safe_dump(data, default_flow_style=True, width=10**6))
    return load_holodeck(folder / "agent.yaml", "agent.yaml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, text in {
        "prompt.md": "From a file.\n",
        "tools.py": "def price(): ...\ndef other(): ...\n",
        "other.py": "def price(): ...\n",
        "tool.env": "A=b\n",
        "cases.yaml": "- {name: c, input: q}\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_every_key_of_a_model_is_tried(section: Section) -> None:
    assert set(section.samples) == set(section.model.model_fields) | section.more


def test_the_table_has_only_keys_that_exist_and_are_not_used() -> None:
    assert EFFECTS.keys() <= set(ALL)
    assert len(EFFECTS) == len(list(listed()))
    assert set(EFFECTS.values()) == {"HoloDeck", "no effect", "warning"}


@pytest.mark.parametrize(("section", "key"), ALL, ids=[".".join(names) for names in ALL])
def test_exactly_the_listed_keys_are_not_used(folder: Path, section: str, key: str) -> None:
    of, effect = SECTIONS[section], EFFECTS.get((section, key), "works")
    sample = of.samples[key]
    changed = sample(of.base) if callable(sample) else {**of.base, key: sample}
    base, changed = changed if isinstance(changed, tuple) else (of.base, changed)
    before, after = load(folder, of.whole(base)), load(folder, of.whole(changed))
    if effect == "warning":
        assert any(key in warning for warning in after.warnings)
        return
    assert (before != after) == (effect == "works")
    # HoloDeck gets the key if it runs the agent.
    searching = [project(load(folder, with_search(of.whole(entry)))) for entry in (base, changed)]
    assert (searching[0] != searching[1]) >= (effect == "HoloDeck")


def with_search(data: Entry) -> Entry:
    return {**data, "tools": [*(data.get("tools") or []), SEARCH]}


def project(suite: Suite) -> Any:
    assert suite.fallback_agent is not None
    assert suite.fallback_agent.kind == "holodeck"
    return suite.fallback_agent.options["agent"].to_json()
