"""Runs the command line: ``agenteval``, or ``python -m agenteval``."""

import signal
import sys


def main() -> int:
    """Run one command; return its exit status."""
    try:
        # Imported here: Ctrl-C can arrive during the imports, and is no error either.
        from agenteval.cli.main import main as command

        return command()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
