"""Downloads and caches the files that suites name by URL."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from agenteval.core.errors import AgentEvalError
from agenteval.suite.files import display_url
from agenteval.suite.model import FileKind

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 50 * 2**20
_ATTEMPTS = 3
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_UNUSUAL = re.compile(r"[^\w.-]+")
_NAME_LENGTH = 100
_SUFFIXES: dict[FileKind, str] = {
    "text": ".txt",
    "csv": ".csv",
    "pdf": ".pdf",
    "word": ".docx",
    "excel": ".xlsx",
    "powerpoint": ".pptx",
}


class DownloadError(AgentEvalError):
    """A file could not be downloaded.

    Args:
        message: why.
        transient: whether a retry may succeed.
    """

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


@dataclass(frozen=True)
class Downloader:
    """Downloads files by HTTP; it blocks, so it runs in a thread.

    Attributes:
        kept: directory for files that later runs can reuse.
        temporary: directory for other files.
        backoff_s: wait before the second attempt; it doubles.
        max_bytes: larger files are refused.
    """

    kept: Path
    temporary: Path
    backoff_s: float = 1.0
    max_bytes: int = MAX_BYTES
    sleep: Callable[[float], None] = time.sleep

    def get(self, url: str, kind: FileKind, timeout_s: float, *, keep: bool) -> Path:
        """Return the file at a URL.

        Args:
            url: ``http`` or ``https``.
            kind: the kind of its content.
            timeout_s: limit for one attempt.
            keep: whether to reuse it from earlier runs, and cache it for later ones.

        Raises:
            DownloadError: it cannot be downloaded.
        """
        name = Path(hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:32], file_name(url, kind))
        if keep and (self.kept / name).is_file():
            return self.kept / name
        try:
            target = self._place(name, keep=keep)
            for attempt in range(_ATTEMPTS):
                try:
                    return self._attempt(url, target, timeout_s)
                except DownloadError as error:
                    if not error.transient or attempt == _ATTEMPTS - 1:
                        raise
                    self.sleep(self.backoff_s * 2**attempt)
        except OSError as error:
            raise DownloadError(f"{display_url(url)} cannot be stored: {error.strerror}") from None
        raise AssertionError("the last attempt returns or raises")

    def _place(self, name: Path, *, keep: bool) -> Path:
        """Return the path to write the file to; the temporary directory if the cache is not writable."""
        if keep:
            with contextlib.suppress(OSError):
                target = self.kept / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if os.access(target.parent, os.W_OK):
                    return target
        target = self.temporary / name
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _attempt(self, url: str, target: Path, timeout_s: float) -> Path:
        # Imported here: most runs download nothing.
        import httpx

        shown = display_url(url)
        try:
            with httpx.stream("GET", url, follow_redirects=True, timeout=timeout_s) as reply:
                if reply.status_code >= 400:
                    passing = reply.status_code == _TOO_MANY_REQUESTS or reply.status_code >= _SERVER_ERROR
                    raise DownloadError(f"{shown} answered with status {reply.status_code}", transient=passing)
                return self._store(reply, target, shown, timeout_s)
        except httpx.TimeoutException:
            raise DownloadError(_late(shown, timeout_s), transient=True) from None
        except (httpx.NetworkError, httpx.ProtocolError) as error:
            raise DownloadError(f"{shown} cannot be reached: {error}", transient=True) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise DownloadError(f"{shown} cannot be downloaded: {error}") from None

    def _store(self, reply: httpx.Response, target: Path, shown: str, timeout_s: float) -> Path:
        deadline = time.monotonic() + timeout_s
        handle, written = tempfile.mkstemp(dir=target.parent, prefix=".")
        size = 0
        try:
            with os.fdopen(handle, "wb") as file:
                for chunk in reply.iter_bytes():
                    size += len(chunk)
                    if size > self.max_bytes:
                        raise DownloadError(f"{shown} is larger than {self.max_bytes / 2**20:g} MB")
                    if time.monotonic() > deadline:
                        raise DownloadError(_late(shown, timeout_s), transient=True)
                    file.write(chunk)
            Path(written).replace(target)
        except BaseException:
            Path(written).unlink(missing_ok=True)
            raise
        return target


def file_name(url: str, kind: FileKind) -> str:
    """Return the file name of a download: as in the URL, with the suffix of its kind."""
    name = _UNUSUAL.sub("_", unquote(urlsplit(url).path).rpartition("/")[2]).strip("._")[-_NAME_LENGTH:] or "file"
    return name if Path(name).suffix else name + _SUFFIXES.get(kind, "")


def _late(shown: str, timeout_s: float) -> str:
    return f"{shown} did not arrive within {timeout_s:g} s"
