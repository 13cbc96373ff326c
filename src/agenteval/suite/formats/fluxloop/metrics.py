"""Converts the evaluators of a FluxLoop ``evaluation.yaml`` to metrics."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import count
from typing import Any, TypeVar

from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import Problem
from agenteval.core.llm.models import KEY_VARIABLES, ModelSpec, chat_model
from agenteval.core.records import dataclass, field, replace
from agenteval.core.text import choices, did_you_mean, join_choices
from agenteval.core.validation import validate
from agenteval.suite.evaluation import JudgeLimits, why_nothing
from agenteval.suite.formats.base import Findings
from agenteval.suite.formats.fluxloop.schema import (
    EVALUATORS,
    RULES,
    JudgeEvaluatorEntry,
    ModelParameters,
    RuleEvaluatorEntry,
    Similarity,
)
from agenteval.suite.forms import has_text, template_warnings
from agenteval.suite.model import MetricConfig, Place

_FILE = "prebuilt_judges.toml"
# FluxLoop documents this one as an example, and the others as built-in.
NOT_DOCUMENTED = "response_quality"
_LONGEST_SCALE = 10.0
_REPLIES: Mapping[str, str] = {
    "first_number_1_10": "Reply with two lines and nothing else:\nScore: <number>\nReason: <one sentence>",
    "first_float": "Reply with two lines and nothing else:\nScore: <number>\nReason: <one sentence>",
    "json_score": 'Reply with one JSON object and nothing else: {"score": <number>, "reason": "<one sentence>"}',
}


def prebuilt_names() -> Sequence[str]:
    """Return the names of evaluators with a built-in prompt."""
    return tuple(_prompts())


def prebuilt_template(name: str, parser: str, max_score: float) -> str:
    """Return the built-in prompt of an evaluator."""
    highest = min(max_score, _LONGEST_SCALE) if parser == "first_number_1_10" else max_score
    lowest = 1 if highest > 1 else 0
    scale = f"Give a score from {lowest} (worst) to {highest:g} (best)."
    return f"{_prompts()[name].strip()}\n\n{scale} {_REPLIES[parser]}\n"


@cache
def _prompts() -> dict[str, str]:
    text = files("agenteval.suite.formats.fluxloop").joinpath(_FILE).read_text(encoding="utf-8")
    return {name: judge["prompt"] for name, judge in tomllib.loads(text).items()}


API_KEY = "FLUXLOOP_LLM_API_KEY"
_AT = ("evaluators",)
_EVALUATOR_TEXTS = ("name", "model", "prompt_template")
_RULE_TEXTS = ("keywords", "pattern", "target", "expected_path")
# Keys that can make a rule check nothing.
_CHECKED_KEY = {"matches_regex": "pattern", "similarity": "expected_path"}
_HIGHEST_OF_FIRST_NUMBER = 10.0
_S = TypeVar("_S")


@dataclass(frozen=True)
class Evaluator:
    """One evaluator: name in the file, whether it is enabled, and its metric with an id that no other one has."""

    name: str
    enabled: bool
    weight: float
    metric: MetricConfig
    at: KeyPath


@dataclass
class EvaluatorReader(Findings):
    """Reads the evaluators of one file.

    Args:
        variables: those of the project's ``.env`` files, for keys of judges.
    """

    document: Document
    limits: JudgeLimits
    problems: list[Problem]
    warnings: list[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)

    def read(self, listed: object) -> list[Evaluator]:
        """Return every valid evaluator, including disabled ones."""
        entries = listed if isinstance(listed, list) else []
        read = [self._evaluator(value, (*_AT, index)) for index, value in enumerate(entries)]
        self._warn_of_samples(entries)
        return self._with_ids([evaluator for evaluator in read if evaluator is not None])

    def _evaluator(self, value: object, at: KeyPath) -> Evaluator | None:
        if not isinstance(value, dict):
            self._problem(at, "an evaluator is a mapping with `name` and `type`")
            return None
        schema = self._schema(value, "type", EVALUATORS, at)
        if schema is None:
            return None
        entry, problems = validate(
            schema, self.document.texts_as_written(value, at, _EVALUATOR_TEXTS), self.document, at
        )
        self.problems += problems
        rules = self._rules(value.get("rules"), (*at, "rules")) if schema is RuleEvaluatorEntry else []
        if entry is None:
            return None
        if isinstance(entry, JudgeEvaluatorEntry):
            metric = self._judge(entry, value.get("model_parameters"), at)
        else:
            metric = self._metric(entry.name, "rules", {"rules": tuple(rules)}, at)
        return None if metric is None else Evaluator(entry.name, entry.enabled, entry.weight, metric, at)

    def _schema(self, value: Mapping[str, Any], key: str, schemas: Mapping[str, _S], at: KeyPath) -> _S | None:
        """Return the schema that a key names; a key that names none becomes a problem."""
        name = value.get(key)
        schema = schemas.get(name) if isinstance(name, str) else None
        if schema is None:
            given = "this key is required" if name is None else f"{name!r} is not allowed"
            self._problem((*at, key), f"{given}{choices(str(name or ''), schemas)}")
        return schema

    def _metric(self, name: str, kind: str, options: Mapping[str, Any], at: KeyPath) -> MetricConfig:
        return MetricConfig(
            id=name,
            type=kind,
            kind="rule" if kind == "rules" else "judge",
            options=options,
            where=Place(str(self.document.directory), self.document.file, self.document.line(at)),
        )

    def _rules(self, listed: object, at: KeyPath) -> list[dict[str, Any]]:
        read = [
            self._rule(value, (*at, index)) for index, value in enumerate(listed if isinstance(listed, list) else [])
        ]
        return [rule for rule in read if rule is not None]

    def _rule(self, value: object, at: KeyPath) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            self._problem(at, "a rule is a mapping with `check`, for instance - check: output_not_empty")
            return None
        schema = self._schema(value, "check", RULES, at)
        if schema is None:
            return None
        written = self.document.texts_as_written(value, at, _RULE_TEXTS)
        entry, problems = validate(schema, written, self.document, at)
        self.problems += problems
        if entry is None:
            return None
        if isinstance(entry, Similarity) and entry.min_score is not None:
            entry = entry.model_copy(update={"threshold": entry.min_score, "min_score": None})
        rule = entry.model_dump(exclude_none=True)
        if why := why_nothing(rule):
            self._warn((*at, _CHECKED_KEY[rule["check"]]), f"{why}, so this checks nothing")
        return rule

    def _judge(self, entry: JudgeEvaluatorEntry, parameters: object, at: KeyPath) -> MetricConfig | None:
        template = self._template(entry, at)
        model = self._model(entry, at)
        if entry.parser == "first_number_1_10" and entry.max_score > _HIGHEST_OF_FIRST_NUMBER:
            message = f"first_number_1_10 reads 0 to 10, so {entry.max_score:g} is never reached; use first_float"
            self._warn((*at, "max_score"), message)
        if template is None or model is None:
            return None
        self._warn_of_unused(entry.model_parameters, (*at, "model_parameters"))
        options = {
            "name": entry.name,
            "model": model,
            "template": template,
            "parser": entry.parser,
            "max_score": entry.max_score,
            "parameters": parameters if isinstance(parameters, dict) else {},
            "asked": _asked(entry.model_parameters),
            "limits": self.limits,
        }
        return self._metric(entry.name, "trace_judge", options, at)

    def _template(self, entry: JudgeEvaluatorEntry, at: KeyPath) -> str | None:
        if entry.prompt_template is not None and has_text(entry.prompt_template):
            for warning in template_warnings(entry.prompt_template):
                self._warn((*at, "prompt_template"), warning)
            return entry.prompt_template
        has_comments = bool((entry.prompt_template or "").strip())
        if entry.name not in prebuilt_names():
            built_in = join_choices(name for name in prebuilt_names() if name != NOT_DOCUMENTED)
            hint = did_you_mean(entry.name, prebuilt_names())
            message = f"a judge needs a template; only these names have a built-in one: {built_in}{hint}"
            self._problem((*at, "prompt_template"), message)
            return None
        if has_comments:
            self._warn(
                (*at, "prompt_template"), "contains only comments, so the built-in prompt of this name is used"
            )
        if entry.name == NOT_DOCUMENTED:
            self._warn(at, f"{entry.name} has no prompt_template; a general one for the quality of answers is used")
        return prebuilt_template(entry.name, entry.parser, entry.max_score)

    def _model(self, entry: JudgeEvaluatorEntry, at: KeyPath) -> ModelSpec | None:
        given = entry.model_parameters
        try:
            model = chat_model(
                entry.model,
                temperature=0.0 if given.temperature is None else given.temperature,
                max_tokens=given.max_output_tokens or given.max_tokens,
            )
        except ValueError as error:
            self._problem((*at, "model"), str(error))
            return None
        key = self._key() if model.provider == "openai" else None
        if key:
            self.secrets.add(key)
        return replace(model, top_p=given.top_p, api_key=key or None).with_key_of(self.variables)

    def _key(self) -> str | None:
        """Return the key of OpenAI that only FluxLoop reads; a file replaces no key of the environment."""
        key = os.environ.get(API_KEY)
        return key if key or os.environ.get(KEY_VARIABLES["openai"]) else self.variables.get(API_KEY)

    def _warn_of_unused(self, given: ModelParameters, at: KeyPath) -> None:
        nested = {"reasoning": given.reasoning, "text": given.text}
        unused: list[tuple[str, ...]] = [(name,) for name in given.model_extra or {}]
        unused += [
            (name, key) for name, entry in nested.items() for key in (entry.model_extra or {} if entry else {})
        ]
        known = [
            *ModelParameters.model_fields,
            *(f"{name}.{key}" for name, key in (("reasoning", "effort"), ("text", "verbosity"))),
        ]
        for path in unused:
            name = ".".join(path)
            self._warn((*at, *path), f"not used{choices(name, known, 'known')}")

    def _with_ids(self, evaluators: list[Evaluator]) -> list[Evaluator]:
        """Number the enabled evaluators that repeat a name; all of them score."""
        first: dict[str, Evaluator] = {}
        taken = {evaluator.name for evaluator in evaluators}
        numbered = []
        for evaluator in evaluators:
            if evaluator.enabled and evaluator.name in first:
                number = next(n for n in count(2) if f"{evaluator.name}#{n}" not in taken)
                own = f"{evaluator.name}#{number}"
                taken.add(own)
                line = self.document.line(first[evaluator.name].at)
                place = f" (first in line {line})" if line else ""
                message = f"the name {evaluator.name!r} is given twice{place}; this evaluator is called {own!r}"
                self._warn((*evaluator.at, "name"), message)
                numbered.append(replace(evaluator, metric=replace(evaluator.metric, id=own)))
                continue
            if evaluator.enabled:
                first[evaluator.name] = evaluator
            numbered.append(evaluator)
        return numbered

    def _warn_of_samples(self, entries: list[Any]) -> None:
        """Report once that example replies are not used."""
        found = [
            (*_AT, index, "metadata", "sample_response")
            for index, entry in enumerate(entries)
            if isinstance(entry, dict)
            and isinstance(entry.get("metadata"), dict)
            and "sample_response" in entry["metadata"]
        ]
        if found:
            others = f" (nor of {len(found) - 1} more)" if len(found) > 1 else ""
            self._warn(found[0], f"is not used{others}, as in FluxLoop; put an example reply into prompt_template")


def _asked(given: ModelParameters) -> dict[str, Any]:
    """Return the model parameters, with the names of OpenAI's chat completions."""
    asked = {
        "reasoning_effort": given.reasoning.effort if given.reasoning else None,
        "verbosity": given.text.verbosity if given.text else None,
        "presence_penalty": given.presence_penalty,
        "frequency_penalty": given.frequency_penalty,
        "seed": given.seed,
        "response_format": given.response_format,
    }
    return {name: value for name, value in asked.items() if value is not None}
