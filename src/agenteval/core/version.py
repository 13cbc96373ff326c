"""The version of the package."""

from __future__ import annotations

__version__ = "0.1.0"

#: The documentation of this major version.
DOCUMENTATION = "https://github.com/org/agenteval-action/blob/v1/docs"
