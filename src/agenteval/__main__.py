"""Runs the command line: ``python -m agenteval``."""

import sys

from agenteval.cli.main import main

sys.exit(main())
