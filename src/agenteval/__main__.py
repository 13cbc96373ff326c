"""``python -m agenteval``."""

import sys

from agenteval.cli.main import main

sys.exit(main())
