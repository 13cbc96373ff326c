"""The signals that end a run."""

from __future__ import annotations

import signal
import sys


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end a run: that of Ctrl-C, that of ``kill``, and that of a terminal's end.

    ``nohup`` ignores the last one, so that a run continues without its terminal.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return numbers
