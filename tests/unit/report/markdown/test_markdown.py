from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import Environment, nodes
from markdown_it import MarkdownIt
from tests.unit.report import samples
from tests.unit.report.samples import Sample
from tests.unit.report.scenarios import SCENARIOS
from tests.unit.report.states import EVERY

from agenteval.core.errors import InfrastructureError
from agenteval.report import markdown, parts, words
from agenteval.report.markdown import render_comment, render_summary
from agenteval.report.parts import (
    COMMENT_LIMIT,
    SUMMARY_LIMIT,
    Detail,
    ReportTooLargeError,
    characters,
    fit,
    template_directory,
)
from agenteval.report.templates import FILTERS, MARKDOWN
from agenteval.results.model import RunUsage

_TEMPLATES = ["comment.md.j2", "summary.md.j2"]
# More than a comment can hold, and a hundred of them are more than a job summary can.
_BACKTICKS = "` ``` \n````\n" * 9_000


def _comment(sample: Sample) -> str:
    return render_comment(sample.report)


def _summary(sample: Sample) -> str:
    return render_summary(sample.report)


def test_golden_comment_of_hostile_texts() -> None:
    samples.check_golden("comment-hostile.md", _comment(samples.hostile()))


def test_golden_summary() -> None:
    samples.check_golden("summary-regressed.md", _summary(samples.regressed()))


# The documentation shows them. `comment-shared.md` is that of several jobs.
@pytest.mark.parametrize(
    "name", ["broke", "200-broke", "mean", "all-green", "first", "maybe", "rules", "infrastructure"]
)
def test_golden_comment(name: str) -> None:
    samples.check_golden(f"comment-{name}.md", render_comment(EVERY[name]().report))


class TestSummary:
    def test_says_why_the_gate_is_closed_with_what_was_found(self) -> None:
        text = _summary(SCENARIOS["statistics"]().sample)
        closed = text[text.index("#### Why the gate fails") : text.index("#### By cause")].replace("&#8203;", "")
        assert re.findall(r"^1\. (.+)$", closed, re.MULTILINE) == [
            "1 of 2 cases broke (fail-on: regressions)",
            "the mean of numeric fell from 1.00 to 0.50 (chance alone: 0.2 %, limit 1.7 %; fail-on: regressions)",
        ]


class TestHostileText:
    @pytest.mark.parametrize("render", [_comment, _summary])
    def test_cannot_forge_the_marker(self, render: object) -> None:
        assert callable(render)
        assert "<!--" not in render(samples.hostile())

    @pytest.mark.parametrize("render", [_comment, _summary])
    def test_adds_no_html_elements(self, render: object) -> None:
        assert callable(render)
        page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(render(samples.hostile()))
        assert set(re.findall(r"</?([a-zA-Z][a-zA-Z0-9]*)", page)) <= _ELEMENTS
        for element in _ELEMENTS - {"br"}:
            assert len(re.findall(f"<{element}[ >]", page)) == page.count(f"</{element}>")


_ELEMENTS = {"h3", "h4", "h5", "p", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "pre", "code"}
_ELEMENTS |= {"details", "summary", "b", "i", "br", "sub", "span", "a", "del", "ins"}
_FENCED = re.compile(r"^(`{3,})(?:text|diff|sh)\n.*?\n\1$", re.MULTILINE | re.DOTALL)


class TestBudget:
    def test_the_first_level_that_fits_wins(self) -> None:
        levels = tuple(Detail(cases, 0, 0, 0) for cases in (9, 5, 3, 1))
        assert fit(lambda detail: "x" * detail.max_cases, len, 5, levels) == "xxxxx"
        with pytest.raises(ReportTooLargeError, match="does not fit into 0"):
            fit(lambda detail: "x" * detail.max_cases, len, 0, levels)

    def test_characters_are_counted_as_the_strictest_counter_does(self) -> None:
        assert characters("aé😀") == 4

    @pytest.mark.long
    @pytest.mark.parametrize("answer", [_BACKTICKS, "$😀" * 50_000])
    # Renders texts that are longer than any report, at each level of detail.
    @pytest.mark.slow
    def test_any_run_fits(self, answer: str) -> None:
        sample = samples.many_regressions(3_000, answer)
        comment, summary = _comment(sample), _summary(sample)
        assert characters(comment) <= COMMENT_LIMIT
        assert len(summary.encode()) <= SUMMARY_LIMIT
        assert comment.startswith("### ❌ support: 3,000 of 3,000 cases broke — all give the same answer now\n")

    @pytest.mark.long
    @pytest.mark.parametrize("answer", ["A plain answer.", _BACKTICKS])
    # Renders thousands of cases at each level of detail.
    @pytest.mark.slow
    def test_many_failures_fit(self, answer: str) -> None:
        sample = samples.many(3_000, status="failed", answer=answer)
        summary = _summary(sample)
        place = "report.html and results.json"
        assert re.search(rf"… and [\d,]+ more in {place}\.|All of it is in {place}\.", summary)
        for text in (_comment(sample), summary):
            _assert_closed(text)

    @pytest.mark.parametrize("name", ["regressed", "hostile"])
    @pytest.mark.parametrize("detail", [*parts.COMMENT_LEVELS, *parts.SUMMARY_LEVELS])
    def test_every_level_is_well_formed(self, name: str, detail: Detail, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(markdown, "COMMENT_LEVELS", (detail,))
        monkeypatch.setattr(markdown, "SUMMARY_LEVELS", (detail,))
        sample = samples.SAMPLES[name]()
        no_limit = 10**9
        texts = (
            render_comment(sample.report, limit=no_limit),
            render_summary(sample.report, limit=no_limit),
        )
        for text in texts:
            _assert_closed(text)


class TestTemplates:
    @pytest.mark.parametrize("name", [*_TEMPLATES, "parts.md.j2", "report.md.j2"])
    def test_every_value_is_filtered(self, name: str) -> None:
        environment = Environment(autoescape=False)
        environment.filters.update(MARKDOWN.filters)
        tree = environment.parse((template_directory() / "markdown" / name).read_text(encoding="utf-8"))
        macros = {macro.name for macro in tree.find_all(nodes.Macro)} | _imported(tree)
        outputs = [node for output in tree.find_all(nodes.Output) for node in output.nodes]
        assert [node for node in outputs if not _is_safe(node, macros)] == []

    @pytest.mark.parametrize("name", _TEMPLATES)
    def test_templates_document_their_blocks(self, name: str) -> None:
        source = (template_directory() / "markdown" / name).read_text(encoding="utf-8")
        documented = source[source.index("override blocks: ") : source.index("#}")].partition("Every value")[0]
        blocks = re.findall(r"{% block (\w+)", source)
        assert [block for block in blocks if not re.search(rf"\b{block}\b", documented)] == []
        assert len(blocks) == len(set(blocks))

    def test_missing_templates_are_explained(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agenteval.report.parts._PACKAGE", tmp_path / "src" / "agenteval")
        with pytest.raises(InfrastructureError, match=r"no markdown/comment\.md\.j2 in .*install agenteval again"):
            template_directory()


class TestNumbers:
    @pytest.mark.parametrize(
        ("left", "right", "texts"),
        [
            (0.5, 1.0, ("0.50", "1.00")),
            (0.7, 0.7, ("0.70", "0.70")),
            (0.6999, 0.7, ("0.6999", "0.7000")),
            (None, 1.0, ("–", "1.00")),
            (0.70000000001, 0.7, ("0.700000", "0.700000")),
        ],
    )
    def test_different_scores_look_different(
        self, left: float | None, right: float | None, texts: tuple[str, str]
    ) -> None:
        assert words.distinct(left, right) == texts

    @pytest.mark.parametrize(
        ("value", "text"), [(0.1, "+0.10"), (-0.034, "−0.03"), (-0.001, "−0.001"), (0.0, "±0.00"), (None, "–")]
    )
    def test_differences_have_a_sign(self, value: float | None, text: str) -> None:
        assert words.signed(value) == text

    @pytest.mark.parametrize(
        ("rate", "text"),
        [(1.0, "100 %"), (0.9999, ">99 %"), (0.5, "50 %"), (0.001, "<1 %"), (0.0, "0 %"), (None, "–")],
    )
    def test_only_all_is_all(self, rate: float | None, text: str) -> None:
        assert words.percent(rate) == text

    @pytest.mark.parametrize(
        ("seconds", "text"), [(0.04, "0.0 s"), (59.9, "59.9 s"), (200, "3 min 20 s"), (7320, "2 h 2 min")]
    )
    def test_durations(self, seconds: float, text: str) -> None:
        assert words.duration(seconds) == text

    def test_counts_and_money(self) -> None:
        assert (words.count(1, "case"), words.count(2_000, "case")) == ("1 case", "2,000 cases")
        assert words.count(2, "case was", "cases were") == "2 cases were"
        assert (words.money(0.01234), words.money(1234.5)) == ("$0.0123", "$1,234.50")
        usage = RunUsage(llm_calls=28, cached_calls=312, saved_usd=1.9)
        assert words.from_cache(usage) == "312 of 340 model calls from the cache, about $1.90 saved"
        assert words.from_cache(RunUsage(cached_calls=1)) == "1 of 1 model call from the cache"
        assert words.from_cache(RunUsage(llm_calls=1)) == ""

    def test_flaky_cases_say_so(self) -> None:
        good = samples.iteration(samples.turn("?", "1", "1", samples.score()))
        bad = samples.iteration(samples.turn("?", "1", "2", samples.score(value=0.0)), status="failed", index=1)
        broken = samples.iteration(samples.turn("?", "1", None, error="down"), status="error", index=2)
        assert words.why(samples.case("a", good, good, bad)) == "passed 2 of 3 iterations"
        case = samples.case("a", good, bad, broken, status="failed")
        assert words.why(case) == "failed 1, could not be run in 1 of 3 iterations: numeric 0.00 < 1.00"
        assert words.why(samples.case("a", status="skipped")) == "nothing was checked"


def _assert_closed(text: str) -> None:
    rest = _FENCED.sub("", text)
    assert "```" not in rest
    assert rest.count("<details") == rest.count("</details>")


def _imported(tree: nodes.Template) -> set[str]:
    return {name for found in tree.find_all(nodes.FromImport) for name in found.names if isinstance(name, str)}


def _is_safe(node: nodes.Expr, macros: set[str]) -> bool:
    if isinstance(node, nodes.TemplateData):
        return True
    if isinstance(node, nodes.Filter):
        return node.name in FILTERS
    return isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name) and node.node.name in {*macros, "super"}
