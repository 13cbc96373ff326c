"""Settings of reports: where links lead, users' templates, the places of our templates, limits of sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from agenteval.core.errors import AgentEvalError, InfrastructureError
from agenteval.core.records import dataclass, field

GITHUB = "https://github.com"

REPOSITORY = re.compile(r"(?!\.)[\w.-]{1,100}/(?!\.)[\w.-]{1,100}", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


_PACKAGE = Path(__file__).parents[1]
_ALWAYS_THERE = Path("markdown", "comment.md.j2")


class UserTemplateError(AgentEvalError):
    """A user's template cannot be used, so the built-in one replaces it.

    Args:
        place: the template, possibly with a line.
        problem: the problem and the fix.
    """

    def __init__(self, place: Path | str, problem: str) -> None:
        super().__init__(f"{place}: {problem}; the built-in template is used instead")


def template_directory() -> Path:
    """Return the directory of the templates: in the installed package, or beside ``src`` in a checkout.

    Raises:
        InfrastructureError: neither directory exists, so the installation is broken.
    """
    places = (_PACKAGE / "templates", _PACKAGE.parents[1] / "templates")
    for directory in places:
        if (directory / _ALWAYS_THERE).is_file():
            return directory
    tried = " or ".join(str(directory) for directory in places)
    raise InfrastructureError(f"report templates are missing: no {_ALWAYS_THERE} in {tried}; install agenteval again")


# Size limits: a report that is too long is rendered again with less detail, never cut.
#
# GitHub rejects a comment above 65,536 characters, and does not show a job summary above 1 MiB.


COMMENT_LIMIT = 65_000
SUMMARY_LIMIT = 1_000_000


class ReportTooLargeError(AgentEvalError):
    """A report does not fit even with the least detail: the limit was lowered, or the template is a user's."""


@dataclass(frozen=True)
class Detail:
    """The amount of detail in a report.

    Attributes:
        max_cases: cases of one section that are shown with questions and answers.
        max_asides: rows of the less important sections: known failures, skipped cases, metrics; 0 omits them.
        max_text: characters of one answer or reason.
        reduced: whether this is less than the full report.
    """

    max_cases: int
    max_rows: int
    max_asides: int
    max_text: int
    reduced: bool = True


#: The levels of a pull-request comment. First less important sections are omitted, then cases, then parts of answers;
#: the last level has only the verdict and the numbers.
COMMENT_LEVELS = (
    Detail(max_cases=25, max_rows=100, max_asides=100, max_text=1_500, reduced=False),
    Detail(max_cases=25, max_rows=30, max_asides=10, max_text=1_500),
    Detail(max_cases=25, max_rows=20, max_asides=0, max_text=1_500),
    Detail(max_cases=10, max_rows=20, max_asides=0, max_text=1_500),
    Detail(max_cases=5, max_rows=20, max_asides=0, max_text=1_500),
    Detail(max_cases=5, max_rows=20, max_asides=0, max_text=500),
    Detail(max_cases=3, max_rows=10, max_asides=0, max_text=200),
    Detail(max_cases=0, max_rows=10, max_asides=0, max_text=100),
    Detail(max_cases=0, max_rows=0, max_asides=0, max_text=100),
)

#: The levels of a job summary.
SUMMARY_LEVELS = (
    Detail(max_cases=100, max_rows=2_000, max_asides=2_000, max_text=4_000, reduced=False),
    Detail(max_cases=100, max_rows=500, max_asides=100, max_text=4_000),
    Detail(max_cases=50, max_rows=500, max_asides=0, max_text=4_000),
    Detail(max_cases=25, max_rows=200, max_asides=0, max_text=2_000),
    Detail(max_cases=10, max_rows=200, max_asides=0, max_text=1_000),
    Detail(max_cases=5, max_rows=100, max_asides=0, max_text=400),
    Detail(max_cases=0, max_rows=100, max_asides=0, max_text=200),
    Detail(max_cases=0, max_rows=0, max_asides=0, max_text=100),
)


def fit(
    render: Callable[[Detail], str],
    size: Callable[[str], int],
    limit: int,
    levels: tuple[Detail, ...] = COMMENT_LEVELS,
) -> str:
    """Render with the most detail whose ``size`` is within ``limit``.

    Raises:
        ReportTooLargeError: not even the last level fits.
    """
    for detail in levels:
        text = render(detail)
        if size(text) <= limit:
            return text
    raise ReportTooLargeError(f"the report does not fit into {limit:,} even with the least detail")


def characters(text: str) -> int:
    """Return the length of a text in UTF-16 units, which is the highest of all ways to count characters."""
    return len(text.encode("utf-16-le")) // 2


def utf8_bytes(text: str) -> int:
    """Return the size of a file with this text."""
    return len(text.encode())
