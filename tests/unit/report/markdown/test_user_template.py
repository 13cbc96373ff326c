"""User templates: their features and their limits."""

from __future__ import annotations

import contextlib
import pickle
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support import PATIENCE_S, ROOT
from tests.unit.report import samples
from tests.unit.report.samples import Sample

from agenteval.report import user_template
from agenteval.report.parts import COMMENT_LEVELS, UserTemplateError, characters, fit
from agenteval.report.templates import MARKDOWN
from agenteval.report.user_template import render_user_template, reply

Write = Callable[[str], Path]


@pytest.fixture(autouse=True)
def in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the worker reply in this process: ten times as fast. Tests of its process say ``in_its_process``."""
    if "in_its_process" in request.fixturenames:
        return
    monkeypatch.setattr(user_template, "_reply", lambda order, *_: reply(pickle.loads(pickle.dumps(order))))


@pytest.fixture
def in_its_process() -> None:
    """Let the worker reply in a separate process, as users have it."""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def written(text: str, name: str = "own.j2") -> Path:
        Path(name).write_text(text, encoding="utf-8")
        return Path(name)

    return written


def _rendered(
    template: Path, sample: Sample | None = None, limit: int = 60_000, time_limit_s: float = 2 * PATIENCE_S
) -> str:
    chosen = sample or samples.regressed()
    return render_user_template(
        template,
        chosen.report.shown_in("elsewhere"),
        lambda render: fit(render, characters, limit, COMMENT_LEVELS),
        time_limit_s=time_limit_s,
    )


def _problem(template: Path, sample: Sample | None = None) -> str:
    with pytest.raises(UserTemplateError) as caught:
        _rendered(template, sample)
    message, _, what_now = str(caught.value).rpartition("; ")
    assert what_now == "the built-in template is used instead"
    return message


def built_in_templates() -> Path:
    return ROOT / "templates" / "markdown"


@pytest.mark.usefixtures("in_its_process")
def test_a_template_can_use_files_beside_it_and_no_secrets(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, str] = {}
    run = subprocess.run

    def remember(*args: Any, **options: Any) -> Any:
        asked.update(options["env"])
        return run(*args, **options)

    monkeypatch.setenv("GITHUB_TOKEN", "ghs_secret")
    monkeypatch.setattr(subprocess, "run", remember)
    (tmp_path / "part.j2").write_text("part of {{ report.about.title }}", encoding="utf-8")
    assert _rendered(write("{% include 'part.j2' %}")) == "part of agenteval"
    assert "GITHUB_TOKEN" not in asked


def test_values_without_a_filter_are_escaped(write: Write) -> None:
    sample = samples.hostile()
    bare = "{% for cause in report.attention %}{{ cause.names }}|{{ cause.why }}\n{% endfor %}"
    text = _rendered(write(bare), sample)
    assert "&#60;" in text or "@&#8203;octocat" in text
    for dangerous in ("<", "@octocat", "](", "`"):
        assert dangerous not in text.replace("<span>$</span>", "")


@pytest.mark.parametrize(
    "expression",
    [
        "report.headline|replace('a', '<b>')",
        "'<b>' if report else ''",
        "[report.headline]|join('<i>')",
        "report.headline|inline|upper",
        "'%s<b>' % report.headline|inline",
        "report.headline|inline|safe",
        "'<b>{}'.format(report.headline)",
        "report.reasons|sum(start='<b>')",
    ],
)
def test_no_expression_makes_markup(write: Write, expression: str) -> None:
    sample = samples.regressed()
    sample = replace(sample, gate=sample.gate.model_copy(update={"headline": "<script>@octocat #1"}))
    text = ""
    # Some are refused.
    with contextlib.suppress(UserTemplateError):
        text = _rendered(write(f"{{{{ {expression} }}}}"), sample)
    assert "<" not in text
    assert "@octocat" not in text


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__",
        "report.summary.__init__.__globals__",
        "report.run.model_dump()",
        "'{0.__class__}'.format(report)",
        "self.__init__",
        "(report.headline|inline).unescape()",
    ],
)
def test_no_expression_reaches_code(write: Write, expression: str) -> None:
    assert re.match(r"own\.j2:1: .*unsafe", _problem(write(f"{{{{ {expression} }}}}")))


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "link", "{{", "\x00"])
def test_no_file_of_another_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    (tmp_path / "secret").write_text("hunter2")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to("../secret")
    monkeypatch.chdir(folder)
    Path("own.j2").write_text(f"{{% include {path!r} %}}")
    assert "hunter2" not in _problem(Path("own.j2"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\n{{ report.regresions }}", "own.j2:2: Report has no 'regresions'; did you mean 'reasons'?"),
        ("{{ reprot }}", "own.j2:1: there is no 'reprot'; did you mean 'report'?"),
        ("\n\n{% if %}", "own.j2:3: Expected an expression, got 'end of statement block'"),
        ("{% include '../x' %}", "own.j2:1: ../x lies outside of the folder of own.j2"),
        ("{% filter upper %}a{% endfilter %}", "own.j2:1: {% filter %} is not available"),
        ("<details>", "own.j2: leaves open an element (<details>); close it"),
        ("<details>\n\na\n\nb</details>", "own.j2: its first two paragraphs leave open an element (<details>)"),
        ("{% include 'own.j2' %}", "own.j2:1: includes or calls itself without end"),
    ],
)
def test_problems_have_their_place(write: Write, text: str, problem: str) -> None:
    assert _problem(write(text)).startswith(problem)


@pytest.mark.usefixtures("in_its_process")
def test_memory_is_limited(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_template, "MEMORY", 1 << 28)
    assert "own.j2:1: takes more memory than it may" in _problem(write("{{ ('a' * 999999999)|length }}"))


@pytest.mark.usefixtures("in_its_process")
def test_a_process_that_cannot_say_why(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_template, "_WORKER", "agenteval.nothing")
    assert _problem(write("fine")).startswith("own.j2: its process ended with status 1: ")


# Writes five million characters.
@pytest.mark.slow
def test_size_is_limited(write: Write) -> None:
    long = "{% for a in range(99999) %}" + "x" * 100 + "{% endfor %}"
    assert "writes more than 5,000,000 characters; use `detail` to show less" in _problem(write(long))
    assert "does not fit into 60,000 even with the least detail" in _problem(write("x" * 60_001))


def test_the_documented_example(write: Write) -> None:
    text = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```jinja\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = _rendered(write(example)).splitlines()
    assert lines[0] == "### ❌ Support bot: 2 of 5 cases broke"
    assert lines[-2].startswith("<sub>6 cases × 1 to 3")
    assert lines[-1] == "<sub>bleu 0.03, f1&#95;score 0.52, numeric 0.75</sub>"


def test_all_filters_and_blocks_are_documented() -> None:
    documented = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    for name in MARKDOWN.filters:
        assert re.search(rf"`{name}[`(]", documented), name
    source = (built_in_templates() / "comment.md.j2").read_text(encoding="utf-8")
    listed = source.partition("#}")[0]
    for block in re.findall(r"{% block (\w+)", source):
        assert re.search(rf"\b{block}\b", listed), block
