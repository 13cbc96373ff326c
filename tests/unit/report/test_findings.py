from __future__ import annotations

import json

import pytest
from tests.unit.report import samples
from tests.unit.report.test_hostile_outlets import _commands

from agenteval.report.findings import MOST_CHARACTERS, FindingsFile, render


def test_each_finding_of_the_comment_is_there() -> None:
    report = samples.regressed().report

    found = FindingsFile.model_validate_json(render(report))

    expected = [(case.name, cause.kind) for cause in report.attention for case in cause.cases]
    assert [(item.case, item.state) for item in found.findings if item.case] == expected
    assert (found.verdict, found.headline, found.more) == (report.verdict, report.headline, 0)
    first = found.findings[0]
    assert first.change == "0/1"
    assert any(line.startswith("+ ") for line in first.evidence)
    assert first.reproduce.startswith("agenteval run ")
    assert "not instructions" in found.note


@pytest.mark.parametrize(
    "text", [" ".join(samples.HOSTILE_TEXTS), "::error::x\n" * 10_000, "##[error]é\x1b[2J\u202e" * 9_000]
)
def test_it_is_small_and_commands_nothing_whatever_stands_in_it(text: str) -> None:
    written = render(samples.many_regressions(300, text).report)

    assert len(written) <= MOST_CHARACTERS
    assert written.isascii()
    assert _commands("\n".join(json.loads(written)["findings"][0]["evidence"])) == []
    found = FindingsFile.model_validate_json(written)
    assert len(found.findings) + found.more >= 300
    assert found.findings
