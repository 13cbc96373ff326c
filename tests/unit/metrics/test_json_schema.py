"""Replies of judges against a JSON Schema that the suite chose: no file, no request, no endless pattern."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval.metrics import text
from agenteval.metrics.base import MetricError
from agenteval.metrics.judge_replies import first_problem


def with_reason(**schema: Any) -> dict[str, Any]:
    return {"properties": {"reason": schema}}


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def test_no_reference_reads_a_file_or_sends_a_request(tmp_path: Path, listening: socket.socket) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"const": "secret"}', encoding="utf-8")
    for reference in (secret.as_uri(), f"http://127.0.0.1:{listening.getsockname()[1]}/", "other.json"):
        with pytest.raises(MetricError, match="is not in the schema"):
            first_problem(with_reason(**{"$ref": reference}), {"reason": "fine"})
    with pytest.raises(BlockingIOError):
        listening.accept()


def test_references_in_the_schema_and_patterns_count() -> None:
    schema = with_reason(**{"$ref": "#/$defs/short"}) | {"$defs": {"short": {"pattern": "^[a-z]+$"}}}
    assert first_problem(schema, {"reason": "fine"}) is None
    assert first_problem(schema, {"reason": "Not fine"}) == "$.reason: 'Not fine' does not match '^[a-z]+$'"


def test_a_pattern_that_takes_for_ever_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LIMIT_S", 0.05)
    with pytest.raises(MetricError, match="takes too long"):
        first_problem(with_reason(pattern="^(a|a|aa)+$"), {"reason": "a" * 60 + "!"})
