"""Masks secrets in the names and ids of suites and cases.

They are masked before anything is run, so every report, journal, message and comparison has the same ones. Two ids
that differ only in their secrets become equal, which is a problem of the suite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agenteval.core.text.redact import Redactor
from agenteval.suite.model import Case, Suite


def masked_suite(suite: Suite, redact: Redactor) -> Suite:
    """Return the suite with masked secrets in its path and name, and in the ids, names and tags of its cases."""
    texts = (suite.path, suite.name, *(text for case in suite.cases for text in _texts(case)))
    # One search is faster than many.
    if not redact.finds("\n".join(texts)):
        return suite
    cases = tuple(masked_case(case, redact) for case in suite.cases)
    return replace(suite, path=redact(suite.path), name=redact(suite.name), cases=cases)


def masked_case(case: Case, redact: Redactor) -> Case:
    """Return the case with masked secrets in its id, name, tags, cluster and persona."""
    if not redact.finds("\n".join(_texts(case))):
        return case
    return replace(
        case,
        id=redact(case.id),
        name=redact(case.name),
        tags=tuple(map(redact, case.tags)),
        cluster=None if case.cluster is None else redact(case.cluster),
        persona=None if case.persona is None else redact(case.persona),
    )


def _texts(case: Case) -> Iterator[str]:
    yield from (case.id, case.name, *case.tags, case.cluster or "", case.persona or "")
