"""Old spellings of options and values that are still accepted.

Help texts, documentation and schemas have only the new spellings.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Old spelling → new spelling, by place: a command, or a key of ``agenteval.yaml``.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "run": {"--base-agent": "--control", "--max-time": "--time-limit"},
    "gate.fail_on": {"inconclusive": "unproven"},
    "gate.confirm": {"head": "rerun", "base": "against-base", "both": "against-base"},
}
