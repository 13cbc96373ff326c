"""Old spellings of options and values that are still accepted.

Help texts, documentation and schemas have only the new spellings.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Old spelling → new spelling, by place: a command, a key of ``agenteval.yaml``, or an input of the action.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "run": {"--base-agent": "--control", "--max-time": "--time-limit"},
    "gate.fail_on": {"inconclusive": "unproven"},
    "mode": {"merge": "gate"},
    "gate.confirm": {"head": "rerun", "base": "against-base", "both": "against-base"},
}
