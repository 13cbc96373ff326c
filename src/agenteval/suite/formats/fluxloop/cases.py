"""Creates cases from the inputs of a FluxLoop project: one for each input and persona."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from agenteval.core.documents.document import Document
from agenteval.core.errors import Problem
from agenteval.suite.case_ids import asked_by, content_id, excerpt, persona_tag
from agenteval.suite.evaluation import Aggregate
from agenteval.suite.formats.fluxloop.env_files import EnvFiles
from agenteval.suite.formats.fluxloop.inputs import Input, InputReader
from agenteval.suite.formats.fluxloop.project import PersonaEntry, Project, ProjectEntry, read_project
from agenteval.suite.formats.fluxloop.runner import runner_agent
from agenteval.suite.model import AgentSpec, Case, MetricConfig, Turn


@dataclass(frozen=True)
class PersonaQuestion:
    """Cases and settings of a project.

    Attributes:
        cases: one for each input and persona; empty without inputs.
        name: name of the project's experiments.
        iterations: number of iterations.
        concurrency: cases at the same time.
        warnings: warnings of the loader.
        secrets: values of secret-like environment variables in its files.
        agent: the agent that the project names, if any.
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
    """Return the cases of the project beside an evaluation.

    Args:
        evaluation: the ``evaluation.yaml``.
        metrics: metrics of each answer.
        aggregate: combination of the scores into one.
        env: the ``.env`` files of the project.
        problems: receives problems.
    """
    project = read_project(evaluation, problems)
    reader = InputReader(evaluation, project, problems)
    inputs = reader.read()
    maker = _CaseMaker(project.entry, metrics, aggregate)
    cases = [case for item in inputs for case in maker.cases(item)]
    warnings = [*project.warnings, *reader.warnings]
    agent = runner_agent(project.entry.runner, project.documents.get("runner"), project.root, env)
    warnings += agent.warnings
    if cases:
        warnings += _unsupported(project)
    return PersonaQuestion(
        cases=tuple(_with_unique_ids(cases, evaluation.file)),
        name=project.entry.name,
        iterations=project.entry.iterations,
        concurrency=project.entry.parallel_runs,
        warnings=tuple(warnings),
        secrets=project.secrets | reader.secrets | agent.secrets,
        agent=agent.spec,
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


@dataclass(frozen=True)
class _CaseMaker:
    """Creates the cases of a project."""

    project: ProjectEntry
    metrics: tuple[MetricConfig, ...]
    aggregate: Aggregate

    def cases(self, item: Input) -> Iterator[Case]:
        """Return one case for each persona of an input."""
        personas = {persona.name: persona for persona in self.project.personas or ()}
        names: Iterable[str | None] = (personas or (None,)) if item.by_everyone else (item.persona,)
        for name in names:
            yield self._case(item, name, personas.get(name) if name is not None else None)

    def _case(self, item: Input, name: str | None, persona: PersonaEntry | None) -> Case:
        asker = {} if name is None else {"persona": persona.model_dump() if persona is not None else {"name": name}}
        expected = item.metadata.get("expected")
        turn = Turn(
            input=_in_template(item.text, persona, self.project.input_template),
            ground_truth=expected if isinstance(expected, str) else None,
            context=asker,
            config={**item.metadata, **({} if name is None else {"persona": name})},
            metrics=self.metrics,
        )
        return Case(
            id=content_id([name, item.text]),
            name=asked_by(item.name or excerpt(item.text), name),
            turns=(turn,),
            tags=() if name is None else (persona_tag(name),),
            line=item.line,
            persona=name,
            aggregate=self.aggregate,
        )


def _in_template(text: str, persona: PersonaEntry | None, template: str | None) -> str:
    """Return the input in the project's template, which is for personas only."""
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


def _with_unique_ids(cases: Iterable[Case], file: str) -> Iterator[Case]:
    """Return ids with the suite; repeated questions of a persona differ by their order."""
    seen: dict[str, int] = {}
    for case in cases:
        seen[case.id] = seen.get(case.id, 0) + 1
        own = f"{file}::{case.id}"
        yield replace(case, id=own if seen[case.id] == 1 else f"{own}#{seen[case.id]}")
