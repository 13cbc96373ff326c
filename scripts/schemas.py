"""Writes the published JSON Schemas; usage: `make schemas`."""

from __future__ import annotations

import json
from pathlib import Path

from agenteval.cli.explanations import schema, schema_names

SCHEMAS = Path(__file__).parents[1] / "schemas"


def schema_file(name: str) -> Path:
    """Return the file of a published schema."""
    return SCHEMAS / f"{'agenteval' if name == 'config' else name}.schema.json"


def main() -> None:
    """Write every schema."""
    for name in schema_names():
        schema_file(name).write_text(json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
