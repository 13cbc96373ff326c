"""What a run is made of is resolved once: it has few parts, and nothing replaces one afterwards."""

from __future__ import annotations

import re
from dataclasses import fields

from tests.support import ROOT

from agenteval.run.resolve.spec import RunSpec

_MOST_FIELDS = 20
# They resolve it.
_RESOLVING = {"accepted_file.py", "resolve_run.py", "resolve_saved.py", "under_base.py"}
# There, ``spec`` is the definition of an agent or of a model, and ``run`` a run of a check.
_OTHERS = {"agents.py", "check_run.py", "config_keys.py", "model_agent.py", "model_client.py", "python.py"}
_REPLACED = re.compile(r"\breplace\(\s*(?:self\.)?(?:spec|run|resolved)\s*,")


def test_it_has_few_parts() -> None:
    assert len(fields(RunSpec)) <= _MOST_FIELDS


def test_nothing_replaces_a_part_of_it() -> None:
    found = {
        path.name
        for path in (ROOT / "src" / "agenteval").rglob("*.py")
        if _REPLACED.search(path.read_text(encoding="utf-8"))
    }
    assert found - _RESOLVING <= _OTHERS
