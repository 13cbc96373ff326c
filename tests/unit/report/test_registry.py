from __future__ import annotations

from importlib import import_module

from tests.unit.report import samples

from agenteval.report.report import FILES, REPORTERS, built_in


def test_every_reporter_yields_distinct_file_names() -> None:
    report = samples.regressed().report
    names = [file.name for render in built_in(report) for file in render(report)]
    assert sorted(names) == sorted({*names})
    assert {*names} == {*FILES}


def test_names_have_no_dot_so_that_no_package_can_take_them() -> None:
    assert [name for name in REPORTERS if "." in name] == []
    assert all(callable(import_module(module).report_files) for module in REPORTERS.values())


def test_warnings_are_shown_once_and_before_those_of_the_gate() -> None:
    report = samples.regressed().report
    assert report.with_warnings(["new", "new"]).warnings == ("new", *report.warnings)
