"""The record that rules and judges of traces read, wherever the answer came from."""

from __future__ import annotations

from agenteval.metrics.base import Observation
from agenteval.traces.model import Record, trace_of_reply


def record_of(observation: Observation) -> Record:
    """The record of the trace, or what would be recorded of the answer."""
    return observation.trace or trace_of_reply(
        input=observation.input,
        output=observation.response,
        duration_ms=observation.latency_ms,
        iteration=observation.iteration,
        trace_id=observation.case,
        expected=observation.config,
        usage=observation.usage,
        tool_calls=observation.tool_calls,
    )
