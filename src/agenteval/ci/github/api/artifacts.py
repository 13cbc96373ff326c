"""Downloads artifacts of workflow runs to memory and reads one member without extracting files."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agenteval.ci.github.api.client import USER_AGENT, Client, GithubError
from agenteval.ci.github.api.zip_member import MemberLimits, UnreadableZipError, read_zip_member
from agenteval.core.errors import AgentEvalError

if TYPE_CHECKING:
    from requests import Response

PERMISSIONS = ("actions: read", "contents: read")

_MIB = 1024 * 1024
_CHUNK = 256 * 1024
_GONE = {404: "it does not exist any more", 410: "it has expired"}


class UnusableArtifactError(AgentEvalError):
    """An artifact cannot be downloaded or has unexpected content; ``reason`` continues "because"."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the artifact cannot be used: {reason}")


@dataclass(frozen=True, slots=True)
class DownloadLimits:
    """Limits of a download.

    Args:
        size: bytes of the zip file.
        total_s: seconds for all attempts together.
        silence_s: seconds without a single byte.
        pauses_s: seconds before each retry; the addresses of the store are valid for a minute.
    """

    size: int = 256 * _MIB
    total_s: float = 180.0
    silence_s: float = 20.0
    pauses_s: tuple[float, ...] = (1.0, 4.0)


def download(
    client: Client,
    repository: str,
    artifact_id: int,
    digest: str | None = None,
    limits: DownloadLimits | None = None,
) -> bytes:
    """Download the zip file of an artifact.

    GitHub redirects to a blob store. The request to the store has no credentials, so the store never gets the token.

    Args:
        client: connection to GitHub.
        repository: ``owner/name``.
        artifact_id: the artifact.
        digest: digest from GitHub, for instance ``sha256:…``; not checked if empty.
        limits: limits of size and time.

    Raises:
        UnusableArtifactError: expired, deleted, too large, too slow, a different digest, or the store failed.
        GithubError: GitHub refused, failed or could not be reached.
    """
    limits = limits or DownloadLimits()
    deadline = time.monotonic() + limits.total_s
    for pause_s in limits.pauses_s:
        try:
            return _checked(_attempt(client, repository, artifact_id, limits, deadline), digest)
        except _TransientError:
            if time.monotonic() + pause_s >= deadline:
                raise
            time.sleep(pause_s)
    return _checked(_attempt(client, repository, artifact_id, limits, deadline), digest)


def read_member(data: bytes, name: str, limits: MemberLimits | None = None) -> bytes:
    """Return the content of one file in an artifact, at the top or in one folder.

    Args:
        data: the zip file, as :func:`download` returns it.
        name: name of the file, for instance ``results.json``.
        limits: limits of size and ratio.

    Raises:
        UnusableArtifactError: the file is missing or unsafe.
    """
    try:
        return read_zip_member(data, name, limits)
    except UnreadableZipError as error:
        raise UnusableArtifactError(str(error)) from None


class _TransientError(UnusableArtifactError):
    """A retry may help."""


def _attempt(client: Client, repository: str, artifact_id: int, limits: DownloadLimits, deadline: float) -> bytes:
    address = _address(client, repository, artifact_id)
    # The store must use the same scheme as the API or a safer one.
    schemes = {"https"} if urlsplit(client.api_url).scheme == "https" else {"https", "http"}
    return _fetch(address, schemes, limits, deadline)


def _address(client: Client, repository: str, artifact_id: int) -> str:
    try:
        with client.open(f"download artifact {artifact_id} of {repository}", PERMISSIONS) as api:
            path = f"/repos/{repository}/actions/artifacts/{artifact_id}/zip"
            headers, _ = api.requester.requestJsonAndCheck("GET", path)
    except GithubError as error:
        if error.status in _GONE:
            raise UnusableArtifactError(_GONE[error.status]) from None
        raise
    location = headers.get("location")
    if not isinstance(location, str):
        raise UnusableArtifactError("GitHub returned no address")
    return location


def _fetch(address: str, schemes: set[str], limits: DownloadLimits, deadline: float) -> bytes:
    from requests import RequestException
    from requests.exceptions import InvalidSchema, Timeout, TooManyRedirects
    from urllib3.exceptions import HTTPError, ReadTimeoutError

    from agenteval.ci.github.api.anonymous import Anonymous

    with Anonymous(schemes) as session:
        try:
            headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
            with session.get(address, headers=headers, stream=True, timeout=limits.silence_s) as response:
                _must_be_fine(response, limits)
                return _body(response, limits, deadline)
        except (InvalidSchema, TooManyRedirects):
            raise UnusableArtifactError("its address is invalid") from None
        # Omit the errors' texts: they may contain the signed address, which grants access.
        except (Timeout, ReadTimeoutError):
            raise _TransientError(f"its download stalled for {limits.silence_s:g} s") from None
        except (RequestException, HTTPError):
            raise _TransientError("its download was interrupted") from None


def _must_be_fine(response: Response, limits: DownloadLimits) -> None:
    if response.status_code in _GONE:
        raise UnusableArtifactError(_GONE[response.status_code])
    if response.status_code != HTTPStatus.OK:
        raise _TransientError(f"the store it is in answered {response.status_code}")
    promised = response.headers.get("Content-Length", "")
    if promised.isdecimal() and int(promised) > limits.size:
        raise _too_large(limits)


def _body(response: Response, limits: DownloadLimits, deadline: float) -> bytes:
    received = BytesIO()
    # Read single pieces from the network, because waiting for a full chunk could take forever.
    while piece := response.raw.read1(_CHUNK, decode_content=False):
        received.write(piece)
        if received.tell() > limits.size:
            raise _too_large(limits)
        if time.monotonic() > deadline:
            raise UnusableArtifactError(f"its download took longer than {limits.total_s:g} s")
    return received.getvalue()


def _too_large(limits: DownloadLimits) -> UnusableArtifactError:
    size = f"{limits.size // _MIB} MiB" if limits.size >= _MIB else f"{limits.size:,} bytes"
    return UnusableArtifactError(f"it is larger than {size}; upload results.json without the other reports")


def _checked(data: bytes, digest: str | None) -> bytes:
    algorithm, _, expected = (digest or "").partition(":")
    if algorithm == "sha256" and hashlib.sha256(data).hexdigest() != expected.lower():
        raise UnusableArtifactError("its content does not match its digest")
    return data
