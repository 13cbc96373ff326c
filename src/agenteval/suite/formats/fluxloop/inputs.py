"""Reads the inputs of a FluxLoop project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agenteval.core.documents.document import Document, KeyPath
from agenteval.core.documents.yaml.read import read_yaml
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.text.json_text import text_of
from agenteval.suite.files import is_file
from agenteval.suite.formats.fluxloop.project import Project, shown_beside

# Metadata of an input that other fields contain.
_NOT_METADATA = frozenset({"input", "metadata"})


@dataclass(frozen=True, slots=True)
class Input:
    """One input in a file.

    Attributes:
        text: the question.
        metadata: metadata in the file.
        name: name of the input, if any.
        persona: persona that asks it, if given.
        by_everyone: whether every persona of the project asks it.
        line: line in the file.
    """

    text: str
    metadata: Mapping[str, Any]
    name: str | None = None
    persona: str | None = None
    by_everyone: bool = False
    line: int | None = None


@dataclass
class InputReader:
    """Reads the inputs of a project: the generated ones (``inputs_file``), else its ``base_inputs``.

    Args:
        evaluation: the ``evaluation.yaml`` of the project.
        project: settings of the project.
        problems: receives problems.
    """

    evaluation: Document
    project: Project
    problems: list[Problem]
    warnings: list[str] = field(default_factory=list)
    secrets: frozenset[str] = frozenset()

    def read(self) -> list[Input]:
        """Return every input; every persona asks the base inputs without a persona."""
        generated = self._generated()
        if generated is not None:
            return generated
        listed = self.project.entry.base_inputs
        if not listed:
            return []
        base = self._inputs(listed, self.project.documents["base_inputs"], ("base_inputs",))
        return [replace(item, by_everyone=item.persona is None) for item in base]

    def _generated(self) -> list[Input] | None:
        """Return the generated inputs; ``None`` without any, so that the base inputs count."""
        written = self.project.entry.inputs_file
        if not written:
            return None
        owner = self.project.documents["inputs_file"]
        path = self._path(written, owner)
        if path is None:
            rest = "the base inputs are used" if self.project.entry.base_inputs else "so there are no cases"
            message = f"{written} does not exist (`fluxloop generate inputs` creates it); {rest}"
            self.warnings.append(str(owner.problem(("inputs_file",), message)))
            return None
        try:
            document = read_yaml(path, shown_as=shown_beside(self.evaluation, path), unset=self.problems)
        except ConfigError as error:
            self.problems += error.problems
            return []
        self.warnings += document.warnings
        self.secrets |= document.secrets
        at: KeyPath = ("inputs",) if isinstance(document.data, dict) else ()
        listed = document.data.get("inputs") if isinstance(document.data, dict) else document.data
        if not isinstance(listed, list) or not listed:
            self.problems.append(
                document.problem(at, "must be a list of inputs, or a mapping with such a list as `inputs`")
            )
            return []
        return self._inputs(listed, document, at)

    def _path(self, written: str, owner: Document) -> Path | None:
        """Return a path relative to the project, as in FluxLoop, else to the file that names it."""
        candidates = (self.project.root / written, owner.directory / written)
        return next((path for path in candidates if is_file(path)), None)

    def _inputs(self, listed: Sequence[Any], document: Document, at: KeyPath) -> list[Input]:
        read = [self._input(item, document, (*at, index)) for index, item in enumerate(listed)]
        return [item for item in read if item is not None]

    def _input(self, item: Any, document: Document, at: KeyPath) -> Input | None:
        if not isinstance(item, dict):
            self._problem(document, at, "must be a mapping with `input`")
            return None
        asked = item.get("input")
        text = text_of(asked if isinstance(asked, dict | list) else document.as_written(asked, (*at, "input")))
        if asked in (None, "", [], {}) or not text.strip():
            self._problem(document, (*at, "input"), "is missing or empty; it is the question for the agent")
            return None
        metadata = item.get("metadata")
        if metadata is not None and not isinstance(metadata, dict):
            self._problem(document, (*at, "metadata"), "must be a mapping (key: value)")
            return None
        said = {**{key: value for key, value in item.items() if key not in _NOT_METADATA}, **(metadata or {})}
        persona, name = said.get("persona"), item.get("name")
        if persona is not None and not isinstance(persona, str):
            self._problem(document, at, "`persona` must be the name of a persona")
            return None
        return Input(text, said, str(name) if name else None, persona or None, line=document.line(at))

    def _problem(self, document: Document, at: KeyPath, message: str) -> None:
        self.problems.append(document.problem(at, message))
