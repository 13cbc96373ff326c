"""The check run of an evaluation with its annotations, and the same annotations as workflow commands.

A check run is created before the evaluation and completed after it. GitHub may show it under another workflow of the
same commit, so the gate stays the job's exit status.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from agenteval.core.records import dataclass
from agenteval.github.client import GitHubClient
from agenteval.github.runner import annotation as command
from agenteval.github.shared_check import TEXT_LIMIT, CheckName, Conclusion, completed_id
from agenteval.report.overview import Annotation, Level

PERMISSIONS = ("contents: read", "checks: write")
#: Limit of annotations per request.
BATCH = 50

Body = dict[str, Any]

_LEVELS: dict[Level, Literal["error", "warning", "notice"]] = {
    "failure": "error",
    "warning": "warning",
    "notice": "notice",
}


@dataclass(frozen=True)
class CheckRun:
    """A check run on GitHub.

    Attributes:
        external_id: identifies the attempt of the job that made it; empty if it is unknown.
        name: what it has in common with those of other jobs; ``None`` if it is unknown.
    """

    id: int
    url: str = ""
    external_id: str = ""
    name: CheckName | None = None


def start_check(
    client: GitHubClient, repository: str, commit: str, name: str, *, details_url: str, external_id: str, summary: str
) -> CheckRun:
    """Create a check run in progress; after a lost response, return the one that was created.

    Args:
        client: connection to GitHub. Needs an app's token, such as a job's ``GITHUB_TOKEN``.
        repository: ``owner/name``.
        name: name of the check run; the same in every run, so that a branch can require it.
        details_url: target of "Details"; empty for the page of the check run.
        external_id: identifies this attempt of this job.
        summary: Markdown that is shown until the check run is completed.

    Raises:
        ValueError: the summary is too long, or there is no external id.
        GithubError: GitHub refused, failed or could not be reached.
    """
    from agenteval.github import pygithub as check_run

    body = creation(commit, name, details_url, external_id, summary)
    with client.open(f"create a check run on {commit} of {repository}", PERMISSIONS) as api:
        run = check_run.create(api, repository, body)
        return CheckRun(run.id, run.html_url, external_id, CheckName(commit, name))


def finish_check(
    client: GitHubClient,
    repository: str,
    check: CheckRun,
    *,
    conclusion: Conclusion,
    title: str,
    summary: str,
    text: str,
    annotations: Sequence[Annotation],
) -> None:
    """Add the annotations and complete the check run, even if annotations are rejected.

    Of all check runs of this name on the commit, each shows the worst verdict then: see :mod:`.shared`.

    Args:
        repository: ``owner/name``.
        title: the verdict in a few words.
        summary: Markdown below it, at most :data:`TEXT_LIMIT` bytes.
        text: Markdown with the details, at most :data:`TEXT_LIMIT` bytes; may be empty.

    Raises:
        ValueError: a text is too long; nothing was sent.
        GithubError: GitHub refused, failed or could not be reached.
    """
    from agenteval.github import pygithub as check_run

    bodies = updates(conclusion, title, summary, text, annotations, start=check.external_id)
    with client.open(f"complete check run {check.id} of {repository}", PERMISSIONS) as api:
        check_run.finish(api, repository, check.id, bodies, check.name)


def abandon_check(client: GitHubClient, repository: str, check: CheckRun, summary: str) -> bool:
    """Complete a check run as cancelled, unless it is completed; return whether it was open.

    Args:
        repository: ``owner/name``.
        check: the check run; only its ``id`` is used.

    Raises:
        ValueError: the summary is too long.
        GithubError: GitHub refused, failed or could not be reached.
    """
    from agenteval.github import pygithub as check_run

    body = abandonment(summary)
    with client.open(f"complete check run {check.id} of {repository}", PERMISSIONS) as api:
        return check_run.abandon(api, repository, check.id, body)


def creation(commit: str, name: str, details_url: str, external_id: str, summary: str) -> Body:
    """Return the body of the request of :func:`start_check`.

    Raises:
        ValueError: the summary is too long, or there is no external id.
    """
    if not external_id:
        raise ValueError("a check run needs an external id, to find it again")
    body = {
        "name": name,
        "head_sha": commit,
        "external_id": external_id,
        "status": "in_progress",
        "output": _output("The evaluation is running", summary),
    }
    return body | ({"details_url": details_url} if details_url else {})


def updates(
    conclusion: Conclusion, title: str, summary: str, text: str, annotations: Sequence[Annotation], *, start: str = ""
) -> list[Body]:
    """Return the bodies of the requests of :func:`finish_check`: batches of annotations, then the completion.

    ``start`` is the external id of :func:`start_check`.

    Raises:
        ValueError: a text is too long.
    """
    output = _output(title, summary)
    described = [_described(annotation) for annotation in annotations]
    additions = [
        {"output": output | {"annotations": described[first : first + BATCH]}}
        for first in range(0, len(described), BATCH)
    ]
    # Rejected annotations must not prevent the completion of the check run.
    completion = {
        "status": "completed",
        "conclusion": conclusion,
        "output": output | ({"text": _fitting("text", text)} if text else {}),
    }
    return [*additions, completion | ({"external_id": completed_id(start, conclusion)} if start else {})]


def abandonment(summary: str) -> Body:
    """Return the body of the request of :func:`abandon_check`.

    Raises:
        ValueError: the summary is too long.
    """
    output = _output("The evaluation did not finish", summary)
    return {"status": "completed", "conclusion": "cancelled", "output": output}


def as_commands(annotations: Sequence[Annotation], limit: int = 10) -> list[str]:
    """Yield the annotations as workflow commands, for a token without permission for check runs.

    Args:
        limit: lines per level. The runner shows ten per level and step; the last line counts the omitted ones.
    """
    return [line for level in _LEVELS for line in _commands([a for a in annotations if a.level == level], limit)]


def _commands(annotations: Sequence[Annotation], limit: int) -> Iterator[str]:
    shown = annotations if len(annotations) <= limit else annotations[: limit - 1]
    for item in shown:
        yield command(
            _LEVELS[item.level], item.message, file=item.path, line=item.line, title=item.title or "agenteval"
        )
    if left := annotations[len(shown) :]:
        causes = "1 more cause is" if len(left) == 1 else f"{len(left):,} more causes are"
        yield command(_LEVELS[left[0].level], f"{causes} in the job summary", title="agenteval")


def _described(annotation: Annotation) -> Body:
    body: Body = {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": annotation.level,
        "message": annotation.message,
    }
    return body | ({"title": annotation.title} if annotation.title else {})


def _output(title: str, summary: str) -> Body:
    return {"title": title, "summary": _fitting("summary", summary)}


def _fitting(name: str, markdown: str) -> str:
    size = len(markdown.encode("utf-8", "replace"))
    if size > TEXT_LIMIT:
        raise ValueError(f"the {name} of a check run has {size:,} bytes; the limit is {TEXT_LIMIT:,}")
    return markdown
