"""What people see of their mistakes, whole: each kind of mistake, with its siblings in other formats and places.

``UPDATE_GOLDEN=1`` writes ``tests/data/golden/messages/`` anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.end_to_end.conftest import Command
from tests.mistakes import shown
from tests.unit.report.samples import check_golden

AGENT = "agent: {command: [cat]}\n"
METRICS = "evaluations: {metrics: [{type: standard, metric: equality}]}\n"
CASE = "test_cases: [{name: a, input: hi, ground_truth: hi}]\n"
GOOD = f"{AGENT}{METRICS}{CASE}"
AGENTCI = """\
[eval]
description = "Answers help"
type = "accuracy"
targets.agents = ["default"]
targets.tools = []
[[eval.cases]]
prompt = "hi"
output = "hi"
"""
FLUXLOOP = "evaluators:\n  - {name: says, type: rule_based, rules: [{check: output_not_empty}]}\n"
FLUXLOOP_FILES = {"inputs/x.yaml": "inputs: [{input: hi}]\n", "configs/input.yaml": "inputs_file: inputs/x.yaml\n"}
CONFIG = "agents: {default: {command: [cat]}}\n"


@dataclass(frozen=True)
class Wrong:
    """A mistake.

    Attributes:
        files: the files of the directory.
        arguments: of the command.
        status: the exit status.
    """

    files: Mapping[str, str]
    arguments: Sequence[str] = ("run",)
    status: int = 2


def holodeck(text: str) -> Wrong:
    return Wrong({"agent.yaml": text})


def metric(text: str) -> Wrong:
    return holodeck(f"{AGENT}evaluations:\n  metrics:\n    - {text}\n{CASE}")


def config(text: str) -> Wrong:
    return Wrong({"agent.yaml": METRICS + CASE, "agenteval.yaml": text})


def agentci(old: str, new: str) -> Wrong:
    return Wrong({".agentci/evals/a.toml": AGENTCI.replace(old, new), "agenteval.yaml": CONFIG})


def fluxloop(text: str) -> Wrong:
    return Wrong({"configs/evaluation.yaml": text, "agenteval.yaml": CONFIG})


def options(*arguments: str) -> Wrong:
    return Wrong({"agent.yaml": GOOD}, arguments)


def agent(definition: str, files: Mapping[str, str] | None = None, cases: int = 12) -> Wrong:
    """Twelve cases of an agent that fails."""
    listed = "".join(f"  - {{name: c{number}, input: hi, ground_truth: hi}}\n" for number in range(cases))
    suite = f"{METRICS}test_cases:\n{listed}"
    written = {"agent.yaml": suite, "agenteval.yaml": f"agents: {{default: {definition}}}\n", **(files or {})}
    return Wrong(written, ("run", "--quiet"), status=3)


UNSET = "import os\n\n\nraise RuntimeError('SERVICE_API_KEY is not set')\n"
TWICE = "".join(f"  - {{name: a, input: {text}, ground_truth: hi}}\n" for text in ("hi", "ho"))
MANY = "".join(f"  - input: q{number}\n    ground_truth: a\n    tags: [x]\n" for number in range(116))

#: Name of the golden file → its mistakes: one of the table of messages, then the same in other places.
FAMILIES: Mapping[str, Sequence[Wrong]] = {
    "unknown-key": (
        holodeck(f"{AGENT}{METRICS}test_cases:\n{MANY}"),
        metric("{type: standard, metric: f1_score, treshold: 0.7}"),
        holodeck(f"{GOOD}nmae: x\n"),
        agentci("description", "desription"),
        fluxloop(f"{FLUXLOOP}agregate: {{}}\n"),
        config(f"{CONFIG}gates: {{}}\n"),
        config(f"{CONFIG}gate: {{fail: none}}\n"),
        config("agents: {default: {command: [cat], timout: 3}}\n"),
        config(f"{CONFIG}metrics: [{{type: similarity, treshold: 0.7}}]\n"),
    ),
    "unknown-name": (
        metric("{type: standard, metric: f1}"),
        metric("{type: standrad, metric: f1_score}"),
        metric("{type: rag, metric_type: faithful}"),
        agentci('"accuracy"', '"acuracy"'),
        fluxloop(FLUXLOOP.replace("rule_based", "rule")),
        config(f"{CONFIG}gate: {{fail_on: [regression]}}\n"),
        config(f"{CONFIG}gate: {{policy: statistic}}\n"),
        config(f"{CONFIG}metrics: [{{type: bleuu}}]\n"),
    ),
    "threshold": (
        metric("{type: standard, metric: f1_score, threshold: 70}"),
        metric("{type: standard, metric: f1_score, threshold: 1.5}"),
        metric("{type: standard, metric: f1_score, threshold: -1}"),
        metric("{type: standard, metric: f1_score, threshold: 7, scale: 5}"),
        metric("{type: geval, name: polite, criteria: polite, threshold: 70}"),
        metric("{type: rag, metric_type: faithfulness, threshold: 70}"),
        agentci('output = "hi"', 'output = { similar = "hi", threshold = 80 }'),
        fluxloop(f"{FLUXLOOP}aggregate: {{method: average, threshold: 70}}\n"),
        config(f"{CONFIG}metrics: [{{type: bleu, threshold: 70}}]\n"),
        config(f"{CONFIG}criteria: {{quality: {{equality: 80}}}}\n"),
    ),
    "missing": (
        holodeck(f"{AGENT}{METRICS}test_cases: [{{ground_truth: hi}}]\n"),
        agentci('description = "Answers help"\n', ""),
        fluxloop("evaluators:\n  - {type: rule_based, rules: []}\n"),
        config("agents: {default: {}}\n"),
        holodeck(f"{AGENT}{METRICS}test_cases_file: gone.yaml\n"),
        options("run", "gone.yaml"),
        options("run", "--config", "gone.yaml"),
        options("run", "--comment-template", "gone.j2"),
        config("agents: {default: {replay: gone.jsonl}}\n"),
        options("run", "--traces", "gone.jsonl"),
    ),
    "judge": (
        holodeck(
            f"{AGENT}evaluations:\n  metrics:\n    - {{type: geval, name: polite, criteria: Is it polite?}}\n"
            f"    - {{type: rag, metric_type: answer_relevancy}}\n{CASE}"
        ),
        metric("{type: geval, name: polite, criteria: polite, model: {provider: openai, name: gpt-6-luna}}"),
    ),
    "agent": (
        agent("{command: [python3, agent.py]}"),
        agent("{command: [python3, bot.py]}", {"bot.py": UNSET}),
        agent("{command: [python3, bot.py]}", {"bot.py": "import no_such_module\n"}),
        agent("{command: [sh, -c, nosuchprogram]}"),
        agent("{command: [sh, -c, 'exit 7']}"),
        agent("{http: 'http://127.0.0.1:9/x', retries: 0}"),
        agent("{command: [sleep, '9'], timeout: 0.1}", cases=2),
        agent("{python: 'bot.py:ask'}", {"bot.py": "def ask(text):\n    raise ValueError('no')\n"}, cases=1),
        Wrong(agent("{command: [no-such-program]}").files),
        Wrong(agent("{python: 'bot.py:aks'}", {"bot.py": "def ask(text):\n    return text\n"}).files),
        Wrong(agent("{python: 'bot.py:ask'}", {"bot.py": "import no_such_module\n"}).files, status=3),
    ),
    "code": (
        Wrong(
            {
                "agent.yaml": f'{AGENT}evaluations: {{metrics: [{{type: code, grader: "graders:polit"}}]}}\n{CASE}',
                "graders.py": "def polite(context):\n    return 1.0\n",
            }
        ),
        Wrong(
            {
                "agent.yaml": GOOD,
                "agenteval.yaml": "metrics: [{python: 'own.py:polit'}]\n",
                "own.py": "def polite(observation):\n    return 1.0\n",
            }
        ),
    ),
    "results": (
        options("run", "--baseline", "nope"),
        options("run", "--baseline", "agent.yaml"),
        options("compare", "agent.yaml", "nope.json"),
        options("report", "nope"),
        options("run", "--failed-in", "nope"),
    ),
    "selection": (
        options("run", "--filter", "zzz"),
        options("run", "--tag", "slow"),
        options("run", "--case", "b"),
        Wrong({"apps/support/agent.yaml": GOOD, "apps/search/agent.yaml": GOOD}),
        Wrong({}),
        Wrong({"configs/evaluation.yaml": FLUXLOOP, "traces/a.jsonl": "{}\n"}),
        holodeck(f"{AGENT}{METRICS}test_cases: [{{name: a, input: hi}}, {{name: b, input: ho}}]\n"),
        holodeck(f"{AGENT}{CASE}"),
        holodeck(f"{METRICS}{CASE}"),
    ),
    "options": (
        options("run", "--iterations", "0"),
        options("rnu"),
        options("run", "--itrations", "3"),
        options("run", "--fail-on", "regression"),
        options("run", "--shard", "3/2"),
        options("run", "--time-limit", "soon"),
        options("explain", "treshold"),
        options(),
    ),
    "syntax": (
        holodeck("test_cases: [\n"),
        Wrong({".agentci/evals/a.toml": "[eval\n", "agenteval.yaml": CONFIG}),
        holodeck(f"{AGENT}{METRICS}test_cases: [{{name: a, input: ${{NOT_SET}}, ground_truth: hi}}]\n"),
        holodeck(f"{AGENT}{METRICS}test_cases: [{{name: a, input: ${{MY_TOKEN}}, ground_truth: hi}}]\n"),
        # Only a warning: what stops the run is the agent.
        Wrong({"agent.yaml": f"{AGENT}{METRICS}test_cases:\n{TWICE}"}, ("run", "--quiet"), status=3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_shown(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    for variable in ("OPENAI_API_KEY", "MY_TOKEN", "VIRTUAL_ENV"):
        monkeypatch.delenv(variable, raising=False)
    texts = []
    for number, wrong in enumerate(FAMILIES[name]):
        folder = tmp_path / str(number)
        # The names of files are those from the root of a repository.
        (folder / ".git").mkdir(parents=True)
        for file, text in wrong.files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
        monkeypatch.chdir(folder)
        ended = command(*wrong.arguments)
        place = f"{name}, {number}: {' '.join(wrong.arguments)}"
        assert ended.status == wrong.status, f"{place}\n{ended.err}"
        assert shown(ended.err), place
        assert "Traceback" not in ended.err
        texts.append(f"$ agenteval {' '.join(wrong.arguments)}\n{_stable(ended.err, folder)}")
    check_golden(f"messages/{name}.txt", "\n".join(texts))


def _stable(text: str, folder: Path) -> str:
    """The text without what depends on the machine."""
    text = text.replace(str(folder), "/project")
    text = re.sub(r"\(in [^()]*python[^()]*\)", "(in python3)", text)
    return re.sub(r"looked in PATH [^)]*\)", "looked in PATH)", text)
