"""What a run was compared with, for the sentences about the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agenteval.compare.phrases import quoted

_COMMIT = 7


@dataclass(frozen=True)
class Compared:
    """What a run was compared with.

    Attributes:
        control: the commit whose agent ran beside the change; ``None`` if it has no commit or did not run.
        is_final: whether nothing could run again, so that earlier runs stand for the control.
        tolerance: rise of a mean that is worth a remark, 0..1.
        least: smaller drops of a mean do not count, 0..1.
    """

    cases: Mapping[str, str] = field(default_factory=dict)
    control: str | None = None
    runs: int = 0
    is_final: bool = False
    tolerance: float = 0.05
    least: float = 0.01

    def case(self, case_id: str) -> str:
        """Return the name of a case for a sentence."""
        return quoted(self.cases.get(case_id, case_id))

    @property
    def base(self) -> str:
        """The control: its short commit, or words."""
        return self.control[:_COMMIT] if self.control else "the base"
