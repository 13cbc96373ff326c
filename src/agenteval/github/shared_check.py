"""Several jobs that write check runs of one name on one commit: each of these shows the worst verdict. Pure.

A branch rule sees one of the check runs of a name, usually the last one. So a green one must not hide a red one of
another workflow or job. The external id tells who wrote a check run, and the verdict that its writer came to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast, get_args

from agenteval.core.escape import address
from agenteval.core.records import dataclass, replace
from agenteval.core.secrets import shortened

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
class CheckName:
    """What the check runs have in common: the full sha of their commit, and their name."""

    commit: str
    name: str


@dataclass(frozen=True)
class Shown:
    """A check run that agenteval has written.

    Attributes:
        app: id of the app that wrote it; ``None`` if GitHub does not tell.
        revision: workflow run, attempt, and id.
        own: the conclusion that its writer came to; ``None`` while that is at work.
        url: the page of the workflow run.
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
    """Return the external id of a completed check run.

    Args:
        start: workflow run, attempt and key, as at its start.
    """
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
