"""Downloads files of cases, from public addresses only."""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import time
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from agenteval.core.errors import AgentEvalError
from agenteval.core.escape import display_url
from agenteval.core.records import dataclass
from agenteval.core.secrets import shortened
from agenteval.core.shared_files import Seal, read_cache_file, write_cache_file
from agenteval.suite.model import FileKind

if TYPE_CHECKING:
    import httpx


# Gateways from IPv6 to IPv4 (RFC 6052); the last 32 bits are the IPv4 address.
_NAT64 = IPv6Network("64:ff9b::/96")
# The same within a network (RFC 8215).
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")


def is_public(text: str) -> bool:
    """Return whether an IP address is one of the internet.

    Private networks, this machine, link-local addresses such as those of clouds' metadata services, shared addresses
    of providers (RFC 6598), multicast and reserved addresses are not. Neither are IPv6 addresses that contain one.
    """
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return is_public(str(inner))
        if address.is_site_local or address in _LOCAL_NAT64:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def public_names(host: str) -> bool:
    """Return whether all addresses of a host are public; true also for a name that this machine cannot resolve.

    The connection finds a name unknown too, or a proxy resolves it.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True
    return all(is_public(str(address[0])) for *_, address in found)


def _inner(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


MAX_BYTES = 50 * 2**20
# The cache's name in the codes of its entries.
_CACHE = "file"
_ATTEMPTS = 3
_MOST_REDIRECTS = 10
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_UNUSUAL = re.compile(r"[^\w.-]+")
_NAME_LENGTH = 100
_SHOWN = 300
_SUFFIXES: dict[FileKind, str] = {
    "text": ".txt",
    "csv": ".csv",
    "pdf": ".pdf",
    "word": ".docx",
    "excel": ".xlsx",
    "powerpoint": ".pptx",
}


class DownloadError(AgentEvalError):
    """A file could not be downloaded."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


@dataclass(frozen=True)
class Downloader:
    """Downloads files over HTTP; its methods block, so call them in a thread.

    Redirects are followed to public addresses only, or to the host that the suite names.

    Attributes:
        kept: directory of copies for later runs.
        temporary: directory of the files of this run; user code can read it and not change it.
        seal: decides which copies of earlier runs are believed.
        backoff_s: wait before the second attempt, in seconds; it doubles with each attempt.
        max_bytes: size limit; larger files are refused.
    """

    kept: Path
    temporary: Path
    seal: Seal
    backoff_s: float = 1.0
    max_bytes: int = MAX_BYTES
    sleep: Callable[[float], None] = time.sleep

    def get(self, url: str, kind: FileKind, timeout_s: float, *, keep: bool) -> Path:
        """Return the file at a URL.

        Args:
            url: ``http`` or ``https``.
            keep: whether to reuse the file of an earlier run, and to cache it for later runs.
        """
        name = Path(hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:32], file_name(url, kind))
        target = self.temporary / ("kept" if keep else "new") / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            known = self._kept_content(name, url) if keep else None
            if known is not None:
                target.write_bytes(known)
            else:
                self._download(url, target, timeout_s)
        except OSError as error:
            raise DownloadError(f"{display_url(url)} cannot be stored: {error.strerror}") from None
        if keep and known is None:
            # A missing copy only costs another download.
            with contextlib.suppress(OSError):
                self._keep(name, url, target.read_bytes())
        return target

    def _download(self, url: str, target: Path, timeout_s: float) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                self._attempt(url, target, timeout_s)
            except DownloadError as error:
                if not error.transient or attempt == _ATTEMPTS - 1:
                    raise
                self.sleep(self.backoff_s * 2**attempt)
            else:
                return

    def _kept_content(self, name: Path, url: str) -> bytes | None:
        """Return the copy of an earlier run; ``None`` if there is none that can be believed.

        The content is read once: what is returned is what was checked.
        """
        path = self.kept / name
        with contextlib.suppress(OSError):
            content = read_cache_file(path, self.max_bytes)
            if content is None:
                return None
            stored = (read_cache_file(_code_file(path)) or b"").decode("ascii", "replace")
            if self.seal.confirms(stored, _CACHE, url, hashlib.sha256(content).hexdigest()):
                return content
        return None

    def _keep(self, name: Path, url: str, content: bytes) -> None:
        path = self.kept / name
        code = self.seal.code(_CACHE, url, hashlib.sha256(content).hexdigest())
        write_cache_file(path, content)
        if code is not None:
            write_cache_file(_code_file(path), code.encode())

    def _attempt(self, url: str, target: Path, timeout_s: float) -> None:
        # Imported here: most runs download nothing.
        import httpx

        shown = display_url(url)
        try:
            with httpx.Client(timeout=timeout_s) as client:
                route = _Route(httpx.URL(url).raw_host, shown)
                request = client.build_request("GET", url, extensions={"trace": route.trace})
                for _ in range(_MOST_REDIRECTS + 1):
                    route.check(request.url)
                    with contextlib.closing(client.send(request, stream=True)) as reply:
                        if reply.next_request is None:
                            self._store(reply, target, shown, timeout_s)
                            return
                        request = reply.next_request
            raise DownloadError(f"{shown} redirects more than {_MOST_REDIRECTS} times")
        except httpx.TimeoutException:
            raise DownloadError(_late(shown, timeout_s), transient=True) from None
        except (httpx.NetworkError, httpx.ProtocolError) as error:
            raise DownloadError(
                f"{shown} cannot be reached: {shortened(str(error), _SHOWN)}", transient=True
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise DownloadError(f"{shown} cannot be downloaded: {shortened(str(error), _SHOWN)}") from None

    def _store(self, reply: httpx.Response, target: Path, shown: str, timeout_s: float) -> None:
        if not reply.is_success:
            transient = reply.status_code == _TOO_MANY_REQUESTS or reply.status_code >= _SERVER_ERROR
            raise DownloadError(f"{shown} answered with status {reply.status_code}", transient=transient)
        deadline = time.monotonic() + timeout_s
        size = 0
        try:
            with target.open("wb") as file:
                for chunk in reply.iter_bytes():
                    size += len(chunk)
                    if size > self.max_bytes:
                        raise DownloadError(f"{shown} is larger than {self.max_bytes / 2**20:g} MB")
                    if time.monotonic() > deadline:
                        raise DownloadError(_late(shown, timeout_s), transient=True)
                    file.write(chunk)
        except BaseException:
            target.unlink(missing_ok=True)
            raise


@dataclass
class _Route:
    """The way of one download through redirects.

    The address is checked twice: by name before the connection, and that of the socket before the request is sent,
    because a name server can answer differently the second time.
    """

    named: bytes
    shown: str
    _host: bytes = b""
    _is_proxied: bool = False

    def check(self, url: httpx.URL) -> None:
        if url.scheme not in {"http", "https"}:
            raise DownloadError(f"{self.shown} redirects to {url.scheme}://; only http and https are allowed")
        self._host = url.raw_host
        if self._host != self.named and not public_names(url.host):
            raise self._refused()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.started":
            # A proxy makes the connection to the host itself.
            self._is_proxied = str(info["host"]).encode() != self._host
        if event == "connection.connect_tcp.complete" and self._host != self.named and not self._is_proxied:
            stream = info["return_value"]
            peer = stream.get_extra_info("server_addr")
            if not is_public(str(peer[0])):
                stream.close()
                raise self._refused()

    def _refused(self) -> DownloadError:
        host = self._host.decode("ascii", "replace")
        return DownloadError(
            f"{self.shown} redirects to {host}, which is not a public address; use that address in the suite"
        )


def _code_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.mac")


def file_name(url: str, kind: FileKind) -> str:
    """Return the file name of a download: as in the URL, with the suffix of its kind."""
    name = _UNUSUAL.sub("_", unquote(urlsplit(url).path).rpartition("/")[2]).strip("._")[-_NAME_LENGTH:] or "file"
    return name if Path(name).suffix else name + _SUFFIXES.get(kind, "")


def _late(shown: str, timeout_s: float) -> str:
    return f"{shown} did not arrive within {timeout_s:g} s"
