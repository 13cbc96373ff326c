"""Finds the key paths of the texts with variables in a tree of YAML nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import yaml

from agenteval.core.documents.allowed import KeyPatterns, Place
from agenteval.core.documents.document import KeyPath
from agenteval.core.documents.yaml.values import OPEN

_MERGE_TAG = "tag:yaml.org,2002:merge"


def find_places(root: yaml.Node | None, credentials: KeyPatterns, at: KeyPath, first_item: int) -> dict[int, Place]:
    """Return the place of every scalar with variables, by the id of its node.

    A node that aliases put at several paths takes credentials only if all of these paths do.

    Args:
        root: the tree; its nesting is limited.
        credentials: patterns of the keys that take credentials, below the root.
        at: path of the root in the file.
        first_item: index of the root's first item.
    """
    search = _Search()
    if isinstance(root, yaml.SequenceNode):
        for index, item in enumerate(root.value, first_item):
            search.visit(item, (*at, index), credentials.after(index))
    elif root is not None:
        search.visit(root, tuple(at), credentials)
    return search.found


@dataclass
class _Search:
    """The places found so far."""

    found: dict[int, Place] = field(default_factory=dict)
    # A node with the patterns that are left there; aliases lead to the same pair on many paths.
    seen: set[tuple[int, KeyPatterns]] = field(default_factory=set)

    def visit(self, node: yaml.Node, path: tuple[str | int, ...], credentials: KeyPatterns) -> None:
        """Record the texts with variables below a node."""
        if isinstance(node, yaml.ScalarNode):
            known = self.found.get(id(node))
            if OPEN in node.value and (known is None or (known.takes_credentials and not credentials.match)):
                self.found[id(node)] = Place(path, credentials.match)
            return
        if (id(node), credentials) in self.seen:
            return
        self.seen.add((id(node), credentials))
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.visit(item, (*path, index), credentials.after(index))
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.tag == _MERGE_TAG:
                    for merged in _merged(value):
                        self.visit(merged, path, credentials)
                else:
                    step = key.value if isinstance(key, yaml.ScalarNode) else "?"
                    self.visit(value, (*path, step), credentials.after(step))


def _merged(value: yaml.Node) -> Iterator[yaml.Node]:
    """Yield the mappings that a merge key copies here."""
    nodes: Sequence[yaml.Node] = value.value if isinstance(value, yaml.SequenceNode) else [value]
    yield from nodes
