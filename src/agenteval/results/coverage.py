"""What a run covered of its suites: the selection, the limits, and how it ended."""

from __future__ import annotations

from operator import not_
from typing import Literal

from pydantic import Field

from agenteval.results.values import ResultsModel, Text

# Names that a note lists.
_LISTED = 3
EndedBy = Literal["signal", "time", "budget"]


class Coverage(ResultsModel):
    """What a run covered; ``null`` and empty values were not given.

    Attributes:
        cases: number of cases of the suites; ``null`` for recorded traces, which are not counted.
        selected: number of cases that are selected by filter, tags, names and an earlier run.
        finished: number of cases that finished in this file; a shard has a part of the selected ones.
        iterations: number of iterations of each case that the caller asked for; ``null``: as suites and configuration
            ask.
        filter: text that names and ids of the selected cases contain.
        tags: the selected cases have one of these.
        names: names or ids of the selected cases.
        failed_in: results of an earlier run in which the selected cases did not pass.
        max_llm_calls: budget of calls to models.
        max_cost_usd: budget of the cost of models, in US dollars.
        time_limit_s: time limit of the run, in seconds.
        ended_by: what ended the run, or its judging, before everything was evaluated; ``null``: nothing.
    """

    cases: int | None
    selected: int
    finished: int
    iterations: int | None = None
    filter: Text | None = None
    tags: list[Text] = Field(default=[])
    # Both are omitted if they were not given.
    names: list[Text] = Field(default=[], exclude_if=not_)
    failed_in: Text | None = Field(default=None, exclude_if=lambda value: value is None)
    max_llm_calls: int | None = None
    max_cost_usd: float | None = None
    time_limit_s: float | None = None
    ended_by: EndedBy | None = None

    @property
    def counts_note(self) -> str:
        """``2 of 10 cases``; empty if every case was selected and finished."""
        total = self.selected if self.cases is None else self.cases
        noun = "case" if total == 1 else "cases"
        return f"{self.finished:,} of {total:,} {noun}" if self.finished < total else ""

    @property
    def selection_note(self) -> str:
        """``2 of 10 cases selected (filter 'x')``; empty if every case was selected."""
        asked = [f"filter '{self.filter}'"] if self.filter else []
        if self.tags:
            asked.append(f"{'tag' if len(self.tags) == 1 else 'tags'} {', '.join(self.tags)}")
        if self.names:
            more = f" and {len(self.names) - _LISTED} more" if len(self.names) > _LISTED else ""
            asked.append(f"{'case' if len(self.names) == 1 else 'cases'} {', '.join(self.names[:_LISTED])}{more}")
        if self.failed_in:
            asked.append(f"failed in {self.failed_in}")
        by = f" ({' and '.join(asked)})" if asked else ""
        if self.cases is None:
            return f"only selected traces{by}" if asked else ""
        return f"{self.selected:,} of {self.cases:,} cases selected{by}" if self.selected < self.cases else ""
