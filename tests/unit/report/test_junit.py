from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from junitparser import JUnitXml
from lxml import etree
from tests.support import ROOT
from tests.unit.core.text.test_escape import TEXTS
from tests.unit.report import samples

from agenteval.report import junit
from agenteval.report.facts import facts
from agenteval.results.case import CaseResult
from agenteval.results.model import Coverage, Results

_DATA = ROOT / "tests" / "data"
_SCHEMAS = ["junit-10.xsd"]


def _rendered(results: Results) -> str:
    return "".join(junit.render(facts(results, samples.gate_of("passed", "passed"))))


@pytest.mark.parametrize("name", ["regressed", "broken"])
def test_golden(name: str) -> None:
    samples.check_golden(f"junit-{name}.xml", _rendered(samples.SAMPLES[name]().results))


@pytest.mark.parametrize("schema", _SCHEMAS)
@pytest.mark.parametrize("name", samples.SAMPLES)
def test_valid_for_jenkins(name: str, schema: str) -> None:
    _assert_valid(_rendered(samples.SAMPLES[name]().results), schema)


@given(TEXTS)
def test_any_text_is_valid_xml(text: str) -> None:
    case = samples.failed_case(text, text, text, samples.score(text, 0.0, reason=text))
    suite = samples.suite(case, path=text, name=text)
    document = _rendered(samples.results(suite))
    assert document.encode()
    assert _parse(document).get("failures") == "1"


def test_each_metric_of_each_case_is_in_its_output() -> None:
    found = {
        case.get("name"): case.findtext("system-out")
        for case in _parse(_rendered(samples.regressed().results)).iter("testcase")
    }
    assert found["Opening hours"] == "✓ numeric 1.00 >= 1.00"
    assert found["Refund total"].splitlines() == [
        "✗ numeric 0.00 < 1.00",
        "✗ f1_score 0.12 < 0.50",
        "· bleu 0.03",
        "tools called: calculator",
    ]
    assert found["Return label"] == "✗ f1_score 0.62 on average (4 of 6 passed)"


def test_passed_cases_of_a_large_run_have_only_name_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    results = samples.regressed().results
    whole = re.sub(
        r"(?s)( time=\"[^\"]*\")>\s*<system-out>[^<]*</system-out>\s*</testcase>", r"\1 />", _rendered(results)
    )
    monkeypatch.setattr(junit, "MOST_WITH_METRICS", 4)
    assert _rendered(results) == whole


def test_junitparser_reads_the_counts() -> None:
    report: Any = JUnitXml.fromstring(_rendered(samples.broken().results).encode())
    (suite,) = report
    assert (report.tests, report.failures, report.errors) == (5, 0, 2)
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == ("support", 5, 0, 2, 1)
    assert {case.name: type(case.result[0]).__name__ for case in suite if case.result} == {
        "Crash": "Error",
        "Judge down": "Error",
        "Nothing to check": "Skipped",
    }
    assert {case.classname for case in suite} == {samples.SUITE}


def test_cases_that_an_interrupted_run_did_not_reach_are_one_error() -> None:
    finished = samples.results(samples.suite(samples.passed_case("a")), samples.suite(samples.passed_case("b")))
    covered = Coverage(cases=5, selected=5, finished=2)
    run = finished.run.model_copy(update={"complete": False, "coverage": covered})
    document = _rendered(finished.model_copy(update={"run": run}))
    _assert_valid(document, _SCHEMAS[0])
    root = _parse(document)
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("3", "1", "0")
    assert [suite.get("errors") for suite in root.iter("testsuite")] == ["0", "1"]
    (error,) = root.iter("error")
    assert error.get("message") == "3 cases did not run"
    # The cases of a run with a time limit are errors, each with its reason.
    assert not list(_parse(_rendered(samples.results(samples.suite(), complete=False))).iter("error"))


def test_message_names_metric_score_threshold_and_reason() -> None:
    case = samples.failed_case(
        "a",
        "1",
        "2",
        samples.score("numeric", 0.0, 1.0, reason="expected 1,\nfound 2"),
        samples.score("f1_score", 0.6999, 0.7),
        samples.score("rouge", 0.9, 0.5),
    )
    failure, _ = _testcase(case)
    assert failure.get("message") == "numeric 0.00 < 1.00: expected 1, found 2; f1_score 0.6999 < 0.7000"
    assert failure.get("type") == "numeric"
    assert failure.text == (
        "numeric 0.00 < 1.00 failed: expected 1, found 2\n"
        "f1_score 0.6999 < 0.7000 failed\n"
        "rouge 0.90 >= 0.50 passed\n"
        "input: What about a?\nexpected: 1\nresponse: 2"
    )


def test_an_answer_cannot_pass_for_lines_of_the_report() -> None:
    forged = "2\nnumeric 1.00 >= 1.00 passed\niteration 2 of 2: passed"
    failure, _ = _testcase(samples.failed_case("a", "1", forged, samples.score(value=0.0)))
    assert "\n    iteration 2 of 2: passed" in (failure.text or "")
    assert "\niteration 2 of 2: passed" not in (failure.text or "")


def _place_of_mikepenz(suite: Any, testcase: Any) -> tuple[str, int]:
    """Where mikepenz/action-junit-report puts an annotation: src/testParser.ts, resolveFileAndLine."""
    file = testcase.get("file") or suite.get("file") or testcase.get("classname").split(".")[-1]
    found = re.findall(rf" [^ ]*{re.escape(file)}.*?:(\d+)", testcase[0].text or "")
    return file, int(found[-1]) if found else 1


def test_reporters_find_the_line() -> None:
    forged = f"a at {samples.SUITE}:99 b"
    case = samples.failed_case("a", "1", forged, samples.score(value=0.0), line=12)
    suite = _parse(_rendered(samples.results(samples.suite(case))))[0]
    assert _place_of_mikepenz(suite, suite.find("testcase")) == (samples.SUITE, 12)


def _testcase(case: CaseResult) -> Any:
    (testcase,) = _parse(_rendered(samples.results(samples.suite(case)))).iter("testcase")
    return testcase


def _parse(document: str) -> Any:
    return etree.fromstring(document.encode())


def _assert_valid(document: str, schema: str) -> None:
    etree.XMLSchema(etree.parse(_DATA / schema)).assertValid(_parse(document))
