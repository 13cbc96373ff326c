"""An HTTP session that cannot leak credentials."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from requests import PreparedRequest, Response, Session

_REDIRECTS = 5


class Anonymous(Session):
    """Session without credentials, from a ``.netrc`` file or after redirects; proxies and user CAs apply.

    Args:
        schemes: allowed prefixes of addresses and redirects; others raise ``InvalidSchema``.
    """

    def __init__(self, schemes: Collection[str]) -> None:
        super().__init__()
        self.max_redirects = _REDIRECTS
        # With any callable here, the library does not read a netrc file.
        self.auth = _nobody
        for prefix in [prefix for prefix in self.adapters if prefix.removesuffix("://") not in schemes]:
            del self.adapters[prefix]

    def rebuild_auth(self, prepared_request: PreparedRequest, response: Response) -> None:  # noqa: ARG002 - the library's
        """Send no credentials after a redirect."""
        _nobody(prepared_request)


def _nobody(request: Any) -> Any:
    request.headers.pop("Authorization", None)
    return request
