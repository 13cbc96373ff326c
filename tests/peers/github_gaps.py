"""Small routes that the emulator lacks, answered from what it says elsewhere."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from tests.peers.github_proxy import Answer, GithubProxy, Incoming

_REPO = r"/repos/(?P<repository>[^/]+/[^/]+)"
_JOB_LOGIN = "github-actions[bot]"


@dataclass
class Labels:
    """When labels of pull requests were set and removed; the emulator keeps that of issues only."""

    _events: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    def event(self, number: int, kind: str, label: str, by: str, at: datetime) -> None:
        """Adds an event of a pull request: ``labeled`` or ``unlabeled``."""
        when = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        named = {"name": label, "color": "ededed"}
        about = {"event": kind, "created_at": when, "actor": {"login": by}, "label": named}
        self._events.append((number, {"id": len(self._events) + 1, **about}))

    def clear(self) -> None:
        """Forgets all events."""
        self._events.clear()

    def of(self, request: Incoming, found: re.Match[str]) -> Answer:
        """The events of one pull request, the oldest first."""
        return _page(request, found, self._events)


def served_by(proxy: GithubProxy, labels: Labels) -> None:
    """Adds ``viewerDidAuthor`` of GraphQL, and what belongs to a commit and to the number of a pull request."""
    gaps = _Gaps(proxy)
    proxy.serve("GET", rf"{_REPO}/issues/(?P<number>\d+)/events", labels.of)
    proxy.serve("POST", "/graphql", gaps.viewer_did_author)
    proxy.serve("GET", rf"{_REPO}/commits/(?P<sha>[0-9a-f]{{40}})/pulls", gaps.pulls_of_commit)
    proxy.serve("GET", rf"{_REPO}/commits/(?P<sha>[0-9a-f]{{40}})/check-runs", gaps.check_runs_of_commit)


def _page(request: Incoming, found: re.Match[str], kept: Iterable[tuple[int, dict[str, Any]]]) -> Answer:
    """One page of what belongs to a pull request, the oldest first."""
    items = [item for number, item in kept if number == int(found["number"])]
    size, page = (int(request.query.get(name, default)) for name, default in (("per_page", 30), ("page", 1)))
    return Answer.json(items[(page - 1) * size : page * size])


class _Gaps:
    def __init__(self, proxy: GithubProxy) -> None:
        self._proxy = proxy

    def viewer_did_author(self, request: Incoming, _found: re.Match[str]) -> Answer | None:
        """Only the query for the authorship of comments by their node ids; anything else is passed on."""
        asked = json.loads(request.body)
        if "viewerDidAuthor" not in asked.get("query", ""):
            return None
        viewer = self._viewer(request)
        if viewer is None:
            return Answer.message(401, "Bad credentials")
        node_ids = asked["variables"]["ids"]
        authors = self._authors(request, node_ids)
        nodes = [{"viewerDidAuthor": authors[id_] == viewer} if id_ in authors else None for id_ in node_ids]
        lost = [
            {"type": "NOT_FOUND", "path": ["nodes", place], "message": "Could not resolve to a node"}
            for place, node in enumerate(nodes)
            if node is None
        ]
        return Answer.json({"data": {"nodes": nodes}} | ({"errors": lost} if lost else {}))

    def pulls_of_commit(self, request: Incoming, found: re.Match[str]) -> Answer:
        """Every pull request whose commits hold this one; GitHub leaves closed unmerged ones out as well."""
        repository = found["repository"]
        pulls = self._all(request, f"/repos/{repository}/pulls?state=all")
        with_it = [
            pull
            for pull in pulls
            if (pull["state"] == "open" or pull["merged_at"])
            and any(
                commit["sha"] == found["sha"]
                for commit in self._all(request, f"/repos/{repository}/pulls/{pull['number']}/commits?")
            )
        ]
        return Answer.json(with_it)

    def check_runs_of_commit(self, request: Incoming, found: re.Match[str]) -> Answer:
        """All check runs of a name, the newest first; the emulator does not find commits of forks."""
        runs, asked = [], request.query
        for number in count(1):
            path = f"/repos/{found['repository']}/check-runs/{number}"
            answer = self._proxy.forward("GET", path, authorization=request.authorization)
            if answer.status != 200:
                break
            run = json.loads(answer.body)
            if (run["head_sha"], run["name"]) == (found["sha"], asked.get("check_name", run["name"])):
                runs.append(run)
        if answer.status != 404:
            return answer
        return Answer.json({"total_count": len(runs), "check_runs": runs[::-1]})

    def _viewer(self, request: Incoming) -> str | None:
        answer = self._proxy.forward("GET", "/user", authorization=request.authorization)
        if answer.status == 200:
            login: str = json.loads(answer.body)["login"]
            return login
        # The token of an app may not ask who it is: 403 on GitHub, 404 here.
        return _JOB_LOGIN if answer.status in {403, 404} else None

    def _authors(self, request: Incoming, node_ids: Iterable[str]) -> dict[str, str]:
        """Who wrote the comments with these node ids, as far as they still exist and this token sees them."""
        authors: dict[str, str] = {}
        for node_id in node_ids:
            # The emulator's node ids are those of GitHub's old kind: Base64 of "0:IssueComment" and the id.
            kind, number = re.fullmatch(r"\d+:(\D+)(\d+)", b64decode(node_id + "==").decode()).groups()  # type: ignore[union-attr]
            for repository in self._repositories() if kind == "IssueComment" else ():
                path = f"/repos/{repository}/issues/comments/{number}"
                answer = self._proxy.forward("GET", path, authorization=request.authorization)
                if answer.status == 200:
                    authors[node_id] = json.loads(answer.body)["user"]["login"]
        return authors

    def _repositories(self) -> list[str]:
        """The repositories that anything was asked about; GraphQL itself names none."""
        found = (re.match(_REPO, request.path) for request in self._proxy.requests)
        return list(dict.fromkeys(match["repository"] for match in found if match))

    def _all(self, request: Incoming, path: str) -> list[Any]:
        items: list[Any] = []
        for page in range(1, 100):
            answer = self._proxy.forward(
                "GET", f"{path}&per_page=100&page={page}", authorization=request.authorization
            )
            if answer.status != 200:
                break
            more = json.loads(answer.body)
            items += more
            if len(more) < 100:
                break
        return items
