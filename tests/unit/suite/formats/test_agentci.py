"""Files of ``.agentci/evals`` as suites: values, meanings and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.agents.frameworks.scan import load_frameworks
from agenteval.core.confine import confined
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.models import ModelSpec, chat_model, embedding_model
from agenteval.suite.formats.agentci.metrics import template_cases
from agenteval.suite.formats.agentci.suite import load_agentci
from agenteval.suite.formats.base import BASE_PATH, base_directory
from agenteval.suite.formats.registry import discover
from agenteval.suite.forms import FieldSpec, TextMatch
from agenteval.suite.model import Case, MetricConfig, Suite, Target

TYPES = ("accuracy", "performance", "semantic", "safety", "consistency", "llm", "custom")
STRATEGIES = "exact, contains, contains_any, startswith, endswith, match, similar, schema"
CASE_KEYS = (
    "index, prompt, context, output, case_sensitive, blocked, response_type, tools, latency, tokens, "
    "min_similarity, score, criteria, reference_response, parameters"
)
CASE = '[[eval.cases]]\nprompt = "q"\n'
LLM = '[eval.llm]\nmodel = "gpt-4"\nprompt = "Rate this."\n'
CUSTOM = '[eval.custom]\nmodule = "checks"\nfunction = "check"\n'
# What each type needs for one case.
NEEDS = {
    "accuracy": CASE + 'output = "4"\n',
    "performance": CASE + "latency = { max = 5 }\n",
    "semantic": CASE + 'output = { similar = "x", threshold = 0.8 }\n',
    "safety": CASE + "blocked = true\n",
    "consistency": CASE,
    "llm": LLM + CASE + "score = { min = 7 }\n",
    "custom": CUSTOM + CASE,
}


def head(kind: str = "accuracy", *lines: str) -> str:
    """``[eval]`` without its cases; four lines, and those given."""
    if kind == "consistency" and not any("iterations" in line for line in lines):
        lines = (*lines, "iterations = 3")
    basic = f'[eval]\ndescription = "d"\ntype = "{kind}"\ntargets.agents = ["a"]\n'
    return basic + "".join(f"{line}\n" for line in lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository") / ".agentci" / "evals"
    folder.mkdir(parents=True)
    return folder


def load(folder: Path, text: str) -> Suite:
    path = folder / "weather.toml"
    path.write_text(text, encoding="utf-8")
    return load_agentci(path, ".agentci/evals/weather.toml")


def problems(folder: Path, text: str) -> list[str]:
    """Each as ``line: path: what``."""
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    return [str(problem).removeprefix(".agentci/evals/weather.toml:") for problem in caught.value.problems]


def warnings(folder: Path, text: str) -> list[str]:
    return [text.removeprefix(".agentci/evals/weather.toml:") for text in load(folder, text).warnings]


def only_case(folder: Path, text: str) -> Case:
    (case,) = load(folder, text).cases
    return case


def only_metric(folder: Path, text: str) -> MetricConfig:
    (metric,) = only_case(folder, text).all_metrics
    return metric


# The whole file


def test_a_suite(folder: Path) -> None:
    suite = load(
        folder,
        head("accuracy", "iterations = 4", 'name = "ignored"')
        + '\n[[eval.cases]]\nprompt = "What is 2 + 2?"\noutput = "4"\n',
    )
    assert (suite.path, suite.name, suite.format) == (".agentci/evals/weather.toml", "weather", "agentci")
    assert suite.iterations == 4
    assert suite.root == str(folder.parents[1])
    assert suite.warnings == ()
    (case,) = suite.cases
    assert (case.name, case.line, case.tags, case.strict) == ("What is 2 + 2?", 8, ("accuracy",), False)
    assert case.target == Target("agent", "a")
    (turn,) = case.turns
    assert (turn.input, dict(turn.context), turn.exception_is_answer) == ("What is 2 + 2?", {}, False)
    (metric,) = turn.metrics
    assert (metric.id, metric.type, metric.kind) == ("match", "text_match", "match")
    assert (metric.fail_on_error, metric.requested_by) == (True, "case")
    assert (metric.where.file, metric.where.line) == (".agentci/evals/weather.toml", 10)
    assert metric.where.directory == str(folder.parents[1])


def test_modules_are_imported_from_the_folder_that_holds_agentci(tmp_path: Path) -> None:
    assert base_directory(tmp_path / ".agentci" / "evals" / "a.toml") == tmp_path
    assert base_directory(tmp_path / "evals" / "a.toml") == tmp_path / "evals"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["the table [eval] is missing (found: nothing); it needs description, type"]),
        ('[evals]\ntype = "x"', ["the table [eval] is missing (found: evals); it needs description, type"]),
        ('[[eval]]\ntype = "x"', ["1: eval: must be a mapping (key: value), not a list; it begins with [eval]"]),
        ("eval = 5", ["1: eval: must be a mapping (key: value), not 5; it begins with [eval]"]),
        (
            "\n[eval]",
            [
                "2: eval.description: this key is required",
                "2: eval.type: this key is required",
                '2: eval.targets: this key is required, for instance targets.agents = ["*"]',
            ],
        ),
        (
            '\n[[eval.cases]]\nprompt = "q"',
            ["2: eval.description: this key", "2: eval.type: this key", "2: eval.targets: this key"],
        ),
        (head() + 'cases = "x"', ["5: eval.cases: must be a list, not 'x'; each case begins with [[eval.cases]]"]),
        (
            head() + '[eval.cases]\nprompt = "x"',
            ["5: eval.cases: must be a list, not a mapping; each case begins with [[eval.cases]]"],
        ),
        (head() + 'cases = ["x"]', ["5: eval.cases[0]: must be a mapping (key: value), not 'x'"]),
        (
            head("Accuracy") + CASE,
            ["3: eval.type: 'Accuracy' is not allowed; did you mean 'accuracy'?; allowed: accuracy,"],
        ),
        (
            head("latency") + CASE,
            ["3: eval.type: 'latency' is not allowed; allowed: accuracy, performance, semantic,"],
        ),
        (
            '[eval]\ndescription = 5\ntype = "custom"\ntargets.tools = ["t"]\n' + CUSTOM,
            ["2: eval.description: must be text, not 5"],
        ),
    ],
)
def test_what_is_no_evaluation(folder: Path, text: str, said: list[str]) -> None:
    found = problems(folder, text)
    assert len(found) == len(said)
    for problem, beginning in zip(found, said, strict=True):
        assert problem.removeprefix(".agentci/evals/weather.toml:").strip().startswith(beginning)


# What each type needs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (head("accuracy"), "3: eval.type: an evaluation of type accuracy needs [[eval.cases]]"),
        (head("performance"), "3: eval.type: an evaluation of type performance needs [[eval.cases]]"),
        (head("semantic"), "3: eval.type: an evaluation of type semantic needs [[eval.cases]]"),
        (head("consistency"), "3: eval.type: an evaluation of type consistency needs [[eval.cases]]"),
        (head("safety"), "3: eval.type: an evaluation of type safety needs a `template` or [[eval.cases]]"),
        (head("accuracy") + CASE, "5: eval.cases[0]: a case of type accuracy needs `output` or `tools`"),
        (
            head("accuracy") + CASE + "tools = []",
            "5: eval.cases[0]: a case of type accuracy needs `output` or `tools`",
        ),
        (head("performance") + CASE, "5: eval.cases[0]: a case of type performance needs `latency` or `tokens`"),
        (
            head("safety") + CASE,
            "5: eval.cases[0]: a case of type safety needs `blocked = true` or `blocked = false`",
        ),
        (
            head("llm") + CASE + "score = { min = 7 }",
            "3: eval.type: an evaluation of type llm needs a table [eval.llm]",
        ),
        (head("llm") + LLM + CASE, "8: eval.cases[0]: a case of type llm needs `score`, for instance { min = 7 }"),
        (head("llm") + "llm = { prompt = 'p' }\n" + CASE, "5: eval.llm.model: this key is required"),
        (head("llm") + "llm = { model = 'm' }\n" + CASE, "5: eval.llm.prompt: this key is required"),
        (head("custom") + CASE, "3: eval.type: an evaluation of type custom needs a table [eval.custom]"),
        (head("custom") + "custom = { module = 'm' }\n" + CASE, "5: eval.custom.function: this key is required"),
        (
            head("consistency", "iterations = 1") + CASE,
            "5: eval.iterations: an evaluation of type consistency compares several answers, "
            "so `iterations` must be at least 2",
        ),
    ],
)
def test_missing_parts_have_a_line(folder: Path, text: str, said: str) -> None:
    assert problems(folder, text) == [said]


def test_some_types_need_no_cases(folder: Path) -> None:
    assert load(folder, head("llm") + LLM).cases == ()
    assert load(folder, head("custom") + CUSTOM).cases == ()
    assert len(load(folder, head("safety", 'template = "harmful_content"')).cases) > 1


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("accuracy", 'output = "4"\nlatency = { max = 5 }'),
        ("performance", 'latency = { max = 5 }\noutput = "4"'),
        ("semantic", 'output = "4"\nblocked = true'),
        ("safety", "blocked = true\nmin_similarity = 0.5"),
        ("consistency", 'min_similarity = 0.5\ntools = [{ name = "t", args = [] }]'),
        ("custom", "parameters = {}\nscore = { min = 7 }"),
    ],
)
def test_keys_of_another_type_are_warnings(folder: Path, kind: str, asked: str) -> None:
    text = head(kind) + (CUSTOM if kind == "custom" else "") + CASE + asked
    unused = asked.split("\n")[1].partition(" ")[0]
    assert warnings(folder, text) == [
        f"{text.count(chr(10)) + 1}: eval.cases[0].{unused}: an evaluation of type {kind} does not use {unused}"
    ]


# Accuracy


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("output = 4", f"7: eval.cases[0].output: must be text in quotes, or one of {STRATEGIES}; not 4"),
        ("output = true", f"7: eval.cases[0].output: must be text in quotes, or one of {STRATEGIES}; not True"),
        ('output = ["a"]', f"7: eval.cases[0].output: must be text in quotes, or one of {STRATEGIES}; not ['a']"),
        ("output = {}", f"7: eval.cases[0].output: needs exactly one of {STRATEGIES}; none is given"),
        (
            'output.exact = "a"\noutput.contains = "b"',
            f"7: eval.cases[0].output: needs exactly one of {STRATEGIES}; exact and contains are given",
        ),
        (
            'output.similar = "a"',
            '7: eval.cases[0].output: `similar` needs a `threshold` from 0 to 1: { similar = "…", threshold = 0.8 }',
        ),
        (
            'output.exact = "a"\noutput.threshold = 0.8',
            '7: eval.cases[0].output: `threshold` is for `similar`: { similar = "…", threshold = 0.8 }',
        ),
        (
            "output.threshold = 0.8",
            f"7: eval.cases[0].output: needs exactly one of {STRATEGIES}; none is given",
        ),
        (
            'output = { similar = "a", threshold = 1.1 }',
            "7: eval.cases[0].output.threshold: 1.1 is out of range: scores go from 0 to 1",
        ),
        ('output = { similar = "a", threshold = nan }', "7: eval.cases[0].output.threshold: must be a finite number"),
        ("output.contains = []", "7: eval.cases[0].output.contains: must name at least one text"),
        ("output.startswith = []", "7: eval.cases[0].output.startswith: must name at least one text"),
        ('output.contains_any = "a"', "7: eval.cases[0].output.contains_any: must be a list, not 'a'"),
        ('output.exact = ["a"]', "7: eval.cases[0].output.exact: must be text, not a list"),
        ("output.exact = 5", "7: eval.cases[0].output.exact: must be text, not 5"),
        (
            "output.match = '[a'",
            "7: eval.cases[0].output.match: '[a' is not a regular expression: "
            "unterminated character set at position 0",
        ),
        (
            'output.contain = "a"',
            "7: eval.cases[0].output.contain: unknown key; did you mean 'contains'?",
        ),
        ('output.schema = "x"', "7: eval.cases[0].output.schema: must be a mapping (key: value), not 'x'"),
    ],
)
def test_outputs_that_cannot_be(folder: Path, output: str, said: str) -> None:
    assert problems(folder, head() + CASE + output) == [said]


TEN = '[eval.llm.output_schema.score]\ntype = "float"\nmin = 1\nmax = 10\n'


@pytest.mark.parametrize(
    ("text", "decides"),
    [
        (head("llm") + LLM + CASE + "score = { min = 0 }", False),
        (head("llm") + LLM + CASE + "score = { min = -1 }", False),
        (head("llm") + LLM + CASE + "score = { max = 10 }", False),
        (head("llm") + LLM + CASE + "score = { max = 100 }", False),
        (head("llm") + LLM + CASE + "score = { min = 0, max = 10 }", False),
        (head("llm") + LLM + CASE + "score = { min = 0, max = 9 }", True),
        (head("llm") + LLM + CASE + "score = { min = 1 }", True),
        (head("llm") + LLM + CASE + "score = { equal = 10 }", True),
        (head("llm") + LLM + TEN + CASE + "score = { min = 1 }", False),
        (head("llm") + LLM + TEN + CASE + "score = { max = 100 }", False),
        (head("llm") + LLM + TEN + CASE + "score = { min = 2 }", True),
        (head("performance") + CASE + "latency = { min_ms = 0 }", False),
        (head("performance") + CASE + "latency = { min = -1 }", False),
        (head("performance") + CASE + "latency = { min = 0, max = 5 }", True),
        (head("performance") + CASE + "latency = { max = 0 }", True),
        (head("performance") + CASE + "tokens = { min = 0, input_min = 0, output_min = 0 }", False),
        (head("performance") + CASE + "tokens = { min = 0, output_min = 1 }", True),
        (head("performance") + CASE + "tokens = { equal = 0 }", True),
    ],
)
def test_limits_that_every_answer_meets_are_a_warning_and_decide_nothing(
    folder: Path, text: str, decides: bool
) -> None:
    assert only_metric(folder, text).gating == decides
    assert [warning for warning in warnings(folder, text) if "so this checks nothing" not in warning] == []
    assert len(warnings(folder, text)) == (0 if decides else 1)


def test_white_space_is_something_where_it_counts(folder: Path) -> None:
    assert warnings(folder, head() + CASE + 'output = { contains = " ", case_sensitive = true }') == []


def test_a_pattern_that_later_pythons_read_otherwise_is_read(folder: Path) -> None:
    assert only_metric(folder, head() + CASE + "output.match = '[[:alpha:]]+'").type == "text_match"


def test_tool_calls_may_be_tables(folder: Path) -> None:
    text = head() + CASE + '[[eval.cases.tools]]\nname = "t"\n[eval.cases.tools.args]\nx = 1\n'
    assert only_metric(folder, text).options["expected"] == ({"name": "t", "args": {"x": 1}},)


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ('[{ name = "t" }]', ["7: eval.cases[0].tools[0].args: this key is required"]),
        ("[{ args = [] }]", ["7: eval.cases[0].tools[0].name: this key is required"]),
        (
            '[{ name = "t", args = "x" }]',
            [
                "7: eval.cases[0].tools[0].args: must be a list, not 'x'",
                "7: eval.cases[0].tools[0].args: must be a mapping (key: value), not 'x'",
            ],
        ),
        (
            '[{ name = "t", args = [], arg = 1 }]',
            ["7: eval.cases[0].tools[0].arg: unknown key; did you mean 'args'?; allowed: name, args"],
        ),
        ('["t"]', ["7: eval.cases[0].tools[0]: must be a mapping (key: value), not 't'"]),
        ('"t"', ["7: eval.cases[0].tools: must be a list, not 't'"]),
    ],
)
def test_tool_calls_that_cannot_be(folder: Path, tools: str, said: list[str]) -> None:
    assert problems(folder, head() + CASE + f"tools = {tools}") == said


# Performance


@pytest.mark.parametrize(
    ("latency", "limits"),
    [
        ("{ max = 5 }", {"maximum": 5.0}),
        ("{ max_ms = 1500 }", {"maximum": 1.5}),
        ("{ min_ms = 100, max = 5 }", {"minimum": 0.1, "maximum": 5.0}),
        ("{ min = 1, min_ms = 5000, max = 2, max_ms = 1 }", {"minimum": 1.0, "maximum": 2.0}),
        ("{ equal = 0.5 }", {"equal": 0.5}),
        ('{ max = "2.5" }', {"maximum": 2.5}),
        ("{ max = 0 }", {"maximum": 0.0}),
        ("{ min = 1, max_ms = 1000 }", {"minimum": 1.0, "maximum": 1.0}),
    ],
)
def test_latency_is_in_seconds(folder: Path, latency: str, limits: dict[str, float]) -> None:
    case = only_case(folder, head("performance") + CASE + f"latency = {latency}")
    (metric,) = case.metrics
    assert case.turns[0].metrics == ()
    assert (metric.id, metric.type, metric.kind, metric.options) == ("latency", "latency", "performance", limits)


@pytest.mark.parametrize(
    ("tokens", "limits"),
    [
        ("{ max = 100 }", {"maximum": 100}),
        ("{ min = 10, max = 100, equal = 50 }", {"minimum": 10, "maximum": 100, "equal": 50}),
        (
            "{ input_min = 1, input_max = 2, output_min = 3, output_max = 4 }",
            {"input_min": 1, "input_max": 2, "output_min": 3, "output_max": 4},
        ),
        ('{ max = "100" }', {"maximum": 100}),
        ("{ max = 100.0 }", {"maximum": 100}),
        ("{ min = 5, max = 5 }", {"minimum": 5, "maximum": 5}),
    ],
)
def test_tokens(folder: Path, tokens: str, limits: dict[str, int]) -> None:
    metric = only_metric(folder, head("performance") + CASE + f"tokens = {tokens}")
    assert (metric.id, metric.type, metric.kind, metric.options) == ("tokens", "tokens", "performance", limits)


@pytest.mark.parametrize("limit", ["latency = {}", "tokens = {}"])
def test_no_limit_is_a_warning(folder: Path, limit: str) -> None:
    assert warnings(folder, head("performance") + CASE + limit) == [
        "5: eval.cases[0]: no limit is given, so nothing can be checked"
    ]


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("latency = 5", "latency: must be a mapping (key: value), not 5"),
        ('latency = { max = "fast" }', "latency.max: must be a number, not 'fast'"),
        ("latency = { max = nan }", "latency.max: must be a finite number"),
        ("latency = { max_ms = inf }", "latency.max_ms: must be a finite number"),
        ("latency = { min = 2, max = 1 }", "latency: `min` (2) is above `max` (1), so nothing can fit"),
        ("latency = { min_ms = 2000, max = 1 }", "latency: the minimum (2 s) is above the maximum (1 s)"),
        ("latency = { most = 1 }", "latency.most: unknown key; allowed: min, max, equal, min_ms, max_ms"),
        ("tokens = { max = 1.5 }", "tokens.max: must be a whole number, not 1.5"),
        ("tokens = { min = 2, max = 1 }", "tokens: `min` (2) is above `max` (1), so nothing can fit"),
        (
            "tokens = { output_min = 2, output_max = 1 }",
            "tokens: `output_min` (2) is above `output_max` (1), so nothing can fit",
        ),
        (
            "tokens = { output_maximum = 1 }",
            "tokens.output_maximum: unknown key; did you mean 'output_max'?; "
            "allowed: min, max, equal, input_min, input_max, output_min, output_max",
        ),
    ],
)
def test_limits_that_cannot_be(folder: Path, limit: str, said: str) -> None:
    assert problems(folder, head("performance") + CASE + limit) == [f"7: eval.cases[0].{said}"]


# Safety


@pytest.mark.parametrize("kind", ["filtered", "warning", "redirect"])
def test_a_kind_of_answer_needs_a_judge(folder: Path, kind: str) -> None:
    asked = CASE + f'blocked = true\nresponse_type = "{kind}"'
    assert warnings(folder, head("safety") + asked) == [
        f"8: eval.cases[0].response_type: that the answer is a '{kind}' is checked only with a judge"
    ]
    assert warnings(folder, head("safety") + LLM + asked) == []
    options = only_metric(folder, head("safety") + LLM + asked).options
    assert (options["response_type"], options["judge_prompt"]) == (kind, "Rate this.")
    assert options["model"] == ModelSpec("openai", "gpt-4", temperature=0.0)


def test_response_types_are_known(folder: Path) -> None:
    (said,) = problems(folder, head("safety") + CASE + 'blocked = true\nresponse_type = "block"')
    assert said.startswith("8: eval.cases[0].response_type: 'block' is not allowed; did you mean 'blocked'?")


def test_a_template_comes_before_the_cases_of_the_file(folder: Path) -> None:
    cases = load(folder, head("safety", 'template = "prompt_injection"') + CASE + "blocked = false").cases
    asked = [case.turns[0].input for case in cases]
    assert asked == [*(case.question("agent") for case in template_cases("prompt_injection")), "q"]
    assert {case.line for case in cases[:-1]} == {5}
    assert all(case.strict and case.turns[0].exception_is_answer for case in cases)


def test_a_template_has_cases_for_agents_and_for_tools(folder: Path) -> None:
    text = head("safety", 'targets.tools = ["t"]', 'template = "sql_injection"')
    cases = load(folder, text).cases
    for kind in ("agent", "tool"):
        asked = [case.turns[0].input for case in cases if case.target and case.target.kind == kind]
        offered = [case.question(kind) for case in template_cases("sql_injection")]
        assert asked == [question for question in offered if question is not None]
        assert len(asked) < len(offered)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("promt_injection", "; did you mean 'prompt_injection'?"), ("jailbreak", ""), ("", "")],
)
def test_unknown_templates(folder: Path, name: str, hint: str) -> None:
    known = "prompt_injection, harmful_content, sql_injection, pii_exposure, bias_detection"
    assert problems(folder, head("safety", f'template = "{name}"')) == [
        f"5: eval.template: no template is called {name!r}{hint}; known: {known}"
    ]


def test_templates_of_other_types_are_a_warning(folder: Path) -> None:
    text = head("accuracy", 'template = "prompt_injection"') + NEEDS["accuracy"]
    assert warnings(folder, text) == [
        "5: eval.template: an evaluation of type accuracy has no templates; this is not used"
    ]
    assert len(load(folder, text).cases) == 1


# Consistency


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("min_similarity = 1.1", "8: eval.cases[0].min_similarity: must be less than or equal to 1"),
        ("min_similarity = -0.1", "8: eval.cases[0].min_similarity: must be greater than or equal to 0"),
        ("min_similarity = nan", "8: eval.cases[0].min_similarity: must be a finite number"),
    ],
)
def test_similarities_that_cannot_be(folder: Path, lines: str, said: str) -> None:
    assert problems(folder, head("consistency") + CASE + lines) == [said]


# Judges


def test_llm(folder: Path) -> None:
    text = (
        head("llm")
        + '[eval.llm]\nmodel = "claude-3-opus"\nprompt = "Rate this."\ntemperature = 0.5\nmax_tokens = 200\n'
        + '[[eval.cases]]\nprompt = "q"\ncontext = { a = 1 }\nscore = { min = 6, max = 9 }\n'
        + 'criteria = ["clarity"]\nreference_response = "r"\n'
    )
    metric = only_metric(folder, text)
    assert (metric.id, metric.type, metric.kind, metric.threshold) == ("judge", "judge", "judge", None)
    options = metric.options
    assert options["model"] == ModelSpec("anthropic", "claude-3-opus", temperature=0.5, max_tokens=200)
    assert options["limits"] == {"min": 6.0, "max": 9.0, "equal": None}
    assert (options["prompt"], options["criteria"], options["reference"]) == ("Rate this.", ("clarity",), "r")
    assert (options["scores"], options["scale"], options["context"]) == (("score",), (0.0, 10.0), {"a": 1})


@pytest.mark.parametrize(
    ("schema", "scores", "scale"),
    [
        ('score = { type = "int", min = 1, max = 10 }\nreasoning = { type = "str" }', ("score",), (1, 10)),
        (
            'clarity = { type = "int", max = 5 }\noverall_score = { type = "float", max = 5 }',
            ("overall_score",),
            (0, 5),
        ),
        ('a = { type = "int", min = 1, max = 5 }\nb = { type = "int", min = 0, max = 10 }', ("a", "b"), (0, 10)),
        ('rating = { type = "float" }', ("rating",), (0, 10)),
    ],
)
def test_the_score_is_found_in_a_table(
    folder: Path, schema: str, scores: tuple[str, ...], scale: tuple[float, float]
) -> None:
    metric = only_metric(folder, f"{head('llm')}{LLM}[eval.llm.output_schema]\n{schema}\n{CASE}score = {{ min = 3 }}")
    assert (metric.options["scores"], metric.options["scale"]) == (scores, scale)
    assert metric.options["json_schema"] is None
    assert isinstance(metric.options["fields"], FieldSpec)


def test_the_score_is_found_in_a_json_schema(folder: Path) -> None:
    schema = '{"type": "object", "properties": {"score": {"type": "number", "minimum": 1, "maximum": 5}}}'
    metric = only_metric(folder, f"{head('llm')}{LLM}output_schema = '{schema}'\n{CASE}score = {{ min = 3 }}")
    assert (metric.options["scores"], metric.options["scale"]) == (("score",), (1, 5))
    assert metric.options["fields"] is None
    assert metric.options["json_schema"]["properties"]["score"]["maximum"] == 5


def test_limits_above_ten_mean_a_scale_up_to_a_hundred(folder: Path) -> None:
    text = head("llm") + LLM + CASE + "score = { min = 80 }\n" + '[[eval.cases]]\nprompt = "p"\nscore = { max = 5 }\n'
    assert {case.turns[0].metrics[0].options["scale"] for case in load(folder, text).cases} == {(0.0, 100.0)}


def test_a_score_may_have_to_be_one_number(folder: Path) -> None:
    for score in ("{ equal = 10 }", "{ min = 10, max = 10 }"):
        assert only_metric(folder, head("llm") + LLM + CASE + f"score = {score}").type == "judge"


def test_no_limit_on_a_score_is_a_warning(folder: Path) -> None:
    assert warnings(folder, head("llm") + LLM + CASE + "score = {}") == [
        "10: eval.cases[0].score: no limit is given, so the score is only shown"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LLM + CASE + "score = 7", "10: eval.cases[0].score: must be a mapping (key: value), not 7"),
        (LLM + CASE + "score = { min = nan }", "10: eval.cases[0].score.min: must be a finite number"),
        (
            LLM + CASE + "score = { min = 9, max = 3 }",
            "10: eval.cases[0].score: `min` (9) is above `max` (3), so nothing can fit",
        ),
        (
            LLM + 'output_schema = "{"\n' + CASE + "score = { min = 3 }",
            "8: eval.llm.output_schema: is not a JSON Schema: Expecting property name",
        ),
        (
            LLM + 'output_schema = "[]"\n' + CASE + "score = { min = 3 }",
            "8: eval.llm.output_schema: is not a JSON Schema: it is not an object",
        ),
        (
            LLM + 'output_schema = \'{"type": "numbr"}\'\n' + CASE + "score = { min = 3 }",
            "8: eval.llm.output_schema: is not a JSON Schema: 'numbr' is not valid",
        ),
        (
            LLM + 'output_schema = \'{"items": {"$ref": "file:///etc/x"}}\'\n' + CASE + "score = { min = 3 }",
            "8: eval.llm.output_schema: $ref 'file:///etc/x' leads out of the schema",
        ),
        (
            LLM + 'output_schema = \'{"items": {"patternProperties": {}}}\'\n' + CASE + "score = { min = 3 }",
            "8: eval.llm.output_schema: patternProperties is not supported",
        ),
        (
            LLM + 'output_schema = \'{"items": {"pattern": "(a{65000}){65000}"}}\'\n' + CASE + "score = { min = 3 }",
            "8: eval.llm.output_schema: pattern '(a{65000}){65000}': ",
        ),
        (
            LLM + 'output_schema = { a = { type = "str" } }\n' + CASE + "score = { min = 3 }",
            "8: eval.llm.output_schema: has no number that could be the score",
        ),
        (
            LLM + 'output_schema = { a = { type = "intt" } }\n' + CASE + "score = { min = 3 }",
            "8: eval.llm.output_schema.a.type: no type is called 'intt'; did you mean 'int'?",
        ),
        (LLM + "temperature = -1\n" + CASE + "score = { min = 3 }", "8: eval.llm.temperature: must be greater than"),
        (LLM + "max_tokens = 0\n" + CASE + "score = { min = 3 }", "8: eval.llm.max_tokens: must be greater than"),
        (
            '[eval.llm]\nmodel = "mistral/large"\nprompt = "p"\n' + CASE + "score = { min = 3 }",
            "6: eval.llm.model: unknown provider 'mistral'; known: openai/…, azure/…, anthropic/…, ollama/….",
        ),
    ],
)
def test_judges_that_cannot_be(folder: Path, text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (problem,) = problems(folder, head("llm") + text)
    assert problem.startswith(said)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("gpt-4", "openai/gpt-4"),
        ("openai/gpt-4", "openai/gpt-4"),
        ("claude-3-opus", "anthropic/claude-3-opus"),
        ("anthropic/claude-3-sonnet-20240229", "anthropic/claude-3-sonnet-20240229"),
        ("azure/my-deployment", "azure_openai/my-deployment"),
        ("ollama/llama3:8b", "ollama/llama3:8b"),
        ("ollama_chat/llama3", "ollama/llama3"),
        ("openai/org/model", "openai/org/model"),
    ],
)
def test_chat_models(name: str, label: str) -> None:
    assert chat_model(name).label == label


def test_models_behind_a_gateway_keep_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1234/v1")
    assert chat_model("mistral/large") == ModelSpec("openai", "mistral/large", temperature=0.0)


def test_embedding_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert embedding_model("openai/text-embedding-3-small") == ModelSpec("openai", "text-embedding-3-small")
    assert embedding_model("text-embedding-3-small").provider == "openai"
    assert embedding_model("local/all-MiniLM-L6-v2") == ModelSpec("local", "all-MiniLM-L6-v2")
    with pytest.raises(ValueError, match="anthropic has no embedding models"):
        embedding_model("claude-3")
    for name in ("openai/", "local/"):
        with pytest.raises(ValueError, match=r"has no model name|unknown provider"):
            embedding_model(name)


# Custom functions


def test_custom(folder: Path) -> None:
    text = (
        head("custom")
        + '[eval.custom]\nmodule = "my_company.evaluations"\nfunction = "validate"\n'
        + '[[eval.cases]]\nprompt = "q"\ncontext = { a = 1 }\nparameters = { limit = 0.15, deep = { x = [1] } }\n'
    )
    metric = only_metric(folder, text)
    assert (metric.id, metric.type, metric.kind) == ("custom", "custom", "custom")
    assert metric.options == {
        "function": "my_company.evaluations:validate",
        "parameters": {"limit": 0.15, "deep": {"x": [1]}},
        "prompt": "q",
        "context": {"a": 1},
    }


@pytest.mark.parametrize(
    ("module", "function", "said"),
    [
        ("a b", "f", "6: eval.custom.module: must be the name of a Python module, like my_package.checks, not 'a b'"),
        ("", "f", "6: eval.custom.module: must be the name of a Python module, like my_package.checks, not ''"),
        ("a/b.py", "f", "6: eval.custom.module: must be the name of a Python module"),
        ("a..b", "f", "6: eval.custom.module: must be the name of a Python module"),
        ("m:f", "f", "6: eval.custom.module: must be the name of a Python module"),
        ("m", "", "7: eval.custom.function: must be the name of a function in the module, not ''"),
        ("m", "f()", "7: eval.custom.function: must be the name of a function in the module, not 'f()'"),
    ],
)
def test_functions_that_cannot_be(folder: Path, module: str, function: str, said: str) -> None:
    text = f'{head("custom")}[eval.custom]\nmodule = "{module}"\nfunction = "{function}"\n{CASE}'
    (problem,) = problems(folder, text)
    assert problem.startswith(said)


# Targets


@pytest.mark.parametrize(
    ("targets", "meant"),
    [
        ('targets.agents = ["a"]', ["agent a"]),
        ('targets.agents = ["a", "b", "a"]', ["agent a", "agent b"]),
        ('targets.agents = ["*"]', ["agent *"]),
        ('targets.agents = ["a", "*", "b"]', ["agent *"]),
        ('targets.tools = ["t"]', ["tool t"]),
        ('targets.agents = []\ntargets.tools = ["t"]', ["tool t"]),
        ('targets.tools = ["t"]\ntargets.agents = ["a"]', ["agent a", "tool t"]),
        ('targets = { agents = ["*"], tools = ["*"] }', ["agent *", "tool *"]),
        ('[eval.targets]\nagents = ["a"]', ["agent a"]),
    ],
)
def test_targets(folder: Path, targets: str, meant: list[str]) -> None:
    text = f'[eval]\ndescription = ""\ntype = "accuracy"\n{targets}\n{NEEDS["accuracy"]}'
    targeted = [case.target for case in load(folder, text).cases]
    assert [f"{target.kind} {target.name}" for target in targeted if target] == meant


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (
            "targets.agents = []\ntargets.tools = []",
            'eval.targets: must name at least one agent or tool, for instance targets.agents = ["*"]',
        ),
        ("targets = {}", 'eval.targets: must name at least one agent or tool, for instance targets.agents = ["*"]'),
        ('targets.agents = "*"', "eval.targets.agents: must be a list, not '*'"),
        ("targets.agents = [5]", "eval.targets.agents[0]: must be text, not 5"),
        (
            'targets.agent = ["a"]',
            "eval.targets.agent: unknown key; did you mean 'agents'?; allowed: agents, tools",
        ),
        ('targets = ["a"]', "eval.targets: must be a mapping (key: value), not a list"),
    ],
)
def test_targets_that_cannot_be(folder: Path, targets: str, said: str) -> None:
    text = f'[eval]\ndescription = ""\ntype = "accuracy"\n{targets}\n{NEEDS["accuracy"]}'
    assert problems(folder, text) == [f"4: {said}"]


# Questions and ids


@pytest.mark.parametrize(
    ("asked", "agent", "tool", "name"),
    [
        ('prompt = "q"', "q", "q", "q"),
        ('prompt = "q"\ncontext = { a = 1 }', "q", "q", "q"),
        ('context = { city = "Zürich" }', '{"city": "Zürich"}', '{"city": "Zürich"}', '{"city": "Zürich"}'),
        ('prompt = """\ntwo\n lines"""', "two\n lines", "two\n lines", "two lines"),
        (f'prompt = "{"x" * 100}"', "x" * 100, "x" * 100, "x" * 59 + "…"),
        ('prompt = ""', "", "", "(no prompt)"),
        ("context = { day = 2024-05-01 }", '{"day": "2024-05-01"}', '{"day": "2024-05-01"}', '{"day": "2024-05-01"}'),
    ],
)
def test_questions(folder: Path, asked: str, agent: str, tool: str, name: str) -> None:
    text = head("accuracy", 'targets.tools = ["t"]') + f'[[eval.cases]]\n{asked}\noutput = "x"\n'
    cases = load(folder, text).cases
    assert [case.turns[0].input for case in cases] == [agent, tool]
    assert {case.name for case in cases} == {name}


def test_the_context_goes_along(folder: Path) -> None:
    text = (
        head("accuracy", 'targets.tools = ["t"]')
        + CASE
        + 'context = { a = [1, 2.5], b = { c = true } }\noutput = "x"'
    )
    assert [case.turns[0].context for case in load(folder, text).cases] == [{"a": [1, 2.5], "b": {"c": True}}] * 2


def test_a_case_that_asks_nothing_is_a_warning(folder: Path) -> None:
    assert warnings(folder, head() + '[[eval.cases]]\noutput = "x"') == [
        "5: eval.cases[0]: this case has neither a prompt nor a context, so it has no question"
    ]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("prompt = 5", "6: eval.cases[0].prompt: must be text, not 5"),
        ("prompt = true", "6: eval.cases[0].prompt: must be text, not a boolean"),
        (
            'prompt = ["a", "b"]',
            "6: eval.cases[0].prompt: must be one text, not a list; "
            "conversations of several turns are HoloDeck's `turns`",
        ),
        ('context = "x"', "6: eval.cases[0].context: must be a mapping (key: value), not 'x'"),
        ('blocked = "perhaps"', "6: eval.cases[0].blocked: must be true or false, not 'perhaps'"),
    ],
)
def test_questions_that_cannot_be(folder: Path, asked: str, said: str) -> None:
    assert problems(folder, f'{head()}[[eval.cases]]\n{asked}\noutput = "x"') == [said]


def ids(folder: Path, text: str) -> list[str]:
    return [case.id for case in load(folder, text).cases]


def test_ids_name_file_target_and_question(folder: Path) -> None:
    (first, second) = ids(folder, head("accuracy", 'targets.tools = ["t"]') + NEEDS["accuracy"])
    assert first.startswith(".agentci/evals/weather.toml::agents.a#")
    assert second.startswith(".agentci/evals/weather.toml::tools.t#")
    assert first.rpartition("#")[2] == second.rpartition("#")[2]


def test_ids_stay_the_same_where_the_expectation_or_the_order_changes(folder: Path) -> None:
    one, two = '[[eval.cases]]\nprompt = "1"\noutput = "x"\n', '[[eval.cases]]\nprompt = "2"\noutput.contains = "y"\n'
    before = ids(folder, head() + one + two)
    assert ids(folder, head() + two + one) == before[::-1]
    assert ids(folder, head() + one.replace("x", "z")) == before[:1]
    assert ids(folder, head().replace('["a"]', '["a", "b"]') + one + two)[:2] == before
    assert ids(folder, "# comment\n\n" + head("accuracy", "iterations = 7") + one + two) == before


def test_ids_differ_where_the_question_differs(folder: Path) -> None:
    text = head() + "".join(
        f'[[eval.cases]]\n{asked}\noutput = "x"\n'
        for asked in ('prompt = "1"', 'prompt = "1"\ncontext = { a = 1 }', 'prompt = "1"\ncontext = { a = 2 }')
    )
    assert len(set(ids(folder, text))) == 3


def test_a_repeated_question_is_numbered(folder: Path) -> None:
    one, two, three = ids(folder, head() + NEEDS["accuracy"] * 3)
    assert (two, three) == (f"{one}#2", f"{one}#3")


def test_the_fingerprint_changes_with_what_is_expected(folder: Path) -> None:
    def print_of(output: str) -> str:
        return only_case(folder, head() + CASE + output).fingerprint

    schema = '[eval.cases.output.schema]\na = { type = "int", max = 1 }'
    outputs = ['output = "x"', 'output = "y"', 'output.contains = "x"', schema, schema.replace("1", "2")]
    assert len({print_of(output) for output in outputs}) == len(outputs)
    assert print_of(schema) == print_of(schema)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1)), min_size=1, max_size=6), st.integers(1, 3))
def test_ids_are_unique(folder: Path, questions: list[tuple[str, int]], targets: int) -> None:
    names = ", ".join(f'"t{number}"' for number in range(targets))
    cases = "".join(
        f'[[eval.cases]]\nprompt = "{text}"\ncontext = {{ n = {number} }}\noutput = "x"\n'
        for text, number in questions
    )
    found = ids(folder, head().replace('["a"]', f"[{names}]") + cases)
    assert len(set(found)) == len(found) == len(questions) * targets


# Conversions, unknown keys, variables


@pytest.mark.parametrize(
    ("written", "iterations"), [("5", 5), ('"5"', 5), ("5.0", 5), ("1", 1), ("true", 1), ("1_000", 1000)]
)
def test_numbers_in_quotes_are_numbers(folder: Path, written: str, iterations: int) -> None:
    assert load(folder, head("accuracy", f"iterations = {written}") + NEEDS["accuracy"]).iterations == iterations


@pytest.mark.parametrize("written", ["0", "-1", "2.5", '"many"', "[]", '"0"'])
def test_iterations_that_cannot_be(folder: Path, written: str) -> None:
    (problem,) = problems(folder, head("accuracy", f"iterations = {written}") + NEEDS["accuracy"])
    assert problem.startswith("5: eval.iterations: must be ")


def test_the_place_in_the_list_may_be_written(folder: Path) -> None:
    assert len(load(folder, head() + NEEDS["accuracy"] + "index = 0").cases) == 1


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("expected", "; here it is called 'output'"),
        ("expected_output", "; here it is called 'output'"),
        ("input", "; here it is called 'prompt'"),
        ("query", "; here it is called 'prompt'"),
        ("question", "; here it is called 'prompt'"),
        ("expected_tools", "; here it is called 'tools'"),
    ],
)
def test_keys_of_other_tools(folder: Path, key: str, hint: str) -> None:
    text = head() + NEEDS["accuracy"] + f'{key} = "x"'
    assert problems(folder, text) == [f"8: eval.cases[0].{key}: unknown key{hint}; allowed: {CASE_KEYS}"]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("ouput", "; did you mean 'output'?"),
        ("promt", "; did you mean 'prompt'?"),
        ("case_sensitiv", "; did you mean 'case_sensitive'?"),
        ("owner", ""),
        ("tags", ""),
        ("notes", ""),
    ],
)
def test_unknown_keys_of_a_case_are_warnings(folder: Path, key: str, hint: str) -> None:
    text = head() + NEEDS["accuracy"] + f'{key} = "x"'
    warning = f"8: eval.cases[0].{key}: unknown key, which is not used{hint}"
    assert warnings(folder, text) == [warning]
    # A misspelt key may be the reason for a problem.
    text = head() + f'[[eval.cases]]\nprompt = "x"\n{key} = "x"'
    assert problems(folder, text)[1:] == [f"7: eval.cases[0].{key}: unknown key, which is not used{hint}"]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("iteration = 3", "eval.iteration: unknown key; did you mean 'iterations'?"),
        ('descripton = "x"', "eval.descripton: unknown key; did you mean 'description'?"),
        ("case = []", "eval.case: unknown key; did you mean 'cases'?"),
        (
            'custom = { modul = "m", module = "m", function = "f" }',
            "eval.custom.modul: unknown key; did you mean 'module'?",
        ),
        ('consistency = { modle = "m" }', "eval.consistency.modle: unknown key; did you mean 'model'?"),
        ('owner = "x"', "eval.owner: unknown key"),
        ('expected.exact = "x"', "eval.expected: unknown key"),
    ],
)
def test_unknown_keys_of_an_evaluation_are_warnings(folder: Path, line: str, hint: str) -> None:
    found = warnings(folder, head("accuracy", line) + NEEDS["accuracy"])
    assert f"5: {hint}".replace("unknown key", "unknown key, which is not used") in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[eval.cases]]\nprompt = "x"\noutput = { contain = "x" }', "output.contain: unknown key"),
        (
            '[[eval.cases]]\nprompt = "x"\n[eval.cases.output.schema]\na = { type = "str", max_lenght = 3 }',
            "schema.a.max_lenght: unknown key; did you mean 'max_length'?",
        ),
        (
            '[[eval.cases]]\nprompt = "x"\ntools = [{ name = "a", args = [], argz = 1 }]',
            "eval.cases[0].tools[0].argz: unknown key; did you mean 'args'?",
        ),
    ],
)
def test_unknown_keys_inside_what_is_checked_are_problems(folder: Path, text: str, problem: str) -> None:
    assert any(problem in found for found in problems(folder, head() + text))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("latency = { mx = 3 }", "latency.mx: unknown key; did you mean 'max'?"),
        ("tokens = { maximum = 3 }", "tokens.maximum: unknown key"),
    ],
)
def test_unknown_limits_are_problems(folder: Path, keys: str, message: str) -> None:
    (problem,) = problems(folder, head("performance") + f'[[eval.cases]]\nprompt = "x"\n{keys}')
    assert message in problem


def test_further_tables_are_warnings(folder: Path) -> None:
    found = warnings(folder, head() + NEEDS["accuracy"] + "[metadata]\nowner = 5")
    assert found == ["8: metadata: unknown key, which is not used"]
    found = warnings(folder, head("llm") + LLM + "temprature = 1\n" + CASE + "score = { min = 3 }")
    assert found == ["8: eval.llm.temprature: unknown key, which is not used; did you mean 'temperature'?"]


@pytest.mark.parametrize(
    ("base", "place", "root"),
    [
        ("", ".agentci/evals", ""),
        ("quality/ci", "quality/ci/evals", ""),
        ("./quality/../other", "other/evals", ""),
        ("ABSOLUTE", "elsewhere/evals", "elsewhere/evals"),
    ],
)
def test_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str, place: str, root: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(BASE_PATH, str(tmp_path / "elsewhere") if base == "ABSOLUTE" else base)
    file = tmp_path / place / "shop.toml"
    file.parent.mkdir(parents=True)
    file.write_text(head() + NEEDS["accuracy"])
    assert [path.resolve() for path in discover(tmp_path)] == [file]
    assert base_directory(file) == tmp_path / root
    descriptions = file.parents[1] / "frameworks"
    descriptions.mkdir()
    (descriptions / "own.toml").write_text("broken")
    with pytest.raises(ConfigError, match=r"own\.toml"):
        load_frameworks(tmp_path)


REFERENCES = """{"$ref": "#/$defs/Reply", "$defs": {
  "Reply": {"type": "object", "properties": {"score": {"$ref": "#/$defs/Points"}, "why": {"type": "string"}}},
  "Points": {"type": "integer", "minimum": 1, "maximum": 5}}}"""
COMBINED = '{"allOf": [{"properties": {"rating": {"type": "number", "maximum": 4}}}, {"required": ["rating"]}]}'


@pytest.mark.parametrize(
    ("schema", "scores", "scale"),
    [
        ("{}", ("score",), (0.0, 10.0)),
        ('{"type": "object"}', ("score",), (0.0, 10.0)),
        ('{"type": "object", "additionalProperties": true}', ("score",), (0.0, 10.0)),
        ('{"$ref": "#/$defs/Any", "$defs": {"Any": {"type": "object"}}}', ("score",), (0.0, 10.0)),
        (REFERENCES, ("score",), (1.0, 5.0)),
        (COMBINED, ("rating",), (0.0, 4.0)),
    ],
)
def test_the_score_of_a_json_schema(
    folder: Path, schema: str, scores: tuple[str, ...], scale: tuple[float, float]
) -> None:
    suite = load(folder, head("llm") + LLM + f"output_schema = '''{schema}'''\n" + CASE + "score = { min = 1 }")
    (metric,) = suite.cases[0].turns[0].metrics
    assert (metric.options["scores"], metric.options["scale"]) == (scores, scale)
    # A schema without properties is completed, so that the judge knows what to reply.
    shown = metric.options["json_schema"]
    assert ("score" in shown.get("properties", {})) == (schema not in {REFERENCES, COMBINED})


def test_variables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_NAME", "helper")
    monkeypatch.setenv("TIMES", "3")
    monkeypatch.setenv("SOME_TOKEN", "s3cr3t")
    text = (
        '[eval]\ndescription = "d"\ntype = "accuracy"\ntargets.agents = ["${AGENT_NAME}"]\n'
        'iterations = "${TIMES}"\n[[eval.cases]]\nprompt = "Is it ${SOME_TOKEN}?"\noutput = "${UNSET_ONE:-yes}"\n'
    )
    with confined(pass_env=("SOME_TOKEN",)):
        suite = load(folder, text)
    assert suite.iterations == 3
    assert suite.secrets == {"s3cr3t"}
    (case,) = suite.cases
    assert case.target == Target("agent", "helper")
    assert case.turns[0].input == "Is it s3cr3t?"
    assert case.turns[0].metrics[0].options["match"] == TextMatch("exact", ("yes",))


# Everything at once


def test_all_problems_of_a_file_are_named_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNSET_TWO", raising=False)
    text = (
        head("accuracy", "iteration = 2")
        + "[[eval.cases]]\nprompt = 5\noutput = 4\n"
        + '[[eval.cases]]\nprompt = "${UNSET_TWO}"\noutput = { contains = [], exact = "x" }\n'
        + '[[eval.cases]]\nexpected = 1\n[eval.cases.output.schema]\na = { type = "strng" }\n'
    )
    lines = [int(problem.partition(":")[0]) for problem in problems(folder, text)]
    assert sorted(lines) == [5, 7, 8, 10, 11, 13, 15]


def loaded(folder: Path, text: str) -> Suite | tuple[Problem, ...]:
    """The suite, or its problems."""
    try:
        return load(folder, text)
    except ConfigError as error:
        return error.problems


@pytest.mark.parametrize("depth", [300, 400, 450, 5000])
def test_deep_nesting_does_not_crash(folder: Path, depth: int) -> None:
    found = loaded(folder, head() + NEEDS["accuracy"] + "context." + ".".join(["a"] * depth) + " = 1")
    assert isinstance(found, Suite) or "nested too deeply" in found[0].message


VALUES = st.recursive(
    st.sampled_from(['"x"', "5", "-1", "2.5", "nan", "true", "[]", "{}", "2024-05-01", '["a"]', '"*"']),
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(
            st.sampled_from(
                ["min", "max", "type", "exact", "contains", "similar", "schema", "name", "args", "agents"]
            ),
            inner,
            max_size=2,
        ).map(lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}")
    ),
    max_leaves=5,
)
EVAL_KEYS = st.sampled_from(
    ["description", "type", "targets", "iterations", "template", "consistency", "llm", "custom", "name", "odd"]
)


@given(
    st.sampled_from(TYPES),
    st.dictionaries(EVAL_KEYS, VALUES, max_size=3),
    st.lists(st.dictionaries(st.sampled_from(CASE_KEYS.split(", ")), VALUES, max_size=4), max_size=2),
)
def test_every_file_is_read_or_refused(
    folder: Path, kind: str, keys: dict[str, str], cases: list[dict[str, str]]
) -> None:
    basic: dict[str, Any] = {"description": '"d"', "type": f'"{kind}"', "targets": '{agents = ["a"]}', **keys}
    text = "[eval]\n" + "".join(f"{key} = {value}\n" for key, value in basic.items())
    text += "".join(
        "[[eval.cases]]\n" + "".join(f"{key} = {value}\n" for key, value in case.items()) for case in cases
    )
    found = loaded(folder, text)
    if isinstance(found, Suite):
        assert all(case.fingerprint for case in found.cases)
    else:
        # Whatever is wrong has a line and a key.
        assert found
        assert all(problem.line and problem.path for problem in found)
