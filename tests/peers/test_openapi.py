"""The check itself: what it lets pass and what it finds."""

from __future__ import annotations

import json

import pytest
from tests.data.slice_openapi import OPERATIONS, sliced
from tests.peers.openapi import SLICE, Description, Request

_REPO = "https://api.github.com/repos/acme/widgets"


@pytest.fixture(scope="module")
def description() -> Description:
    return Description.load()


def _check(**output: object) -> str:
    run = {"name": "evaluation", "head_sha": "a" * 40, "output": {"title": "t", "summary": "s", **output}}
    return json.dumps(run)


def test_a_described_request_passes(description: Description) -> None:
    for request in (
        Request("GET", f"{_REPO}/issues/7/comments?per_page=100&page=2"),
        Request("PATCH", f"{_REPO}/issues/comments/1", '{"body": "text"}'),
        Request("DELETE", f"{_REPO}/issues/comments/1"),
        Request("POST", f"{_REPO}/check-runs", _check()),
        Request("GET", f"{_REPO}/actions/runs?status=success"),
    ):
        assert description.violations(request) == [], request


def test_what_github_would_refuse_is_found(description: Description) -> None:
    level = [{"annotation_level": "error"}]
    for request, problem in (
        (Request("POST", f"{_REPO}/issues/7/comments", '{"text": "text"}'), "'body' is a required property"),
        (Request("POST", f"{_REPO}/issues/7/comments", '{"body": "x", "more": 1}'), "property more"),
        (Request("POST", f"{_REPO}/issues/7/comments", '{"body": 1}'), "not of type 'string'"),
        (Request("POST", f"{_REPO}/issues/7/comments"), "the body is missing"),
        (Request("GET", f"{_REPO}/issues/seven/comments"), "issue_number"),
        (Request("GET", f"{_REPO}/issues/7/comments?pages=2"), "unknown query parameter pages"),
        (Request("GET", f"{_REPO}/issues/7/comments", "{}"), "none is described"),
        (Request("PUT", f"{_REPO}/issues/7/comments", "{}"), "not in GitHub's description"),
        (Request("GET", f"{_REPO}/actions/runs?status=done"), "status"),
        (Request("POST", f"{_REPO}/check-runs", _check(summary="s" * 65536)), "too long"),
        (Request("POST", f"{_REPO}/check-runs", _check(annotations=[{}] * 51)), "too long"),
        (Request("POST", f"{_REPO}/check-runs", _check(annotations=level)), "'error' is not one of"),
    ):
        assert problem in "\n".join(description.violations(request)), request


def test_the_slice_has_what_its_script_lists_and_what_that_refers_to() -> None:
    part = json.loads(SLICE.read_text(encoding="utf-8"))

    assert {f"{method} {path}" for path, methods in part["paths"].items() for method in methods} == set(OPERATIONS)
    assert sliced(part) == part
