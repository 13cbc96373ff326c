"""Users' choices about their reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from agenteval.results.model import Run

GITHUB = "https://github.com"

_REPOSITORY = re.compile(r"(?!\.)[\w.-]{1,100}/(?!\.)[\w.-]{1,100}", re.ASCII)

_COMMIT = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, slots=True)
class Site:
    """The server and the repository that reports link to.

    Attributes:
        server: address of the GitHub instance.
        repository: the only repository for links; if empty, the repository in the results file.
    """

    server: str = GITHUB
    repository: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Site:
        """Return the site in the runner's variables; github.com without a runner."""
        server = (environment.get("GITHUB_SERVER_URL") or GITHUB).rstrip("/")
        return cls(server, environment.get("GITHUB_REPOSITORY", ""))


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses of one run; an unknown address is empty."""

    site: Site
    run: Run

    def suite(self, path: str, line: int | None) -> str:
        """Return the address of a line of a suite's file in the evaluated commit."""
        commit = self.run.commit or ""
        pure = PurePosixPath(path)
        inside = bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts
        if not (self._root and inside and _COMMIT.fullmatch(commit)):
            return ""
        # Paths come from results files and may contain lone surrogates, which cannot be encoded.
        written = quote(pure.as_posix(), safe="/", errors="replace")
        return f"{self._root}/blob/{commit}/{written}" + (f"#L{line}" if line and line > 0 else "")

    @property
    def workflow_run(self) -> str:
        """The address of the run's workflow run."""
        number = self.run.workflow_run_id or ""
        return f"{self._root}/actions/runs/{number}" if self._root and number.isascii() and number.isdigit() else ""

    @property
    def _root(self) -> str:
        repository = self.run.repository or ""
        if self.site.repository not in {"", repository} or not _REPOSITORY.fullmatch(repository):
            return ""
        return f"{self.site.server}/{repository}"


@dataclass(frozen=True, slots=True)
class Presentation:
    """The settings of reports.

    Attributes:
        comment_template: the user's template of the comment, if there is one.
        summary_template: the user's template of the job summary, if there is one.
        template_texts: the content of the templates and of the files that they name, by path, as it was before user
            code ran; ``None`` to read the files when they are used.
        site: the target of links.
        reports: names of reporters of other packages.
    """

    comment_template: Path | None = None
    summary_template: Path | None = None
    site: Site = field(default_factory=Site)
    reports: tuple[str, ...] = ()
    template_texts: Mapping[str, str] | None = None
