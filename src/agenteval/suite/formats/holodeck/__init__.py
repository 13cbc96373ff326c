"""HoloDeck's ``agent.yaml``."""

from __future__ import annotations

from pathlib import Path

from agenteval.suite.formats.base import Format, lazy, load_by

FORMAT = Format(
    name="holodeck",
    title="HoloDeck's agent.yaml",
    patterns=("agent.yaml", "agent.yml"),
    keys=("test_cases", "test_cases_file", "evaluations"),
    # Every YAML file that no other format claims.
    matches=lambda source: source.path.suffix in {".yaml", ".yml"},
    load=load_by("holodeck.suite:load_holodeck"),
    schema=lazy("holodeck.tools_schema:published"),
    starter=Path(__file__).with_name("starter"),
    project=load_by("holodeck.project:read_project"),
)
