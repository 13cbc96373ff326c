"""What judges of FluxLoop's suites reply, read by every parser. MetricError."""

from __future__ import annotations

from contextlib import suppress

from agenteval.metrics.base import MetricError
from agenteval.metrics.judge_replies import PARSERS


def target(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for parse in PARSERS.values():
        with suppress(MetricError):
            assert 0 <= parse(text, 10.0).raw <= 10
