"""What a run for a pull request leaves for the next one, in results.json."""

from __future__ import annotations

import re

from pydantic import Field

from agenteval.results.values import ResultsModel, Text

# Far more than a gate can prove.
_MOST_FINDINGS = 10_000
_LONGEST_NAME = 10_000
_MOST_ATTEMPTS = 1_000_000
COMMIT = re.compile(r"[0-9a-f]{7,64}")


class ProvenMean(ResultsModel):
    """A metric whose mean was proven to have dropped by ``drop``."""

    metric: Text = Field(max_length=_LONGEST_NAME)
    drop: float = Field(gt=0, le=1)


class ProvenCase(ResultsModel):
    """A case that was proven to fail more often: its pass rate by ``metric`` fell by ``fall``."""

    metric: Text = Field(max_length=_LONGEST_NAME)
    case_id: Text = Field(max_length=_LONGEST_NAME)
    fall: float = Field(gt=0, le=1)


class Memory(ResultsModel):
    """One attempt of a pull request, and what its next attempt must refute.

    Attributes:
        attempt: its number, from 1. Runs that repeat or resume an attempt have its number.
        key: hash of the files that count, the control and the conditions; see ``run.attempts.key``.
        whole: the same with all files; ``None`` if unknown, which is like no other one.
        control: commit that it was compared with; ``None`` if unknown.
        means: drops that this attempt or an earlier one has proven and none has refuted.
        cases: the same for falls of single cases.
        repeats: whether this run repeats the verdict of the attempt and called nothing.
        left_out_for: commit for which a shard did not run, because the attempt had decided.
        forgotten_by: who made this attempt the first one, by the label ``agenteval: forget``.
    """

    attempt: int = Field(ge=1, le=_MOST_ATTEMPTS)
    key: str = Field(pattern=r"^[0-9a-f]{64}$")
    whole: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    control: str | None = Field(default=None, pattern=f"^{COMMIT.pattern}$")
    means: list[ProvenMean] = Field(default=[], max_length=_MOST_FINDINGS)
    cases: list[ProvenCase] = Field(default=[], max_length=_MOST_FINDINGS)
    repeats: bool = False
    left_out_for: str | None = Field(default=None, pattern=f"^{COMMIT.pattern}$")
    forgotten_by: Text | None = Field(default=None, max_length=_LONGEST_NAME)
