"""Reads the cases of a HoloDeck suite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agenteval.core.documents.document import Document, KeyPath, dotted
from agenteval.core.documents.validation import validate
from agenteval.core.errors import Kind, Problem
from agenteval.core.text.number import parse_number
from agenteval.suite.case_ids import excerpt, turns_id
from agenteval.suite.formats.holodeck.files import FileReader
from agenteval.suite.formats.holodeck.metrics import NEED_GROUND_TRUTH, expected_tools
from agenteval.suite.formats.holodeck.schema import MATCHERS, AnyMetric, CaseEntry, TurnEntry
from agenteval.suite.model import AnswerPlace, Case, MetricConfig, Place, Scope, Turn

# Keys whose YAML numbers and booleans are read as text, as written.
_TEXT_KEYS = ("name", "input", "ground_truth")


class MetricReader(Protocol):
    """The loader of a suite, as far as its cases need it."""

    problems: list[Problem]

    @property
    def document(self) -> Document:
        """The suite's file."""
        ...

    def metrics(
        self, entries: Iterable[AnyMetric], scope: Scope, document: Document, at: KeyPath, *, report: bool = False
    ) -> tuple[MetricConfig, ...]:
        """Return metric configurations."""
        ...


@dataclass
class CaseReader:
    """Reads the entries of a case list.

    Args:
        loader: receives the problems, and reads metrics.
        source: the document with the list.
        shared: the metrics of cases without metrics.
        files: reads the files of cases.
    """

    loader: MetricReader
    source: Document
    shared: tuple[MetricConfig, ...]
    files: FileReader

    def read(self, at: KeyPath) -> Case | None:
        """Return the case at a place of the document; ``None`` if it has problems."""
        written = _written_case(self.source, at)
        entry, problems = validate(CaseEntry, written, self.source, at)
        self.loader.problems += map(_hinted, problems)
        if entry is None:
            return None
        case_metrics = self._own_metrics(entry, at)
        if entry.turns is None:
            turns = [self._turn(entry, at, self.shared if case_metrics is None else case_metrics)]
        else:
            turns = [
                self._multi_turn(turn, (*at, "turns", index), case_metrics) for index, turn in enumerate(entry.turns)
            ]
        self._require_ground_truth(turns, at)
        own_id = entry.name or turns_id([turn.input for turn in turns])
        return Case(
            id=f"{self.loader.document.file}::{own_id}",
            name=entry.name or excerpt(turns[0].input),
            turns=tuple(turns),
            line=self.source.line(at),
        )

    def _own_metrics(self, entry: CaseEntry, at: KeyPath) -> tuple[MetricConfig, ...] | None:
        if not entry.evaluations:
            return None
        return self.loader.metrics(entry.evaluations, "case", self.source, (*at, "evaluations"), report=True)

    def _multi_turn(self, entry: TurnEntry, at: KeyPath, case_metrics: tuple[MetricConfig, ...] | None) -> Turn:
        metrics = case_metrics if case_metrics is not None else self.shared
        if entry.evaluations:
            metrics = self.loader.metrics(entry.evaluations, "turn", self.source, (*at, "evaluations"), report=True)
        return self._turn(entry, at, metrics)

    def _turn(self, entry: CaseEntry | TurnEntry, at: KeyPath, metrics: tuple[MetricConfig, ...]) -> Turn:
        files, problems = self.files.read(entry.files or (), self.source, (*at, "files"))
        self.loader.problems += problems
        self._require_numbers(entry.ground_truth, metrics, (*at, "ground_truth"))
        if entry.expected_tools:
            where = Place(line=self.source.line((*at, "expected_tools")), file=self.source.file)
            metrics = (*metrics, expected_tools(entry.expected_tools, metrics, where))
        return Turn(
            input=entry.input or "",
            ground_truth=entry.ground_truth,
            retrieval_context=None if entry.retrieval_context is None else tuple(entry.retrieval_context),
            files=files,
            config=(entry.turn_config or {}) if isinstance(entry, TurnEntry) else {},
            metrics=metrics,
            answer_at=_answer_place(entry.ground_truth, self.source, at),
        )

    def _require_numbers(self, text: str | None, metrics: Iterable[MetricConfig], at: KeyPath) -> None:
        """Check that a number is given where ``numeric`` compares with it."""
        for metric in metrics:
            if text is None or metric.type != "numeric":
                continue
            options = {name: metric.options[name] for name in ("accept_percent", "accept_thousands_separators")}
            try:
                parse_number(text, **options)
            except ValueError as error:
                message = f"{metric.id} compares numbers, and {excerpt(text)!r} {error}; write a number"
                self.loader.problems.append(self.source.problem(at, message))

    def _require_ground_truth(self, turns: Sequence[Turn], at: KeyPath) -> None:
        """Check that a case that lists a comparison metric has a ground truth."""
        for turn, metric in _asked_metrics(turns):
            if metric.requested_by == "suite" or metric.type not in NEED_GROUND_TRUTH:
                continue
            asked = turns if metric.requested_by == "case" else (turn,)
            if any(candidate.ground_truth is not None for candidate in asked):
                continue
            problem = Problem(
                f"{metric.id} compares with `ground_truth`, and this {metric.requested_by} has none; "
                "add one, or drop the metric",
                file=self.source.file,
                line=metric.where.line or self.source.line(at),
                path=dotted(at),
                kind=Kind.GROUND_TRUTH,
            )
            if problem not in self.loader.problems:
                self.loader.problems.append(problem)


def _hinted(problem: Problem) -> Problem:
    """Return a problem of a case; that HoloDeck has no tags is worth a hint."""
    if problem.kind is not Kind.UNKNOWN_KEY or not problem.path.endswith("].tags"):
        return problem
    hint = "delete the key, and give tags in agenteval.yaml: `tags: {TAG: [CASE]}`"
    return replace(problem, message=f"unknown key, HoloDeck cases have no tags; {hint}")


def _answer_place(text: str | None, source: Document, at: KeyPath) -> AnswerPlace | None:
    return None if text is None else AnswerPlace(source.file, (*at, "ground_truth"), text)


def _asked_metrics(turns: Sequence[Turn]) -> list[tuple[Turn, MetricConfig]]:
    return [(turn, metric) for turn in turns for metric in turn.metrics]


def _written_case(source: Document, at: KeyPath) -> Any:
    written = named_as_written(source, at)
    if isinstance(written, dict) and isinstance(written.get("turns"), list):
        turns = [named_as_written(source, (*at, "turns", index)) for index in range(len(written["turns"]))]
        written = {**written, "turns": turns}
    return written


def named_as_written(source: Document, at: KeyPath) -> Any:
    """Return a mapping with the written form of texts that YAML read as numbers or booleans."""
    value = source.data
    for step in at:
        value = value[step]
    if not isinstance(value, dict):
        return value
    # Nearly all values are texts already.
    others = [key for key in _TEXT_KEYS if key in value and not isinstance(value[key], str)]
    texts = {key: source.as_written(value[key], (*at, key)) for key in others}
    if isinstance(value.get("expected_tools"), list):
        place = (*at, "expected_tools")
        texts["expected_tools"] = [
            _patterns_as_written(source, tool, (*place, index)) for index, tool in enumerate(value["expected_tools"])
        ]
    return {**value, **texts} if texts else value


def _patterns_as_written(source: Document, tool: Any, at: KeyPath) -> Any:
    """Return an expected tool with the written form of patterns that YAML read as numbers (``fuzzy: 60.940``)."""
    args = tool.get("args") if isinstance(tool, dict) else None
    if not isinstance(args, dict):
        return tool
    patterns = {
        key: source.as_written(matcher, (*at, "args", key))
        for key, matcher in args.items()
        if isinstance(matcher, dict) and not MATCHERS.isdisjoint(matcher)
    }
    return {**tool, "args": {**args, **patterns}}
