from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.report import samples

from agenteval.core.escape import address
from agenteval.report.facts import About
from agenteval.report.parts import Site
from agenteval.report.stories import source_link
from agenteval.results.model import Run

_COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _run(values: Mapping[str, str | None]) -> Run:
    fixed = {"id": "r", "started_at": "t", "finished_at": "t", "duration_s": 1, "complete": True}
    known = {"repository": "acme/widgets", "commit": _COMMIT, "workflow_run_id": "7001"}
    return Run.model_validate({**fixed, **known, **values})


def _about(site: Site | None = None, **values: str | None) -> About:
    sample = samples.green()
    changed = sample.results.model_copy(update={"run": _run(values)})
    return replace(sample, results=changed).presented(site=site or Site()).about


def _link(path: str, line: int | None, site: Site | None = None, **values: str | None) -> str:
    return source_link(_about(site, **values).source, path, line)


def test_a_line_of_a_suite() -> None:
    base = f"https://github.com/acme/widgets/blob/{_COMMIT}"
    assert _link("a/b.yaml", 12) == f"{base}/a/b.yaml#L12"
    assert _link("a/b.yaml", None) == f"{base}/a/b.yaml"
    assert _link('a b/"é#?%.yaml', 1) == f"{base}/a%20b/%22%C3%A9%23%3F%25.yaml#L1"


def test_the_workflow_run() -> None:
    assert _about().link == "https://github.com/acme/widgets/actions/runs/7001"
    assert _about(workflow_run_id="7/../..").link == ""
    assert _about(workflow_run_id=None).link == ""


def test_another_server() -> None:
    site = Site.of({"GITHUB_SERVER_URL": "https://git.example/", "GITHUB_REPOSITORY": "acme/widgets"})
    assert _link("s.yaml", 1, site) == f"https://git.example/acme/widgets/blob/{_COMMIT}/s.yaml#L1"


@pytest.mark.parametrize(
    "values",
    [
        {"repository": None},
        {"repository": "widgets"},
        {"repository": "../.."},
        {"repository": "acme/widgets/x"},
        {"repository": "acme/wid gets"},
        {"commit": None},
        {"commit": "main"},
        {"commit": f"{_COMMIT}/../.."},
    ],
)
def test_no_link_where_the_place_is_not_known(values: dict[str, str | None]) -> None:
    assert _link("s.yaml", 1, None, **values) == ""


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../s.yaml", "a/../../s.yaml"])
def test_no_link_out_of_the_repository(path: str) -> None:
    assert _link(path, 1) == ""


def test_results_of_strangers_lead_nowhere_else() -> None:
    site = Site(repository="acme/widgets")
    assert _link("s.yaml", 1, site, repository="evil/widgets") == ""
    assert _about(site, repository="evil/widgets").link == ""
    assert _link("s.yaml", 1, site)


@given(st.text(st.characters(exclude_categories=())))
def test_any_path_gives_an_address_on_the_site_or_none(path: str) -> None:
    link = _link(path, 3)
    if link:
        assert address(link) != "#"
        parts = urlsplit(link)
        assert (parts.scheme, parts.netloc, parts.query) == ("https", "github.com", "")
        assert parts.path.startswith(f"/acme/widgets/blob/{_COMMIT}/")
        assert ".." not in parts.path.split("/")
