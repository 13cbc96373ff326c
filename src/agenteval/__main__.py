"""``python -m agenteval``."""

import sys

from agenteval.cli import main

sys.exit(main())
