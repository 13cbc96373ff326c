"""Fixtures for the tests against independent programs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.peers import aimock, chromium, github_service
from tests.peers.action_step import IMAGE, QUICKSTART, Runner, as_process, in_container
from tests.peers.aimock import Aimock
from tests.peers.chromium import Page
from tests.peers.github_service import GithubService
from tests.peers.model_bench import Bench
from tests.peers.openapi import Description
from tests.support import open_folder

_DESCRIPTION = Description.load()


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    """A server that plays providers of models."""
    with aimock.running(tmp_path_factory.mktemp("aimock")) as mock:
        yield mock


@pytest.fixture
def bench(
    models: Aimock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Bench:
    """An empty project; the environment names no provider of models, and the cache is empty."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "AZURE_OPENAI_", "ANTHROPIC_", "OLLAMA_", "GITHUB_", "AGENTEVAL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AGENTEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AGENTEVAL_PYTHON", sys.executable)
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    models.play()
    return Bench(models, directory, capsys)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A tab of a browser."""
    with chromium.running() as page:
        yield page


# The emulator answers a token's requests up to 5,000 an hour, so each module has its own.
@pytest.fixture(scope="module")
def github_behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GithubService]:
    with github_service.running(tmp_path_factory.mktemp("github")) as service:
        yield service


@pytest.fixture
def github(github_behind_proxy: GithubService) -> Iterator[GithubService]:
    """GitHub behind the recording proxy; GitHub's description has to allow each request of the code under test."""
    service = github_behind_proxy
    service.proxy.forget()
    service.actions.clear()
    service.labels.clear()
    yield service
    assert service.violations(_DESCRIPTION) == []
    service.proxy.forget()


@pytest.fixture(
    params=[
        as_process,
        pytest.param(
            in_container,
            marks=pytest.mark.skipif(not IMAGE, reason="needs a built image: AGENTEVAL_IMAGE, AGENTEVAL_IMAGE_RUN"),
        ),
    ]
)
def runner(request: pytest.FixtureRequest) -> Runner:
    """The action, as a process and in its image."""
    chosen: Runner = request.param
    return chosen


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A checkout of a repository with a suite and an agent that repeats its answers, without the history."""
    with open_folder() as folder:
        shutil.copytree(QUICKSTART, folder / "workspace")
        with (folder / "workspace" / "agenteval.yaml").open("a", encoding="utf-8") as settings:
            settings.write("gate: {pairs: 4}\n")
        yield folder / "workspace"
