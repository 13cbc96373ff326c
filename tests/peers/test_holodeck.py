"""HoloDeck itself runs the agents of its projects, with played models. ``make peers-holodeck`` installs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.integration.model_server import (
    INPUT_TOKENS,
    KEY,
    OUTPUT_TOKENS,
    Answer,
    ModelServer,
    RecordedQuestion,
    responds,
    says,
    serving,
    words,
)
from tests.support import AGENTEVAL, Ended, environment

PYTHON = Path(os.environ.get("HOLODECK_PYTHON") or Path(__file__).with_name("holodeck") / ".venv/bin/python")
PUBLISHED = Path(__file__).parents[1] / "data/published/holodeck"
DIMENSIONS = 1536
LONG_S = 600
FAQ = [
    {"id": "1", "question": "When are you open?", "answer": "We are open from 9 am to 6 pm.", "category": "shop"},
    {
        "id": "2",
        "question": "How long can I return things?",
        "answer": "You can return within 30 days.",
        "category": "shop",
    },
]
HANDBOOK = "# Handbook\n\n## Repairs\n\nRepairs take two working days.\n\n## Deposit\n\nThe deposit is 50 EUR.\n"
TOOLS = "def price(days: int) -> int:\n    return 18 * days\n"
CONFIG = "providers:\n  openai: {provider: openai, name: gpt-4o, max_tokens: 300}\nexecution: {llm_timeout: 120}\n"
# As published projects are written: two indexes, a function, a file of instructions, a judge and `${…}`.
PROJECT = """\
name: shop-support
description: Answers the customers of a bicycle shop
author: The shop
model: {provider: openai, name: gpt-4o-mini, temperature: 0.1}
instructions: {file: instructions/system-prompt.md}
tools:
  - name: faq
    type: vectorstore
    description: Frequently asked questions
    source: data/faq.json
    database: chromadb
    top_k: 1
    id_field: id
    vector_field: [question, answer]
    meta_fields: [category]
  - name: handbook
    type: hierarchical_document
    description: The handbook of the shop
    source: data/handbook.md
    contextual_embeddings: false
    top_k: 1
  - {name: price, type: function, description: Price in EUR, file: tools.py, function: price}
evaluations:
  model: {provider: openai, name: gpt-4o, endpoint: "${JUDGE_URL}", api_key: "${OPENAI_API_KEY}"}
  metrics:
    - {type: rag, metric_type: contextual_relevancy, threshold: 0.5}
    - {type: standard, metric: f1_score, threshold: 0.6}
test_cases:
  - name: hours
    input: When are you open?
    ground_truth: We are open from 9 am to 6 pm.
    expected_tools: [faq]
  - name: repair, then price
    turns:
      - input: How long do repairs take?
        ground_truth: Repairs take two working days.
        expected_tools: [handbook]
      - input: What do 2 days cost?
        ground_truth: "36 EUR"
        expected_tools: [{name: price, args: {days: 2}}]
"""


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if not PYTHON.exists():
        pytest.skip("HoloDeck is not installed: make peers-holodeck")


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with serving() as server:
        server.respond = respond
        yield server


def respond(asked: RecordedQuestion) -> Answer:
    if "input" in asked.body and asked.path.endswith("/embeddings"):
        texts = asked.body["input"] if isinstance(asked.body["input"], list) else [asked.body["input"]]
        data = [
            {"object": "embedding", "index": i, "embedding": words(text, DIMENSIONS)} for i, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return Answer({"object": "list", "model": asked.body["model"], "data": data, "usage": usage})
    if not asked.path.endswith("/responses"):
        # The judge: every passage is relevant.
        verdicts = [{"statement": "s", "verdict": "yes", "reason": None}]
        return says(asked, json.dumps({"verdicts": verdicts, "reason": "It is relevant."}))
    last = asked.body["input"][-1]
    if last.get("type") == "function_call_output":
        found = last["output"]
        known = [entry["answer"] for entry in FAQ] + ["Repairs take two working days."]
        return responds(asked, next((text for text in known if text in found), f"{found} EUR"))
    question = last["content"]
    if "cost" in question:
        return responds(asked, {"name": "price", "arguments": {"days": 2}})
    tool = "handbook_search" if "repairs" in question else "faq_search"
    return responds(asked, {"name": tool, "arguments": {"query": question}})


def write(folder: Path, project: str = PROJECT) -> None:
    files = {
        "agent.yaml": project,
        "config.yaml": CONFIG,
        "instructions/system-prompt.md": "Answer the customers of the shop.\n",
        "data/faq.json": json.dumps(FAQ),
        "data/handbook.md": HANDBOOK,
        "tools.py": TOOLS,
        "agenteval.yaml": "pass_env: [OPENAI_API_KEY]\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def run(folder: Path, models: ModelServer) -> Ended:
    address = f"{models.url}/v1"
    (folder / ".env").write_text(f"JUDGE_URL={address}\nOPENAI_BASE_URL={address}\nOPENAI_API_BASE={address}\n")
    return started(folder, {"OPENAI_API_KEY": KEY}, without=("OPENAI_BASE_URL", "OPENAI_API_BASE"))


def started(folder: Path, variables: Mapping[str, str], without: Iterable[str]) -> Ended:
    """Run a project with some variables, and without others of the environment."""
    own = environment(AGENTEVAL_PYTHON=str(PYTHON), HOME=str(folder))
    kept = {name: value for name, value in own.items() if name not in without} | dict(variables)
    command = [str(AGENTEVAL), "run", "agent.yaml", "--out", "out"]
    # The imports of HoloDeck alone take longer than other commands.
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=LONG_S, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def turns(folder: Path) -> dict[str, list[dict[str, Any]]]:
    results = json.loads((folder / "out/results.json").read_text())
    return {case["name"]: case["iterations"][0]["turns"] for suite in results["suites"] for case in suite["cases"]}


def test_a_project_runs_unchanged(tmp_path: Path, models: ModelServer) -> None:
    write(tmp_path)
    ended = run(tmp_path, models)
    assert ended.status == 0, ended.text
    found = turns(tmp_path)
    (hours,) = found["hours"]
    assert hours["response"] == "We are open from 9 am to 6 pm."
    assert [call["name"] for call in hours["tool_calls"]] == ["faq_search"]
    assert "We are open from 9 am to 6 pm." in hours["retrieval_context"][0]
    assert hours["usage"]["input_tokens"] == 2 * INPUT_TOKENS
    assert hours["usage"]["output_tokens"] == 2 * OUTPUT_TOKENS
    repair, price = found["repair, then price"]
    assert "Repairs take two working days." in repair["retrieval_context"][0]
    assert (price["response"], price["tool_calls"][0]["result"]) == ("36 EUR", "36")
    # The second turn knows the first one, and its judge the passages of the session.
    assert price["retrieval_context"] == repair["retrieval_context"]
    asked = [item for item in models.asked if item.path.endswith("/responses")]
    second = next(item for item in asked if "cost" in str(item.body["input"][-1].get("content")))
    assert "How long do repairs take?" in json.dumps(second.body["input"])
    # The agent's settings, the file of instructions and config.yaml reach the model.
    assert (asked[0].body["temperature"], asked[0].body["max_output_tokens"]) == (0.1, 300)
    assert asked[0].body["instructions"] == "Answer the customers of the shop.\n"


# The documents of published projects, in their form; the originals are not needed to show what agenteval does.
DOCUMENTS: Mapping[str, Mapping[str, Any]] = {
    "ticket-routing": {
        "data/ticket_categories.json": [
            {
                "id": "billing",
                "name": "Billing",
                "content": "Charges and refunds",
                "routing_department": "billing",
                "sla_hours": "4",
                "keywords": "refund",
            }
        ]
    },
    "content-moderation": {
        "data/moderation_rules.md": "# Rules\n\nFinancial scams are removed.\n",
        "data/category_definitions.json": [
            {
                "subcategory_id": "scams",
                "category_name": "spam",
                "subcategory_name": "scams",
                "examples": "Double your money",
                "description": "Financial scams",
            }
        ],
    },
}
# In the response formats of the projects.
DECISIONS = {
    "ticket-routing": {
        "category": "billing",
        "urgency": "high",
        "routing_department": "billing",
        "confidence_score": 0.9,
        "reasoning": "It is about money.",
    },
    "content-moderation": {
        "decision": "approve",
        "violations": [],
        "reasoning": "No rule is broken.",
        "confidence_score": 0.9,
    },
}
JUDGEMENT = {
    "score": 9,
    "reason": "as the criteria ask",
    "truths": ["t"],
    "claims": ["c"],
    "verdicts": [{"verdict": "yes", "reason": None}],
}


def decide(name: str, asked: RecordedQuestion) -> Answer:
    """Play an agent that uses its first tool once and then decides, and judges that are content."""
    if asked.path.split("?")[0].endswith("/embeddings"):
        return respond(asked)
    if not asked.path.split("?")[0].endswith("/responses"):
        return says(asked, json.dumps(JUDGEMENT))
    last = asked.body["input"][-1]
    if last.get("type") == "function_call_output":
        return responds(asked, json.dumps(DECISIONS[name]))
    return responds(asked, {"name": asked.body["tools"][0]["name"], "arguments": {"query": last["content"]}})


@pytest.mark.parametrize(("name", "cases"), [("ticket-routing", 3), ("content-moderation", 6)])
def test_published_projects_run_unchanged(tmp_path: Path, models: ModelServer, name: str, cases: int) -> None:
    shutil.copytree(PUBLISHED / name, tmp_path, dirs_exist_ok=True)
    for file, content in {"instructions/system-prompt.md": "Decide.\n", **DOCUMENTS[name]}.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content if isinstance(content, str) else json.dumps(content))
    models.respond = partial(decide, name)
    # Only `.env` has the keys.
    variables = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{models.url}/v1",
        "OPENAI_API_BASE": f"{models.url}/v1",
        "AZURE_OPENAI_API_KEY": KEY,
        "AZURE_OPENAI_ENDPOINT": models.url,
    }
    (tmp_path / ".env").write_text("".join(f"{key}={value}\n" for key, value in variables.items()))
    # Judges have the address that the environment names.
    ended = started(tmp_path, {"OPENAI_BASE_URL": variables["OPENAI_BASE_URL"]}, without=variables)
    assert ended.status == 0, ended.text
    found = turns(tmp_path)
    assert len(found) == cases
    for (turn,) in found.values():
        assert json.loads(turn["response"]) == DECISIONS[name]
        assert len(turn["tool_calls"]) == 1
        assert {score["status"] for score in turn["scores"]} == {"scored"}


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (("provider: openai, name: gpt-4o-mini", "provider: openai, name: ' '"), 2, "name: must not be empty"),
        (("data/handbook.md", "data/none.md"), 3, "HoloDeck cannot index the documents: "),
    ],
)
def test_mistakes_are_told(
    tmp_path: Path, models: ModelServer, change: tuple[str, str], status: int, message: str
) -> None:
    write(tmp_path, PROJECT.replace(*change))
    ended = run(tmp_path, models)
    assert (ended.status, message in ended.text) == (status, True), ended.text
