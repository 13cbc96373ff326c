"""The interface of reporters: ``render(Report, Results)`` yields :class:`ReportFile` values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agenteval.report.presentation import Presentation
from agenteval.report.view.view import GateView
from agenteval.results.archive import Archive, InMemory
from agenteval.results.case import CaseResult, SuiteResult
from agenteval.results.history import EarlierRun
from agenteval.results.model import Results

if TYPE_CHECKING:
    from agenteval.results.analysis.result import AnalysedSuite


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A file of a report.

    Attributes:
        name: name of the file in the report directory.
        text: its content, as one text or piece by piece.
        warnings: warnings for the terminal and for reports that are written later.
    """

    name: str
    text: str | Iterable[str]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The input of a reporter besides the results.

    Attributes:
        gate: the gate's decision: ``passed``, ``headline``, ``reasons``, ``warnings``.
        archive: access to the run's full cases; the results of a large run contain only outlines of some cases.
        earlier: earlier runs, for trends.
        analyses: analyses of suites that evaluate the run as a whole.
        presentation: users' templates, the reporters that the configuration names, and the target of links.
    """

    gate: GateView
    archive: Archive = field(default_factory=InMemory)
    earlier: tuple[EarlierRun, ...] = ()
    analyses: tuple[AnalysedSuite, ...] = ()
    presentation: Presentation = field(default_factory=Presentation)

    def cases(self, suite: SuiteResult) -> Iterator[CaseResult]:
        """Yield the cases of a suite in full, in the suite's order."""
        yield from self.archive.cases(suite)

    def with_warnings(self, warnings: Iterable[str]) -> Report:
        """Return the report with further warnings before the gate's warnings, without duplicates."""
        merged = tuple(dict.fromkeys((*warnings, *self.gate.warnings)))
        return replace(self, gate=replace(self.gate, warnings=merged))


#: A reporter.
Render = Callable[[Report, Results], Iterable[ReportFile]]
