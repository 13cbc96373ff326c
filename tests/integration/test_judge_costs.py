"""docs/metrics.md: the calls of each judge, what 100 cases cost, and the calibration against labels."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from genai_prices import Usage, calc_price
from tests.integration.model_server import Answer, RecordedQuestion, says, serving
from tests.support import PATIENCE_S, ROOT, agenteval, write_suite

PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
_ROW = r"(?m)^\| `(\w+)`( \w+)?[^|]* \| (\d+) \| ([\d,]+) \| ([\d,]+) \| \$([\d.]+) \|$"


class Row(NamedTuple):
    """What the page says about a metric, for one answer; the price is for all of them."""

    calls: int
    tokens_in: int
    tokens_out: int
    price: Decimal


def _number(text: str) -> int:
    return int(text.replace(",", ""))


PRICES = {
    f"{row[1]}{row[2] or ''}": Row(int(row[3]), _number(row[4]), _number(row[5]), Decimal(row[6]))
    for row in re.finditer(_ROW, PAGE.partition("<!-- prices -->")[2].partition("<!-- /prices -->")[0])
}
ANSWERS = 300
ANSWER = "You can return a standing desk within thirty days of delivery, free of charge. " * 6
PASSAGE = "A desk can be returned within thirty days of delivery. We collect it and refund the full price. " * 6
AGENT = f"""
import json
print(json.dumps({{"response": {ANSWER!r}, "retrieval_context": {[PASSAGE] * 3!r}}}))
"""


def test_prices_follow_from_the_tokens_and_the_prices_of_the_model() -> None:
    stated = re.search(r"`(gpt-[\w.-]+)` costs \$([\d.]+) for a million input tokens and \$([\d.]+) for", PAGE)
    assert stated is not None
    model, *dollars = stated.groups()
    million = calc_price(Usage(input_tokens=10_000, output_tokens=0), model, provider_id="openai").total_price
    assert million * 100 == Decimal(dollars[0])
    million = calc_price(Usage(input_tokens=0, output_tokens=10_000), model, provider_id="openai").total_price
    assert million * 100 == Decimal(dollars[1])
    for name, row in PRICES.items():
        computed = ANSWERS * (row.tokens_in * Decimal(dollars[0]) + row.tokens_out * Decimal(dollars[1])) / 1_000_000
        assert row.price == round(computed, 2), name


def _filled(schema: Mapping[str, Any], root: Mapping[str, Any], name: str = "") -> Any:
    """Return a value that follows a schema: long texts, lists of four, and every verdict ``yes``."""
    if "$ref" in schema:
        return _filled(root["$defs"][schema["$ref"].rpartition("/")[2]], root, name)
    if "anyOf" in schema:
        return _filled(schema["anyOf"][0], root, name)
    if schema.get("type") == "object":
        return {key: _filled(value, root, key) for key, value in schema["properties"].items()}
    if schema.get("type") == "array":
        return [_filled(schema["items"], root, name) for _ in range(4)]
    if schema.get("type") in {"number", "integer"}:
        return 8
    return "yes" if name == "verdict" else "You can return it within thirty days of delivery, free of charge."


def test_each_judge_makes_as_many_calls_with_as_many_tokens_as_the_page_says(tmp_path: Path) -> None:
    calls: Counter[str] = Counter()
    prompts: Counter[str] = Counter()

    def respond(asked: RecordedQuestion) -> Answer:
        calls[asked.body["model"]] += 1
        prompts[asked.body["model"]] += len(asked.prompt)
        schema = asked.body["response_format"]["json_schema"]["schema"]
        return says(asked, json.dumps(_filled(schema, schema)))

    with serving() as server:
        server.respond = respond
        metrics = []
        for name in PRICES:
            # The name of the model tells whose call it is.
            place = {"provider": "openai", "endpoint": f"{server.url}/v1", "api_key": "sk-0"}
            model = {**place, "name": f"gpt-6-{name.replace(' ', '-')}"}
            kind, _, rest = name.partition(" ")
            metric: dict[str, Any] = {"type": "rag", "metric_type": kind, "model": model}
            if kind == "geval":
                params = ["input", "actual_output", "expected_output"]
                metric = {"type": "geval", "name": rest, "criteria": "Is the answer correct?", "model": model}
                metric["evaluation_params"] = params
                if rest == "with":
                    metric["evaluation_steps"] = ["Compare with the expected answer.", "Ignore the style."]
            metrics.append(metric)
        question = {"name": "a", "input": "How long can I return a desk?", "ground_truth": "Thirty days, for free."}
        write_suite(tmp_path, [question], evaluations={"metrics": metrics})
        (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")
        config = {"agents": {"default": {"command": [sys.executable, "agent.py"]}}, "llm": {"cache": False}}
        (tmp_path / "agenteval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        agenteval("run", "--quiet", cwd=tmp_path)

    for name, row in PRICES.items():
        asked_model = f"gpt-6-{name.replace(' ', '-')}"
        assert calls[asked_model] == row.calls, name
        assert prompts[asked_model] / 4 == pytest.approx(row.tokens_in, rel=0.25), name


def _block(page: str, start: str) -> str:
    """The Python block of a page that begins with a comment."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.search(rf"(?ms)^( *)```python\n( *{re.escape(start)}\n.*?)^\1```$", text)
    assert found is not None
    return re.sub(rf"(?m)^{found[1]}", "", found[2])


def test_the_calibration_finds_where_judge_and_labels_disagree(tmp_path: Path) -> None:
    answers = {"right": "blue sky", "half": "blue sea", "wrong": "green sea"}
    cases = [{"name": name, "input": name, "ground_truth": "blue sky"} for name in answers]
    metric = {"type": "standard", "metric": "f1_score", "threshold": 0.5}
    write_suite(tmp_path, cases, evaluations={"metrics": [metric]})
    lines = [json.dumps({"case": name, "response": answer}) for name, answer in answers.items()]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines), encoding="utf-8")
    agenteval("run", "--quiet", "--agent", "replay:answers.jsonl", cwd=tmp_path)
    (tmp_path / "labels.csv").write_text("case,label\nright,pass\nhalf,fail\nwrong,fail\n", encoding="utf-8")
    (tmp_path / "calibrate.py").write_text(_block("metrics.md", "# calibrate.py"), encoding="utf-8")

    said = _output([sys.executable, "calibrate.py", "agenteval-report", "f1_score", "labels.csv"], tmp_path)

    assert said.splitlines() == [
        "3 of 3 labelled cases have a score of f1_score",
        "threshold 0.00: agrees in 33%; too lenient: ['half', 'wrong']; too strict: []",
        "threshold 0.50: agrees in 67%; too lenient: ['half']; too strict: []",
        "threshold 1.00: agrees in 100%; too lenient: []; too strict: []",
    ]


def _output(command: list[str], directory: Path) -> str:
    done = subprocess.run(
        command, cwd=directory, capture_output=True, encoding="utf-8", timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
