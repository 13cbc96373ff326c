"""Templates of users in the action: user code cannot change them during the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.errors import ConfigError
from agenteval.core.files import bounded
from agenteval.report.parts import template_directory
from agenteval.report.templates import MARKDOWN, USER_TEMPLATE, make_environment
from agenteval.run.config import Config
from agenteval.run.resolve.configurations import presentation


def test_templates_are_read_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own, part = Path("own.md.j2"), Path("part.md.j2")
    own.write_text("first, {% include 'part.md.j2' %}", encoding="utf-8")
    part.write_text("second", encoding="utf-8")
    with bounded([tmp_path], None):
        look = presentation(Config(comment_template=own), {})
    for path in (own, part):
        path.write_text("changed", encoding="utf-8")
    environment = make_environment(MARKDOWN, template_directory(), look.comment_template, look.template_texts)
    assert environment.get_template(USER_TEMPLATE).render() == "first, second"


@pytest.mark.parametrize("linked", [False, True])
def test_a_template_outside_of_the_workspace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "passwd"
    workspace.mkdir()
    outside.write_text("not ours", encoding="utf-8")
    monkeypatch.chdir(workspace)
    if linked:
        Path("own.md.j2").symlink_to(outside)
    named = Path("own.md.j2") if linked else outside
    with bounded([workspace], None), pytest.raises(ConfigError, match="outside of the directories that may be read"):
        presentation(Config(comment_template=named), {})
