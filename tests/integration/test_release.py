"""What a release does to the repository: action.yml, tags, notes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.git_server import commit, git
from tests.support import ROOT, environment

IMAGE = "ghcr.io/org/agenteval-action@sha256:" + "0123456789abcdef" * 4


def script(name: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    program = "bash" if name.endswith(".sh") else sys.executable
    command = [program, str(cwd / "scripts" / name), *arguments]
    return subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout at version 1.2.3, with an origin."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    shutil.copy(ROOT / "action.yml", folder)
    shutil.copytree(ROOT / "native", folder / "native")
    (folder / "src" / "agenteval" / "core").mkdir(parents=True)
    (folder / "src" / "agenteval" / "core" / "version.py").write_text('__version__ = "1.2.3"\n', encoding="utf-8")
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n', encoding="utf-8")
    (folder / "Dockerfile").write_text('LABEL org.opencontainers.image.version="1.2.3"\n', encoding="utf-8")
    changes = "# Changelog\n\n## 1.2.3 (2026-11-30)\n\n* New.\n\n## 1.2.2 (2026-10-01)\n\n* Old.\n"
    (folder / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    (folder / "README.md").write_text("Here.\n\nNothing yet. <!-- unpublished -->\n\n## More\n", encoding="utf-8")
    git(tmp_path, "init", "--quiet", "--bare", "origin.git")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder)
    git(folder, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(folder, "push", "--quiet", "origin", "main")
    (folder / "dist").mkdir()
    (folder / "dist" / "package.whl").touch()
    return folder


def test_an_image_without_its_digest_is_refused(repository: Path) -> None:
    before = (repository / "action.yml").read_bytes()
    for image in (
        "ghcr.io/org/agenteval-action:1",
        "ghcr.io/org/agenteval-action@sha256:abc",
        "ghcr.io/Org/agenteval-action@sha256:" + "0" * 64,
        f"{IMAGE}\n  args: [evil]",
        "",
    ):
        done = script("pin_image.py", "action.yml", image, cwd=repository)
        assert (done.returncode, "is not of the form" in done.stderr) == (2, True), image
    assert (repository / "action.yml").read_bytes() == before


def test_nothing_moves_if_something_is_wrong(repository: Path, tmp_path: Path) -> None:
    for tag, image in (("v1", IMAGE), ("1.2.3", IMAGE), ("v1.2.3", "Dockerfile")):
        assert script("tag_release.sh", tag, image, cwd=repository).returncode == 2
    assert git(tmp_path / "origin.git", "tag") == ""


def test_one_line_of_this_repository_says_that_nothing_is_published() -> None:
    pages = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
    lines = [line for page in pages for line in page.read_text("utf-8").splitlines() if "published yet" in line]

    assert all(line.endswith(" <!-- unpublished -->") for line in lines)
    assert len(lines) <= 1


def test_every_place_that_says_another_version_is_named(repository: Path) -> None:
    done = script("release_notes.py", "v1.2.4", cwd=repository)

    assert (done.returncode, done.stdout) == (2, "")
    for place in ("pyproject.toml", "src/agenteval/core/version.py", "Dockerfile", "CHANGELOG.md"):
        assert place in done.stderr


def test_this_repository_agrees_on_its_version() -> None:
    from agenteval.core.version import __version__

    message = script("release_notes.py", f"v{__version__}").stderr
    assert ": expected version" not in message


def test_entries_are_collected_in_the_section_of_a_version(repository: Path) -> None:
    changes = repository / "changes"
    changes.mkdir()
    (changes / "b.md").write_text("* Second.\n  More of it.\n", encoding="utf-8")
    (changes / "a.md").write_text("* First.\n", encoding="utf-8")
    assert "changes/: entries are not in CHANGELOG.md" in script("release_notes.py", "v1.2.3", cwd=repository).stderr

    done = script("release_notes.py", "--collect", "1.2.3", cwd=repository)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no entries for 1.3.0" in script("release_notes.py", "--collect", "1.3.0", cwd=repository).stderr

    changelog = (repository / "CHANGELOG.md").read_text("utf-8")
    assert re.sub(r"\d{4}-\d\d-\d\d", "DATE", changelog) == (
        "# Changelog\n\n## 1.2.3 (DATE)\n\n* New.\n* First.\n* Second.\n  More of it.\n\n## 1.2.2 (DATE)\n\n* Old.\n"
    )
    assert list(changes.iterdir()) == []
    assert script("release_notes.py", "v1.2.3", cwd=repository).stdout.endswith("* Second.\n  More of it.\n")


def test_an_entry_of_another_form_changes_nothing(repository: Path) -> None:
    (repository / "changes").mkdir()
    file = repository / "changes" / "new.md"
    before = (repository / "CHANGELOG.md").read_bytes()
    for entry in ("New.", "* New.\n\n* Newer.", "## 9.9.9 (2026-01-01)", "*"):
        file.write_text(entry, encoding="utf-8")
        done = script("release_notes.py", "--collect", "1.2.3", cwd=repository)
        said = "release_notes.py: changes/new.md: expected list items that begin with '* '\n"
        assert (done.returncode, done.stderr) == (2, said)
        assert file.exists()
    assert (repository / "CHANGELOG.md").read_bytes() == before


def test_the_entries_of_this_repository_can_be_collected() -> None:
    from scripts.release_notes import entries

    entries(ROOT)
