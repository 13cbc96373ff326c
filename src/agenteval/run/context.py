"""What the place of a run contributes besides what its caller asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenteval.run.baseline import BaselineSource
    from agenteval.run.provenance import Provenance


@dataclass(frozen=True)
class RunContext:
    """What a CI host or a program adds to a run; the command line adds nothing.

    Attributes:
        provenance: the commit under evaluation; detected if ``None``.
        baseline: finds a baseline where the settings name no file.
        setup: shell commands that install what user code needs; empty for none.
        warnings: for the reports, before those of the run.
        scratch: directory of the journal where no reports are written.
    """

    provenance: Provenance | None = None
    baseline: BaselineSource | None = None
    setup: str = field(default="", repr=False)
    warnings: tuple[str, ...] = ()
    scratch: Path = Path()
