"""The session of a run, which its agents can use to keep their state apart from that of other runs."""

from __future__ import annotations

from dataclasses import replace

from agenteval.suite.model import AgentSpec

#: Environment variable of agents; it has another value in each run, and for each side of a confirmation.
SESSION = "AGENTEVAL_SESSION"


def with_session(agent: AgentSpec, session: str) -> AgentSpec:
    """Return an agent whose processes get the name of a session, unless its definition or caller has set one."""
    return replace(agent, env={SESSION: session, **agent.env})
