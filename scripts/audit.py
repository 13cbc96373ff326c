"""Looks for known vulnerabilities of everything that is locked: ``make audit``.

Asks osv.dev, which gathers the advisories of PyPI and GitHub; no package index is asked and nothing is installed.
``make audit`` first looks whether it is in reach.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx

SERVICE = "https://api.osv.dev/v1/query"
REQUIREMENTS = Path(__file__).parents[1] / "requirements"
_PATIENCE_S = 10.0


def is_reachable(address: str) -> bool:
    """Whether a service answers at all."""
    try:
        return httpx.post(address, json={}, timeout=_PATIENCE_S).status_code < httpx.codes.INTERNAL_SERVER_ERROR
    except httpx.HTTPError:
        return False


def command(program: str, locks: Sequence[Path]) -> list[str]:
    """How pip-audit is called.

    Args:
        program: its path.
        locks: lock files with hashes, so that nothing has to be resolved.
    """
    files = [word for lock in locks for word in ("--requirement", str(lock))]
    fixed = ["--require-hashes", "--disable-pip", "--vulnerability-service", "osv", "--progress-spinner", "off"]
    return [program, *fixed, *files]


def main() -> int:
    """Audit every lock file with the pip-audit that is given; without one, say whether that can be done.

    Returns:
        pip-audit's status, which is 1 if there is a vulnerability; 1 where the service is out of reach.
    """
    if not is_reachable(SERVICE):
        print("osv.dev is out of reach: nothing is audited")
        return 1
    locks = sorted(REQUIREMENTS.glob("*.lock"))
    return max(
        (
            subprocess.run(command(program, [lock]), check=False).returncode
            for program in sys.argv[1:2]
            for lock in locks
        ),
        default=0,
    )


if __name__ == "__main__":
    sys.exit(main())
