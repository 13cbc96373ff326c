from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, nodes
from tests.unit.report import samples
from tests.unit.report.samples import HOSTILE_TEXTS, SAMPLES, Sample, check_golden, own_parts_cut
from tests.unit.report.test_evaluation import Elements

from agenteval.core import escape
from agenteval.report import html
from agenteval.report.facts import facts
from agenteval.report.html import FILTERS
from agenteval.report.html_data import (
    MOST_STATIC_ROWS,
    ROW,
    Room,
    compact_json,
)
from agenteval.report.parts import template_directory
from agenteval.report.words import moment
from agenteval.results.case import CaseResult, Criterion, SuiteResult, ToolCall
from agenteval.results.comparison import (
    AnswerChange,
    BaselineCase,
    BaselineInfo,
    BaselineRun,
    ComparedMetric,
    ScoreChange,
)
from agenteval.results.model import MetricSummary
from agenteval.results.store import Archive

PAYLOADS = (
    *HOSTILE_TEXTS,
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>--></style></title></noscript><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "x\u2028\u2029\x00\ud800",
    "' onmouseover=alert(1) x='",
    "{{ 7 * 7 }}{% raw %}",
    "__proto__",
)


def _page(sample: Sample, **options: Any) -> str:
    return "".join(html.render(sample.report, **options))


def _scripts(page: str) -> list[tuple[str, str]]:
    """Attributes and content of each script element."""
    return re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)


def _rows(page: str) -> list[dict[str, Any]]:
    found = [json.loads(content) for attributes, content in _scripts(page) if 'class="rows"' in attributes]
    return [dict(zip(ROW, row, strict=True)) for rows in found for row in rows]


def _cases(page: str) -> list[dict[str, Any]]:
    found = [json.loads(content) for attributes, content in _scripts(page) if 'class="full"' in attributes]
    return [case for cases in found for case in cases]


def _index(page: str) -> dict[str, Any]:
    (found,) = (json.loads(content) for attributes, content in _scripts(page) if 'id="index"' in attributes)
    assert isinstance(found, dict)
    return found


# The page.


def test_golden() -> None:
    check_golden("report-regressed.html", own_parts_cut(_page(samples.regressed())))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_loads_nothing_and_runs_only_its_own_script(name: str) -> None:
    text = _page(SAMPLES[name]())
    page = Elements(text)
    assert not {tag for tag, _ in page.found} & {"link", "img", "iframe", "object", "embed", "base", "form"}
    attributes = [item for _, found in page.found for item in found.items()]
    assert not [key for key, _ in attributes if key in {"src", "srcset", "style"} or key.startswith("on")]
    assert {value for key, value in attributes if key == "href"} == {"#cases", "#metrics", "#cost", "#run"}
    policy = next(found["content"] for _, found in page.found if found.get("http-equiv") == "Content-Security-Policy")
    (style,) = re.findall(r"(?s)<style>(.*?)</style>", text)
    (script,) = (content for attributes, content in _scripts(text) if not attributes)
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "http" not in style + script


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_adds_no_element(payload: str) -> None:
    harmless, hostile = (_page(_everywhere(text)) for text in ("harmless", payload))
    assert [tag for tag, _ in Elements(hostile).found] == [tag for tag, _ in Elements(harmless).found]
    assert "<!--" not in hostile
    hostile.encode("utf-8")


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_data_equal_the_results(payload: str) -> None:
    page = _page(_everywhere(payload))
    shown = re.sub("[\ud800-\udfff]", "\ufffd", escape.json_in_html(payload))
    expected = json.loads(escape.json_in_html(json.dumps(payload, ensure_ascii=False)))
    (row,), (case,) = _rows(page), _cases(page)
    assert row["name"] == case["case"]["name"] == expected
    assert case["case"]["iterations"][0]["turns"][0]["tool_calls"][0]["args"] == {expected: expected}
    assert _index(page)["metrics"] == [expected]
    assert not {"<", ">", "&"} & set(shown)


def _everywhere(text: str) -> Sample:
    """A run with the text in every place that anybody else writes."""
    score = samples.score(text, 0.0, 1.0, reason=text).model_copy(
        update={"error": text, "model": text, "details": {text: text}}
    )
    call = ToolCall(name=text, args={text: text}, result=[text], error=text)
    turn = samples.turn(text, text, text, score, error=text, tools=[call])
    turn = turn.model_copy(update={"retrieval_context": [text]})
    case = samples.case(text, samples.iteration(turn, status="failed"), status="failed", suite=text)
    case = case.model_copy(update={"tags": [text], "cluster": text})
    hostile = samples.hostile().results.comparison
    assert hostile is not None
    compared = hostile.cases[0].model_copy(
        update={
            "id": case.id,
            "name": text,
            "metrics": [ScoreChange(id=text, before=1.0, after=0.0, reason=text)],
            "answers": [AnswerChange(turn=0, input=text, before=text, after=text)],
        }
    )
    metric = ComparedMetric(
        id=text, n=1, baseline=1.0, current=0.0, difference=-1.0, state="proven", low=-1.0, high=-0.5,
        detectable_drop=0.1,
    )  # fmt: skip
    baseline = BaselineInfo(commit=text, ref=text, run_id=text, created_at=text, distance=2)
    comparison = hostile.model_copy(update={"baseline": baseline, "cases": [compared], "metrics": [metric]})
    criterion = Criterion(name=text, met=None)
    results = samples.results(samples.suite(case, path=text, name=text, criteria=[criterion]), comparison=comparison)
    run = results.run.model_copy(
        update={"id": f"own {text}", "started_at": text, "commit": text, "ref": text, "repository": text}
    )
    runs = [
        BaselineRun(commit=text, run_id=f"{number} {text}", created_at=text,
                  cases={case.id: BaselineCase(fingerprint=text, scores={text: [0.5]})})
        for number in range(2)
    ]  # fmt: skip
    summary = results.summary.model_copy(update={"metrics": {text: MetricSummary(n=1, mean=0.0, pass_rate=0.0)}})
    results = results.model_copy(update={"run": run, "baseline_runs": runs, "summary": summary})
    return Sample(results, samples.gate_of("failed", text, (text, "b")), (text,))


def test_only_built_in_or_escaped_text_is_trusted() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (template_directory() / "html").glob("*.j2")]
    assert len(sources) == 5
    filters = [node for source in sources for node in Environment().parse(source).find_all(nodes.Filter)]
    names = {_name(node.node) for node in filters if node.name == "trusted"}
    assert names == {"style", "script", "policy", "rows", "cases", "index"}
    assert {node.name for node in filters} <= {*FILTERS, "length", "list", "selectattr"}


def _name(node: Any) -> str:
    if isinstance(node, nodes.Call):
        return _name(node.node)
    return str(node.attr if isinstance(node, nodes.Getattr) else node.name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-11-20T09:00:00.123+02:00", "2026-11-20 07:00 UTC"),
        ("2026-11-20T09:00", "2026-11-20 09:00 UTC"),
        ("0001-01-01T00:00:00+23:00", "0001-01-01T00:00:00+23:00"),
        ("yesterday\n<b>", "yesterday <b>"),
    ],
)
def test_moments(text: str, shown: str) -> None:
    assert moment(text) == shown


# The list and the cases.


def test_without_a_script_the_first_failing_cases_are_shown() -> None:
    page = _page(samples.many(MOST_STATIC_ROWS + 234, status="failed", answer="wrong"))
    assert page.count('<th scope="row">Case ') == MOST_STATIC_ROWS
    assert "1,234 cases did not pass; these are the first 1,000." in page
    assert len(_rows(page)) == MOST_STATIC_ROWS + 234


def test_cases_are_read_once_and_leave_as_they_come() -> None:
    sample = samples.many(1_000)
    read = 0

    class Counted(Archive):
        def cases(self, suite: SuiteResult) -> Iterator[CaseResult]:
            nonlocal read
            for case in suite.cases:
                read += 1
                yield case

    parts = html.render(facts(sample.results, sample.gate, archive=Counted()))
    next(part for part in parts if 'class="rows"' in part)
    assert 0 < read < 1_000
    rest = "".join(parts)
    assert read == 1_000
    assert rest.rstrip().endswith("</html>")


# Limits.


@given(
    st.lists(st.tuples(st.integers(0, 30_000), st.booleans()), min_size=1, max_size=40),
    st.integers(40_000, 400_000),
)
def test_data_stay_below_their_limit_and_are_whole_where_there_is_room(
    sizes: list[tuple[int, bool]], limit: int
) -> None:
    cases = [
        samples.case(
            f"c{number}",
            samples.iteration(samples.turn("q", None, "x" * size), status="passed" if good else "failed"),
            status="passed" if good else "failed",
        )
        for number, (size, good) in enumerate(sizes)
    ]
    room = Room(limit, len(cases), sum(not good for _, good in sizes))
    texts = [room.fit(case) for case in cases]
    whole = [compact_json(case) for case in cases]
    assert sum(map(len, texts)) <= limit
    assert room.cut == sum(text != full for text, full in zip(texts, whole, strict=True))
    assert sum(map(len, whole)) > limit / 2 or not room.cut
    assert [json.loads(text)["name"] for text in texts] == [case.name for case in cases]


def test_cut_answers_are_announced_and_say_how_much_is_missing() -> None:
    sample = samples.many(10, status="failed", answer="word " * 20_000)
    page = _page(sample, limit=300_000)
    assert "Long texts of " in page
    answers = [case["case"]["iterations"][0]["turns"][0]["response"] for case in _cases(page)]
    assert any(answer.endswith("more characters in results.json)") for answer in answers)
    assert "Long texts of " not in _page(sample)


# Escaping.


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_in_html_means_the_same_and_holds_no_markup(value: Any) -> None:
    text = escape.json_in_html(json.dumps(value, ensure_ascii=False))
    assert not re.search("[<>&]", text)
    text.encode("utf-8")
    assert json.loads(text) == json.loads(_visible(json.dumps(value, ensure_ascii=False)))


def _visible(text: str) -> str:
    hidden = "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    return re.sub("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]", "\ufffd", re.sub(hidden, "", text))
