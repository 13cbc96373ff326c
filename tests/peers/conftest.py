"""Fixtures for the tests against independent programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.peers import github_emulator
from tests.peers.github_emulator import GithubEmulator
from tests.peers.openapi import Description
from tests.peers.wire import Wire, tap

_DESCRIPTION = Description.load()


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GithubEmulator]:
    with github_emulator.running(tmp_path_factory.mktemp("emulate")) as emulator:
        yield emulator


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """The requests of the code under test; GitHub's description has to allow each of them."""
    wire = tap(monkeypatch)
    yield wire
    # GraphQL is one operation to OpenAPI, and not described there.
    rest = [request for request in wire.requests if not request.url.endswith("/graphql")]
    assert [problem for request in rest for problem in _DESCRIPTION.violations(request)] == []
