"""Values that the environment of a run contributes, such as a CI host."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.run.control_commit import ControlHost, LocalHost

if TYPE_CHECKING:
    from agenteval.run.attempts.source import AttemptSource
    from agenteval.run.baseline import BaselineSource
    from agenteval.run.integrity.given import AcceptanceSource
    from agenteval.run.provenance import Provenance


@dataclass(frozen=True)
class RunContext:
    """Additions of a CI host or a program to a run; the command line adds nothing.

    Attributes:
        provenance: the evaluated commit; detected if ``None``.
        baseline: searches for a baseline if the settings name no file.
        setup: shell commands that install the requirements of user code; empty for none.
        warnings: warnings for the reports, shown before those of the run.
        scratch: directory of the journal if no reports are written.
        published: directory to which the reports are copied after the run; ``None`` for none.
        control: what the host knows about the control commit.
        attempts: finds the earlier attempts of the pull request; ``None`` if the run is for no pull request.
        acceptances: reads what people accepted in the pull request; ``None`` likewise.
    """

    provenance: Provenance | None = None
    baseline: BaselineSource | None = None
    setup: str = field(default="", repr=False)
    warnings: tuple[str, ...] = ()
    scratch: Path = Path()
    published: Path | None = None
    control: ControlHost = field(default_factory=LocalHost)
    attempts: AttemptSource | None = None
    acceptances: AcceptanceSource | None = None
