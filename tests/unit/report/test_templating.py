"""Our templates are kept compiled where that can be done, and rendered all the same where it cannot."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from agenteval.report.parts import template_directory
from agenteval.report.templates import MARKDOWN, USER_TEMPLATE, CompiledTemplates, make_environment


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of our templates that was never used."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    folder = tmp_path / "templates"
    shutil.copytree(template_directory(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def kept(templates: Path) -> list[Path]:
    return sorted((templates / "markdown" / "__pycache__").glob("*"))


def test_stored_templates_are_not_compiled_again(templates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_environment(MARKDOWN, templates).get_template("comment.md.j2")
    [file] = kept(templates)

    environment = make_environment(MARKDOWN, templates)
    monkeypatch.setattr(environment, "compile", None)

    assert environment.get_template("comment.md.j2").name == "comment.md.j2"
    assert kept(templates) == [file]


def test_a_changed_template_is_compiled_again(templates: Path) -> None:
    make_environment(MARKDOWN, templates).get_template("comment.md.j2")
    (templates / "markdown" / "comment.md.j2").write_text("changed", encoding="utf-8")

    assert make_environment(MARKDOWN, templates).get_template("comment.md.j2").render() == "changed"


@pytest.mark.parametrize("content", [b"", b"j2", b"\xff" * 100])
def test_a_broken_compiled_file_is_replaced(templates: Path, content: bytes) -> None:
    make_environment(MARKDOWN, templates).get_template("comment.md.j2")
    [file] = kept(templates)
    whole = file.read_bytes()
    file.write_bytes(content)

    make_environment(MARKDOWN, templates).get_template("comment.md.j2")

    assert file.read_bytes() == whole


def test_templates_of_users_are_not_kept(templates: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.md.j2"
    own.write_text('{% extends "comment.md.j2" %}', encoding="utf-8")

    make_environment(MARKDOWN, templates, own).get_template(USER_TEMPLATE)

    assert kept(templates) == []
    assert make_environment(MARKDOWN, templates, own).bytecode_cache is None
    assert isinstance(make_environment(MARKDOWN, templates).bytecode_cache, CompiledTemplates)
