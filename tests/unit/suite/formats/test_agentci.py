"""Files of ``.agentci/evals`` as suites: values, meanings and mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.agents.frameworks.scan import load_frameworks
from agenteval.core.confine import confined
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.llm.models import ModelSpec, chat_model, embedding_model
from agenteval.suite.formats.agentci.metrics import template_cases
from agenteval.suite.formats.agentci.suite import load_agentci
from agenteval.suite.formats.base import BASE_PATH, base_directory
from agenteval.suite.formats.registry import discover
from agenteval.suite.forms import TextMatch
from agenteval.suite.model import Case, MetricConfig, Suite, Target

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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["the table [eval] is missing (found: nothing); it needs description, type"]),
        ('[[eval]]\ntype = "x"', ["1: eval: must be a mapping (key: value), not a list; it begins with [eval]"]),
        (
            head() + '[eval.cases]\nprompt = "x"',
            ["5: eval.cases: must be a list, not a mapping; each case begins with [[eval.cases]]"],
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


MISTAKES = [
    (head("custom") + CASE, "3: eval.type: an evaluation of type custom needs a table [eval.custom]"),
    (head() + CASE + "output = {}", f"7: eval.cases[0].output: needs exactly one of {STRATEGIES}; none is given"),
    (
        head() + CASE + 'output.exact = "a"\noutput.threshold = 0.8',
        '7: eval.cases[0].output: `threshold` is for `similar`: { similar = "…", threshold = 0.8 }',
    ),
    (head() + CASE + "output.contains = []", "7: eval.cases[0].output.contains: must name at least one text"),
    (
        head() + CASE + 'tools = [{ name = "t", args = "x" }]',
        "7: eval.cases[0].tools[0].args: must be a list, not 'x'",
        "7: eval.cases[0].tools[0].args: must be a mapping (key: value), not 'x'",
    ),
    (
        head("performance") + CASE + "latency = { min_ms = 2000, max = 1 }",
        "7: eval.cases[0].latency: the minimum (2 s) is above the maximum (1 s)",
    ),
    (
        head("performance") + CASE + "tokens = { output_min = 2, output_max = 1 }",
        "7: eval.cases[0].tokens: `output_min` (2) is above `output_max` (1), so nothing can fit",
    ),
    (
        head("custom") + '[eval.custom]\nmodule = "a b"\nfunction = "f"\n' + CASE,
        "6: eval.custom.module: must be the name of a Python module, like my_package.checks, not 'a b'",
    ),
    (
        head("custom") + '[eval.custom]\nmodule = "m"\nfunction = "f()"\n' + CASE,
        "7: eval.custom.function: must be the name of a function in the module, not 'f()'",
    ),
    (
        head() + '[[eval.cases]]\nprompt = ["a", "b"]\noutput = "x"',
        "6: eval.cases[0].prompt: must be one text, not a list; conversations of several turns are HoloDeck's",
    ),
    (
        head() + NEEDS["accuracy"] + 'expected = "x"',
        f"8: eval.cases[0].expected: unknown key; here it is called 'output'; allowed: {CASE_KEYS}",
    ),
    (
        head("llm") + LLM + 'output_schema = "[]"\n' + CASE + "score = { min = 3 }",
        "8: eval.llm.output_schema: is not a JSON Schema: it is not an object",
    ),
    (
        head("llm") + LLM + 'output_schema = \'{"items": {"$ref": "file:///etc/x"}}\'\n' + CASE + "score.min = 3",
        "8: eval.llm.output_schema: $ref 'file:///etc/x' leads out of the schema",
    ),
    (
        head("llm") + LLM + 'output_schema = { a = { type = "str" } }\n' + CASE + "score = { min = 3 }",
        "8: eval.llm.output_schema: has no number that could be the score",
    ),
    (
        head("llm") + '[eval.llm]\nmodel = "mistral/large"\nprompt = "p"\n' + CASE + "score = { min = 3 }",
        "6: eval.llm.model: unknown provider 'mistral'; known: openai/…, azure/…, anthropic/…, ollama/….",
    ),
]


@pytest.mark.parametrize("row", MISTAKES)
def test_mistakes(folder: Path, row: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    text, *said = row
    found = problems(folder, text)
    assert len(found) == len(said)
    assert all(problem.startswith(start) for problem, start in zip(found, said, strict=True)), found


TEN = '[eval.llm.output_schema.score]\ntype = "float"\nmin = 1\nmax = 10\n'


@pytest.mark.parametrize(
    ("text", "decides"),
    [
        (head("llm") + LLM + CASE + "score = { min = 0, max = 10 }", False),
        (head("llm") + LLM + CASE + "score = { min = 0, max = 9 }", True),
        (head("llm") + LLM + TEN + CASE + "score = { min = 1 }", False),
        (head("llm") + LLM + TEN + CASE + "score = { min = 2 }", True),
        (head("performance") + CASE + "latency = { min_ms = 0 }", False),
        (head("performance") + CASE + "latency = { min = 0, max = 5 }", True),
        (head("performance") + CASE + "tokens = { min = 0, input_min = 0, output_min = 0 }", False),
        (head("performance") + CASE + "tokens = { min = 0, output_min = 1 }", True),
    ],
)
def test_limits_that_every_answer_meets_are_a_warning_and_decide_nothing(
    folder: Path, text: str, decides: bool
) -> None:
    assert only_metric(folder, text).gating == decides
    assert [warning for warning in warnings(folder, text) if "so this checks nothing" not in warning] == []
    assert len(warnings(folder, text)) == (0 if decides else 1)


def test_a_pattern_that_later_pythons_read_otherwise_is_read(folder: Path) -> None:
    assert only_metric(folder, head() + CASE + "output.match = '[[:alpha:]]+'").type == "text_match"


def test_a_kind_of_answer_needs_a_judge(folder: Path) -> None:
    asked = CASE + 'blocked = true\nresponse_type = "filtered"'
    assert warnings(folder, head("safety") + asked) == [
        "8: eval.cases[0].response_type: that the answer is a 'filtered' is checked only with a judge"
    ]
    assert warnings(folder, head("safety") + LLM + asked) == []
    options = only_metric(folder, head("safety") + LLM + asked).options
    assert (options["response_type"], options["judge_prompt"]) == ("filtered", "Rate this.")
    assert options["model"] == ModelSpec("openai", "gpt-4", temperature=0.0)


def test_a_template_has_cases_for_agents_and_for_tools(folder: Path) -> None:
    text = head("safety", 'targets.tools = ["t"]', 'template = "sql_injection"')
    cases = load(folder, text).cases
    for kind in ("agent", "tool"):
        asked = [case.turns[0].input for case in cases if case.target and case.target.kind == kind]
        offered = [case.question(kind) for case in template_cases("sql_injection")]
        assert asked == [question for question in offered if question is not None]
        assert len(asked) < len(offered)


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


def test_limits_above_ten_mean_a_scale_up_to_a_hundred(folder: Path) -> None:
    text = head("llm") + LLM + CASE + "score = { min = 80 }\n" + '[[eval.cases]]\nprompt = "p"\nscore = { max = 5 }\n'
    assert {case.turns[0].metrics[0].options["scale"] for case in load(folder, text).cases} == {(0.0, 100.0)}


def test_no_limit_on_a_score_is_a_warning(folder: Path) -> None:
    assert warnings(folder, head("llm") + LLM + CASE + "score = {}") == [
        "10: eval.cases[0].score: no limit is given, so the score is only shown"
    ]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("openai/gpt-4", "openai/gpt-4"),
        ("claude-3-opus", "anthropic/claude-3-opus"),
        ("azure/my-deployment", "azure_openai/my-deployment"),
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


@pytest.mark.parametrize(
    ("asked", "agent", "tool", "name"),
    [
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


def test_the_fingerprint_changes_with_what_is_expected(folder: Path) -> None:
    def print_of(output: str) -> str:
        return only_case(folder, head() + CASE + output).fingerprint

    schema = '[eval.cases.output.schema]\na = { type = "int", max = 1 }'
    outputs = ['output = "x"', 'output = "y"', 'output.contains = "x"', schema, schema.replace("1", "2")]
    assert len({print_of(output) for output in outputs}) == len(outputs)
    assert print_of(schema) == print_of(schema)


# Conversions, unknown keys, variables


def test_a_misspelt_key_may_be_the_reason_for_a_problem(folder: Path) -> None:
    text = head() + '[[eval.cases]]\nprompt = "x"\nouput = "x"'
    assert problems(folder, text)[1:] == [
        "7: eval.cases[0].ouput: unknown key, which is not used; did you mean 'output'?"
    ]


@pytest.mark.parametrize(
    ("base", "place", "root"),
    [
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
