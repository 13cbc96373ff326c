"""Creates cases from the inputs of a FluxLoop project: one for each input and persona."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.records import dataclass, field, replace
from agenteval.core.text import text_of
from agenteval.core.yaml import read_yaml
from agenteval.suite.cases import asked_by, content_id, excerpt, is_file, persona_tag, with_unique_ids
from agenteval.suite.evaluation import Aggregate
from agenteval.suite.formats.base import EnvFiles
from agenteval.suite.formats.fluxloop.project import (
    PersonaEntry,
    Project,
    ProjectEntry,
    read_project,
    runner_agent,
    shown_beside,
)
from agenteval.suite.model import AgentSpec, Case, MetricConfig, Turn

# Metadata of an input that other fields contain.
_NOT_METADATA = frozenset({"input", "metadata"})


@dataclass(frozen=True)
class Input:
    """One input in a file."""

    text: str
    metadata: Mapping[str, Any]
    name: str | None = None
    persona: str | None = None
    by_everyone: bool = False
    line: int | None = None


@dataclass
class InputReader:
    """Reads the inputs of a project: the generated ones (``inputs_file``), else its ``base_inputs``."""

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
        # FluxLoop reads it relative to the project.
        folders = (self.project.root, owner.directory)
        path = next((folder / written for folder in folders if is_file(folder / written)), None)
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

    def _inputs(self, listed: Sequence[Any], document: Document, at: KeyPath) -> list[Input]:
        read = [self._input(item, document, (*at, index)) for index, item in enumerate(listed)]
        return [item for item in read if item is not None]

    def _input(self, item: Any, document: Document, at: KeyPath) -> Input | None:
        if not isinstance(item, dict):
            self.problems.append(document.problem(at, "must be a mapping with `input`"))
            return None
        asked = item.get("input")
        text = text_of(asked if isinstance(asked, dict | list) else document.as_written(asked, (*at, "input")))
        if asked in (None, "", [], {}) or not text.strip():
            message = "is missing or empty; it is the question for the agent"
            self.problems.append(document.problem((*at, "input"), message))
            return None
        metadata = item.get("metadata")
        if metadata is not None and not isinstance(metadata, dict):
            self.problems.append(document.problem((*at, "metadata"), "must be a mapping (key: value)"))
            return None
        said = {**{key: value for key, value in item.items() if key not in _NOT_METADATA}, **(metadata or {})}
        persona, name = said.get("persona"), item.get("name")
        if persona is not None and not isinstance(persona, str):
            self.problems.append(document.problem(at, "`persona` must be the name of a persona"))
            return None
        return Input(text, said, str(name) if name else None, persona or None, line=document.line(at))


@dataclass(frozen=True)
class PersonaQuestion:
    """Cases and settings of a project.

    Attributes:
        cases: one for each input and persona; empty without inputs.
    """

    cases: tuple[Case, ...] = ()
    name: str | None = None
    iterations: int | None = None
    concurrency: int | None = None
    warnings: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    agent: AgentSpec | None = None


def read_cases(
    evaluation: Document,
    metrics: tuple[MetricConfig, ...],
    aggregate: Aggregate,
    env: EnvFiles,
    problems: list[Problem],
) -> PersonaQuestion:
    """Return the cases of the project beside an evaluation."""
    project = read_project(evaluation, problems)
    reader = InputReader(evaluation, project, problems)
    inputs = reader.read()
    cases = [case for item in inputs for case in _cases(item, project.entry, evaluation.file, metrics, aggregate)]
    warnings = [*project.warnings, *reader.warnings]
    agent, unknown, secrets = runner_agent(project.entry.runner, project.documents.get("runner"), project.root, env)
    warnings += unknown
    if cases:
        warnings += _unsupported(project)
    return PersonaQuestion(
        cases=with_unique_ids(cases),
        name=project.entry.name,
        iterations=project.entry.iterations,
        concurrency=project.entry.parallel_runs,
        warnings=tuple(warnings),
        secrets=project.secrets | reader.secrets | secrets,
        agent=agent,
    )


def _unsupported(project: Project) -> Iterator[str]:
    """Return a warning for every setting of a live run that agenteval does not have."""
    messages = {
        "multi_turn": "conversations with a supervisor are not supported; each input is a single turn",
        "replay_args": "recorded arguments are not supported; the agent gets the input",
    }
    for key, message in messages.items():
        entry = getattr(project.entry, key)
        if entry is not None and entry.enabled:
            yield str(project.documents[key].problem((key,), message))


def _cases(
    item: Input, project: ProjectEntry, file: str, metrics: tuple[MetricConfig, ...], aggregate: Aggregate
) -> Iterator[Case]:
    personas = {persona.name: persona for persona in project.personas or ()}
    names: Iterable[str | None] = (personas or (None,)) if item.by_everyone else (item.persona,)
    expected = item.metadata.get("expected")
    for name in names:
        persona = personas.get(name) if name is not None else None
        asker = {} if name is None else {"persona": persona.model_dump() if persona is not None else {"name": name}}
        turn = Turn(
            input=_in_template(item.text, persona, project.input_template),
            ground_truth=expected if isinstance(expected, str) else None,
            context=asker,
            config={**item.metadata, **({} if name is None else {"persona": name})},
            metrics=metrics,
        )
        yield Case(
            id=f"{file}::{content_id([name, item.text])}",
            name=asked_by(item.name or excerpt(item.text), name),
            turns=(turn,),
            tags=() if name is None else (persona_tag(name),),
            line=item.line,
            persona=name,
            aggregate=aggregate,
        )


def _in_template(text: str, persona: PersonaEntry | None, template: str | None) -> str:
    if persona is None or not template:
        return text
    before, *rest = template.split("{input}")
    filled = [part.replace("{persona}", describe(persona)) for part in (before, *rest)]
    return text.join(filled)


def describe(persona: PersonaEntry) -> str:
    """Return the description of a persona for a prompt."""
    lines = [f"{persona.name}: {persona.description}" if persona.description else persona.name]
    listed = (
        ("Traits", persona.characteristics),
        ("Wants to", persona.goals),
        ("Limits", persona.constraints),
    )
    lines += [f"{title}: {'; '.join(items)}" for title, items in listed if items]
    return "\n".join([*lines, f"Language: {persona.language}", f"Expertise: {persona.expertise_level}"])
