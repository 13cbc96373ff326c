"""The check run of an evaluation with its annotations, and the same annotations as workflow commands.

A check run is created before the evaluation and completed after it. GitHub may show it under another workflow of the
same commit, so the gate stays the job's exit status.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agenteval.ci.github.api.client import Client
from agenteval.ci.github.runner import annotation as command
from agenteval.report.view.annotations import Annotation

PERMISSIONS = ("contents: read", "checks: write")
#: Bytes of a summary, and of a text. GitHub's documentation says characters; what it counts is the "bytesize".
TEXT_LIMIT = 65_535
#: Annotations that one request may add.
BATCH = 50

Conclusion = Literal["success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required"]
Body = dict[str, Any]

_LEVELS: dict[str, Literal["error", "warning"]] = {"failure": "error", "warning": "warning"}


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A check run on GitHub; ``url`` is its page."""

    id: int
    url: str = ""


def start_check(
    client: Client, repository: str, commit: str, name: str, *, details_url: str, external_id: str, summary: str
) -> CheckRun:
    """Creates a check run in progress; when the answer is lost, the one that arrived is taken.

    Args:
        client: where, and as whom, to write. Only tokens of apps may, a job's ``GITHUB_TOKEN`` among them.
        repository: ``owner/name``.
        commit: full sha of the commit it is shown at.
        name: what it is called; the same in every run, so that a branch can require it.
        details_url: where its "Details" lead; empty for the page of the check run.
        external_id: tells this attempt of this job from all others.
        summary: Markdown that is shown until the check run is completed.

    Raises:
        ValueError: the summary is too long, or there is no external id.
        GithubError: GitHub refused, failed or could not be reached.
    """
    from agenteval.ci.github.checks import api as check_run

    body = creation(commit, name, details_url, external_id, summary)
    with client.open(f"create a check run on {commit} of {repository}", PERMISSIONS) as api:
        run = check_run.create(api, repository, body)
        return CheckRun(run.id, run.html_url)


def finish_check(
    client: Client,
    repository: str,
    check: CheckRun,
    *,
    conclusion: Conclusion,
    title: str,
    summary: str,
    text: str,
    annotations: Sequence[Annotation],
) -> None:
    """Adds the annotations and completes the check run, which happens even when annotations are refused.

    Args:
        client: where, and as whom, to write.
        repository: ``owner/name``.
        check: what :func:`start_check` returned.
        conclusion: what the gate says.
        title: the verdict in a few words.
        summary: Markdown below it, at most :data:`TEXT_LIMIT` bytes.
        text: Markdown with the details, at most :data:`TEXT_LIMIT` bytes; may be empty.
        annotations: any number.

    Raises:
        ValueError: a text is too long; nothing was sent.
        GithubError: GitHub refused, failed or could not be reached.
    """
    from agenteval.ci.github.checks import api as check_run

    bodies = updates(conclusion, title, summary, text, annotations)
    with client.open(f"complete check run {check.id} of {repository}", PERMISSIONS) as api:
        check_run.finish(api, repository, check.id, bodies)


def abandon_check(client: Client, repository: str, check: CheckRun, summary: str) -> bool:
    """Completes a check run as cancelled, unless it is completed already; says whether it had to.

    Args:
        client: where, and as whom, to write.
        repository: ``owner/name``.
        check: its ``id`` is enough.
        summary: Markdown that says what happened.

    Raises:
        ValueError: the summary is too long.
        GithubError: GitHub refused, failed or could not be reached.
    """
    from agenteval.ci.github.checks import api as check_run

    body = abandonment(summary)
    with client.open(f"complete check run {check.id} of {repository}", PERMISSIONS) as api:
        return check_run.abandon(api, repository, check.id, body)


def creation(commit: str, name: str, details_url: str, external_id: str, summary: str) -> Body:
    """The body of the request that :func:`start_check` sends.

    Raises:
        ValueError: the summary is too long, or there is no external id.
    """
    if not external_id:
        raise ValueError("a check run needs an external id, by which it is found again")
    body = {
        "name": name,
        "head_sha": commit,
        "external_id": external_id,
        "status": "in_progress",
        "output": _output("The evaluation is running", summary),
    }
    return body | ({"details_url": details_url} if details_url else {})


def updates(
    conclusion: Conclusion, title: str, summary: str, text: str, annotations: Sequence[Annotation]
) -> list[Body]:
    """The bodies of the requests that :func:`finish_check` sends: annotations in batches, then the completion.

    Raises:
        ValueError: a text is too long.
    """
    output = _output(title, summary)
    described = [_described(annotation) for annotation in annotations]
    additions = [
        {"output": output | {"annotations": described[start : start + BATCH]}}
        for start in range(0, len(described), BATCH)
    ]
    # Annotations that GitHub refuses must not keep the check run from being completed.
    completion = {
        "status": "completed",
        "conclusion": conclusion,
        "output": output | ({"text": _fitting("text", text)} if text else {}),
    }
    return [*additions, completion]


def abandonment(summary: str) -> Body:
    """The body of the request that :func:`abandon_check` sends.

    Raises:
        ValueError: the summary is too long.
    """
    output = _output("The evaluation did not finish", summary)
    return {"status": "completed", "conclusion": "cancelled", "output": output}


def as_commands(annotations: Sequence[Annotation], limit: int = 10) -> list[str]:
    """The annotations as workflow commands, for a token that may not write check runs.

    Args:
        annotations: in order of importance.
        limit: lines of one level. The runner shows ten of each for a step; the last one counts what is left out.
    """
    return [line for level in _LEVELS for line in _commands([a for a in annotations if a.level == level], limit)]


def _commands(annotations: Sequence[Annotation], limit: int) -> Iterator[str]:
    shown = annotations if len(annotations) <= limit else annotations[: limit - 1]
    for item in shown:
        yield command(
            _LEVELS[item.level], item.message, file=item.path, line=item.line, title=item.title or "agenteval"
        )
    if left := annotations[len(shown) :]:
        cases = "1 more case is" if len(left) == 1 else f"{len(left):,} more cases are"
        yield command(_LEVELS[left[0].level], f"{cases} in the job summary", title="agenteval")


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
        raise ValueError(f"the {name} of a check run takes {TEXT_LIMIT:,} bytes, not {size:,}")
    return markdown
