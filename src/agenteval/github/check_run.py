"""The check run of an evaluation with its annotations, and the same annotations as workflow commands.

A check run is created before the evaluation and completed after it. GitHub may show it under another workflow of the
same commit, so the gate stays the job's exit status.

Several jobs can write check runs of one name on one commit. A branch rule sees one of them, usually the last one, so
each shows the worst verdict: a green one must not hide a red one of another workflow or job. The external id tells
who wrote a check run, and the verdict that its writer came to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast, get_args

from agenteval.core.escape import address
from agenteval.core.records import dataclass, replace
from agenteval.core.secrets import shortened
from agenteval.github.runner import annotation as command
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
        commit: what it has in common with those of other jobs, with its name; empty if it is unknown.
    """

    id: int
    url: str = ""
    external_id: str = ""
    commit: str = ""
    name: str = ""


def creation(commit: str, name: str, details_url: str, external_id: str, summary: str) -> Body:
    """Return the body of the request of the start; a summary that is too long raises ``ValueError``."""
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
    """Return the bodies of the requests of the end: batches of annotations, then the completion.

    ``start`` is the external id at the start. A text that is too long raises ``ValueError``.
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
    """Return the body of the request that ends it without a verdict."""
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


#: Limit of a summary and of a text, in bytes. GitHub's documentation gives characters, but GitHub counts bytes.
TEXT_LIMIT = 65_535

Conclusion = Literal["success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required"]

_CONCLUSIONS: frozenset[str] = frozenset(get_args(Conclusion))
_WORST: tuple[Conclusion, ...] = (
    *("failure", "timed_out", "cancelled", "action_required"),
    *("neutral", "skipped", "success"),
)
# They satisfy a rule that requires the check run.
_SATISFYING: frozenset[Conclusion] = frozenset({"success", "neutral", "skipped"})
_ID = re.compile(r"(\d{1,20})/(\d{1,20})/([A-Za-z0-9._-]{1,100})(?:/([a-z_]{1,20}))?")
_ELSEWHERE = " · another evaluation of this commit decides"
_UNKNOWN = " · other evaluations of this commit are unknown"
_LONGEST_TITLE = 250
_MARK = "\n\n<!-- agenteval:shared -->\n"


@dataclass(frozen=True)
class Shown:
    """A check run that agenteval has written.

    Attributes:
        app: id of the app that wrote it; ``None`` if GitHub does not tell.
        revision: workflow run, attempt, and id.
        own: the conclusion that its writer came to; ``None`` while that is at work.
    """

    id: int
    app: int | None
    key: str
    revision: tuple[int, int, int]
    own: Conclusion | None
    conclusion: str | None
    url: str
    external_id: str
    title: str
    summary: str
    text: str


def read(run: Any) -> Shown | None:
    """Return a check run of GitHub's API; ``None`` if agenteval has not written it."""
    found = _ID.fullmatch(run.external_id or "")
    if found is None:
        return None
    shows = run.conclusion if run.status == "completed" else None
    own = _conclusion(found[4] or shows)
    output = run.output
    return Shown(
        id=run.id,
        app=run.app.id if run.app else None,
        key=found[3],
        revision=(int(found[1]), int(found[2]), run.id),
        own=own,
        conclusion=shows,
        url=run.details_url or "",
        external_id=completed_id("/".join(found.group(1, 2, 3)), own) if own else run.external_id,
        title=(output.title or "").removesuffix(_ELSEWHERE).removesuffix(_UNKNOWN),
        summary=(output.summary or "").partition(_MARK)[0],
        text=output.text or "",
    )


def _conclusion(text: str | None) -> Conclusion | None:
    return cast("Conclusion", text) if text in _CONCLUSIONS else None


def completed_id(start: str, own: Conclusion) -> str:
    """Return the external id of a completed check run, from that at its start and its own conclusion."""
    return f"{start}/{own}"


def decided(body: dict[str, Any], own: Conclusion, check_id: int, runs: Sequence[Shown]) -> dict[str, Any]:
    """Return the body of a completion that shows the worst verdict."""
    completed = [replace(run, own=own) if run.id == check_id else run for run in runs]
    worst = _worst(_newest(completed, check_id))
    return body if worst is None else _deciding(body, own, worst)


def corrections(runs: Sequence[Shown], check_id: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield id and body of each check run that does not show the worst verdict."""
    newest = _newest(runs, check_id)
    worst = _worst(newest)
    for run in newest:
        if worst is not None and run.own is not None and run.conclusion not in {None, worst.own}:
            output = {"title": run.title, "summary": run.summary} | ({"text": run.text} if run.text else {})
            body = {"external_id": run.external_id, "status": "completed", "conclusion": run.own, "output": output}
            yield run.id, _deciding(body, run.own, worst)


def undecided(body: dict[str, Any], own: Conclusion) -> dict[str, Any]:
    """Return the body of a completion if the other check runs are unknown: no rule is satisfied."""
    if own not in _SATISFYING:
        return body
    note = "GitHub did not list the other check runs of this name, so a failed one may be among them."
    return _noted(body, "action_required", _UNKNOWN, note)


def _newest(runs: Sequence[Shown], check_id: int) -> Sequence[Shown]:
    """Return the last check run with a verdict of each step, of one app: an app cannot change those of others."""
    apps = {run.app for run in runs if run.id == check_id}
    last: dict[str, Shown] = {}
    for run in runs:
        before = last.get(run.key)
        if run.own and run.app in apps and (before is None or run.revision > before.revision):
            last[run.key] = run
    return tuple(last.values())


def _worst(runs: Sequence[Shown]) -> Shown | None:
    return min(runs, key=lambda run: (_WORST.index(run.own or "success"), run.id), default=None)


def _deciding(body: dict[str, Any], own: Conclusion, worst: Shown) -> dict[str, Any]:
    """Return the body of a completion, with the worst verdict and where it comes from."""
    if worst.own in {None, own}:
        return body
    link = f"[{worst.own}]({address(worst.url)})" if worst.url else f"{worst.own}"
    note = f"Another evaluation of this commit has a check run of this name, and it decides: {link}."
    return _noted(body, worst.own or own, _ELSEWHERE, note)


def _noted(body: dict[str, Any], conclusion: Conclusion, ending: str, note: str) -> dict[str, Any]:
    output = body["output"]
    noted = f"{output['summary']}{_MARK}{note}"
    fits = len(noted.encode("utf-8", "replace")) <= TEXT_LIMIT
    title = shortened(output["title"], _LONGEST_TITLE - len(ending))
    output = output | {"title": f"{title}{ending}", "summary": noted if fits else output["summary"]}
    return body | {"conclusion": conclusion, "output": output}
