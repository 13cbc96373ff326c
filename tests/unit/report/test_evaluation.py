from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tests.unit.report import samples
from tests.unit.report.samples import HOSTILE_TEXTS, check_golden
from tests.unit.results.analysis.answers import AGGREGATE, answer, many

from agenteval.report.analysis import MOST_ANSWERS, ORDER, SECTION_TITLES, render_markdown, report_files, suite_files
from agenteval.report.facts import facts
from agenteval.results.analysis.answers import EvaluatedAnswer
from agenteval.results.analysis.evaluate import AnalysedSuite, EvaluationResult, evaluate
from agenteval.suite.evaluation import (
    AlertRule,
    Analyses,
    Criteria,
    Evaluation,
    EvaluationReport,
    Section,
    Style,
    Tone,
)

ANSWERS = many()
NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
CRITERIA = Criteria(
    all_successful=True,
    avg_response_ms=2000,
    error_rate_percent=5,
    quality={"clarity": None, "missing": 0.5},
    tool_calls=("all_calls_successful",),
)
ANALYSES = Analyses(
    focus_personas=("expert",),
    outliers=True,
    trend=True,
    failures=True,
    failure_causes=True,
    statistics=True,
    alerts=(AlertRule("error_rate", ">", 1),),
)
PLACEHOLDERS = (
    "TITLE", "DATE", "SUBTITLE", "LOGO_DATA_URI", "SUMMARY_JSON", "PER_TRACE_JSON", "CRITERIA_JSON", "ANALYSIS_JSON",
)  # fmt: skip
HOSTILE = (*HOSTILE_TEXTS, '"></script><script>alert(1)</script>', "[[SUMMARY_JSON]]", "' onmouseover=alert(1) x='")


def _result(
    report: EvaluationReport, answers: list[EvaluatedAnswer] = ANSWERS, goal: str = "Serve everybody."
) -> EvaluationResult:
    return evaluate(answers, Evaluation(goal, CRITERIA, ANALYSES, report), AGGREGATE)


def _suite(
    report: EvaluationReport, answers: list[EvaluatedAnswer] = ANSWERS, name: str = "configs/evaluation.yaml"
) -> AnalysedSuite:
    return AnalysedSuite(name, name, answers, _result(report, answers), report)


def _markdown(report: EvaluationReport, answers: list[EvaluatedAnswer] = ANSWERS) -> str:
    return render_markdown(_suite(report, answers), NOW)


def _page_and_warnings(suite: AnalysedSuite) -> tuple[str, tuple[str, ...]]:
    (file,) = (file for file in suite_files(suite, NOW) if file.name == "report.html")
    return "".join(file.text), file.warnings


def _html(report: EvaluationReport, answers: list[EvaluatedAnswer] = ANSWERS) -> str:
    return _page_and_warnings(_suite(report, answers))[0]


def _hostile_answers() -> list[EvaluatedAnswer]:
    return [
        replace(
            answer(
                0.1 + number / 100,
                100.0 * number,
                name=text,
                persona=text,
                metric_scores={text: 0.5, "clarity": 0.2},
                reasons={"clarity": text, text: text},
                absent={f"absent {text}": text},
            ),
            trace_id=text,
        )
        for number, text in enumerate(HOSTILE)
    ]


class Elements(HTMLParser):
    """Names, attributes and balance of the elements of a page."""

    VOID = frozenset({"meta", "input", "br"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self._open[-1:] == ["script"] else self.text).append(data)

    def count(self, tag: str) -> int:
        """How many elements of a name there are."""
        return sum(name == tag for name, _ in self.found)

    def rows(self) -> Iterator[dict[str, str | None]]:
        """Attributes of the rows of the table of answers."""
        return (attributes for name, attributes in self.found if name == "tr" and "data-persona" in attributes)


# What the report looks like, in all tones and styles.


def test_golden_markdown() -> None:
    check_golden("evaluation-detailed-balanced.md", _markdown(EvaluationReport(style="detailed"), many(60)))


def _sections(text: str) -> list[str]:
    return [title for title in re.findall(r"^## (.*)$", text, re.MULTILINE) if title != "Conditions"]


@pytest.mark.parametrize("tone", ORDER)
def test_a_style_chooses_sections_and_a_tone_their_order(tone: Tone) -> None:
    detailed = _sections(_markdown(EvaluationReport(style="detailed", tone=tone)))
    assert detailed == [SECTION_TITLES[section] for section in ORDER[tone]]
    standard = [title for title in detailed if title != "Good answers"]
    quick = [title for title in detailed if title in {"Summary", "Key numbers", "Statistics"}]
    chosen: dict[Style, list[str]] = {"standard": standard, "quick": quick}
    for style, sections in chosen.items():
        report = EvaluationReport(style=style, tone=tone)
        # Every style shows statistical tests, if the suite enables them.
        text = _markdown(report)
        assert _sections(text) == sections
        assert "% confidence intervals" in text
        result = evaluate(ANSWERS, Evaluation("", CRITERIA, replace(ANALYSES, statistics=False), report), AGGREGATE)
        untested = render_markdown(AnalysedSuite("x", "x", ANSWERS, result, report), NOW)
        assert _sections(untested) == [title for title in sections if title != "Statistics"]


def test_conditions_are_always_shown() -> None:
    nothing: dict[Section, bool] = dict.fromkeys(SECTION_TITLES, False)
    text = _markdown(EvaluationReport(sections=nothing))
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Conditions"]
    assert "| ❌ not met | all traces successful | 94.6 % | all |" in text
    assert "| ⚪ not checked | quality: missing | – | at least 0.500 |" in text


# The HTML page.


def test_the_page_loads_nothing_and_runs_only_its_own_script() -> None:
    text = _html(EvaluationReport(style="detailed"))
    page = Elements(text)
    assert not [
        name for name, _ in page.found if name in {"link", "img", "iframe", "object", "embed", "base", "form"}
    ]
    assert not [found for found in page.found if {"src", "srcset", "style"} & found[1].keys()]
    assert [found["href"] for _, found in page.found if "href" in found] == ["#answers-title"]
    assert not [key for _, attributes in page.found for key in attributes if key.startswith("on")]
    assert "http" not in "".join(page.scripts)
    policy = next(found["content"] for _, found in page.found if found.get("http-equiv") == "Content-Security-Policy")
    (style,) = re.findall(r"(?s)<style>(.*?)</style>", text)
    digests = [
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, "".join(page.scripts))
    ]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_a_large_run_names_omitted_content() -> None:
    answers = [answer(0.9, 10.0, name=str(number), persona=f"p{number}") for number in range(MOST_ANSWERS + 500)]
    answers.append(answer(0.1, 10.0, name="the only failure"))
    text = _html(EvaluationReport(), answers)
    page = Elements(text)
    assert len(list(page.rows())) == MOST_ANSWERS
    assert "shows 2,000 answers, the failed ones and the lowest scores first; 501 more are in per_trace.jsonl" in text
    assert next(page.rows())["data-status"] == "failed"
    assert "… and 2,451 more</p>" in text


def test_hostile_answers_add_no_html_elements() -> None:
    page = Elements(_html(EvaluationReport(style="detailed"), _hostile_answers()))
    ours = Elements(_html(EvaluationReport(style="detailed")))
    assert {name for name, _ in page.found} <= {name for name, _ in ours.found}
    known = {(name, key) for name, attributes in ours.found for key in attributes}
    assert {(name, key) for name, attributes in page.found for key in attributes} <= known
    assert page.count("script") == 1
    assert page.scripts == ours.scripts
    assert any("<script>alert(1)</script>" in text for text in page.text)


def test_hostile_answers_add_no_markdown() -> None:
    text = _markdown(EvaluationReport(style="detailed"), _hostile_answers())
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    ours = {
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "b",
        "sub",
        "span",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert set(re.findall(r"</?([a-zA-Z][a-zA-Z0-9]*)", page)) <= ours
    assert "<!--" not in text


# An own template.


def _template(tmp_path: Path, text: str) -> EvaluationReport:
    path = tmp_path / "own.html"
    path.write_text(text, encoding="utf-8")
    return EvaluationReport(template=str(path))


def test_a_user_template_gets_every_placeholder(tmp_path: Path) -> None:
    lines = "\n".join(f"{name}={{}}".format(f"[[{name}]]") for name in PLACEHOLDERS)
    report = _template(tmp_path, f"{lines}\nOTHER=[[OTHER]]")
    values = dict(line.split("=", 1) for line in _html(report).split("\n"))
    summary = _result(report).content
    assert values["TITLE"] == "configs/evaluation.yaml"
    assert values["DATE"] == "2026-11-21T09:30:00Z"
    assert values["SUBTITLE"] == "240 answers, 2026-11-21 09:30 UTC"
    assert values["LOGO_DATA_URI"].startswith("data:image/svg+xml,%3Csvg")
    assert values["OTHER"] == "[[OTHER]]"
    assert json.loads(values["SUMMARY_JSON"]) == json.loads(json.dumps(summary))
    assert json.loads(values["CRITERIA_JSON"]) == summary["success_criteria_results"]
    assert json.loads(values["ANALYSIS_JSON"]) == json.loads(json.dumps(summary["analysis"]))
    assert json.loads(values["PER_TRACE_JSON"]) == [item.as_json() for item in ANSWERS]


def test_hostile_answers_cannot_leave_the_script_of_a_template(tmp_path: Path) -> None:
    report = _template(tmp_path, "<h1>[[TITLE]]</h1><script>const traces = [[PER_TRACE_JSON]];</script>")
    answers = _hostile_answers()
    page = Elements(_page_and_warnings(_suite(report, answers, "<b>[[SUMMARY_JSON]]</b>"))[0])
    assert [name for name, _ in page.found] == ["h1", "script"]
    assert page.text == ["<b>[[SUMMARY_JSON]]</b>"]
    (script,) = page.scripts
    names = [item["meta"]["name"] for item in json.loads(script.removeprefix("const traces = ").removesuffix(";"))]
    assert names == [text.replace("\ud800", "\ufffd") for text in HOSTILE]


def test_a_template_that_cannot_be_read_is_replaced_and_named(tmp_path: Path) -> None:
    missing, warnings = _page_and_warnings(_suite(EvaluationReport(template=str(tmp_path / "none.html"))))
    (warning,) = warnings
    assert re.search(r"none\.html: cannot be read: No such file or directory; the built-in template is used", warning)
    assert "none.html: cannot be read: No such file" in missing
    (tmp_path / "binary.html").write_bytes(b"\xff\xfe\x00")
    assert "it is not UTF-8" in _html(EvaluationReport(template=str(tmp_path / "binary.html")))


# The files.


def test_each_analysed_suite_has_a_separate_folder() -> None:
    asking = [_suite(EvaluationReport(html=False), name=name) for name in ("a/evaluation.yaml", "b/evaluation.yaml")]
    silent = replace(asking[0], report=None)

    def names(*suites: AnalysedSuite) -> list[str]:
        sample = samples.green()
        return [file.name for file in report_files(facts(sample.results, sample.gate, analyses=suites))]

    assert names(silent) == []
    assert names(asking[0], silent) == [
        f"evaluation/{name}" for name in ("summary.json", "per_trace.jsonl", "report.md")
    ]
    assert {name.rpartition("/")[0] for name in names(*asking)} == {
        "evaluation/a_evaluation.yaml", "evaluation/b_evaluation.yaml",
    }  # fmt: skip


# Charts.
