"""Which runs are judged by a base commit."""

from __future__ import annotations

import pytest
from tests.unit.runs import case, results

from agenteval.results.model import Results
from agenteval.run.base_commit import Kind
from agenteval.run.context import is_judged_by_base

RUN = results(case("a"))
BASELINE = RUN.model_copy(update={"run": RUN.run.model_copy(update={"commit": "c0ffee0"})})
FOREIGN = BASELINE.model_copy(update={"tool": BASELINE.tool.model_copy(update={"name": "promptfoo"})})
WITHOUT_COMMIT = BASELINE.model_copy(update={"run": BASELINE.run.model_copy(update={"commit": None})})


@pytest.mark.parametrize(
    ("kind", "ref", "baseline", "judged"),
    [
        ("pull-request", "refs/pull/7/merge", None, True),
        ("pull-request", "refs/pull/7/merge", BASELINE, True),
        ("previous", "refs/heads/gh-readonly-queue/main/pr-7", BASELINE, True),
        ("previous", "refs/heads/gh-readonly-queue/main/pr-7", None, True),
        ("previous", "refs/heads/main", BASELINE, False),
        ("first-parent", "refs/heads/main", BASELINE, False),
        ("merge-base", "refs/heads/feature", BASELINE, True),
        ("merge-base", None, BASELINE, True),
        ("merge-base", None, None, False),
        ("merge-base", None, FOREIGN, False),
        ("merge-base", None, WITHOUT_COMMIT, False),
    ],
)
def test_only_what_is_not_merged_is_judged(
    kind: Kind, ref: str | None, baseline: Results | None, judged: bool
) -> None:
    assert is_judged_by_base(kind, ref, baseline) is judged
