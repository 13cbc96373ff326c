"""Downloads artifacts of workflow runs to memory, and reads report directories in them."""

from __future__ import annotations

import hashlib
import stat
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from agenteval.core.errors import AgentEvalError, ConfigError
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import shortened
from agenteval.github.client import USER_AGENT, GitHubClient, GithubError
from agenteval.github.workflow_runs import Artifact
from agenteval.results.store import RESULTS_FILE

if TYPE_CHECKING:
    from requests import Response


_MIB: Final = 1024 * 1024
_CHUNK: Final = 4 * _MIB
_DOWNLOAD_CHUNK: Final = 256 * 1024
_MAX_SAID: Final = 200
_ENTRY: Final = b"PK\x01\x02"
_ENCRYPTED: Final = 0x1 | 0x40
# Exceptions for an invalid zip file.
_BROKEN = (
    BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    ValueError,
    OverflowError,
)


PERMISSIONS = ("actions: read", "contents: read")
_GONE = {404: "it does not exist any more", 410: "it has expired"}


class UnusableArtifactError(AgentEvalError):
    """An artifact cannot be downloaded or has unexpected content; ``reason`` continues "because"."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the artifact cannot be used: {reason}")


class _TransientError(UnusableArtifactError):
    """A retry may help."""


@dataclass(frozen=True)
class ArtifactLimits:
    """Limits of an artifact and of the file that is read from it.

    Args:
        total_s: seconds for all attempts to download it.
        silence_s: seconds without a single byte.
        pauses_s: seconds before each retry; the addresses of the store are valid for a minute.
        member_size: bytes of the file when unpacked.
        ratio: its unpacked to its packed size, beyond ``free_size`` bytes.
    """

    size: int = 256 * _MIB
    total_s: float = 180.0
    silence_s: float = 20.0
    pauses_s: tuple[float, ...] = (1.0, 4.0)
    member_size: int = 512 * _MIB
    ratio: int = 200
    free_size: int = 10 * _MIB
    members: int = 10_000


_LIMITS = ArtifactLimits()


def read_member(data: bytes, name: str, limits: ArtifactLimits = _LIMITS) -> bytes:
    """Return the content of one file in a zip file, at the top or in one folder, with verified checksum.

    Raises:
        UnusableArtifactError: broken, too large, without that file or with several, or it is not a plain file.
    """
    # Every entry uses memory when the file is opened.
    if data.count(_ENTRY) > limits.members:
        raise UnusableArtifactError(f"it has more than {limits.members:,} files")
    try:
        with ZipFile(BytesIO(data)) as archive:
            member = _chosen(archive.infolist(), name)
            _must_be_harmless(member, limits)
            return _content(archive, member)
    except _BROKEN as error:
        said = shortened(str(error), _MAX_SAID) or type(error).__name__
        raise UnusableArtifactError(f"it is not a valid zip file ({said})") from None


def _chosen(members: Sequence[ZipInfo], name: str) -> ZipInfo:
    # Use the stored name: the library cuts it at a NUL, other readers may not.
    at_top = [member for member in members if member.orig_filename == name]
    in_folder = [member for member in members if _is_in_folder(member.orig_filename, name)]
    found = at_top or in_folder
    if not found:
        raise UnusableArtifactError(f"there is no {name} in it")
    if len(found) > 1:
        raise UnusableArtifactError(f"there are {len(found)} files {name} in it")
    return found[0]


def _is_in_folder(stored: str, name: str) -> bool:
    folder, slash, file = stored.partition("/")
    odd = folder in {"", ".", ".."} or "\\" in folder or not folder.isprintable()
    return bool(slash) and file == name and not odd


def _must_be_harmless(member: ZipInfo, limits: ArtifactLimits) -> None:
    kind = stat.S_IFMT(member.external_attr >> 16)
    name = member.filename.rpartition("/")[2]
    if kind not in {0, stat.S_IFREG}:
        raise UnusableArtifactError(f"its {name} is a link or another special file")
    if member.flag_bits & _ENCRYPTED:
        raise UnusableArtifactError(f"its {name} is encrypted")
    if member.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
        raise UnusableArtifactError(f"its {name} uses an unsupported compression")
    if member.file_size > limits.member_size:
        raise UnusableArtifactError(f"its {name} is larger than {limits.member_size:,} bytes")
    if member.file_size > limits.free_size and member.file_size > limits.ratio * member.compress_size:
        raise UnusableArtifactError(f"its {name} is packed more than {limits.ratio}:1, as in a zip bomb")


def _content(archive: ZipFile, member: ZipInfo) -> bytes:
    # The library reads at most the declared size, and compares the checksum at the end.
    pieces: list[bytes] = []
    with archive.open(member) as file:
        while piece := file.read(_CHUNK):
            pieces.append(piece)
    content = b"".join(pieces)
    if len(content) != member.file_size:
        raise UnusableArtifactError(f"its {member.filename.rpartition('/')[2]} is cut short")
    return content


def download(
    client: GitHubClient,
    repository: str,
    artifact_id: int,
    digest: str | None = None,
    limits: ArtifactLimits = _LIMITS,
) -> bytes:
    """Download the zip file of an artifact.

    GitHub redirects to a blob store. The request to the store has no credentials, so the store never gets the token.

    Args:
        digest: digest from GitHub, for instance ``sha256:…``; not checked if empty.

    Raises:
        UnusableArtifactError: expired, deleted, too large, too slow, a different digest, or the store failed.
    """
    deadline = time.monotonic() + limits.total_s
    pauses = iter(limits.pauses_s)
    while True:
        try:
            return _checked(_attempt(client, repository, artifact_id, limits, deadline), digest)
        except _TransientError:
            pause_s = next(pauses, None)
            if pause_s is None or time.monotonic() + pause_s >= deadline:
                raise
            time.sleep(pause_s)


def _attempt(
    client: GitHubClient, repository: str, artifact_id: int, limits: ArtifactLimits, deadline: float
) -> bytes:
    address = _address(client, repository, artifact_id)
    # The store must use the same scheme as the API or a safer one.
    schemes = {"https"} if urlsplit(client.api_url).scheme == "https" else {"https", "http"}
    return _fetch(address, schemes, limits, deadline)


def _address(client: GitHubClient, repository: str, artifact_id: int) -> str:
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


def _fetch(address: str, schemes: set[str], limits: ArtifactLimits, deadline: float) -> bytes:
    from requests import RequestException
    from requests.exceptions import InvalidSchema, Timeout, TooManyRedirects
    from urllib3.exceptions import HTTPError, ReadTimeoutError

    from agenteval.github.connection import Anonymous

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


def _must_be_fine(response: Response, limits: ArtifactLimits) -> None:
    if response.status_code in _GONE:
        raise UnusableArtifactError(_GONE[response.status_code])
    if response.status_code != HTTPStatus.OK:
        raise _TransientError(f"the store it is in answered {response.status_code}")
    promised = response.headers.get("Content-Length", "")
    if promised.isdecimal() and int(promised) > limits.size:
        raise _too_large(limits)


def _body(response: Response, limits: ArtifactLimits, deadline: float) -> bytes:
    received = BytesIO()
    # Read single pieces from the network, because waiting for a full chunk could take forever.
    while piece := response.raw.read1(_DOWNLOAD_CHUNK, decode_content=False):
        received.write(piece)
        if received.tell() > limits.size:
            raise _too_large(limits)
        if time.monotonic() > deadline:
            raise UnusableArtifactError(f"its download took longer than {limits.total_s:g} s")
    return received.getvalue()


def _too_large(limits: ArtifactLimits) -> UnusableArtifactError:
    size = f"{limits.size // _MIB} MiB" if limits.size >= _MIB else f"{limits.size:,} bytes"
    return UnusableArtifactError(f"it is larger than {size}; upload results.json without the other reports")


def _checked(data: bytes, digest: str | None) -> bytes:
    algorithm, _, expected = (digest or "").partition(":")
    if algorithm == "sha256" and hashlib.sha256(data).hexdigest() != expected.lower():
        raise UnusableArtifactError("its content does not match its digest")
    return data


_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True)
class DownloadedReport:
    """A downloaded artifact with a report directory; its content is untrusted."""

    zipped: bytes = field(repr=False)
    limits: ArtifactLimits = _LIMITS

    @classmethod
    def download(
        cls, client: GitHubClient, repository: str, artifact: Artifact, limits: ArtifactLimits = _LIMITS
    ) -> DownloadedReport:
        """Download an artifact; one that has expired, is broken, too large or too slow is unusable."""
        if artifact.expired:
            raise UnusableArtifactError("it has expired")
        return cls(download(client, repository, artifact.id, artifact.digest, limits), limits)

    def file(self, name: str) -> bytes:
        """Return the content of a file; one that is missing or unsafe makes the artifact unusable."""
        return read_member(self.zipped, name, self.limits)

    def results(self, parse: Callable[[bytes, str], _Parsed]) -> _Parsed:
        """Return the results, as a parser of results.json returns them."""
        data = self.file(RESULTS_FILE)
        try:
            return parse(data, RESULTS_FILE)
        except ConfigError as error:
            raise UnusableArtifactError(str(error)) from None
