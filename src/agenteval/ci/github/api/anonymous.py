"""An HTTP session that cannot give a credential away."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from requests import PreparedRequest, Response, Session

_REDIRECTS = 5


class Anonymous(Session):
    """Sends no credentials, neither of a ``.netrc`` file nor after redirects; proxies and own CAs are honoured.

    Args:
        schemes: what addresses and redirects may begin with; ``InvalidSchema`` is raised for others.
    """

    def __init__(self, schemes: Collection[str]) -> None:
        super().__init__()
        self.max_redirects = _REDIRECTS
        # Anything callable here keeps the library from looking for a netrc file.
        self.auth = _nobody
        for prefix in [prefix for prefix in self.adapters if prefix.removesuffix("://") not in schemes]:
            del self.adapters[prefix]

    def rebuild_auth(self, prepared_request: PreparedRequest, response: Response) -> None:  # noqa: ARG002 - the library's
        """Nobody after a redirect either."""
        _nobody(prepared_request)


def _nobody(request: Any) -> Any:
    request.headers.pop("Authorization", None)
    return request
