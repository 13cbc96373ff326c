"""Reads results files of earlier versions of the schema as the current version."""

from __future__ import annotations

from typing import Any

from agenteval.results.model import Results

# Comparisons no longer have this verdict: without a regression they state which drop is excluded.
_EARLIER_VERDICTS = {"inconclusive": "unchanged"}


def upgraded(value: Any) -> Any:
    """Return the JSON of a results file with the words of the current version.

    Args:
        value: the parsed file; other JSON is returned unchanged.
    """
    comparison = value.get("comparison") if isinstance(value, dict) else None
    if not isinstance(comparison, dict):
        return value
    metrics = comparison.get("metrics")
    renamed = {**comparison, **_with_verdict(comparison)}
    if isinstance(metrics, list):
        renamed["metrics"] = [{**item, **_with_verdict(item)} if isinstance(item, dict) else item for item in metrics]
    return {**value, "comparison": renamed}


def _with_verdict(item: dict[str, Any]) -> dict[str, Any]:
    verdict = item.get("verdict")
    return (
        {"verdict": _EARLIER_VERDICTS[verdict]} if isinstance(verdict, str) and verdict in _EARLIER_VERDICTS else {}
    )


def without_old_fingerprints(results: Results) -> Results:
    """Return results of version 1 without fingerprints, which covered question and metrics together.

    Cases of earlier runs whose fingerprint differs from the file's run are dropped. Other versions stay unchanged.
    """
    if results.schema_version != 1:
        return results
    own = next((entry.cases for entry in results.pool if entry.run_id == results.run.id), {})
    pool = [
        entry.model_copy(
            update={
                "cases": {
                    case_id: case.model_copy(update={"fingerprint": ""})
                    for case_id, case in entry.cases.items()
                    if case_id not in own or case.fingerprint in {"", own[case_id].fingerprint}
                }
            }
        )
        for entry in results.pool
    ]
    return results.model_copy(update={"pool": pool})
