"""Messages about addresses that the image cannot reach."""

from __future__ import annotations

import pytest

from agenteval.core.runtime import localhost_hint


def test_only_addresses_of_the_image_itself_get_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_CONTAINER", "1")
    hinted = ("http://localhost:8080/x", "https://127.0.0.1", "http://[::1]:1", "localhost:11434", "0.0.0.0:80")
    plain = ("http://agent:8080", "https://localhost.example", "127.0.0.10:80", "http://[::1", "")

    assert {address: bool(localhost_hint(address)) for address in (*hinted, *plain)} == {
        **dict.fromkeys(hinted, True),
        **dict.fromkeys(plain, False),
    }

    monkeypatch.delenv("AGENTEVAL_CONTAINER")
    assert {localhost_hint(address) for address in hinted} == {""}
