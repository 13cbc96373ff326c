"""Evaluates an LLM agent with its suite, compares with a baseline, and gates the merge.

The names in ``__all__`` are the public API, documented in ``docs/extending.md``. Everything else is private. A name
is imported when it is first used, so ``import agenteval`` loads nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agenteval.core.version import __version__ as __version__

if TYPE_CHECKING:
    from agenteval.agents.base import Agent, Reply, Request, Session
    from agenteval.core.errors import AgentError, ConfigError, InfrastructureError, Problem
    from agenteval.core.llm.budget import Limits
    from agenteval.gate.values import Quarantine
    from agenteval.gate.verdict import GatePolicy
    from agenteval.metrics.base import CaseMetric, Metric, MetricError, Observation, Outcome
    from agenteval.metrics.resources import Resources
    from agenteval.report.facts import Report
    from agenteval.report.parts import ReportFile
    from agenteval.results.case import ToolCall, Usage
    from agenteval.results.comparison import Comparison
    from agenteval.results.model import Results
    from agenteval.results.verdict import Gate
    from agenteval.run.evaluate import compare, evaluate, evaluate_async, load_suites, read_results
    from agenteval.run.outcome import RunOutcome
    from agenteval.suite.formats.base import Format, Source
    from agenteval.suite.model import AgentSpec, Case, MetricConfig, Suite, Turn

#: Changes when a public name is removed or changes its meaning.
API_VERSION: Final = 1

__all__ = [
    "API_VERSION",
    "Agent",
    "AgentError",
    "AgentSpec",
    "Case",
    "CaseMetric",
    "Comparison",
    "ConfigError",
    "Format",
    "Gate",
    "GatePolicy",
    "InfrastructureError",
    "Limits",
    "Metric",
    "MetricConfig",
    "MetricError",
    "Observation",
    "Outcome",
    "Problem",
    "Quarantine",
    "Reply",
    "Report",
    "ReportFile",
    "Request",
    "Resources",
    "Results",
    "RunOutcome",
    "Session",
    "Source",
    "Suite",
    "ToolCall",
    "Turn",
    "Usage",
    "compare",
    "evaluate",
    "evaluate_async",
    "load_suites",
    "read_results",
]

_NAMES_OF_MODULES = {
    "agents.base": ("Agent", "Reply", "Request", "Session"),
    "gate.verdict": ("GatePolicy",),
    "gate.values": ("Quarantine",),
    "core.errors": ("AgentError", "ConfigError", "InfrastructureError", "Problem"),
    "core.llm.budget": ("Limits",),
    "metrics.base": ("CaseMetric", "Metric", "MetricError", "Observation", "Outcome"),
    "metrics.resources": ("Resources",),
    "report.facts": ("Report",),
    "report.parts": ("ReportFile",),
    "results.case": ("ToolCall", "Usage"),
    "results.comparison": ("Comparison",),
    "results.model": ("Results",),
    "results.verdict": ("Gate",),
    "run.evaluate": ("compare", "evaluate", "evaluate_async", "load_suites", "read_results"),
    "run.outcome": ("RunOutcome",),
    "suite.formats.base": ("Format", "Source"),
    "suite.model": ("AgentSpec", "Case", "MetricConfig", "Suite", "Turn"),
}
_MODULE_OF = {name: f"{__name__}.{module}" for module, names in _NAMES_OF_MODULES.items() for name in names}


# Hidden from type checkers, which would otherwise accept every name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
