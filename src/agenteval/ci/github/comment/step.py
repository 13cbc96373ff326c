"""The name of the step that writes a section of the comment: workflow, job, leg of a matrix, and step."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agenteval.ci.github.comment.sections import section_key
from agenteval.core.masking import shortened

# The runner numbers the steps of one action that have no id: __owner_action, __owner_action_2.
_UNNAMED = re.compile(r"__.*?(?:_(\d{1,4}))?", re.DOTALL)
_LONGEST_TITLE = 99


@dataclass(frozen=True)
class MatrixValue:
    """A value of a matrix.

    Attributes:
        place: the keys that lead to it.
        value: the value; ``1`` and ``"1"`` are of different legs.
    """

    place: tuple[str | int, ...]
    value: str | float | bool

    @property
    def key(self) -> str:
        """Return what tells it from values of other legs."""
        return json.dumps([*self.place, self.value])

    def __str__(self) -> str:
        return self.value if isinstance(self.value, str) else json.dumps(self.value)


@dataclass(frozen=True)
class StepName:
    """What tells the steps apart that write to one comment.

    Args:
        workflow: name of the workflow.
        job: ``GITHUB_JOB``.
        leg: the values of the matrix; empty without a matrix.
        step: ``GITHUB_ACTION``: the id of the step, or a name that the runner makes.
        file: file of the workflow, because several workflows can have the same name; empty if it is unknown.
        first: path of the workflow whose run the step publishes; empty if it publishes its own one.
    """

    workflow: str = ""
    job: str = ""
    leg: tuple[MatrixValue, ...] = ()
    step: str = ""
    file: str = ""
    first: str = ""

    @property
    def origin(self) -> str:
        """Return what tells the workflow from others."""
        return "\0".join((self.workflow, *self._files))

    @property
    def key(self) -> str:
        """Return the key of the section."""
        return section_key(self.workflow, self.job, *(value.key for value in self.leg), self.step, *self._files)

    @property
    def title(self) -> str:
        """Return the name for headings: ``evaluate (ubuntu, 3.12)``; empty if the job is unknown."""
        leg = f" ({', '.join(map(str, self.leg))})" if self.leg else ""
        more = "".join(f" · {part}" for part in (self._step, self.first.rpartition("/")[2]) if part)
        return shortened(f"{self.job}{leg}{more}".strip(), _LONGEST_TITLE)

    @property
    def _files(self) -> tuple[str, ...]:
        if self.first:
            return (self.file, self.first)
        return (self.file,) if self.file else ()

    @property
    def _step(self) -> str:
        unnamed = _UNNAMED.fullmatch(self.step)
        if unnamed is None:
            return self.step
        return f"step {unnamed[1]}" if unnamed[1] else ""


def leg_of(matrix: str) -> tuple[MatrixValue, ...]:
    """Return the values of a matrix, in the order of their keys.

    An object with an ``id`` counts by its id, because its other values can change with every commit.

    Args:
        matrix: ``toJSON(matrix)``; other texts have no values.
    """
    try:
        parsed = json.loads(matrix)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(parsed, dict):
        return ()
    return tuple(value for key in sorted(parsed) for value in _values((key,), parsed[key]))


def _values(place: tuple[str | int, ...], value: Any) -> Iterator[MatrixValue]:
    if isinstance(value, dict):
        known = value.get("id")
        if isinstance(known, str | int) and known != "":
            yield MatrixValue((*place, "id"), known)
            return
        for key in sorted(value):
            yield from _values((*place, key), value[key])
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _values((*place, number), item)
    elif value is not None:
        yield MatrixValue(place, value)
