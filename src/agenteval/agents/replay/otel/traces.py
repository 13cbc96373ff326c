"""OpenTelemetry traces for FluxLoop's suites, which score each answer separately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from agenteval.agents.replay.otel.answer import OtelAnswer
from agenteval.agents.replay.otel.read import read_answers
from agenteval.agents.replay.trace import BadLine, Trace
from agenteval.results.record.fields import trace_of_reply

NO_CONTENT = (
    "the question or the answer was not recorded; enable the recording of content in the instrumentation "
    "(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT)"
)


def read_otel_traces(file: Path) -> Iterator[Trace | BadLine]:
    """Yield every bad line, then the traces in order of time.

    A repeated question is the next iteration.

    Raises:
        ConfigError: the file cannot be read, or has no trace of an agent.
    """
    asked: Counter[str] = Counter()
    for item in read_answers(file):
        if isinstance(item, BadLine):
            yield item
        elif item.input is None or (item.response is None and item.error is None):
            yield BadLine(file, item.line, f"trace {item.trace_id}: {NO_CONTENT}")
        else:
            yield _trace(item, item.input, asked[item.input])
            asked[item.input] += 1


def _trace(answer: OtelAnswer, question: str, iteration: int) -> Trace:
    output = answer.response or ""
    success = answer.error is None
    record = trace_of_reply(
        input=question,
        output=output,
        duration_ms=answer.latency_ms,
        success=success,
        iteration=iteration,
        trace_id=answer.trace_id,
        usage=answer.usage,
        tool_calls=answer.tool_calls,
    )
    return Trace(
        line=answer.line,
        trace_id=answer.trace_id,
        iteration=iteration,
        persona=None,
        input=question,
        output=output,
        duration_ms=answer.latency_ms,
        success=success,
        record=record if success else {**record, "error": answer.error},
    )
