"""The commands of release.yml, from a pushed tag to the moved tags, with real git and a real wheel."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.git_server import commit, git
from tests.support import PATIENCE_S, ROOT, environment

VERSION, TAG, MAJOR = "9.8.7", "v9.8.7", "v9"
DIGEST = "0123456789abcdef" * 4
IMAGE = f"ghcr.io/org/agenteval-action@sha256:{DIGEST}"
JOBS: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", ".peers", "node_modules", "__pycache__", ".*_cache", "dist", "tests", "docs"
)

# In place of GitHub: knows the releases by their files.
GH = """#!/bin/bash
set -eu
case "$1 $2" in
  "auth setup-git") ;;
  "release view") test -e "$RELEASES/$3" ;;
  "release create") test ! -e "$RELEASES/fails"; printf '%s\\n' "${@:3}" >"$RELEASES/$3" ;;
esac
"""
# In place of a registry: has the index of the platforms that were joined.
DOCKER = f"""#!/bin/bash
set -eu
case "$3" in
  create) printf '%s\\n' "${{@:4}}" >"$RELEASES/docker" ;;
  inspect) echo '{{"digest": "sha256:{DIGEST}"}}' ;;
esac
"""


@dataclass
class Release:
    """A repository whose tag was pushed, and the jobs of the workflow so far."""

    home: Path
    folder: Path
    needs: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def origin(self) -> Path:
        return self.home / "origin.git"

    @property
    def releases(self) -> Path:
        return self.home / "releases"

    def at(self, ref: str) -> str:
        """The commit of a ref of the origin; empty if it has none."""
        return git(self.origin, "for-each-ref", "--format=%(objectname)", ref)

    def tags(self) -> tuple[str, str]:
        return self.at(f"refs/tags/{TAG}"), self.at(f"refs/tags/{MAJOR}")

    def job(self, name: str, tag: str = TAG) -> subprocess.CompletedProcess[str]:
        """Run the commands of a job in a new checkout, until one fails."""
        place = self.checkout(name, tag)
        outputs: dict[str, str] = {}
        for step in JOBS[name]["steps"]:
            if "run" not in step:
                continue
            done = self.step(step, place, tag)
            if done.returncode:
                return done
            text = (self.home / "output").read_text(encoding="utf-8")
            outputs |= {
                f"steps.{step.get('id')}.outputs.{key}": value for key, value in re.findall(r"(.+?)=(.*)", text)
            }
        named = JOBS[name].get("outputs", {})
        self.needs[name] = {key: filled(value, outputs) for key, value in named.items()}
        return done

    def step(self, step: dict[str, Any], place: Path, tag: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the runner does."""
        values = {
            f"needs.{job}.outputs.{key}": value for job, found in self.needs.items() for key, value in found.items()
        }
        values["github.token"] = "token"
        (self.home / "output").write_text("", encoding="utf-8")
        env = environment(
            PATH=f"{self.home / 'bin'}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            GITHUB_REF_NAME=tag,
            GITHUB_REPOSITORY="Org/Agenteval-Action",
            GITHUB_OUTPUT=str(self.home / "output"),
            RUNNER_TEMP=str(self.home),
            RELEASES=str(self.releases),
            **{name: filled(value, values) for name, value in step.get("env", {}).items()},
        )
        return subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=place / step.get("working-directory", ""),
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def checkout(self, job: str, tag: str) -> Path:
        """Make what earlier steps of the job leave: the released commit without history, and downloaded artifacts."""
        place = self.home / job
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        git(place, "init", "--quiet")
        git(place, "remote", "add", "origin", self.origin.as_uri())
        released = git(self.folder, "rev-parse", tag)
        git(place, "fetch", "--quiet", "--no-tags", "--depth=1", "origin", f"+{released}:refs/tags/{tag}")
        git(place, "checkout", "--quiet", "--detach", released)
        if job == "tags":
            built = self.home / "package" / "dist"
            if built.is_dir():
                shutil.copytree(built, place / "dist")
            else:
                (place / "dist").mkdir()
                (place / "dist" / "agenteval_action-py3-none-any.whl").touch()
        (place / "digests").mkdir()
        for platform in ("a" * 64, "b" * 64):
            (place / "digests" / platform).touch()
        python_of_make(place)
        return place


def filled(text: str, values: dict[str, str]) -> str:
    """Return a text with its expressions replaced."""
    return re.sub(r"\$\{\{ (\S+) \}\}", lambda match: values[match[1]], text)


def python_of_make(place: Path) -> None:
    """Give ``make`` an environment whose build tools are installed, so that nothing is downloaded."""
    program = place / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (place / ".venv" / ".build").touch()


def set_version(folder: Path, version: str) -> None:
    """Do what CONTRIBUTING.md says before a release."""
    for name in ("pyproject.toml", "src/agenteval/core/version.py", "Dockerfile"):
        file = folder / name
        pattern = r'(?m)(^version = "|^__version__ = "|image\.version=")[\d.]+(")'
        text, count = re.subn(pattern, rf"\g<1>{version}\g<2>", file.read_text(encoding="utf-8"), count=1)
        assert count == 1, name
        file.write_text(text, encoding="utf-8")
    (folder / "changes" / "new.md").write_text(f"* New in {version}.\n", encoding="utf-8")
    notes = [sys.executable, str(folder / "scripts" / "release_notes.py"), "--collect", version]
    subprocess.run(notes, env=environment(), check=True, capture_output=True)


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a repository of two releases' commits, whose first tag was pushed."""
    home = tmp_path_factory.mktemp("release")
    folder = home / "repository"
    shutil.copytree(ROOT, folder, ignore=_LEFT_OUT)
    git(home, "init", "--quiet", "--bare", "--initial-branch", "main", "origin.git")
    git(home / "origin.git", "config", "uploadpack.allowAnySHA1InWant", "true")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    set_version(folder, VERSION)
    commit(folder)
    git(folder, "tag", TAG)
    git(folder, "remote", "add", "origin", str(home / "origin.git"))
    git(folder, "push", "--quiet", "origin", "main", TAG)
    (home / "bin").mkdir()
    for name, text in (("gh", GH), ("docker", DOCKER)):
        (home / "bin" / name).write_text(text, encoding="utf-8")
        (home / "bin" / name).chmod(0o755)
    (home / "releases").mkdir()
    return home


@pytest.fixture
def release(pushed: Path, tmp_path: Path) -> Release:
    """The same in a new place, with an image."""
    home = tmp_path / "home"
    shutil.copytree(pushed, home, symlinks=True)
    git(home / "repository", "remote", "set-url", "origin", str(home / "origin.git"))
    image = {"image": "ghcr.io/org/agenteval-action", "version": VERSION}
    return Release(home, home / "repository", {"check": image, "index": {"digest": f"sha256:{DIGEST}"}})


@pytest.mark.long
def test_a_tag_becomes_a_release(release: Release) -> None:
    released = release.at(f"refs/tags/{TAG}")
    release.needs = {}

    for name in ("check", "package", "index", "tags"):
        done = release.job(name)
        assert done.returncode == 0, f"{name}: {done.stderr}"

    assert release.needs["check"] == {"image": "ghcr.io/org/agenteval-action", "version": VERSION}
    joined = (release.releases / "docker").read_text(encoding="utf-8").split()
    assert joined[:2] == ["--tag", f"ghcr.io/org/agenteval-action:{VERSION}"]
    assert joined[2:] == [f"ghcr.io/org/agenteval-action@sha256:{sign * 64}" for sign in "ab"]
    pinned, major = release.tags()
    assert pinned == major != released
    assert git(release.origin, "rev-parse", f"{TAG}^") == release.at("refs/heads/main") == released
    assert git(release.origin, "diff", "--name-only", "main", TAG).split() == ["action.yml", "native/release.lock"]
    assert f"  image: docker://{IMAGE}" in git(release.origin, "show", f"{TAG}:action.yml").splitlines()
    made = (release.releases / TAG).read_text(encoding="utf-8").splitlines()
    wheel, source = f"agenteval_action-{VERSION}-py3-none-any.whl", f"agenteval_action-{VERSION}.tar.gz"
    assert made[:4] == [TAG, f"dist/{wheel}", f"dist/{source}", "--verify-tag"]
    digest = hashlib.sha256((release.home / "tags" / "dist" / wheel).read_bytes()).hexdigest()
    lock = git(release.origin, "show", f"{TAG}:native/release.lock")
    assert lock == f"agenteval-action=={VERSION} --hash=sha256:{digest}"
    assert f"* New in {VERSION}." in (release.home / "notes.md").read_text(encoding="utf-8")


def test_two_builds_have_the_same_bytes(release: Release, tmp_path: Path) -> None:
    assert release.job("package").returncode == 0
    # In another folder, with other times, in another zone.
    again = tmp_path / "some where" / "else"
    git(tmp_path, "clone", "--quiet", "--branch", TAG, str(release.origin), str(again))
    for path in again.rglob("*"):
        os.utime(path, (10**9, 10**9))
    python_of_make(again)
    env = environment(TZ="Asia/Tokyo", PYTHONHASHSEED="7")
    subprocess.run(["make", "dist"], cwd=again, env=env, capture_output=True, check=True, timeout=PATIENCE_S)

    first, second = (
        {file.name: file.read_bytes() for file in (place / "dist").iterdir()}
        for place in (release.home / "package", again)
    )
    assert len(first) == 2
    assert first == second


def test_a_repeated_job_changes_nothing(release: Release) -> None:
    assert release.job("tags").returncode == 0
    before = release.tags()

    assert release.job("tags").returncode == 0

    assert release.tags() == before


@pytest.mark.parametrize("refused", [TAG, pytest.param(MAJOR, marks=pytest.mark.long)])
def test_a_refused_push_moves_no_tag(refused: str, release: Release) -> None:
    before = release.tags()
    hook = release.origin / "hooks" / "update"
    hook.write_text(f'#!/bin/sh\ntest "$1" != refs/tags/{refused}\n', encoding="utf-8")
    hook.chmod(0o755)

    assert release.job("tags").returncode != 0
    assert release.tags() == before
    assert not (release.releases / TAG).exists()

    # The repetition finishes it.
    hook.unlink()
    assert release.job("tags").returncode == 0
    pinned, major = release.tags()
    assert pinned == major
    assert (release.releases / TAG).exists()


def test_a_tag_that_somebody_moved_is_left_alone(release: Release) -> None:
    (release.folder / "README.md").write_text("other\n", encoding="utf-8")
    other = commit(release.folder)
    git(release.folder, "push", "--quiet", "--force", "origin", f"{other}:refs/tags/{TAG}")

    done = release.job("tags")

    assert done.returncode == 2
    assert f"tag_release.sh: {TAG} of origin is another commit than the checkout" in done.stderr
    assert release.tags() == (other, "")
    assert not (release.releases / TAG).exists()


@pytest.mark.long
def test_a_repair_of_an_older_version_leaves_the_major_version_where_it_is(release: Release) -> None:
    assert release.job("tags").returncode == 0
    newest = release.tags()
    set_version(release.folder, "9.8.6")
    commit(release.folder)
    git(release.folder, "tag", "v9.8.6")
    git(release.folder, "push", "--quiet", "origin", "v9.8.6")

    assert release.job("tags", "v9.8.6").returncode == 0

    assert release.tags() == newest
    changed = git(release.origin, "diff", "--name-only", "v9.8.6^", "v9.8.6")
    assert changed.split() == ["action.yml", "native/release.lock"]
