"""From a case's files to what agents and judges get: found, downloaded, read once, and errors of their case."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.integration.documents import docx, pdf, xlsx
from tests.support import PATIENCE_S

from agenteval.core.shared_files import Seal
from agenteval.run import attachments as module
from agenteval.run.attachments import read_file
from agenteval.run.conversation import AttachmentError, Attachments
from agenteval.run.downloads import Downloader, DownloadError
from agenteval.suite.model import FileKind, FileRef


@dataclass
class Sent:
    """What the server answers."""

    body: bytes = b"From nine to six"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    then: Literal["end", "drip", "wait"] = "end"


@dataclass
class FileServer:
    """A web server with one answer for all, or one after the other."""

    url: str = ""
    answers: list[Sent] = field(default_factory=lambda: [Sent()])
    asked: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str) -> Sent:
        self.asked.append(path)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def server() -> Iterator[FileServer]:
    files = FileServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = files.answer(self.path)
            self.send_response(sent.status)
            for name, value in sent.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent.body)
            self.wfile.flush()
            while sent.then != "end" and not files.stopped.wait(0.05):
                with contextlib.suppress(OSError):
                    self.wfile.write(b"." if sent.then == "drip" else b"")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Tests are quiet."""

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    files.url = f"http://127.0.0.1:{web.server_address[1]}"
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield files
    files.stopped.set()
    web.shutdown()
    thread.join()
    web.server_close()


@pytest.fixture
def downloader(tmp_path: Path) -> Downloader:
    return Downloader(tmp_path / "kept", tmp_path / "temporary", Seal(), sleep=lambda _: None)


def local(folder: Path, name: str, data: bytes, kind: FileKind = "text", **fields: Any) -> FileRef:
    path = folder / name
    path.write_bytes(data)
    return FileRef(name=name, kind=kind, path=str(path), **fields)


# The paths of the files of a turn, and their texts.
Attached = tuple[tuple[str, ...], tuple[str, ...]]


def attach(*turns: Sequence[FileRef], kept: Path | None = None) -> list[Attached | BaseException]:
    """What turns get that are asked at once."""

    async def get() -> list[Attached | BaseException]:
        async with asyncio.timeout(PATIENCE_S), Attachments(kept) as attachments:
            return await asyncio.gather(*(attachments.get(files) for files in turns), return_exceptions=True)

    return asyncio.run(get())


def attached(*files: FileRef, kept: Path | None = None) -> Attached:
    (found,) = attach(files, kept=kept)
    assert isinstance(found, tuple), found
    return found


class TestAttachments:
    def test_paths_and_texts(self, tmp_path: Path) -> None:
        notes = local(tmp_path, "notes.txt", b"Helmets are free.\n")
        hours = local(tmp_path, "hours.docx", docx("From nine to six"), "word", description="When we are open")
        empty = local(tmp_path, "empty.csv", b" \n", "csv")

        found = attached(notes, hours, empty)

        assert found[0] == (str(tmp_path / "notes.txt"), str(tmp_path / "hours.docx"), str(tmp_path / "empty.csv"))
        assert found[1] == (
            "File: notes.txt\nHelmets are free.",
            "File: hours.docx\nDescription: When we are open\nFrom nine to six",
            "File: empty.csv\n(no text could be read from this file)",
        )

    def test_each_is_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[tuple[str, tuple[int, ...] | None]] = []

        def counted(file: FileRef, path: Path) -> str:
            read.append((file.name, file.pages))
            return read_file(file, path)

        monkeypatch.setattr(module, "read_file", counted)
        whole = local(tmp_path, "rules.pdf", pdf("First", "Second"), "pdf")
        second = replace(whole, pages=(2,))
        described = replace(whole, description="The rules")

        attach([whole, second], [described], [second])

        assert sorted(read, key=str) == [("rules.pdf", (2,)), ("rules.pdf", None)]

    def test_what_takes_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        release = threading.Event()

        def hang(file: FileRef, path: Path) -> str:
            release.wait(PATIENCE_S)
            return ""

        monkeypatch.setattr(module, "read_file", hang)
        try:
            (problem,) = attach([local(tmp_path, "endless.txt", b"", convert_s=0.05)])
        finally:
            release.set()
        assert str(problem) == "endless.txt: reading it took longer than 0.05 s"

    def test_problems_are_of_one_type(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        good = local(tmp_path, "good.txt", b"text")
        damaged = local(tmp_path, "bad.pdf", pdf("text")[:100], "pdf")
        gone = FileRef(name="gone.txt", kind="text", path=str(tmp_path / "gone.txt"))

        found = attach([good, damaged], [gone], [good])

        assert [type(item) for item in found] == [AttachmentError, AttachmentError, tuple]
        assert str(found[0]).startswith("bad.pdf cannot be read as pdf: ")

        monkeypatch.setattr(module, "read_file", lambda file, path: 1 / 0)
        assert str(attach([good])[0]) == "good.txt: ZeroDivisionError: division by zero"

    def test_a_download_is_a_file_like_any_other(self, server: FileServer, tmp_path: Path) -> None:
        server.answers = [Sent(xlsx(Prices=[("City", 18)], Stock=[("City", 3)]))]
        prices = FileRef(name="prices", kind="excel", url=f"{server.url}/prices.xlsx", sheet="Stock")

        found = attached(prices, replace(prices, sheet="Prices"), kept=tmp_path)

        assert len(server.asked) == 1
        assert found[0][0] == found[0][1]
        assert Path(found[0][0]).name == "prices.xlsx"
        assert found[1][0] == "File: prices\n## Stock\n| City | 3 |\n| --- | --- |"


class TestDownloader:
    def test_a_cache_that_cannot_be_written_only_costs_time(self, server: FileServer, tmp_path: Path) -> None:
        (tmp_path / "kept").write_text("a file where the directory should be")
        downloader = Downloader(tmp_path / "kept", tmp_path / "temporary", Seal())
        found = downloader.get(f"{server.url}/hours.txt", "text", 10, keep=True)
        assert found.is_relative_to(tmp_path / "temporary")

    def test_nowhere_to_store(self, server: FileServer, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        downloader = Downloader(tmp_path / "file", tmp_path / "file", Seal())
        with pytest.raises(DownloadError, match="cannot be stored: "):
            downloader.get(server.url, "text", 10, keep=True)

    def test_an_entry_that_somebody_else_wrote_is_downloaded_again(
        self, server: FileServer, downloader: Downloader
    ) -> None:
        url, other = (f"{server.url}/{name}.txt" for name in ("hours", "other"))
        own = replace(downloader, seal=Seal("the key of this repository"))
        server.answers = [Sent(b"forged")]
        for writer in (
            downloader,
            replace(downloader, seal=Seal("another key, of 32 characters..")),
            replace(downloader, seal=Seal("another key, of 32 characters..")),
        ):
            writer.get(url, "text", 10, keep=True)
        own.get(other, "text", 10, keep=True)
        for suffix in ("", ".mac"):
            # The content of another file, with its code.
            (source,) = own.kept.glob(f"*/other.txt{suffix}")
            (target,) = own.kept.glob(f"*/hours.txt{suffix}")
            target.write_bytes(source.read_bytes())
        server.answers = [Sent(b"true")]
        server.asked.clear()

        assert [own.get(url, "text", 10, keep=True).read_text() for _ in range(2)] == ["true"] * 2
        assert server.asked == ["/hours.txt"]
        target.with_suffix("").write_text("forged again")
        assert own.get(url, "text", 10, keep=True).read_text() == "true"
        target.unlink()
        assert own.get(url, "text", 10, keep=True).read_text() == "true"
        assert own.get(url, "text", 10, keep=False).read_text() == "true"
        assert len(server.asked) == 4

    @pytest.mark.parametrize(
        "host",
        [
            *("127.0.0.2", "localhost", "2130706434", "0x7f.2", "[::1]", "[::ffff:127.0.0.2]", "0.0.0.0", "10.0.0.1"),
            *("169.254.169.254", "100.64.0.1", "192.168.0.1", "[64:ff9b::7f00:1]", "user:secret@127.0.0.2"),
        ],
    )
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_no_redirect_leads_to_a_private_address(
        self, server: FileServer, downloader: Downloader, host: str, status: int
    ) -> None:
        port = server.url.rpartition(":")[2]
        # The suite names this server; only its first answer is wanted of it.
        server.answers = [Sent(b"", status, {"Location": f"http://{host}:{port}/secret"}), Sent(b"of the network")]
        with pytest.raises(DownloadError) as caught:
            downloader.get(f"{server.url}/hours.txt", "text", 10, keep=True)
        assert "which is not a public address; use that address in the suite" in str(caught.value)
        assert "secret" not in str(caught.value)
        assert server.asked == ["/hours.txt"]

    def test_a_redirect_within_the_named_host_may_pass_several_addresses(
        self, server: FileServer, downloader: Downloader
    ) -> None:
        server.answers = [*(Sent(b"", 302, {"Location": f"{server.url}/{n}"}) for n in range(10)), Sent(b"found")]
        assert downloader.get(f"{server.url}/a.txt", "text", 10, keep=False).read_text() == "found"
        server.answers = [Sent(b"", 302, {"Location": "/again"})]
        with pytest.raises(DownloadError, match="redirects more than 10 times"):
            downloader.get(f"{server.url}/a.txt", "text", 10, keep=False)

    def test_a_name_that_changes_its_address_is_noticed(
        self, server: FileServer, downloader: Downloader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        look_up = socket.getaddrinfo
        answers = ["8.8.8.8", "127.0.0.1"]

        def rebinding(host: Any, *args: Any, **options: Any) -> Any:
            return look_up(answers.pop(0) if host in {"rebinds.test", b"rebinds.test"} else host, *args, **options)

        monkeypatch.setattr(socket, "getaddrinfo", rebinding)
        port = server.url.rpartition(":")[2]
        server.answers = [Sent(b"", 302, {"Location": f"http://rebinds.test:{port}/secret"}), Sent(b"of the network")]
        with pytest.raises(DownloadError, match=r"redirects to rebinds\.test, which is not a public address"):
            downloader.get(f"{server.url}/hours.txt", "text", 10, keep=True)
        assert (answers, server.asked) == ([], ["/hours.txt"])

    def test_a_proxy_may_have_a_private_address(
        self, server: FileServer, downloader: Downloader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        server.answers = [Sent(b"", 302, {"Location": "http://files.invalid/b.txt"}), Sent(b"found")]
        assert downloader.get("http://named.invalid/a.txt", "text", 10, keep=False).read_text() == "found"
        server.answers = [Sent(b"", 302, {"Location": "http://10.0.0.1/b.txt"}), Sent(b"found")]
        with pytest.raises(DownloadError, match=r"redirects to 10\.0\.0\.1, which is not a public address"):
            downloader.get("http://named.invalid/a.txt", "text", 10, keep=False)

    @pytest.mark.parametrize(
        ("answer", "said", "attempts"),
        [
            (Sent(status=404), "answered with status 404", 1),
            (Sent(status=403), "answered with status 403", 1),
            (Sent(status=500), "answered with status 500", 3),
            (Sent(b"", 302, {"Location": "file:///etc/passwd"}), "redirects to file://; only ", 1),
            (Sent(b"", 302, {"Location": "ftp://127.0.0.1/a"}), "redirects to ftp://; only ", 1),
            (Sent(status=304), "answered with status 304", 1),
            (Sent(headers={"Content-Encoding": "gzip"}), "cannot be downloaded: ", 1),
            (Sent(headers={"Content-Length": "100"}), "cannot be reached: ", 3),
            (Sent(b"x" * 3000), "is larger than 0.00195312 MB", 1),
        ],
    )
    def test_what_cannot_be_had(
        self, server: FileServer, downloader: Downloader, answer: Sent, said: str, attempts: int
    ) -> None:
        server.answers = [answer]
        small = replace(downloader, max_bytes=2048)
        with pytest.raises(DownloadError) as caught:
            small.get(f"{server.url}/a.txt?token=secret", "text", 10, keep=True)
        assert str(caught.value).startswith(f"{server.url}/a.txt {said}")
        assert "secret" not in str(caught.value)
        assert len(server.asked) == attempts
        assert [path for path in downloader.kept.rglob("*") if path.is_file()] == []

    @pytest.mark.parametrize("then", ["drip", "wait"])
    def test_what_does_not_arrive(
        self, server: FileServer, downloader: Downloader, then: Literal["drip", "wait"]
    ) -> None:
        server.answers = [Sent(then=then)]
        with pytest.raises(DownloadError, match=r"did not arrive within 0\.2 s"):
            downloader.get(f"{server.url}/hours.txt", "text", 0.2, keep=True)
        assert len(server.asked) == 3
