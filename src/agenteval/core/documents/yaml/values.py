"""Converts YAML nodes to Python values, with variables replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from agenteval.core.documents.allowed import Place
from agenteval.core.documents.document import VARIABLE, Variables, substituted

# These characters replace the braces of variables while YAML is parsed.
OPEN, _CLOSE = "\ue000", "\ue001"

SEALED = re.compile(VARIABLE.pattern.replace(r"\{", OPEN).replace(r"\}", _CLOSE).replace("[^}]", f"[^{_CLOSE}]"))


def seal(text: str) -> str:
    """Replace the braces of variables with characters that have no meaning in YAML."""
    if "${" not in text:
        return text
    plain = text.replace(OPEN, "\ufffd").replace(_CLOSE, "\ufffd")
    return substituted(VARIABLE, lambda match: f"${OPEN}{match.group()[2:-1]}{_CLOSE}", plain)


def unseal(text: str) -> str:
    """Restore the original text."""
    return text.replace(OPEN, "{").replace(_CLOSE, "}")


STRING_TAG = "tag:yaml.org,2002:str"

_SEQUENCE_TAG = "tag:yaml.org,2002:seq"

_MAPPING_TAG = "tag:yaml.org,2002:map"


class Values:
    """Builds Python values from nodes. PyYAML builds the values of special nodes only.

    Args:
        loader: PyYAML's loader, for all other tags.
        variables: replaces variables; ``None`` if the text has none.
        first_line: line of the file at which the text begins, from 0.
        places: the place of every scalar with variables, by the id of its node.

    Attributes:
        duplicates: keys that are given again, with the lines of the first time and of this one.
    """

    def __init__(
        self, loader: Any, variables: Variables | None, first_line: int, places: Mapping[int, Place] | None = None
    ) -> None:
        self._loader = loader
        self._first_line = first_line
        self._variables = variables
        self._places = places or {}
        # Aliases share nodes and therefore values.
        self._made: dict[int, Any] = {}
        self.duplicates: list[tuple[str, int, int]] = []

    def of(self, node: yaml.Node) -> Any:
        """Return the value of a node. The parser has limited the nesting, so the recursion is safe."""
        if isinstance(node, yaml.ScalarNode):
            if self._variables is not None:
                self._replace(node, self._variables)
            return node.value if node.tag == STRING_TAG else self._loader.construct_object(node, deep=True)
        made = self._made.get(id(node))
        if made is None:
            made = self._made[id(node)] = self._collection(node)
        return made

    def _replace(self, node: yaml.ScalarNode, variables: Variables) -> None:
        """Replace the variables in a scalar; the result is a text."""
        if OPEN in node.value:
            # An unset variable is recorded as a problem and gets its braces back.
            node.value = unseal(
                variables.replace(node.value, self._line(node.start_mark), self._places.get(id(node), Place(())))
            )
            node.tag = STRING_TAG

    def _line(self, mark: yaml.Mark) -> int:
        return self._first_line + int(mark.line) + 1

    def _collection(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE_TAG:
            return [self.of(item) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            self._look_at_keys(node)
            # PyYAML handles merge keys ("<<") and keys that are not texts.
            if node.tag == _MAPPING_TAG and all(map(_is_text, node.value)):
                return {key.value: self.of(value) for key, value in node.value}
        self._prepare(node)
        return self._loader.construct_object(node, deep=True)

    def _prepare(self, node: yaml.Node) -> None:
        """Replace variables and check keys in nodes that PyYAML converts."""
        inner = [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else node.value
        for value in inner:
            if id(value) in self._made:
                continue
            # The value is discarded: PyYAML builds it again.
            self.of(value)

    def _look_at_keys(self, node: yaml.MappingNode) -> None:
        if self._variables is not None:
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    # Keys are never replaced.
                    key.value = unseal(key.value)
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(names)) < len(names):
            self._name_duplicates(node)

    def _name_duplicates(self, node: yaml.MappingNode) -> None:
        first: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = self._line(key.start_mark)
                if key.value in first and key.value != "<<":
                    self.duplicates.append((key.value, first[key.value], line))
                first.setdefault(key.value, line)


def _is_text(entry: tuple[yaml.Node, yaml.Node]) -> bool:
    key, _ = entry
    return key.tag == STRING_TAG and isinstance(key, yaml.ScalarNode)
