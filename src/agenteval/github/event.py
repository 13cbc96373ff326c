"""Decides what a GitHub Actions event allows; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files import LARGEST_TEXT, read_regular
from agenteval.core.records import dataclass, replace

DEPENDABOT = "dependabot[bot]"

_FORK = "a pull request from a fork has a read-only token"
_DEPENDABOT = "a pull request that Dependabot opened or updated has a read-only token"
_TARGET_COMMENT = "agenteval does not publish from pull_request_target events"
_TARGET_RUN = (
    "suites are not run under pull_request_target: the job has the repository's secrets and a token with write "
    "permissions, but the suite and the agent come from the pull request, whose author could steal both; use the "
    "pull_request event"
)


_NO_COMMAND = (
    "only a new comment can ask for a run; its first line must be `/evaluate COMMIT`, with all characters of the id "
    "of the reviewed commit"
)
# A short id can be forged: another commit can have the same beginning.
_COMMAND = re.compile(r"/evaluate +([0-9a-f]{40}|[0-9a-f]{64})")


@dataclass(frozen=True)
class EventRights:
    """What to evaluate, and what may be written. Unknown texts are ``None``.

    Args:
        event: name of the event; empty outside GitHub Actions.
        commit: commit to report results for. On ``pull_request`` it is the head of the pull request, which stays
            in the history; otherwise it is ``github_sha``.
        github_sha: the default commit of ``actions/checkout``. On ``pull_request`` it is the merge of head and base,
            which GitHub deletes later.
        ref: full ref of the run, for instance ``refs/pull/7/merge``.
        is_proposed: whether the evaluated files may come from a change that is not merged.
        base_ref: target branch, without ``refs/heads/``.
        head_ref: branch of the pull request; ``None`` if it is in a fork.
        workflow: file name of the workflow, for instance ``agenteval.yml``.
        requested_by: who asks by a comment for the evaluation of the commit; GitHub must confirm it.
        is_text_edit: whether only title or description of the pull request was edited, and nobody repeats the job.
        baseline_branch: branch whose runs can be the baseline; ``None`` if the event does not name it.
        default_branch: default branch of the repository.
        reason: why ``may_comment`` is false.
    """

    event: str
    repository: str | None = None
    commit: str | None = None
    github_sha: str | None = None
    ref: str | None = None
    is_proposed: bool = False
    base_commit: str | None = None
    base_ref: str | None = None
    head_ref: str | None = None
    before: str | None = None
    workflow: str | None = None
    workflow_run_id: str | None = None
    baseline_branch: str | None = None
    default_branch: str | None = None
    first_stage: int | None = None
    pull_request: int | None = None
    requested_by: str | None = None
    new_label: str | None = None
    is_text_edit: bool = False
    may_comment: bool = False
    may_check: bool = False
    reason: str | None = None
    refused: str | None = None


def plan(environment: Mapping[str, str], event: Mapping[str, Any]) -> EventRights:
    """Return what this run may do.

    Args:
        environment: the ``GITHUB_*`` variables of the runner.
        event: the webhook payload, as :func:`read_event` returns it. Missing keys and wrong types never
            raise: unknown values are ``None``, and ``reason`` explains why there is no comment.
    """
    name = environment.get("GITHUB_EVENT_NAME", "")
    sha = _text(environment.get("GITHUB_SHA"))
    # Also events of reviews name their pull request.
    base = _branch(_at(event, "pull_request", "base", "ref"))
    start = EventRights(
        event=name,
        repository=_text(environment.get("GITHUB_REPOSITORY")) or _text(_at(event, "repository", "full_name")),
        commit=sha,
        github_sha=sha,
        ref=_text(environment.get("GITHUB_REF")),
        is_proposed=_is_proposed(environment, event),
        base_commit=_sha(_at(event, "pull_request", "base", "sha")),
        base_ref=_branch(environment.get("GITHUB_BASE_REF")) or base,
        baseline_branch=base or _default_branch(environment, event),
        default_branch=_text(_at(event, "repository", "default_branch")),
        workflow=workflow_file(environment.get("GITHUB_WORKFLOW_REF")),
        workflow_run_id=_text(environment.get("GITHUB_RUN_ID")),
        reason=f"{name} events have no pull request" if name else "this is not a GitHub Actions run",
    )
    refine = _REFINEMENTS.get(name)
    return refine(start, environment, event) if refine else start


def _is_proposed(environment: Mapping[str, str], event: Mapping[str, Any]) -> bool:
    """Return whether an event belongs to a change that is not merged.

    The workflow of a comment on a pull request may check out the pull request.
    """
    of_pull_request = environment.get("GITHUB_EVENT_NAME", "").startswith(("pull_request", "merge_group"))
    merge = (environment.get("GITHUB_REF") or "").startswith("refs/pull/")
    return of_pull_request or merge or bool(_at(event, "pull_request") or _at(event, "issue", "pull_request"))


def run_page(environment: Mapping[str, str], repository: str | None = None, run_id: str | None = None) -> str:
    """Return the page of a workflow run; the repository's page if the run is unknown."""
    server = (environment.get("GITHUB_SERVER_URL") or "https://github.com").rstrip("/")
    page = f"{server}/{repository or environment.get('GITHUB_REPOSITORY', '')}"
    known = run_id or environment.get("GITHUB_RUN_ID")
    return f"{page}/actions/runs/{known}" if known else page


def read_event(environment: Mapping[str, str]) -> dict[str, Any]:
    """Read the webhook payload from ``GITHUB_EVENT_PATH``; it is empty without that variable."""
    path = environment.get("GITHUB_EVENT_PATH")
    if not path:
        return {}
    try:
        payload = json.loads(read_regular(Path(path), limit=LARGEST_TEXT))
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise _unusable(path, f"is not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise _unusable(path, f"must contain a JSON object, not {type(payload).__name__}")
    return payload


def _unusable(path: str, what: str) -> ConfigError:
    return ConfigError(Problem(f"the event file named by GITHUB_EVENT_PATH {what}", file=path, kind=Kind.GITHUB))


def _pull_request(start: EventRights, environment: Mapping[str, str], event: Mapping[str, Any]) -> EventRights:
    number = _at(event, "pull_request", "number") or event.get("number")
    number = _id(number)
    barrier = _barrier(start, environment, event) if number else "the event does not name its pull request"
    commit = _text(_at(event, "pull_request", "head", "sha")) or start.commit
    head = _text(environment.get("GITHUB_HEAD_REF")) or _text(_at(event, "pull_request", "head", "ref"))
    return replace(
        start,
        commit=commit,
        head_ref=head if _is_own_branch(start, event) else None,
        baseline_branch=start.base_ref,
        pull_request=number,
        new_label=_text(_at(event, "label", "name")) if event.get("action") == "labeled" else None,
        is_text_edit=_is_text_edit(environment, event),
        may_comment=barrier is None,
        may_check=barrier is None,
        reason=barrier,
    )


def _is_text_edit(environment: Mapping[str, str], event: Mapping[str, Any]) -> bool:
    is_first = environment.get("GITHUB_RUN_ATTEMPT", "1") == "1"
    return is_first and event.get("action") == "edited" and _at(event, "changes", "base") is None


def _barrier(start: EventRights, environment: Mapping[str, str], event: Mapping[str, Any]) -> str | None:
    """Return why the token of a pull request's run cannot comment; ``None`` if it can."""
    if start.repository is None:
        return "the repository is unknown"
    if not _is_own_branch(start, event):
        return _FORK
    # The actor decides, not the author: after a user pushed to Dependabot's branch, the token can write.
    actor = environment.get("GITHUB_ACTOR") or _at(event, "sender", "login")
    return _DEPENDABOT if actor == DEPENDABOT else None


def _is_own_branch(start: EventRights, event: Mapping[str, Any]) -> bool:
    # ``head.repo.fork`` is true if the repository is a fork of any other one, so it is not used.
    # ``head.repo`` is null after the fork was deleted.
    head = _text(_at(event, "pull_request", "head", "repo", "full_name"))
    return head is not None and start.repository is not None and head.casefold() == start.repository.casefold()


def _pull_request_target(start: EventRights, environment: Mapping[str, str], event: Mapping[str, Any]) -> EventRights:
    described = _pull_request(start, environment, event)
    return replace(
        described,
        commit=start.commit,
        baseline_branch=None,
        may_comment=False,
        may_check=False,
        reason=_TARGET_COMMENT,
        refused=_TARGET_RUN,
    )


def _merge_group(start: EventRights, _environment: Mapping[str, str], event: Mapping[str, Any]) -> EventRights:
    # ``base_sha`` can be the previous entry of the queue, so the branch is used.
    base = _branch(_at(event, "merge_group", "base_ref")) or start.base_ref
    commit = start.commit or _text(_at(event, "merge_group", "head_sha"))
    return replace(
        start,
        commit=commit,
        base_ref=base,
        before=_sha(_at(event, "merge_group", "base_sha")),
        baseline_branch=base,
        may_check=True,
        reason="merge_group events have no single pull request",
    )


def _on_branch(start: EventRights, environment: Mapping[str, str], event: Mapping[str, Any]) -> EventRights:
    before, branch = _before(event), start.baseline_branch
    # The runs of a release branch count, which is protected. Else a second push could hide what the first one broke.
    if before and environment.get("GITHUB_REF_PROTECTED") == "true" and (start.ref or "").startswith("refs/heads/"):
        branch = _branch(start.ref)
    return replace(start, before=before, baseline_branch=branch, may_check=start.commit is not None)


def _default_branch(environment: Mapping[str, str], event: Mapping[str, Any]) -> str | None:
    ref = environment.get("GITHUB_REF") or ""
    of_run = ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else None
    return _text(_at(event, "repository", "default_branch")) or _text(of_run)


def _before(event: Mapping[str, Any]) -> str | None:
    """Return the commit that a push continues from; ``None`` for a new branch, and if history was replaced."""
    if event.get("forced") or event.get("created"):
        return None
    return _sha(event.get("before"))


def _issue_comment(start: EventRights, _environment: Mapping[str, str], event: Mapping[str, Any]) -> EventRights:
    """Plan a run that a comment on a pull request asks for; nothing may run or be written before it is confirmed."""
    first_line = (_text(_at(event, "comment", "body")) or "").partition("\n")[0].rstrip("\r ")
    if not _at(event, "issue", "pull_request") or first_line.split(" ")[0] != "/evaluate":
        return start
    number = _id(_at(event, "issue", "number"))
    found = _COMMAND.fullmatch(first_line)
    login = _text(_at(event, "comment", "user", "login"))
    if number is None or found is None or login is None or event.get("action") != "created":
        return replace(start, refused=_NO_COMMAND)
    return replace(
        start,
        commit=found[1],
        ref=f"refs/pull/{number}/head",
        pull_request=number,
        requested_by=login,
    )


def with_confirmed_request(planned: EventRights, base_ref: str, base_commit: str) -> EventRights:
    """Return the plan of a run that a comment asked for, after GitHub confirmed who wrote it, and the commit."""
    return replace(
        planned,
        base_ref=base_ref,
        base_commit=base_commit,
        baseline_branch=base_ref,
        may_comment=True,
        may_check=True,
        reason=None,
    )


def _workflow_run(start: EventRights, _environment: Mapping[str, str], event: Mapping[str, Any]) -> EventRights:
    # The payload's list of pull requests is empty for forks, and the first workflow controls its other values. So the
    # pull request must be requested from GitHub. The code that is checked out is the default branch's.
    return replace(
        start,
        first_stage=_id(_at(event, "workflow_run", "id")),
        reason="workflow_run events do not name their pull request reliably",
    )


_REFINEMENTS: Mapping[str, Callable[[EventRights, Mapping[str, str], Mapping[str, Any]], EventRights]] = {
    "pull_request": _pull_request,
    "pull_request_target": _pull_request_target,
    "merge_group": _merge_group,
    "push": _on_branch,
    "schedule": _on_branch,
    "workflow_dispatch": _on_branch,
    "workflow_run": _workflow_run,
    "issue_comment": _issue_comment,
}


def _at(payload: Any, *keys: str) -> Any:
    """Return the value at nested keys; ``None`` if a level is missing or not an object."""
    for key in keys:
        if not isinstance(payload, Mapping):
            return None
        payload = payload.get(key)
    return payload


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _sha(value: Any) -> str | None:
    return value if isinstance(value, str) and re.fullmatch("[0-9a-f]{40,64}", value) else None


def _branch(value: Any) -> str | None:
    name = _text(value)
    return _text(name.removeprefix("refs/heads/")) if name else None


def _id(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def workflow_file(reference: str | None) -> str | None:
    """Return the file name in ``owner/name/.github/workflows/file.yml@refs/heads/main``."""
    path = (reference or "").partition("@refs/")[0]
    return path.rpartition("/")[2] or None
