"""What users choose about comment and summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agenteval.report.links import Site


@dataclass(frozen=True, slots=True)
class Presentation:
    """How comment and summary are made.

    Attributes:
        comment_template: the user's own template of the comment, if there is one.
        summary_template: that of the job summary.
        site: where links lead.
    """

    comment_template: Path | None = None
    summary_template: Path | None = None
    site: Site = field(default_factory=Site)
