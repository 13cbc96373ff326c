"""What the start of a command needs: old spellings that are still accepted, and the signals that end a run.

Help texts, documentation and schemas have only the new spellings. Imports little, because every command needs it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping

#: Old spelling → new spelling, by place: a command, a key of ``agenteval.yaml``, or an input of the action.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "run": {"--base-agent": "--control", "--max-time": "--time-limit"},
    "gate.fail_on": {"inconclusive": "unproven"},
    "mode": {"merge": "gate"},
}


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end a run: that of Ctrl-C, that of ``kill``, and that of a terminal's end.

    ``nohup`` ignores the last one, so that a run continues without its terminal.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return numbers
