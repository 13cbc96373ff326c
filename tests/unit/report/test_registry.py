from __future__ import annotations

from importlib import import_module

from tests.unit.report import samples

from agenteval.report.report import FILES, REPORTERS, Report, built_in


def test_every_reporter_yields_distinct_file_names() -> None:
    sample = samples.regressed()
    names = [file.name for render in built_in() for file in render(Report(sample.gate), sample.results)]
    assert sorted(names) == sorted({*names})
    assert {*names} == {*FILES}


def test_names_have_no_dot_so_that_no_package_can_take_them() -> None:
    assert [name for name in REPORTERS if "." in name] == []
    assert all(callable(import_module(module).report_files) for module in REPORTERS.values())


def test_warnings_are_shown_once_and_before_those_of_the_gate() -> None:
    report = Report(samples.regressed().gate).with_warnings(["new", "new"])
    assert report.gate.warnings == ("new", *samples.regressed().gate.warnings)
