"""AgentCI's ``.agentci/evals/*.toml``."""

from __future__ import annotations

from pathlib import Path

from agenteval.suite.formats.base import Format, lazy, load_by, patterns

FORMAT = Format(
    name="agentci",
    title="AgentCI's .agentci/evals/NAME.toml",
    patterns=(".agentci/evals/*.toml",),
    keys=("eval",),
    matches=lambda source: source.path.suffix == ".toml",
    load=load_by("agentci.suite:load_agentci"),
    schema=lazy("agentci.schema:published"),
    starter=Path(__file__).with_name("starter"),
    places=patterns,
)
