"""Reads JUnit XML: what a test runner found, without questions and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from xml.etree.ElementTree import ParseError, XMLParser

from agenteval.results.case import CaseStatus, IterationResult, TurnResult
from agenteval.results.importers import base
from agenteval.results.rollup import mean_score

_FORMAT: Final = "junit"
_ROOTS = frozenset({"testsuites", "testsuite"})
# The first one in a test case decides.
_STATUSES: Mapping[str, CaseStatus] = {"error": "error", "failure": "failed", "skipped": "skipped"}
_LONGEST_TEXT = 10_000
_DOCTYPE = "a document type, which can define text without end, is not read; remove it"


class _Target:
    """What the parser calls. It keeps the test cases, not the tree, for which a small file can need much memory."""

    def __init__(self) -> None:
        self._path: list[str] = []
        self._suites: list[str] = []
        self._head: dict[str, str] = {}
        self._cases: list[dict[str, str]] = []

    def doctype(self, *_: Any) -> None:
        raise ParseError(_DOCTYPE)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._path.append(tag)
        if tag in _ROOTS:
            self._suites.append(attributes.get("name", ""))
            self._head = {"root": tag, **attributes, **self._head}
        elif tag == "testcase":
            path = attributes.get("classname") or next(filter(None, reversed(self._suites)), _FORMAT)
            self._cases.append({"name": attributes.get("name", ""), "path": path, "text": ""})
        elif tag in _STATUSES and self._cases:
            self._cases[-1] = {"tag": tag, "message": attributes.get("message", ""), **self._cases[-1]}

    def data(self, text: str) -> None:
        if self._cases and self._path[-1] in _STATUSES:
            case = self._cases[-1]
            case["text"] += text[: _LONGEST_TEXT - len(case["text"])]

    def end(self, tag: str) -> None:
        self._path.pop()
        if tag in _ROOTS:
            self._suites.pop()

    def close(self) -> dict[str, Any]:
        return {**self._head, "testcases": self._cases}


def parse(content: bytes) -> Any:
    """Return the test cases of a document as the importer reads them; what is not XML is a ``ParseError``."""
    # Without document types there are no entities to expand, inside or outside of the file.
    parser = XMLParser(target=_Target())  # noqa: S314
    parser.feed(content)
    return parser.close()


class _Case(base.ImportedShape):
    name: base.AnyText
    path: base.AnyText
    tag: base.AnyText = ""
    message: base.AnyText = ""
    text: base.AnyText = ""

    def found(self) -> base.FoundTest:
        status = _STATUSES.get(self.tag, "passed")
        why = self.message or self.text.strip()
        score = base.score_of(
            "test",
            "custom",
            float(status == "passed"),
            passed=status == "passed",
            reason=why or None,
            absent=(why or "skipped") if status == "skipped" else None,
            error=(why or "the test ended in an error") if status == "error" else None,
        )
        turn = TurnResult(index=0, input="", ground_truth=None, response=None, error=score.error, scores=[score])
        iteration = IterationResult(index=0, status=status, score=mean_score([turn]), turns=[turn])
        return base.FoundTest(self.path, self.name, ("",), iteration)


class _File(base.ImportedShape):
    cases: list[_Case] = base.at("testcases", default=...)
    timestamp: base.OptionalText = None


def _recognises(content: Any) -> bool:
    return isinstance(content, dict) and "testcases" in content and content.get("root") in tuple(_ROOTS)


def _read(content: Mapping[str, Any], suites: Sequence[base.KnownSuite]) -> base.ImportedRun:
    file = _File.model_validate(content)
    return base.run_of((case.found() for case in file.cases), suites, _FORMAT, version="", started_at=file.timestamp)


IMPORTER = base.Importer(_FORMAT, "JUnit XML", "JUnit XML of a test runner", _recognises, _read)
