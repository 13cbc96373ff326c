"""Files of earlier versions of the schema are read as the current version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.results.history import why_partial
from agenteval.results.model import SCHEMA_VERSION
from agenteval.results.store import IN_MEMORY, parse_baseline, read_results, results_json, upgraded

FILE = Path(__file__).parents[2] / "data" / "results" / "version-1.json"


def stored() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


def test_a_file_of_version_1_is_read() -> None:
    results = read_results(FILE)
    assert (results.schema_version, results.gate, results.run.coverage) == (1, None, None)
    assert [case.strict for _, case in results.cases()] == [False] * 3
    assert why_partial(results.run) == ""


def test_fingerprints_of_version_1_are_dropped() -> None:
    (entry,) = read_results(FILE).pool[-1:]
    assert {case.fingerprint for case in entry.cases.values()} == {""}


def test_it_is_a_baseline_with_a_note() -> None:
    results, notes = parse_baseline(FILE.read_bytes(), "results.json")
    assert results == read_results(FILE)
    assert [note.split(",")[0] for note in notes] == ["the baseline was written by an earlier agenteval"]


def test_a_damaged_pool_of_an_earlier_version_is_left_out() -> None:
    broken = stored() | {"pool": [{"run_id": 1}]}
    results, notes = parse_baseline(json.dumps(broken).encode(), "results.json")
    assert results.pool == []
    assert notes[0] == "1 run of the baseline's pool is damaged and omitted"


def test_it_is_written_as_the_current_version() -> None:
    written = json.loads("".join(results_json(read_results(FILE), IN_MEMORY)))
    assert written["schema_version"] == SCHEMA_VERSION
    # The gate of earlier versions decided by other rules.
    assert written["comparison"] is None


@pytest.mark.parametrize(
    "value", [None, [], "text", {}, {"comparison": None}, {"comparison": {"metrics": [1, None]}}]
)
def test_other_json_is_unchanged(value: Any) -> None:
    assert upgraded(value) == value
