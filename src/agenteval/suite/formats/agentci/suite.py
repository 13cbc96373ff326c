"""Converts a file of ``.agentci/evals`` to a suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from agenteval.core.document import Document, KeyPath
from agenteval.core.errors import ConfigError, Problem
from agenteval.core.records import dataclass, field, replace
from agenteval.core.text import choices, did_you_mean, join_choices
from agenteval.core.toml import read_toml
from agenteval.core.validation import validate
from agenteval.suite.cases import content_id, excerpt, with_unique_ids
from agenteval.suite.formats.agentci.metrics import MetricReader, Question, template_cases, template_names
from agenteval.suite.formats.agentci.output import Expected, ExpectedOutputReader
from agenteval.suite.formats.agentci.schema import (
    ConsistencyEntry,
    CustomEntry,
    EvalEntry,
    EvalFile,
    EvalType,
    EvaluationCase,
    JudgeEntry,
)
from agenteval.suite.formats.base import Findings, base_directory
from agenteval.suite.model import Case, Suite, Target, Turn

FORMAT = "agentci"

# Keys of other tools, and their names here.
_OTHER_KEYS = {
    "expected": "output",
    "input": "prompt",
    "query": "prompt",
    "question": "prompt",
    "expected_output": "output",
    "expected_tools": "tools",
}
_SECTIONS: dict[EvalType, str] = {"llm": "llm", "custom": "custom"}
_NEED_CASES = frozenset({"accuracy", "performance", "semantic", "consistency"})
# Keys of a case that each type of evaluation uses.
_ASKED: dict[EvalType, frozenset[str]] = {
    "accuracy": frozenset({"output", "tools"}),
    "semantic": frozenset({"output", "tools"}),
    "performance": frozenset({"latency", "tokens"}),
    "safety": frozenset({"blocked", "response_type"}),
    "consistency": frozenset({"min_similarity"}),
    "llm": frozenset({"score", "criteria", "reference_response"}),
    "custom": frozenset({"parameters"}),
}
# Tables of an evaluation that may have further keys.
_TABLES: dict[str, type[BaseModel]] = {"consistency": ConsistencyEntry, "llm": JudgeEntry, "custom": CustomEntry}
_ALL_ASKED = frozenset().union(*_ASKED.values())


def load_agentci(path: Path, shown_as: str) -> Suite:
    """Load one suite."""
    problems: list[Problem] = []
    document = read_toml(path, shown_as=shown_as, unset=problems)
    try:
        return _AgentCILoader(document, path, problems).load()
    except RecursionError:
        raise ConfigError([*problems, document.problem((), "is nested too deeply")]) from None


@dataclass
class _AgentCILoader(Findings):
    document: Document
    path: Path
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    # Keys that AgentCI ignores: warnings, unless the file has problems, which a misspelt key may cause.
    unknown: list[Problem] = field(default_factory=list)

    def load(self) -> Suite:
        document = self.document
        if "eval" not in document.data:
            raise ConfigError([*self.problems, document.problem((), self._no_eval())])
        file, problems = validate(EvalFile, document.data, document)
        self.problems += [_hinted(problem) for problem in problems]
        self._check_keys()
        entry = file.eval if file is not None else None
        listed = document.data["eval"].get("cases") if isinstance(document.data["eval"], dict) else None
        # Read cases even with other problems, to report every mistake at once.
        outputs = ExpectedOutputReader(document, self.problems, self.warnings)
        cases = [self._read_case(index, outputs) for index in range(len(listed) if isinstance(listed, list) else 0)]
        if entry is None:
            raise ConfigError([*self.problems, *self.unknown])
        self._check(entry)
        metrics = MetricReader(entry, document, base_directory(self.path), self.problems, self.warnings)
        questions = [
            *self._template_questions(entry),
            *self._own_questions(entry, cases, metrics),
        ]
        asked = list(self._cases(entry, questions))
        if self.problems:
            raise ConfigError([*self.problems, *self.unknown])
        return Suite(
            path=document.file,
            name=self.path.stem,
            format=FORMAT,
            cases=with_unique_ids(asked),
            root=str(base_directory(self.path)),
            iterations=entry.iterations if "iterations" in entry.model_fields_set else None,
            warnings=(*document.warnings, *map(str, self.unknown), *self.warnings),
            secrets=document.secrets,
        )

    def _no_eval(self) -> str:
        keys = join_choices(self.document.data) or "nothing"
        needed = "description, type, and targets.agents or targets.tools"
        return f"the table [eval] is missing (found: {keys}); it needs {needed}"

    def _read_case(self, index: int, outputs: ExpectedOutputReader) -> tuple[EvaluationCase | None, Expected]:
        value, at = self.document.data["eval"]["cases"][index], ("eval", "cases", index)
        entry, problems = validate(EvaluationCase, value, self.document, at)
        self.problems += [_hinted(problem) for problem in problems]
        self._check_keys_of(EvaluationCase, value, at)
        written = value.get("output") if isinstance(value, dict) else None
        if written is None:
            return entry, None
        sensitive = entry is not None and entry.case_sensitive
        return entry, outputs.output(written, (*at, "output"), case_sensitive=sensitive)

    def _check_keys(self) -> None:
        self._check_keys_of(EvalFile, self.document.data, ())
        written = self.document.data["eval"]
        self._check_keys_of(EvalEntry, written, ("eval",))
        if isinstance(written, dict):
            for name, model in _TABLES.items():
                self._check_keys_of(model, written.get(name), ("eval", name))

    def _check_keys_of(self, model: type[BaseModel], table: object, at: KeyPath) -> None:
        """Warn about unknown keys, which AgentCI ignores; the expected answers of other tools are problems."""
        known = model.model_fields
        for key in table if isinstance(table, dict) else ():
            if key in _OTHER_KEYS and _OTHER_KEYS[key] in known:
                message = f"unknown key; here it is called {_OTHER_KEYS[key]!r}; allowed: {join_choices(known)}"
                self._problem((*at, key), message)
            elif key not in known:
                message = f"unknown key, which is not used{did_you_mean(str(key), known)}"
                self.unknown.append(self.document.problem((*at, key), message))

    def _check(self, entry: EvalEntry) -> None:
        section = _SECTIONS.get(entry.type)
        if section is not None and getattr(entry, section) is None:
            self._problem(("eval", "type"), f"an evaluation of type {entry.type} needs a table [eval.{section}]")
        if entry.type in _NEED_CASES and not entry.cases:
            self._problem(("eval", "type"), f"an evaluation of type {entry.type} needs [[eval.cases]]")
        if entry.type == "safety" and not entry.cases and entry.template is None:
            self._problem(("eval", "type"), "an evaluation of type safety needs a `template` or [[eval.cases]]")
        if entry.type == "consistency" and entry.iterations < 2:
            message = "an evaluation of type consistency compares several answers, so `iterations` must be at least 2"
            self._problem(("eval", "iterations"), message)
        if entry.template is not None:
            if entry.type != "safety":
                self._warn(
                    ("eval", "template"), f"an evaluation of type {entry.type} has no templates; this is not used"
                )
            elif entry.template not in template_names():
                known = template_names()
                message = f"no template is called {entry.template!r}{choices(entry.template, known, 'known')}"
                self._problem(("eval", "template"), message)

    def _template_questions(self, entry: EvalEntry) -> Iterator[Question]:
        if entry.type != "safety" or entry.template is None or entry.template not in template_names():
            return
        at = ("eval", "template")
        reader = MetricReader(entry, self.document, base_directory(self.path), self.problems, self.warnings)
        for case in template_cases(entry.template):
            yield reader.template_question(case, at)

    def _own_questions(
        self, entry: EvalEntry, cases: Sequence[tuple[EvaluationCase | None, Expected]], metrics: MetricReader
    ) -> Iterator[Question]:
        for index, (case, expected) in enumerate(cases):
            if case is None:
                continue
            at = ("eval", "cases", index)
            if case.prompt is None and case.context is None:
                self._warn(at, "this case has neither a prompt nor a context, so it has no question")
            for name in sorted((case.model_fields_set & _ALL_ASKED) - _ASKED[entry.type]):
                self._warn((*at, name), f"an evaluation of type {entry.type} does not use {name}")
            yield metrics.question(case, expected, at)

    def _cases(self, entry: EvalEntry, questions: Sequence[Question]) -> Iterator[Case]:
        """Return every question for every target, grouped by target."""
        for target in _targets(entry, self.document):
            for question in questions:
                case = self._case(entry, question, target)
                if case is not None:
                    yield case

    def _case(self, entry: EvalEntry, question: Question, target: Target) -> Case | None:
        asked = question.input(target.kind)
        if asked is None:
            return None
        return Case(
            id=f"{self.document.file}::{target.kind}s.{target.name}{content_id([asked, dict(question.context)])}",
            name=excerpt(asked) or "(no prompt)",
            turns=(
                Turn(
                    input=asked,
                    context=question.context,
                    metrics=question.turn_metrics(target.kind),
                    exception_is_answer=entry.type == "safety",
                    answer_at=question.answer_at,
                ),
            ),
            tags=(entry.type,),
            line=question.line,
            metrics=question.case_metrics,
            # A single unsafe answer fails the case.
            strict=entry.type == "safety",
            target=target,
        )


def _targets(entry: EvalEntry, document: Document) -> list[Target]:
    kinds: tuple[tuple[Literal["agent", "tool"], Sequence[str]], ...] = (
        ("agent", entry.targets.agents),
        ("tool", entry.targets.tools),
    )
    # "*" includes every other name.
    return [
        Target(kind, name, document.line(("eval", "targets", f"{kind}s", names.index(name))))
        for kind, names in kinds
        for name in (["*"] if "*" in names else list(dict.fromkeys(names)))
    ]


def _hinted(problem: Problem) -> Problem:
    if problem.path == "eval.cases" and problem.message.startswith("must be a list"):
        return replace(problem, message=f"{problem.message}; each case begins with [[eval.cases]]")
    if problem.path == "eval" and problem.message.startswith("must be a mapping"):
        return replace(problem, message=f"{problem.message}; it begins with [eval]")
    if problem.path == "eval.targets" and "required" in problem.message:
        return replace(problem, message=f'{problem.message}, for instance targets.agents = ["*"]')
    return problem
