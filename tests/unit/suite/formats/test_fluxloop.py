"""FluxLoop's ``evaluation.yaml`` as a suite: values, meanings and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support import ROOT

from agenteval.core.errors import ConfigError, Problem
from agenteval.core.files import bounded
from agenteval.core.llm.models import ModelSpec
from agenteval.suite.evaluation import Aggregate, AlertRule, Analyses, Criteria, EvaluationReport, JudgeLimits
from agenteval.suite.formats.fluxloop.metrics import prebuilt_names, prebuilt_template
from agenteval.suite.formats.fluxloop.suite import load_fluxloop
from agenteval.suite.formats.registry import load_suites
from agenteval.suite.forms import template_warnings
from agenteval.suite.model import AgentSpec, Suite

DATA = ROOT / "tests" / "data" / "fluxloop"
RULE = "{name: a, type: rule_based, rules: [{check: success}]}"
EVALUATORS = f"evaluators:\n- {RULE}\n"
JUDGE = "evaluators:\n- {name: tone, type: llm_judge, model: gpt-4o-mini, prompt_template: 'Kind? {output}'"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FLUXLOOP_LLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def load(folder: Path, text: str) -> Suite:
    path = folder / "evaluation.yaml"
    path.write_text(text)
    return load_fluxloop(path, "suites/evaluation.yaml")


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    return [str(problem).removeprefix("suites/evaluation.yaml:") for problem in caught.value.problems]


def options(suite: Suite, number: int = 0) -> dict[str, Any]:
    return dict(suite.metrics[number].options)


def complete() -> Suite:
    return load_fluxloop(DATA / "complete.yaml", "complete.yaml")


@pytest.mark.parametrize("name", ["quick_start", "minimal", "standard", "production"])
def test_the_documented_examples_load(name: str) -> None:
    suite = load_fluxloop(DATA / f"{name}.yaml", f"{name}.yaml")
    assert suite.format == "fluxloop"
    assert suite.metrics
    assert suite.aggregate is not None
    assert suite.aggregate.weights.keys() == {metric.id for metric in suite.metrics}


def test_the_documented_production_example_warns_about_missing_parts() -> None:
    suite = load_fluxloop(DATA / "production.yaml", "production.yaml")
    (warning,) = suite.warnings
    assert warning.startswith("production.yaml:30: evaluators[3]: response_quality has no prompt_template")
    assert suite.evaluation is not None
    assert suite.evaluation.criteria.quality == {"intent_recognition": None, "response_quality": None}


def test_the_judge_of_the_complete_example() -> None:
    judge = options(complete(), 1)
    assert judge["model"] == ModelSpec("openai", "gpt-5-mini", temperature=0.2, max_tokens=300, top_p=0.9)
    assert judge["asked"] == {
        "reasoning_effort": "low",
        "verbosity": "high",
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
        "seed": 7,
        "response_format": {"type": "json_object"},
    }
    assert judge["parameters"]["reasoning"] == {"effort": "low"}
    assert (judge["parser"], judge["max_score"], judge["name"]) == ("json_score", 5.0, "tone")
    assert judge["limits"] == JudgeLimits(0.5, 10, 5.0, "judged.jsonl")


def test_the_rest_of_the_complete_example() -> None:
    suite = complete()
    assert [metric.id for metric in suite.metrics] == ["checks", "tone"]
    assert suite.aggregate == Aggregate("average", 0.8, {"checks": 0.25, "tone": 0.5})
    evaluation = suite.evaluation
    assert evaluation is not None
    assert evaluation.goal == "Answers are kind and short."
    assert evaluation.criteria == Criteria(
        all_successful=True,
        avg_response_ms=2000.0,
        max_response_ms=5000.0,
        error_rate_percent=5.0,
        quality={"checks": None, "tone": 0.9},
        tool_calls=(
            "all_calls_successful",
            "appropriate_selection",
            "correct_parameters",
            "proper_timing",
            "handles_failures",
        ),
    )
    assert evaluation.analyses == Analyses(
        personas=True,
        focus_personas=("expert_user", "novice_user"),
        outliers=True,
        outlier_handling="remove",
        trend=True,
        failures=True,
        failure_causes=True,
        baseline=str(DATA / "earlier" / "summary.json"),
        statistics=True,
        significance=0.01,
        confidence=0.99,
        alerts=(
            AlertRule("error_rate", ">", 10),
            AlertRule("avg_score", "<", 0.7),
            AlertRule("tone", "<=", 0.5),
            AlertRule("pass_rate", "==", 1),
            AlertRule("max_response_time", ">=", 9000),
        ),
    )
    assert evaluation.report == EvaluationReport(
        style="detailed",
        tone="executive",
        sections={
            "executive_summary": False,
            "key_metrics": True,
            "detailed_results": False,
            "statistical_analysis": True,
            "failure_cases": False,
            "success_examples": True,
            "recommendations": False,
            "action_items": True,
        },
        charts=False,
        tables=False,
        interactive=False,
        markdown=True,
        html=False,
        template=str(DATA / "complete.yaml"),
    )
    assert suite.agent == AgentSpec(
        kind="command",
        target=("python", "agent.py"),
        directory=str(DATA),
        timeout_s=9,
        options={},
        where="complete.yaml:2",
    )
    assert suite.warnings == (
        "complete.yaml:63: evaluators[1].metadata.sample_response: is not used, as in FluxLoop; "
        "put an example reply into prompt_template",
    )


def test_keys_without_a_value_mean_their_defaults_but_null_lifts_limits(tmp_path: Path) -> None:
    text = EVALUATORS + "aggregate:\nreport: {style: , template_path: null}\nsuccess_criteria: {performance: }\n"
    suite = load(tmp_path, text)
    assert suite.aggregate == Aggregate("weighted_sum", 0.7, {"a": 1.0})
    unlimited = load(tmp_path, JUDGE + "}\nlimits: {max_llm_calls: null, timeout_seconds: null, cache: null}\n")
    assert options(unlimited)["limits"] == JudgeLimits(1.0, None, None, None)


def test_a_cache_outside_of_the_boundary_is_refused(tmp_path: Path) -> None:
    with bounded([tmp_path], None):
        [problem] = problems(tmp_path, EVALUATORS + "limits:\n  cache: ../../evil.jsonl\n")
    assert problem.startswith("4: limits.cache: ")
    assert "evil.jsonl is outside of the directories that may be written" in problem


@pytest.mark.parametrize("name", [name for name in prebuilt_names() if name != "response_quality"])
def test_prebuilt_judges_need_no_template(tmp_path: Path, name: str) -> None:
    for template in (
        "",
        "  prompt_template: ''\n",
        "  prompt_template: '# automatically filled in'\n",
        "  prompt_template: |\n    # a\n\n    # b\n",
    ):
        suite = load(tmp_path, f"evaluators:\n- name: {name}\n  type: llm_judge\n  model: gpt-4o\n{template}")
        assert options(suite)["template"] == prebuilt_template(name, "first_number_1_10", 10)
        warnings = [warning.partition("prompt_template: ")[2] for warning in suite.warnings]
        only = "contains only comments, so the built-in prompt of this name is used"
        assert warnings == ([only] if "#" in template else [])


@pytest.mark.parametrize("name", prebuilt_names())
def test_built_in_prompts_have_only_known_placeholders(name: str) -> None:
    text = prebuilt_template(name, "first_number_1_10", 10)
    assert template_warnings(text) == []
    assert {"{input}", "{output}"} <= {f"{{{part.split('}')[0]}}}" for part in text.split("{")[1:]}
    assert "from 1 (worst) to 10 (best)" in text


def test_keys_of_judges_in_env_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-file-123456\n")
    suite = load(tmp_path, JUDGE + "}\n")
    assert options(suite)["model"].api_key == "sk-file-123456"
    assert suite.secrets == {"sk-file-123456"}
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-file-123456\nFLUXLOOP_LLM_API_KEY=sk-flux-123456\n")
    assert options(load(tmp_path, JUDGE + "}\n"))["model"].api_key == "sk-flux-123456"
    # No file replaces a key of the environment.
    monkeypatch.setenv("OPENAI_API_KEY", "sk-job-123456")
    assert options(load(tmp_path, JUDGE + "}\n"))["model"].api_key is None
    monkeypatch.setenv("FLUXLOOP_LLM_API_KEY", "sk-job-flux-123456")
    assert options(load(tmp_path, JUDGE + "}\n"))["model"].api_key == "sk-job-flux-123456"


def test_judge_limits_do_not_change_fingerprints(tmp_path: Path) -> None:
    (tmp_path / "input.yaml").write_text("base_inputs: [{input: Hello}]\n")
    few, many = (load(tmp_path, JUDGE + f"}}\nlimits: {{max_llm_calls: {calls}}}\n").fingerprint for calls in (1, 99))
    assert few == many
    assert few != load(tmp_path, JUDGE.replace("Kind", "Nice") + "}\n").fingerprint


def test_paths_start_at_the_file_and_then_at_the_project(tmp_path: Path) -> None:
    configs = tmp_path / "configs"
    configs.mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "summary.json").write_text("{}")
    (tmp_path / "page.html").write_text("project")
    (configs / "page.html").write_text("configs")
    text = EVALUATORS + (
        "additional_analysis: {comparison: {enabled: true, baseline_path: old/summary.json}}\n"
        "report: {template_path: page.html}\n"
    )
    evaluation = load(configs, text).evaluation
    assert evaluation is not None
    assert evaluation.report is not None
    assert evaluation.analyses.baseline == str(tmp_path / "old" / "summary.json")
    assert evaluation.report.template == str(configs / "page.html")


SUITE_WARNINGS = [
    ("aggregate: {threshold: 0}", "every case reaches 0, so no case can fail"),
    ("success_criteria: {performance: {avg_response_time: {threshold_ms: 5}}}", "without `enabled: true`"),
    ("success_criteria: {functionality: {tool_calling: {enabled: true}}}", "is enabled without a check"),
    (
        "success_criteria: {performance: {error_rate: {enabled: true, threshold_percent: 100}}}",
        "no error rate is above",
    ),
    ("success_criteria: {performance: {error_rate: {enabled: true, threshold_percent: 99.9}}}", None),
    ("success_criteria: {quality: {response_clarity: true}}", "no evaluator of this name is enabled"),
    ("advanced: {alerts: {enabled: true}}", "has no `conditions`"),
]


@pytest.mark.parametrize(("text", "warning"), SUITE_WARNINGS)
def test_unusual_settings_are_warnings(tmp_path: Path, text: str, warning: str | None) -> None:
    found = load(tmp_path, f"{EVALUATORS}{text}\n").warnings
    if warning is None:
        assert found == ()
    else:
        assert len(found) == 1
        assert found[0].startswith("suites/evaluation.yaml:3: ")
        assert warning in found[0]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            ", model_parameters: {temprature: 1}}",
            "model_parameters.temprature: not used; did you mean 'temperature'?",
        ),
        (", max_score: 100}", "max_score: first_number_1_10 reads 0 to 10, so 100 is never reached"),
        (", weight: 0}", "no enabled evaluator has a weight above 0, so nothing can be scored"),
        (f", enabled: false}}\n- {{{RULE[1:-1]}, enabled: false}}\n#", "all 2 evaluators are disabled, so nothing"),
        (
            f", metadata: {{sample_response: x}}}}\n- {{{RULE[1:-1]}, metadata: {{sample_response: y}}}}\n#",
            "evaluators[0].metadata.sample_response: is not used (nor of 1 more), as in FluxLoop",
        ),
    ],
)
def test_unusual_evaluator_settings_are_warnings(tmp_path: Path, text: str, warning: str) -> None:
    (found,) = load(tmp_path, JUDGE + text).warnings
    assert warning in found


@pytest.mark.parametrize(
    ("names", "ids", "numbered"),
    [
        # A name that exists is not given to another evaluator.
        (("a", "a", "a#2"), ["a", "a#3", "a#2"], [(3, 2, "a#3")]),
        (("a", "-a", "a"), ["a", "a#2"], [(4, 2, "a#2")]),
    ],
)
def test_repeated_names_are_numbered(
    tmp_path: Path, names: tuple[str, ...], ids: list[str], numbered: list[tuple[int, int, str]]
) -> None:
    rule = "- {{name: '{}', type: rule_based, enabled: {}, rules: [{{check: success}}]}}\n"
    written = "".join(rule.format(name.lstrip("-"), str(not name.startswith("-")).lower()) for name in names)
    suite = load(tmp_path, f"evaluators:\n{written}success_criteria: {{quality: {{a: true}}}}\n")
    assert [metric.id for metric in suite.metrics] == ids
    assert suite.aggregate is not None
    assert list(suite.aggregate.weights) == ids
    assert suite.evaluation is not None
    enabled = [name for name in names if not name.startswith("-")]
    assert list(suite.evaluation.criteria.quality) == [
        own for own, name in zip(ids, enabled, strict=True) if name == "a"
    ]
    assert [warning.partition(".name: ")[2] for warning in suite.warnings] == [
        f"the name 'a' is given twice (first in line {first}); this evaluator is called '{name}'"
        for _, first, name in numbered
    ]


MISTAKES = [
    ("", " the file is empty; write keys with values, at least `evaluators`"),
    (
        f"{EVALUATORS}success_criteria:\n  performance:\n    error_rate: {{enabled: true}}",
        "5: success_criteria.performance.error_rate: needs `threshold_percent` if it is enabled",
    ),
    (
        f"{EVALUATORS}success_criteria:\n  quality:\n    a: very",
        "5: success_criteria.quality.a: must be true or false, or the required mean score, 0 to 1",
    ),
    (
        f"{EVALUATORS}success_criteria:\n  quality:\n    a: 1{'0' * 400}",
        "5: success_criteria.quality.a: must be true or false, or the required mean score, 0 to 1",
    ),
    (
        f"{EVALUATORS}additional_analysis: {{comparison: {{enabled: true}}}}",
        "3: additional_analysis.comparison: needs `baseline_path`",
    ),
    (JUDGE.replace("gpt-4o-mini", "nobody/best") + "}", "2: evaluators[0].model: unknown provider 'nobody'"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes(tmp_path: Path, text: str, message: str) -> None:
    (found,) = problems(tmp_path, text)
    assert found.startswith(message)


RULE_MISTAKES = [
    ("3", "[0]: a rule is a mapping with `check`"),
    ("{check: matches_regex, pattern: '('}", "[0].pattern: '(' is not a regular expression: "),
    (
        "{check: similarity, expected_path: a, threshold: 1, min_score: 1}",
        "[0]: give `threshold` or `min_score`, which mean the same, not both",
    ),
]


@pytest.mark.parametrize(("rule", "message"), RULE_MISTAKES)
def test_mistakes_in_rules(tmp_path: Path, rule: str, message: str) -> None:
    found = problems(tmp_path, f"evaluators:\n- name: a\n  type: rule_based\n  rules:\n  - {rule}\n")
    assert any(problem.startswith(f"5: evaluators[0].rules{message}") for problem in found), found


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("agent.yaml", EVALUATORS, "fluxloop"),
        ("bom.yaml", "\ufeff" + EVALUATORS, "fluxloop"),
        ("evaluation.yaml", "test_cases:\n- input: Hi\n  evaluators: 3\n", None),
        ("evaluation.yaml", "test_cases: [{input: Hi}]\n", "holodeck"),
        ("other.yaml", "test_cases: [{input: 'evaluators: none'}]\n", "holodeck"),
    ],
)
def test_the_format_is_told_by_the_content(tmp_path: Path, name: str, text: str, expected: str | None) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    found: list[Problem] = []
    assert [suite.format for suite in load_suites([path], found)] == ([expected] if expected else [])
    assert all("holodeck" in str(problem) or "evaluators" in str(problem) for problem in found)
