"""Makes github-openapi-slice.json: the operations that agenteval uses, out of GitHub's whole description.

npm pack @octokit/openapi@23.0.2 && tar xzf octokit-openapi-23.0.2.tgz
python tests/data/slice_openapi.py package/generated/api.github.com.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_SLICE = Path(__file__).with_name("github-openapi-slice.json")
_REPO = "/repos/{owner}/{repo}"
OPERATIONS = (
    f"get {_REPO}",
    f"get {_REPO}/pulls/{{pull_number}}",
    f"get {_REPO}/pulls",
    f"get {_REPO}/issues",
    f"post {_REPO}/issues",
    f"get {_REPO}/issues/{{issue_number}}",
    f"patch {_REPO}/issues/{{issue_number}}",
    f"get {_REPO}/issues/{{issue_number}}/comments",
    f"post {_REPO}/issues/{{issue_number}}/comments",
    f"get {_REPO}/issues/comments/{{comment_id}}",
    f"patch {_REPO}/issues/comments/{{comment_id}}",
    f"delete {_REPO}/issues/comments/{{comment_id}}",
    f"get {_REPO}/pulls/{{pull_number}}/commits",
    f"get {_REPO}/pulls/{{pull_number}}/reviews",
    f"get {_REPO}/issues/{{issue_number}}/events",
    f"get {_REPO}/collaborators/{{username}}/permission",
    f"post {_REPO}/check-runs",
    f"get {_REPO}/check-runs/{{check_run_id}}",
    f"patch {_REPO}/check-runs/{{check_run_id}}",
    f"get {_REPO}/check-runs/{{check_run_id}}/annotations",
    f"post {_REPO}/statuses/{{sha}}",
    f"get {_REPO}/branches/{{branch}}",
    f"get {_REPO}/compare/{{basehead}}",
    f"get {_REPO}/commits",
    f"get {_REPO}/contents/{{path}}",
    f"get {_REPO}/commits/{{ref}}",
    f"get {_REPO}/commits/{{ref}}/check-runs",
    f"get {_REPO}/commits/{{commit_sha}}/pulls",
    f"get {_REPO}/actions/runs",
    f"get {_REPO}/actions/runs/{{run_id}}",
    f"get {_REPO}/actions/runs/{{run_id}}/artifacts",
    f"get {_REPO}/actions/runs/{{run_id}}/jobs",
    f"get {_REPO}/actions/workflows/{{workflow_id}}/runs",
    f"post {_REPO}/actions/workflows/{{workflow_id}}/dispatches",
    f"get {_REPO}/actions/artifacts",
    f"get {_REPO}/actions/artifacts/{{artifact_id}}",
    f"get {_REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}",
    "get /user",
    "get /rate_limit",
)
_LEFT_OUT = frozenset({"example", "examples", "x-github", "externalDocs"})

Json = Any


def sliced(whole: Json) -> Json:
    """The operations, without prose and examples, and every component they refer to."""
    part: dict[str, Json] = {"openapi": whole["openapi"], "info": whole["info"], "paths": {}, "components": {}}
    open_references: set[str] = set()
    for operation in OPERATIONS:
        method, path = operation.split(" ")
        found = _without_prose(whole["paths"][path][method])
        part["paths"].setdefault(path, {})[method] = found
        open_references |= _references(found)
    done: set[str] = set()
    while open_references:
        reference = open_references.pop()
        done.add(reference)
        _, section, kind, name = reference.split("/")
        found = _without_prose(whole[section][kind][name])
        part[section].setdefault(kind, {})[name] = found
        open_references |= _references(found) - done
    part["components"] = {kind: dict(sorted(items.items())) for kind, items in sorted(part["components"].items())}
    return part


def _without_prose(node: Json) -> Json:
    if isinstance(node, list):
        return [_without_prose(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without_prose(value)
        for key, value in node.items()
        # A property may be called like a keyword; only texts under that keyword are prose.
        if key not in _LEFT_OUT and not (key == "description" and isinstance(value, str))
    }


def _references(node: Json) -> set[str]:
    if isinstance(node, list):
        return {reference for item in node for reference in _references(item)}
    if not isinstance(node, dict):
        return set()
    own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
    return own.union(*(_references(value) for value in node.values()))


if __name__ == "__main__":
    description = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    _SLICE.write_text(json.dumps(sliced(description), separators=(",", ":")) + "\n", encoding="utf-8")
