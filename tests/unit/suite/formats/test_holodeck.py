"""HoloDeck's ``agent.yaml`` as a suite: values, meanings and mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support import ROOT

from agenteval.core.confine import confined
from agenteval.core.errors import ConfigError
from agenteval.run.resolve.agents import with_limit
from agenteval.suite.formats.holodeck.suite import load_holodeck
from agenteval.suite.model import AgentSpec, Case, MetricConfig, Suite

DATA = ROOT / "tests" / "data" / "holodeck"
NUMERIC = "evaluations:\n  metrics:\n  - {type: standard, metric: numeric}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suites")


def load(folder: Path, text: str) -> Suite:
    path = folder / "agent.yaml"
    path.write_text(text)
    return load_holodeck(path, "suites/agent.yaml")


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    return [str(problem).removeprefix("suites/agent.yaml:") for problem in caught.value.problems]


def case(folder: Path, text: str) -> Case:
    (only,) = load(folder, text).cases
    return only


def metrics(suite: Suite, number: int = 0, turn: int = 0) -> tuple[MetricConfig, ...]:
    return suite.cases[number].turns[turn].metrics


class TestCompleteSuite:
    @pytest.fixture
    def suite(self) -> Suite:
        return load_holodeck(DATA / "complete.yaml", "complete.yaml")

    def test_the_suite(self, suite: Suite) -> None:
        assert (suite.path, suite.name, suite.format) == ("complete.yaml", "warehouse-assistant", "holodeck")
        assert suite.concurrency == 3
        assert suite.warnings == ()
        assert isinstance(suite.agent, AgentSpec)
        assert suite.agent.target == ("python", "agent.py")
        assert with_limit(suite.agent, suite).limit_s == 30

    @pytest.mark.parametrize("written", ["null", "~", ""])
    def test_nothing_is_no_ground_truth(self, folder: Path, written: str) -> None:
        assert case(folder, f"test_cases:\n- input: q\n  ground_truth: {written}\n").turns[0].ground_truth is None

    @pytest.mark.parametrize(
        ("written", "matcher"),
        [
            ("{fuzzy: 60.940}", {"fuzzy": "60.940"}),
            ("{fuzzy: yes}", {"fuzzy": "yes"}),
            ("60.940", 60.94),
            ("{other: 1}", {"other": 1}),
        ],
    )
    def test_patterns_of_tool_arguments(self, folder: Path, written: str, matcher: object) -> None:
        text = f"test_cases:\n- input: q\n  expected_tools:\n  - {{name: t, args: {{a: {written}}}}}\n"
        assert metrics(load(folder, text))[0].options["expected"][0]["args"] == {"a": matcher}


class TestCaseIds:
    def test_named_cases_are_known_by_suite_and_name(self, folder: Path) -> None:
        suite = load(folder, "test_cases:\n- {name: first, input: q}\n- {name: '#2', input: q}\n")
        assert [case.id for case in suite.cases] == ["suites/agent.yaml::first", "suites/agent.yaml::#2"]
        assert [case.line for case in suite.cases] == [2, 3]

    def test_other_tests_match_by_their_question(self, folder: Path) -> None:
        before = load(folder, "test_cases:\n- {input: one}\n- {input: two}\n")
        after = load(folder, "test_cases:\n- {input: two, ground_truth: new}\n- {input: zero}\n- {input: one}\n")
        ids = {case.name: case.id for case in after.cases}
        assert {case.name: case.id for case in before.cases}.items() <= ids.items()
        assert len(set(ids.values())) == 3

    def test_a_repeated_name_gets_a_number_and_a_warning(self, folder: Path) -> None:
        repeated = "- {name: '#1', input: a}\n"
        suite = load(folder, f"test_cases:\n{repeated}- {{name: b, input: b}}\n{repeated}{repeated}")
        names = ["#1", "b", "#1#2", "#1#3"]
        assert [case.name for case in suite.cases] == names
        assert [case.id for case in suite.cases] == [f"suites/agent.yaml::{name}" for name in names]
        assert suite.warnings == tuple(
            f"suites/agent.yaml:{line}: test_cases: the name '#1' is given twice (first in line 2); "
            f"this case is called #1#{number}, so choose another name, which stays the same if cases are moved"
            for line, number in ((4, 2), (5, 3))
        )

    def test_a_number_never_makes_two_names_equal(self, folder: Path) -> None:
        suite = load(folder, "test_cases: [{name: a, input: q}, {name: 'a#2', input: q}, {name: a, input: q}]")
        assert [case.name for case in suite.cases] == ["a", "a#2", "a#3"]


class TestFingerprints:
    BASE = NUMERIC + "test_cases:\n- {name: a, input: q, ground_truth: 1}\n"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("input: q", "input: r"),
            ("ground_truth: 1", "ground_truth: 2"),
            ("ground_truth: 1", "ground_truth: 1, retrieval_context: [x]"),
            ("ground_truth: 1", "ground_truth: 1, expected_tools: [x]"),
            ("metric: numeric", "metric: equality"),
            ("metric: numeric", "metric: numeric, threshold: 1"),
            ("metric: numeric", "metric: numeric, relative_tolerance: 0.1"),
            ("metric: numeric", "metric: numeric, response_path: a"),
        ],
    )
    def test_question_and_metric_configuration_affect_the_seed(self, folder: Path, old: str, new: str) -> None:
        before = load(folder, self.BASE)
        after = load(folder, self.BASE.replace(old, new))
        assert before.cases[0].fingerprint != after.cases[0].fingerprint
        assert before.fingerprint != after.fingerprint

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("evaluations:", "# comment\n\nevaluations:"),
            ("test_cases:", "agent: other\ntest_cases:"),
            ("metric: numeric", "metric: numeric, fail_on_error: true"),
            ("metric: numeric", "metric: numeric, absolute_tolerance: 0.000001"),
            ("- {name: a", "- {name: a, expected_tools: []"),
        ],
    )
    def test_nothing_else_does(self, folder: Path, old: str, new: str) -> None:
        before = load(folder, self.BASE).cases[0].fingerprint
        assert load(folder, self.BASE.replace(old, new)).cases[0].fingerprint == before


class TestMetricSettings:
    @pytest.mark.parametrize(
        ("written", "attribute", "value"),
        [
            ("metric: bleu, threshold: 0.7, scale: 5", "threshold", 0.7),
            ("metric: bleu, threshold: 1, scale: 5", "threshold", 1.0),
            ("metric: numeric, fail_on_error: 'yes'", "fail_on_error", True),
            ("metric: numeric, retry_on_failure: 3", "retries", 3),
            ("metric: numeric, timeout_ms: 1500", "timeout_s", 1.5),
            ("metric: f1_score, absolute_tolerance: 5", "options", {}),
            (
                "metric: equality, strip_whitespace: true",
                "options",
                {"case_insensitive": False, "strip_whitespace": True, "strip_punctuation": False},
            ),
            (
                "metric: numeric, accept_percent: true, relative_tolerance: 0.1",
                "options",
                {
                    "absolute_tolerance": 1e-6,
                    "relative_tolerance": 0.1,
                    "accept_percent": True,
                    "accept_thousands_separators": False,
                },
            ),
        ],
    )
    def test_values_are_read_as_written(self, folder: Path, written: str, attribute: str, value: object) -> None:
        suite = load(
            folder, f"evaluations:\n  metrics:\n  - {{type: standard, {written}}}\ntest_cases: [{{input: q}}]\n"
        )
        assert getattr(metrics(suite)[0], attribute) == value

    def test_a_model_where_none_is_needed_is_a_warning(self, folder: Path) -> None:
        text = (
            "evaluations:\n  metrics:\n  - type: standard\n    metric: bleu\n"
            "    model: {provider: ollama, name: x}\ntest_cases: [{input: q}]\n"
        )
        assert load(folder, text).warnings == (
            "suites/agent.yaml:5: evaluations.metrics[0].model: bleu needs no model; this one is not used",
        )


class TestGroundTruth:
    @pytest.mark.parametrize(
        ("first", "second", "wrong"),
        [("", "", True), ("ground_truth: g", "", False), ("", "ground_truth: g", False)],
    )
    def test_one_of_the_turns_is_enough_for_a_case(self, folder: Path, first: str, second: str, wrong: bool) -> None:
        text = (
            "test_cases:\n- evaluations: [{metric: bleu}]\n  turns:\n"
            f"  - {{input: a, {first}}}\n  - {{input: b, {second}}}\n"
        )
        if wrong:
            assert len(problems(folder, text)) == 1
        else:
            assert len(load(folder, text).cases) == 1


class TestExpectedTools:
    def tools(self, folder: Path, written: str) -> Sequence[Any]:
        (metric,) = metrics(load(folder, f"test_cases:\n- input: q\n  expected_tools: {written}\n"))
        expected: Sequence[Any] = metric.options["expected"]
        return expected

    @pytest.mark.parametrize(
        ("written", "expected"),
        [
            ("[{name: a, args: , count: 2}]", [{"name": "a", "args": None, "count": 2}]),
            ("[{name: a, args: {}}]", [{"name": "a", "args": {}, "count": 1}]),
            (
                "[{name: a, args: {x: {y: {fuzzy: z}}}}]",
                [{"name": "a", "args": {"x": {"y": {"fuzzy": "z"}}}, "count": 1}],
            ),
        ],
    )
    def test_forms(self, folder: Path, written: str, expected: object) -> None:
        assert self.tools(folder, written) == expected

    @pytest.mark.parametrize(
        ("written", "problem"),
        [
            ("[5]", "[0]: must be the name of a tool, or a mapping with `name`"),
            (
                "[{name: a, args: {x: {fuzzy: a, regex: b}}}]",
                "[0].args: args.x: a matcher is exactly one of {fuzzy: …} and {regex: …}",
            ),
            ("[{name: a, args: {x: {fuzzy: [b]}}}]", "[0].args: args.x: fuzzy takes text, not ['b']"),
        ],
    )
    def test_mistakes(self, folder: Path, written: str, problem: str) -> None:
        (found,) = problems(folder, f"test_cases:\n- input: q\n  expected_tools: {written}\n")
        assert found.startswith(f"3: test_cases[0].expected_tools{problem}")


class TestCaseFiles:
    def load(self, folder: Path, cases: str | None, text: str = "test_cases_file: more/cases.yaml\n") -> Suite:
        (folder / "more").mkdir(exist_ok=True)
        file = folder / "more" / "cases.yaml"
        file.unlink(missing_ok=True)
        if cases is not None:
            file.write_text(cases)
        return load(folder, text)

    def problems(
        self, folder: Path, cases: str | None, text: str = "test_cases_file: more/cases.yaml\n"
    ) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            self.load(folder, cases, text)
        return [str(problem) for problem in caught.value.problems]

    @pytest.mark.parametrize(
        "cases",
        [
            "text",
            "other: []",
        ],
    )
    def test_anything_else_is_a_mistake(self, tmp_path: Path, cases: str) -> None:
        (problem,) = self.problems(tmp_path, cases)
        assert problem.startswith("suites/more/cases.yaml")
        assert problem.endswith("must be a list of cases, or a mapping with `test_cases`")

    def test_variables_secrets_and_warnings_count_there_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SHOP_TOKEN", "s3cr3t-s3cr3t")
        with confined(pass_env=("SHOP_TOKEN",)):
            suite = self.load(tmp_path, "- input: ${SHOP_TOKEN}\n  name: a\n  name: b\n")
        assert suite.cases[0].turns[0].input == "s3cr3t-s3cr3t"
        assert suite.secrets == {"s3cr3t-s3cr3t"}
        assert suite.warnings == (
            "suites/more/cases.yaml:3: the key 'name' is given twice, first in line 2; the last one counts",
        )


class TestTopLevel:
    def test_the_name_is_the_directory_where_none_is_given(self, folder: Path) -> None:
        assert load(folder, "test_cases: []").name == folder.name


class TestAgent:
    @pytest.mark.parametrize(
        ("text", "timeout_s"),
        [
            ("agent: {command: [x]}\nexecution: {llm_timeout: 5}", 5.0),
            ("agent: {command: [x], timeout: 9}\nexecution: {llm_timeout: 5}", 9.0),
            ("agent: [x]\nexecution: {llm_timeout: 5}", 5.0),
        ],
    )
    def test_the_time_limit(self, folder: Path, text: str, timeout_s: float) -> None:
        suite = load(folder, f"{text}\ntest_cases: []")
        assert isinstance(suite.agent, AgentSpec)
        assert (suite.agent.kind, suite.agent.target) == ("command", ("x",))
        assert with_limit(suite.agent, suite).limit_s == timeout_s


@pytest.mark.parametrize("key", ["absolute_tolerance", "relative_tolerance"])
@pytest.mark.parametrize(("tolerance", "warned"), [(".inf", 1), ("1.0e300", 0), ("0.5", 0)])
def test_a_tolerance_that_every_number_meets_is_a_warning(
    folder: Path, key: str, tolerance: str, warned: int
) -> None:
    metric = f"{{type: standard, metric: numeric, {key}: {tolerance}}}"
    suite = load(folder, f"evaluations: {{metrics: [{metric}]}}\ntest_cases: [{{input: a, ground_truth: '1'}}]\n")
    assert len(suite.warnings) == warned
    assert all(f"metrics[0].{key}: every number is within" in warning for warning in suite.warnings)
