"""Lists the requests that a publication would send to GitHub, with their bodies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agenteval.ci.github.checks.check_run import creation, updates
from agenteval.ci.github.comment.sections import Comment, marker
from agenteval.ci.github.publish.publisher import Content, PublicationTarget, PublishOptions, section_of
from agenteval.report.markdown.placeholders import render_running


@dataclass(frozen=True)
class Call:
    """One request.

    Attributes:
        request: method and path; values that only GitHub has are in braces.
        when: condition for sending it; empty if always.
        body: text of a comment, or JSON.
    """

    request: str
    when: str = ""
    body: str = ""

    def __str__(self) -> str:
        condition = f"   ({self.when})" if self.when else ""
        return f"{self.request}{condition}\n{self.body}".rstrip() + "\n"


def planned_calls(target: PublicationTarget, options: PublishOptions, content: Content) -> Iterator[Call]:
    """Yield every request that publishing this content can make, in order."""
    root = f"/repos/{target.repository}"
    if options.check_name and target.takes_checks:
        yield from _check_calls(root, target, options, content)
    if target.pull_request is not None and options.comment != "never":
        yield from _comment_calls(root, target, options, content)


def _check_calls(root: str, target: PublicationTarget, options: PublishOptions, content: Content) -> Iterator[Call]:
    note = render_running(target.commit, target.run_url)
    start = creation(target.commit, options.check_name, target.run_url, target.external_id, note)
    yield Call(f"POST {root}/check-runs", body=_json(start))
    texts = (content.title, content.summary, content.details)
    *additions, completion = updates(content.conclusion, *texts, content.annotations, start=target.external_id)
    for body in additions:
        yield Call(f"PATCH {root}/check-runs/{{id}}", body=_json(body))
    of_name = f"GET {root}/commits/{target.commit}/check-runs"
    yield Call(of_name, "those of this name; again after the completion, to correct the others")
    yield Call(f"PATCH {root}/check-runs/{{id}}", "with the conclusion of the worst one", _json(completion))


def _comment_calls(root: str, target: PublicationTarget, options: PublishOptions, content: Content) -> Iterator[Call]:
    mark = marker(options.comment_id)
    text = Comment(mark, (section_of(target, content, target.jobs()),)).render()
    thread = f"{root}/issues/{target.pull_request}/comments"
    yield Call(f"GET {root}/pulls/{target.pull_request}")
    yield Call(f"GET {thread}?per_page=100", "every page; again after a write")
    yield Call("POST /graphql", "which comments with the marker this token wrote")
    yield Call(f"GET {root}/issues/comments/{{id}}", "if such a comment exists")
    yield Call(f"PATCH {root}/issues/comments/{{id}}", "if its text differs; its other sections stay", text)
    if content.calls_for(options.comment):
        yield Call(f"POST {thread}", "if no such comment exists; the same text")
    yield Call(f"DELETE {root}/issues/comments/{{id}}", "further comments of this token with the marker")


def _json(body: Any) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False)
