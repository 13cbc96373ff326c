"""Where the values of a YAML text stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from agenteval.suite.document import KeyPath


@dataclass(frozen=True)
class NodePositions:
    """Positions by the nodes of PyYAML, whose text begins at a line of the file (from 0)."""

    root: Any
    first_line: int

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the nearest parent that exists."""
        node = self.root
        line: int | None = None
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            mark, node = found
            line = self.first_line + mark.line + 1
        return line

    def source_text(self, path: KeyPath) -> str | None:
        """How a scalar is written."""
        node = self.root
        for step in path:
            found = _child(node, step)
            if found is None:
                return None
            node = found[1]
        return node.value if isinstance(node, yaml.ScalarNode) else None


def _child(node: Any, step: str | int) -> tuple[yaml.Mark, Any] | None:
    if isinstance(node, yaml.MappingNode):
        # The last of repeated keys is the one that counts.
        for key, value in reversed(node.value):
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return key.start_mark, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item.start_mark, item
    return None
