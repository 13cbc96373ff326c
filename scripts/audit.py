"""Finds known vulnerabilities of all locked dependencies: ``make audit``.

Asks osv.dev, which collects the advisories of PyPI and GitHub. No package index is used and nothing is installed.
``make audit`` first checks whether osv.dev is reachable.
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
    """Return whether a service answers."""
    try:
        return httpx.post(address, json={}, timeout=_PATIENCE_S).status_code < httpx.codes.INTERNAL_SERVER_ERROR
    except httpx.HTTPError:
        return False


def command(program: str, locks: Sequence[Path]) -> list[str]:
    """Return the command line of pip-audit.

    Args:
        program: path of pip-audit.
        locks: lock files with hashes, so that no dependencies are resolved.
    """
    files = [word for lock in locks for word in ("--requirement", str(lock))]
    fixed = ["--require-hashes", "--disable-pip", "--vulnerability-service", "osv", "--progress-spinner", "off"]
    return [program, *fixed, *files]


def main() -> int:
    """Audit every lock file with the given pip-audit; without an argument, report whether osv.dev is reachable.

    Returns:
        The status of pip-audit, which is 1 if there is a vulnerability; 1 if the service is unreachable.
    """
    if not is_reachable(SERVICE):
        print("osv.dev is unreachable: nothing is audited")
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
